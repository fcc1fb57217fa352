"""Plans of expansions: decided before they begin, and the same for every worker, every device and every resume."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from variegate.arrays import Int64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import num_partners
from variegate.checks import PIXEL_VERSION
from variegate.data.annotated.manifest_targets import Content
from variegate.data.base import SourceError
from variegate.data.folder import FLAT_CLASS
from variegate.data.labels import CLASS_NAMES, class_names_bytes
from variegate.data.samples import Samples
from variegate.data.shards import Labels, Layout, PackFormat
from variegate.data.storage import Storage
from variegate.decode.dicom import Dicom
from variegate.io.addresses import redact_url
from variegate.jobs.augment.writing import FolderWriter, PartWriter, ShardWriter
from variegate.jobs.output.files import ImageFormat, OutputNames, check_depth, output_path
from variegate.jobs.output.parts import Rows
from variegate.loader.shuffle import partners_of
from variegate.loader.value_range import warn_of_clipping
from variegate.ops.base import refuse_views
from variegate.policies.uniform import refuse_given_magnitude
from variegate.program.depth import Depth
from variegate.program.draws.record import record_of
from variegate.program.program import Output
from variegate.threads import computed_once
from variegate.transforms import Transform

# Copies of a sample made from one decode. More are several items, so that a few samples keep many devices busy.
_COPIES_PER_ITEM = 16
# Outputs of a part: few enough that a kill costs little. Small data sets have about ``_PARTS`` parts, so that all
# devices have work until the end.
_OUTPUTS_PER_PART = 256
_MIN_OUTPUTS_PER_PART = 16
_PARTS = 64
# Settings that have the names of arguments.
SETTINGS = ("seed", "epoch", "copies", "layout", "format", "quality")


@dataclass(frozen=True)
class Plan:
    """``copies`` augmented copies of every sample of a source, divided into *items* and *parts*. An item is a sample or
    up to 16 copies of a sample; a part is a shard, or at most 256 outputs.

    Raises ValueError (SourceError) naming the argument.
    """

    source: Samples  # by index
    transform: Transform  # it ends in bytes, not in Normalize
    copies: int = 1
    seed: int = 0
    epoch: int = 0
    layout: Layout | PackFormat = "folder"  # class folders of image files, or shards
    format: ImageFormat = "jpg"
    quality: int = 95
    shard_size: int = 1000  # images in a shard, about
    channels: int | None = None  # that files must have, as of ``read_image``
    depth: Depth = Depth.UINT8  # in which images are read and written
    dicom: Dicom = field(default_factory=Dicom)  # how DICOM files are read
    place: str = field(default="", repr=False)  # of the source, to open it again; it may hold a password

    def __post_init__(self) -> None:
        refuse_given_magnitude(self.transform, "policy", "policies with magnitudes of their own, such as RandAugment")
        if type(self) is Plan and self.source.has_targets:
            raise SourceError(f"{self.source!r}: has boxes, masks or key points; accepted: AnnotatedPlan, for these")
        self._check_format()
        check_writable(self.transform, self.seed, self._has_boxes, self.depth)
        warn_of_clipping(self.transform, self.source, self.depth, self.channels, self.dicom)

    def _check_format(self) -> None:
        """Raise ValueError for a format that cannot hold the images, or is not read again in its layout."""
        check_depth(self.format, self.depth)
        if self.format == "png" and self.depth.is_deep and self.channels != 1:
            accepted = "'png' with channels=1, which reads gray images as one channel, or tif, npy"
            raise ValueError(f"format: got 'png', which holds no color of {self.depth}; accepted: {accepted}")
        if self.format == "npy" and self.layout == "webdataset":
            accepted = "tif, or another layout"
            raise ValueError(
                f"format: got 'npy' with layout='webdataset', which is not read again; accepted: {accepted}"
            )

    @property
    def job_kind(self) -> Any:
        """The ``ExpansionJob`` for such a plan; None: that class itself."""
        return None

    @property
    def metadata(self) -> Mapping[str, Any] | None:
        """Requirements of a data set with boxes, masks or key points."""
        return None

    @property
    def _has_boxes(self) -> bool:
        """Images come with boxes, which transforms may choose by."""
        return False

    @property
    def num_items(self) -> int:
        return len(self.source) * self._items_per_sample

    @property
    def num_outputs(self) -> int:
        return len(self.source) * self.copies

    @property
    def copies_per_item(self) -> int:
        return min(self.copies, _COPIES_PER_ITEM)

    @property
    def _items_per_sample(self) -> int:
        return -(-self.copies // self.copies_per_item)

    def sample_of(self, item: int) -> int:
        return item // self._items_per_sample

    def item_of(self, index: int, copy: int) -> int:
        return index * self._items_per_sample + copy // self.copies_per_item

    @property
    def items_per_part(self) -> int:
        """Depends on the plan alone: a run may resume on other devices."""
        if self.is_sharded:
            return max(1, self.shard_size * self._items_per_sample // self.copies)
        outputs = min(_OUTPUTS_PER_PART, max(_MIN_OUTPUTS_PER_PART, self.num_outputs // _PARTS))
        return max(1, outputs // self.copies_per_item)

    @property
    def num_parts(self) -> int:
        return -(-self.num_items // self.items_per_part)

    def part_number(self, index: int, copy: int) -> int:
        return self.item_of(index, copy) // self.items_per_part

    def items_of(self, part: int) -> range:
        first = part * self.items_per_part
        return range(first, min(first + self.items_per_part, self.num_items))

    def outputs_of(self, part: int) -> list[tuple[int, int]]:
        """(index, copy) of each output."""
        return [(self.sample_of(item), copy) for item in self.items_of(part) for copy in self.copies_of(item)]

    def open_part(self, storage: Storage, part: int, labels: Labels) -> PartWriter:
        if not self.is_sharded:
            return FolderWriter(self, storage, part)
        return ShardWriter(self, storage, part, labels)

    def copies_of(self, item: int) -> range:
        first = item % self._items_per_sample * self.copies_per_item
        return range(first, min(self.copies, first + self.copies_per_item))

    @property
    def is_sharded(self) -> bool:
        """False where every output is a file of its own."""
        return self.layout != "folder"

    @computed_once
    def names(self) -> OutputNames:
        return OutputNames(self.source)

    def partners(self, indices: Int64Array) -> Int64Array:
        """The indices of the partners of samples, [N, K], as in a ``Loader``."""
        number = num_partners(self.transform)
        if not number:
            return np.empty((len(indices), 0), np.int64)
        return partners_of(indices, len(self.source), self.seed, self.epoch, number)

    def sample_id(self, index: int) -> int:
        return int(self.source.ids(np.array([index], np.int64))[0])

    def sample_name(self, index: int) -> str:
        """The name for messages and the manifest: for a listed folder the path within it."""
        source = self.source
        return source.relative_path(index) or str(source.name(index))

    def written_row(
        self, index: int, id: int, copy: int, label: Any, shape: tuple[int, ...], operations: Any
    ) -> dict[str, Any]:
        """The manifest's row of an output, without its checksum. Shards add ``file`` and ``member``."""
        label = int(label) if isinstance(label, (int, np.integer)) else label
        classes = self.source.classes
        is_class = isinstance(label, int) and 0 <= label < len(classes)
        return {
            **self._metadata(index, id, copy),
            "file": None if self.is_sharded else self._file(index, label, copy),
            "status": "written",
            "reason": None,
            "label": label if isinstance(label, int) and 0 <= label < 1 << 63 else None,
            "class": classes[label] if is_class and classes[label] != FLAT_CLASS else None,
            "height": shape[0],
            "width": shape[1],
            "operations": operations,
        }

    def missing_rows(self, item: int, reason: str) -> Iterator[dict[str, Any]]:
        """The manifest's rows of an item that could not be made."""
        index = self.sample_of(item)
        for copy in self.copies_of(item):
            yield {**self._metadata(index, self.sample_id(index), copy), "status": "quarantined", "reason": reason}

    def _metadata(self, index: int, id: int, copy: int) -> dict[str, Any]:
        blank = dict.fromkeys(("file", "member", "status", "reason"))
        return {**blank, "source": self.sample_name(index), "index": index, "id": id, "copy": copy}

    def _file(self, index: int, label: Any, copy: int) -> str:
        return output_path(self.names.stem(index, label), copy, self.format)

    def make_class_folders(self, storage: Storage) -> None:
        """Make folders for classes without images too, so that all classes keep their index."""
        if self.is_sharded or storage.is_remote:  # where there are no folders without files
            return
        for name in self.names.folders_of_classes():
            os.makedirs(os.path.join(storage.root, name), exist_ok=True)

    def last_files(self, storage: Storage, labels: Labels, rows: Rows) -> Iterator[tuple[str, Content]]:
        """Names and contents of the files of the whole run, once all outputs are there. ``rows``: of the manifest."""
        if self.layout == "webdataset" and labels.classes:
            yield CLASS_NAMES, class_names_bytes(labels.classes)

    def settings(self, executor: str) -> dict[str, Any]:
        """Everything that determines the outputs, as JSON. ``executor``: its pixels may differ by a level from
        another's."""
        return {
            **source_settings(self.source, self.place),
            "transform": self.transform.to_dict(),
            **{name: getattr(self, name) for name in SETTINGS},
            **({"shard_size": self.shard_size} if self.is_sharded else {}),
            **self.source.excluded,
            **({} if self.channels is None else {"channels": self.channels}),
            **self._reading,
            "executor": executor,
            "pixels": PIXEL_VERSION,
        }

    @property
    def _reading(self) -> dict[str, Any]:
        """Settings of how images are read, unless they are the defaults."""
        window = self.dicom.window
        settings = {
            "depth": str(self.depth) if self.depth.is_deep else None,
            "window": ",".join(map(repr, window)) if isinstance(window, tuple) else window,
            "frame": self.dicom.frame,
        }
        return {name: value for name, value in settings.items() if value is not None}


