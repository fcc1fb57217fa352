"""What an expansion of a data set with boxes, masks or key points makes: a data set in the same layout."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from variegate.formats.annotated.columns import AnnotatedRows
from variegate.formats.annotated.fields import RecordForm
from variegate.formats.annotated.folders import AnnotatedFolder, MaskedFolder
from variegate.formats.annotated.members import AnnotatedShards
from variegate.formats.annotated.opening import split_typed
from variegate.formats.base import Source, SourceError, first_names
from variegate.formats.filtered import KeptFiles, KeptSource, whole_of
from variegate.formats.shards import Layout
from variegate.formats.tar.write import check_written, has_objects
from variegate.io.addresses import is_url
from variegate.jobs.augment.plan import Plan
from variegate.jobs.output.annotated_files import SETTING, lost_annotations, restore_annotations, write_annotations
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.naming import output_path
from variegate.targets.settings import Targets

# Of ``plan_for``.
OWN_LAYOUT = "auto"
# What of the targets' options makes sense here; the others are those of the layout.
TARGET_OPTIONS = ("mask_fill", "min_area", "min_visibility")


@dataclass(frozen=True)
class AnnotatedPlan(Plan):
    """``copies`` augmented copies of every image, with what belongs to it, in the layout of the source.

    Args:
        source: of ``open_source(folder, annotations=...)``. Outlines are kept whether it gives masks of them or not.
        annotations: as they were given to ``open_source``, for whoever wants to open the source again.
        targets: ``vg.Targets`` with ``mask_fill``, ``min_area`` or ``min_visibility``.

    ``layout`` is that of the source: "folder", or of shards "webdataset" or "parquet". Raises ValueError (SourceError)
    naming the argument.
    """

    annotations: Any = None
    targets: Targets = field(default_factory=Targets)

    def __post_init__(self) -> None:
        whole = whole_of(self.source)
        if (layout := own_layout(whole)) is None:
            accepted = "a folder with COCO's, VOC's or YOLO's annotations, or of masks, and shards of such, by index"
            raise SourceError(f"{self.source!r}: accepted, to be written with what belongs to its images: {accepted}")
        if self.layout != layout:
            accepted = f"{layout!r} for this source, as boxes, masks and key points are written in the layout they have"
            raise ValueError(f"layout: got {self.layout!r}; accepted: {accepted}")
        if self.targets != Targets(**{name: getattr(self.targets, name) for name in TARGET_OPTIONS}):
            raise ValueError(f"targets: got {self.targets}; accepted: {', '.join(TARGET_OPTIONS)}, and no others")
        folder = whole.folder.address() if isinstance(whole, AnnotatedFolder | MaskedFolder) else ""
        if self.is_sharded:
            check_written(self.about, self.format)
        object.__setattr__(self, "source", with_outlines(self.source))
        object.__setattr__(self, "annotations", _from_folder(self.annotations, folder))
        for index in range(0 if self.is_sharded else len(self.source)):
            path = self.sample_name(index)
            if not _is_utf8(path):
                raise SourceError(f"{path!r}: not UTF-8, which files of annotations are in; rename it")
        super().__post_init__()

    @property
    def about(self) -> Mapping[str, Any]:
        """What a data set in the layout needs to have: ``about`` of the source."""
        found: Mapping[str, Any] = getattr(whole_of(self.source), "about")  # noqa: B009
        return found

    @property
    def has_masks(self) -> bool:
        """Every output has a mask, in a file or member of its own."""
        return self.about["format"] == "masks" or self.about.get("mask") is not None

    @property
    def has_objects(self) -> bool:
        """Every output has boxes or key points, of which there may be none."""
        return has_objects(self.about) if self.is_sharded else not self.has_masks

    @property
    def form(self) -> RecordForm:
        """Of shards."""
        return RecordForm(**self.about["record"])

    @property
    def _has_boxes(self) -> bool:
        if self.is_sharded:
            return self.has_objects and (self.about.get("rows") is not None or self.form.boxes is not None)
        return self.has_objects

    def about_objects(self, index: int) -> dict[str, Any]:
        """``Objects.about`` of a sample."""
        source: Any = self.source
        while isinstance(source, KeptSource):
            source, index = source.whole, int(source.kept[index])
        return dict(source.objects.about(index)) if isinstance(source, AnnotatedFolder) else {}

    def mask_file(self, file: str) -> str:
        """Of the output that has this image file."""
        return f"masks/{os.path.splitext(file)[0].removeprefix('images/')}.png"

    def _file(self, index: int, label: Any, copy: int) -> str:
        stem = self.names.stem(index, label)
        if self.has_masks:
            stem = stem.removeprefix(f"{self.about['images']}/")
        prefix = "images/" if self.about["format"] in ("coco", "masks") else ""
        return output_path(f"{prefix}{stem}", copy, self.format)

    def settings(self, executor: str) -> dict[str, Any]:
        targets = {name: getattr(self.targets, name) for name in TARGET_OPTIONS}
        about = {"annotations": self.annotations, SETTING: dict(self.about), "targets": targets}
        return super().settings(executor) | about

    def write_beside(self, destination: Destination, rows: Callable[[], Iterator[dict[str, Any]]]) -> None:
        write_annotations(destination.storage, destination.settings, rows)

    def restore_beside(self, destination: Destination) -> None:
        manifest = read_manifest(destination.storage.root)
        if lost := lost_annotations(destination.storage, manifest):
            destination.amend(lambda storage: restore_annotations(storage, manifest, lost))
            warnings.warn(f"files of annotations are written again: {first_names(sorted(lost))}", stacklevel=3)


def plan_for(
    source: Source, *arguments: Any, annotations: Any = None, targets: Targets | None = None, **more: Any
) -> Plan:
    """A ``Plan`` of these arguments, or an ``AnnotatedPlan`` where the source has boxes, masks or key points. Raises
    ValueError for ``targets`` where it has none. ``layout="auto"``: that of a source with any, else "folder"."""
    if getattr(source, "has_targets", False):
        if more.get("layout") == OWN_LAYOUT:
            more["layout"] = own_layout(whole_of(source)) or "folder"
        more |= {"annotations": annotations, "targets": targets or Targets()}
        return AnnotatedPlan(source, *arguments, **more)
    if more.get("layout") == OWN_LAYOUT:
        more["layout"] = "folder"
    for name in TARGET_OPTIONS:
        if (value := getattr(targets or Targets(), name)) != getattr(Targets(), name):
            accepted = "with images alone; --annotations tells of boxes, masks and key points"
            raise ValueError(f"{name}: got {value!r}; accepted: {getattr(Targets(), name)!r} {accepted}")
    return Plan(source, *arguments, **more)


def own_layout(source: Any) -> Layout | None:
    """The layout that a source has its boxes, masks or key points in; None for one of which none are written."""
    if isinstance(source, AnnotatedFolder | MaskedFolder):
        return "folder"
    if isinstance(source, AnnotatedShards):
        return "webdataset"
    return "parquet" if isinstance(source, AnnotatedRows) else None


def with_outlines(source: Any) -> Any:
    """With a mask for each object that has an outline."""
    if isinstance(source, KeptSource):
        whole = with_outlines(source.whole)
        return source if whole is source.whole else KeptFiles(whole, source.kept, source._notes, source.exclude)
    if isinstance(source, AnnotatedFolder):
        mask = None if source.objects.shapes is None else "each"
        return source if source.mask == mask else replace(source, mask=mask)
    return source


def _from_folder(annotations: Any, folder: str) -> Any:
    """As JSON has it, meaning the same from any folder, and where the data set has moved: files by their paths from the
    source's folder."""
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


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
