"""Expansion of a data set with boxes, masks or key points, to a data set in the same layout: its plan, and its job."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from variegate.augmenter.samples import follow
from variegate.data.annotated.manifest_targets import Content, objects_of, record_of
from variegate.data.annotated.options import split_typed
from variegate.data.annotated.records import RecordForm, has_objects
from variegate.data.base import SourceError
from variegate.data.coco import coco_files
from variegate.data.samples import Samples
from variegate.data.shards import Labels
from variegate.data.storage import Storage
from variegate.data.tar.webdataset import check_written
from variegate.data.voc import voc_file, voc_files
from variegate.data.yolo import yolo_file, yolo_files
from variegate.io.addresses import is_url
from variegate.jobs.augment.job import DecodedItem, ExpansionJob, ExpansionSpec, Image_HWC, digest_columns
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.writing import CopyOutput
from variegate.jobs.output.files import encode_mask, output_path
from variegate.jobs.output.manifest import ANNOTATED
from variegate.jobs.output.parts import Row, Rows
from variegate.program.program import Program
from variegate.targets.samples import of_images
from variegate.targets.settings import Targets

# Of ``plan_for``.
OWN_LAYOUT = "auto"
# Options of targets that apply here; the others belong to the layout.
TARGET_OPTIONS = ("mask_fill", "min_area", "min_visibility")
# Attributes of objects besides boxes and classes.
_PER_BOX = ("ignored", "outline")
# By layout: functions that write an output's annotation file, and the annotation files of the run.
_FILE_OF_OUTPUT = {"voc": voc_file, "yolo": yolo_file}
_FILES_OF_RUN = {"coco": coco_files, "voc": voc_files, "yolo": yolo_files}
_json = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class AnnotatedPlan(Plan):
    """``copies`` augmented copies of every image, with boxes, masks or key points, in the layout of the source.

    Outlines are kept whether the source gives masks of them or not.
    """

    annotations: Any = None  # as passed to ``open_source``, to open the source again
    targets: Targets = field(default_factory=Targets)  # with ``TARGET_OPTIONS`` alone

    def __post_init__(self) -> None:
        layout = self.source.layout if isinstance(self.source, Samples) else None
        if layout is None:
            accepted = "a folder with COCO's, VOC's or YOLO's annotations, or of masks, and shards of such, by index"
            raise SourceError(f"{self.source!r}: accepted, to be written with what belongs to its images: {accepted}")
        if self.layout != layout:
            accepted = f"{layout!r} for this source, as boxes, masks and key points are written in the layout they have"
            raise ValueError(f"layout: got {self.layout!r}; accepted: {accepted}")
        if self.targets != Targets(**{name: getattr(self.targets, name) for name in TARGET_OPTIONS}):
            raise ValueError(f"targets: got {self.targets}; accepted: {', '.join(TARGET_OPTIONS)}, and no others")
        folder = "" if self.source.folder is None else self.source.folder.address()
        if self.is_sharded:
            check_written(self.metadata, self.format)
        object.__setattr__(self, "source", with_outlines(self.source))
        object.__setattr__(self, "annotations", _from_folder(self.annotations, folder))
        for path in [] if self.is_sharded else map(self.sample_name, range(len(self.source))):
            try:
                path.encode()
            except UnicodeEncodeError:
                raise SourceError(f"{path!r}: not UTF-8, which files of annotations are in; rename it") from None
        super().__post_init__()

    @property
    def job_kind(self) -> type[AnnotatedJob]:
        return AnnotatedJob

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata = self.source.whole.metadata
        assert metadata is not None  # of every source with a layout
        return metadata

    @property
    def has_masks(self) -> bool:
        """Every output has a mask, in a file or member of its own."""
        return self.metadata["format"] == "masks" or self.metadata.get("mask") is not None

    @property
    def has_objects(self) -> bool:
        """Every output has boxes or key points, possibly none."""
        return has_objects(self.metadata) if self.is_sharded else not self.has_masks

    @property
    def per_box(self) -> tuple[str, ...]:
        return tuple(RecordForm(**self.metadata["record"]).per_box) if self.is_sharded else _PER_BOX

    @property
    def _has_boxes(self) -> bool:
        if not self.is_sharded or not self.has_objects:
            return self.has_objects
        return self.metadata.get("rows") is not None or RecordForm(**self.metadata["record"]).boxes is not None

    def about_objects(self, index: int) -> dict[str, Any]:
        """``Objects.metadata`` of a sample."""
        source = self.source
        return {} if source.objects is None else dict(source.objects.metadata(source.row(index)))

    def _file(self, index: int, label: Any, copy: int) -> str:
        stem = self.names.stem(index, label)
        if self.has_masks:
            stem = stem.removeprefix(f"{self.metadata['images']}/")
        prefix = "images/" if self.metadata["format"] in ("coco", "masks") else ""
        return output_path(f"{prefix}{stem}", copy, self.format)

    def settings(self, executor: str) -> dict[str, Any]:
        targets = {name: getattr(self.targets, name) for name in TARGET_OPTIONS}
        metadata = {"annotations": self.annotations, ANNOTATED: dict(self.metadata), "targets": targets}
        return super().settings(executor) | metadata

    def last_files(self, storage: Storage, labels: Labels, rows: Rows) -> Iterator[tuple[str, Content]]:
        yield from super().last_files(storage, labels, rows)

        def numbered() -> Iterator[tuple[int, Row]]:
            return ((number, row) for number, row in enumerate(rows(), 1) if row["status"] == "written")

        if write := _FILES_OF_RUN.get(self.metadata["format"]):
            yield from write(self.metadata, self.source.classes, numbered)


def plan_for(
    source: Samples, *arguments: Any, annotations: Any = None, targets: Targets | None = None, **more: Any
) -> Plan:
    """A ``Plan`` of these arguments, or an ``AnnotatedPlan``; ``layout="auto"``: its own layout, else "folder".

    Raises ValueError for ``targets`` of a source without boxes, masks or key points.
    """
    has_targets = source.has_targets
    none = Targets()
    if more.get("layout") == OWN_LAYOUT:
        more["layout"] = source.layout or "folder"
    if has_targets:
        more |= {"annotations": annotations, "targets": targets or none}
        return AnnotatedPlan(source, *arguments, **more)
    for name in TARGET_OPTIONS:
        if (value := getattr(targets or none, name)) != getattr(none, name):
            accepted = "with images alone; --annotations tells of boxes, masks and key points"
            raise ValueError(f"{name}: got {value!r}; accepted: {getattr(none, name)!r} {accepted}")
    return Plan(source, *arguments, **more)


def with_outlines(source: Samples) -> Samples:
    """Add a mask for each object that has an outline."""
    if source.objects is None:
        return source
    mask = None if source.objects.shapes is None else "each"
    return source if source.mask == mask else source.with_mask(mask)


def _from_folder(annotations: Any, folder: str) -> Any:
    """The options as JSON, with paths of files relative to the source's folder, so that they are valid on any
    machine."""
    if isinstance(annotations, Mapping):
        known = {name: _plain(value) for name, value in annotations.items()}
    elif isinstance(annotations, str | os.PathLike):
        first, options = split_typed(os.fspath(annotations))
        is_file = first.lower().endswith(".json")
        if not is_file and not options:
            return first
        known = {("file" if is_file else "format"): first, **options}
    else:
        return annotations
    if not is_url(folder) and os.path.isfile(file := known.get("file") or ""):
        known["file"] = os.path.relpath(os.path.realpath(file), os.path.realpath(folder))
    return known


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else list(value) if isinstance(value, tuple) else value


class AnnotatedJob(ExpansionJob):
    """An ``ExpansionJob`` whose boxes, masks and key points follow the images."""

    _plan: AnnotatedPlan

    def __init__(self, spec: ExpansionSpec, device: str, num_threads: int) -> None:
        super().__init__(spec, device, num_threads)
        self._options = replace(self._plan.targets, per_box=self._plan.per_box)

    def warm_up(self) -> None:
        super().warm_up()
        image = np.zeros((64, 64, 3), np.uint8)
        targets = {"boxes": [[8, 8, 24, 24]], "labels": [0], "keypoints": [[9, 9, 2]], "mask": image[..., 0]}
        with suppress(Exception):  # it may take other images; if it takes none, tasks will say so
            self._augmenter([{"image": image, **targets}] * 8, ids=list(range(8)), partners="batch")

    def _targets(self, item: Any, index: int) -> Mapping[str, Any] | None:
        return {**item.targets, **self._plan.about_objects(index)}

    def _augment(self, group: list[DecodedItem], copy: int) -> tuple[Program, list[Image_HWC]]:
        every, given = self._together(group, copy)
        check = partial(of_images, [sample.targets or {} for sample in every], options=self._options)
        images = [sample.pixels for sample in every]
        classes = self._plan.source.classes
        made, _, followed, program = follow(self._augmenter, images, check, self._options, classes=classes, **given)
        for one, targets in zip(group, followed, strict=False):
            # Masks are where images are made.
            one.targets = {k: v.cpu() if isinstance(v, torch.Tensor) else v for k, v in targets.items()}
        return program, [image.cpu().numpy() for image in made]

    def _encode(self, one: DecodedItem, image: Image_HWC, row: dict[str, Any]) -> CopyOutput:
        row, data, beside = super()._encode(one, image, row)
        row |= dict.fromkeys(("mask_sha256", "targets"))
        plan = self._plan
        targets = one.targets
        if plan.is_sharded and plan.has_objects:
            row["targets"] = _json(objects_of(targets, plan.per_box))
        elif plan.has_objects:
            row["targets"] = _json(record_of(targets, image.shape[2], plan.metadata["format"] == "yolo"))
        if plan.has_masks:
            beside = encode_mask(np.asarray(targets["mask"]))
            if not plan.is_sharded:
                row["mask_file"] = f"masks/{os.path.splitext(row['file'])[0].removeprefix('images/')}.png"
            row |= digest_columns(beside, "mask_")
        if make_file := _FILE_OF_OUTPUT.get(plan.metadata["format"]):
            row["annotation_file"], beside = make_file(plan.metadata, plan.source.classes, row)
            row |= digest_columns(beside, "annotation_")
        return CopyOutput(row, data, beside)