def source_settings(source: Samples, place: str) -> dict[str, Any]:
    """The settings that every run has of its source. ``place``: the source, unchanged."""
    return {
        "source": redact_url(place),
        "samples": len(source),
        "fingerprint": source.fingerprint,
        "classes": list(source.classes),
    }


def check_writable(transform: Transform, seed: int, has_boxes: bool, depth: Depth) -> None:
    """Raise ValueError for a policy that cannot be written: several images, no pixels, a choice by boxes without
    annotations, or an operation on 256 levels for images of more."""
    refuse_views(transform, "policy")
    if depth.is_deep:
        record_of(transform, Output(), 3, 0).check_levels(depth)
    try:
        end = _no_image_after(transform, seed, has_boxes)
    except TypeError as error:
        raise SourceError(f"policy: {error}") from None
    if end is not None:
        raise SourceError(f"the policy ends in {end}; images on disk hold pixels, so leave it out")


def _no_image_after(transform: Transform, seed: int, has_boxes: bool) -> str | None:
    """The end of a transform that leaves no image of bytes. Raises TypeError for one that needs boxes."""
    augmenter = Augmenter(transform, "cpu", seed)
    try:
        given: dict[str, Any] = {"label": [0]} | ({"objects": [frozenset()]} if has_boxes else {})
        boxes = [[[0, 0, 4096, 4096]]] if has_boxes else None
        output = augmenter.program([(4096, 4096)], ids=[0], conditions=given, partners="batch", boxes=boxes).output
    except ValueError:  # it accepts other images; samples that it refuses will be named
        return None
    return "Normalize" if output.is_float else str(output.steps[0]) if output.steps else None
