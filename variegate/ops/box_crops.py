"""Crops that keep boxes: all boxes, at least one, or a share of one. And transforms that clean up boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from variegate.arrays import BoolArray, Int32Array, Int64Array, UInt32Array
from variegate.checks import as_numbers
from variegate.ops.arguments import (
    MAX_ENTRIES,
    ArgumentError,
    FilterName,
    Probability,
    Size,
)
from variegate.ops.base import Transform
from variegate.ops.magnitude import INTERPOLATION_FLAGS
from variegate.ops.resize import crops_first
from variegate.ops.schema import LARGEST, Converted, Exactly, Range
from variegate.program.boxes import boxes_to_choose_by, known_boxes
from variegate.program.mixing import mixed_by
from variegate.program.ops import Op
from variegate.program.rng import sample_words, to_unit
from variegate.program.sampling import Floats, Rows, Sampling

Crops = Int64Array


@dataclass(frozen=True)
class RandomBoxSafeCrop(Transform):
    """Crop at random so that all boxes remain: Albumentations' ``BBoxSafeRandomCrop``.

    Each edge of the crop is uniform between the image's edge and that of the smallest box around all boxes, rounded
    outward to whole pixels. ``erosion_rate``, 0 to 1, shrinks that box by this share about its center, so that as much
    of it may be cut off. Without boxes, and at ``erosion_rate=1``, the crop has the image's aspect ratio and a random
    position. Its height is uniform from ``1 - erosion_rate`` to 1 times the image's.

    Albumentations does not shrink a single box, and its crops can lack a pixel at the last row and column.

    Raises TypeError while sampling if boxes are not given; ValueError after a mixing transform.
    """

    erosion_rate: Probability = 0.0
    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        crops = _safe_crops(sampling, rows, slot, self.erosion_rate, type(self).__name__)
        _emit_crops(sampling, rows, crops)


def _emit_crops(sampling: Sampling, rows: Rows, crops: Crops) -> None:
    is_smaller = (crops[:, 2:] != sampling.size[rows]).any(axis=1)
    rows, crops = rows[is_smaller], crops[is_smaller]
    sampling.emit(rows, Op.CROP, *crops.T, size=crops[:, 2:].astype(np.int32))


@dataclass(frozen=True)
class RandomResizedBoxSafeCrop(Transform):
    """Crop like ``RandomBoxSafeCrop`` and resize to ``size``: Albumentations' ``RandomSizedBBoxSafeCrop``.

    ``size``: (height, width) in pixels, or an integer for a square. ``erosion_rate``: as for ``RandomBoxSafeCrop``.
    Along the crop's edges, the filter uses the image's pixels beyond them, as in ``RandomResizedCrop``. Raises the
    errors of ``RandomBoxSafeCrop``.
    """

    size: Size
    erosion_rate: Probability = 0.0
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        crops = _safe_crops(sampling, rows, slot, self.erosion_rate, type(self).__name__)
        if crops_first(self.interpolation, "image"):
            size = crops[:, 2:].astype(np.int32)
            cut = (size != sampling.size[rows]).any(axis=1)
            sampling.emit(rows[cut], Op.CROP, *crops[cut].T, size=size[cut])
            crops[:, :2] = 0
        wanted = np.broadcast_to(np.array(self.size, np.int32), (len(rows), 2))
        flags = INTERPOLATION_FLAGS[self.interpolation]
        sampling.emit(rows, Op.RESIZED_CROP, *crops.T, *wanted.T, flags=flags, size=wanted)


@dataclass(frozen=True)
class RandomAtLeastOneBoxCrop(Transform):
    """Crop ``size`` pixels at random so that a box remains: Albumentations' ``AtLeastOneBBoxRandomCrop``.

    One of the boxes is drawn uniformly. The crop must include the share ``1 - erosion_factor`` of the box's width and
    height, or as much as fits, and at least one pixel. Its position is otherwise uniform. Other boxes are clipped or
    dropped. An image without boxes is cropped at a uniform position.

    Raises TypeError while sampling if boxes are not given; ValueError for an image smaller than ``size``, and after a
    mixing transform.
    """

    size: Size
    erosion_factor: Probability = 0.0
    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        edges = boxes_to_choose_by(sampling, rows, type(self).__name__)
        wanted, size = np.asarray(self.size, np.int32), sampling.size[rows]
        if (size < wanted).any():
            height, width = size[(size < wanted).any(axis=1)][0].tolist()
            raise ValueError(
                f"RandomAtLeastOneBoxCrop: got an image of {height}x{width} for size={self.size} (height, width); "
                "accepted: larger ones; resize or pad before"
            )
        unit = sampling.uniform(rows, slot)
        first, last = np.zeros((len(rows), 2)), (size - wanted).astype(np.float64)
        is_seen = np.isfinite(edges[..., 0])
        some = np.flatnonzero(is_seen.any(axis=1))
        if len(some):
            place = (unit[some, 0] * is_seen[some].sum(axis=1)).astype(np.intp)
            box = (is_seen[some].cumsum(axis=1) > place[:, None]).argmax(axis=1)
            low, high = self._range(edges[some, box], wanted)
            first[some], last[some] = np.clip(low, 0.0, last[some]), np.clip(high, 0.0, last[some])
        origin = first + np.floor(unit[:, 1:3] * (last - first + 1.0))
        _emit_crops(sampling, rows, np.concatenate([origin, np.broadcast_to(wanted, origin.shape)], axis=1))

    def _range(self, edges: Floats, wanted: Int32Array) -> tuple[Floats, Floats]:
        """Return the least and greatest (top, left) of crops that keep enough of boxes [R, 4], integers [R, 2]."""
        begin, end = edges[:, 1::-1], edges[:, :1:-1]
        sides = end - begin
        needed = np.maximum((1.0 - self.erosion_factor) * sides, np.minimum(sides, 1.0))
        ends = begin + needed - wanted, end - needed
        low, high = np.ceil(np.minimum(*ends) - 1e-9), np.floor(np.maximum(*ends) + 1e-9)
        # The interval in which a box fits may contain no integer.
        middle = np.rint(0.5 * (ends[0] + ends[1]))
        return np.where(low > high, middle, low), np.where(low > high, middle, high)


def _safe_crops(sampling: Sampling, rows: Rows, slot: int, erosion_rate: float, title: str) -> Crops:
    """Draw crops that keep all boxes: top, left, height, width, int64[R, 4]."""
    edges = boxes_to_choose_by(sampling, rows, title)
    unit, size = sampling.uniform(rows, slot), sampling.size[rows].astype(np.float64)
    crops = _of_the_image(size, unit, erosion_rate)
    if not edges.shape[1]:
        return crops
    # NaN for images without boxes, whose values are all NaN: of these, ``nanmin`` would warn.
    begin, end = np.fmin.reduce(edges[..., 1::-1], axis=1), np.fmax.reduce(edges[..., :1:-1], axis=1)
    eroded = 0.5 * erosion_rate * (end - begin)
    begin, end = begin + eroded, end - eroded
    some = (end > begin).all(axis=1) & (erosion_rate < 1.0)
    first = np.floor(unit[:, :2] * begin)
    last = np.ceil(end + (size - end) * unit[:, 2:])
    crops[some] = np.concatenate([first, last - first], axis=1)[some].astype(np.int64)
    return crops


def _of_the_image(size: Floats, unit: Floats, erosion_rate: float) -> Crops:
    """Draw crops with the images' aspect ratio, for images without boxes."""
    least = np.trunc(size[:, 0] * (1.0 - erosion_rate))
    height = np.maximum(least + np.floor(unit[:, 0] * (size[:, 0] - least + 1.0)), 1.0)
    sides = np.stack([height, np.maximum(np.trunc(height * size[:, 1] / size[:, 0]), 1.0)], axis=1)
    origin = np.floor(unit[:, 1:3] * (size - sides + 1.0))
    return np.concatenate([origin, sides], axis=1).astype(np.int64)


# Tolerance, so that rounding does not drop a box of exactly the minimum size.
_SLACK = 1e-9
_LABELS = "'default': labels, and what vg.Targets(per_box=) lists, always go with their boxes"


@dataclass(frozen=True)
class SanitizeBoundingBoxes(Transform):
    """Drop boxes that are too small, with their labels, masks, key points and ``vg.Targets(per_box=)``.

    A box is dropped if a side is shorter than ``min_size`` or its area is below ``min_area``. Both are 1 or more, in
    pixels of the image at this point of the pipeline. Boxes that exceed the image are clipped first, unlike in
    torchvision. For a box with an angle, the upright box around its visible part counts. ``RandomIoUCrop`` drops boxes
    without this transform.

    ``labels_getter``: only "default". Raises TypeError while sampling if boxes are not given.
    """

    min_size: Annotated[float, Range(1.0)] = 1.0
    min_area: Annotated[float, Range(1.0)] = 1.0
    labels_getter: Annotated[str, Exactly("default", _LABELS)] = "default"
    _changes_bytes = False

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        boxes = known_boxes(sampling, type(self).__name__)
        source = sampling.source[rows]
        is_mixed = np.zeros(len(rows), np.bool_)
        if mixed_by(sampling.mixes, source):
            # Visibility of boxes in mixed outputs is known only after all images are sampled.
            is_mixed = np.isin(source, np.concatenate([mix.samples for mix in sampling.mixes]))
            boxes.demand(source[is_mixed], self.min_size, self.min_area)
        rows = rows[~is_mixed]
        edges = boxes.edges(sampling, rows)
        sides = edges[..., 2:] - edges[..., :2]
        is_large = (sides >= self.min_size - _SLACK).all(axis=2) & (sides.prod(axis=2) >= self.min_area - _SLACK)
        boxes.drop(rows, ~is_large)


@dataclass(frozen=True)
class ClampBoundingBoxes(Transform):
    """Do nothing: boxes are always clipped to their image. For pipelines written for torchvision.

    Raises ValueError while sampling for boxes with angles, which are not clipped.
    """

    _changes_bytes = False

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if sampling.boxes is not None and sampling.boxes.are_turned:
            raise ValueError(
                "ClampBoundingBoxes: got boxes with angles (box_format='cxcywhr'), which would be no rectangles any "
                "more; accepted: upright boxes"
            )


OPTIONS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
# Limit of rounds if no option can be met; torchvision loops forever. One of the seven default options ends the loop,
# so that fewer than one image in a million reaches the limit.
ROUNDS = 100
# Most overlaps that are computed together, to bound memory.
_ROOM = 1 << 20


_OVERLAPS = "a list of overlaps from 0 on, of which 1 or more leaves images as they are"


def _overlap_options(value: Any) -> tuple[float, ...] | None:
    overlaps = as_numbers(value)
    if not overlaps or len(overlaps) > MAX_ENTRIES or not all(0.0 <= overlap <= LARGEST for overlap in overlaps):
        return None
    return overlaps


@dataclass(frozen=True)
class RandomIoUCrop(Transform):
    """Crop so that a box overlaps by a random share: SSD's crop (Liu et al. 2016, arXiv:1512.02325).

    Arguments and rules are torchvision's. One of ``sampler_options`` is drawn (None: 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1); at
    1 or more the image does not change. Then crops are drawn, up to ``trials`` times: each side is a share of the
    image's, uniform from ``min_scale`` to ``max_scale``, at a uniform position. A crop is accepted if its width /
    height is between ``min_aspect_ratio`` and ``max_aspect_ratio`` and it contains the center of a box; among such
    boxes, one must have an intersection over union with the crop of at least the option. If no crop is accepted,
    another option is drawn. After a hundred options, and without boxes, the image does not change.

    Boxes are in their state at this point of the pipeline. Boxes whose center is outside of the crop are dropped (in
    torchvision by ``SanitizeBoundingBoxes``); the others are clipped.

    Raises TypeError while sampling if boxes are not given; ValueError after a mixing transform.
    """

    min_scale: Probability = 0.3
    max_scale: Probability = 1.0
    min_aspect_ratio: Annotated[float, Range(0.0)] = 0.5
    max_aspect_ratio: Annotated[float, Range(0.0)] = 2.0
    sampler_options: Annotated[Sequence[float], Converted(_overlap_options, _OVERLAPS)] | None = None
    trials: Annotated[int, Range(1, MAX_ENTRIES)] = 40
    num_slots = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("scale", "aspect_ratio"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low > high:
                raise ArgumentError(self, f"max_{what}", high, f"a number from min_{what} ({low}) on")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        edges = boxes_to_choose_by(sampling, rows, type(self).__name__)
        has_boxes = np.isfinite(edges[..., 0]).any(axis=1)
        rows, edges = rows[has_boxes], edges[has_boxes]
        if not len(rows):
            return
        crops = self._draw(sampling.words(rows, slot)[:, 0, :2], sampling.size[rows], edges)
        cut = crops[:, 2] > 0
        rows, crops, edges = rows[cut], crops[cut], edges[cut]
        known_boxes(sampling, type(self).__name__).drop(rows, ~_has_centers(edges, crops[:, None])[:, 0])
        _emit_crops(sampling, rows, crops)

    def _draw(self, keys: UInt32Array, size: Int32Array, edges: Floats) -> Crops:
        """Draw top, left, height, width per row, int64[R, 4]; zeros for images that do not change."""
        options = np.array(OPTIONS if self.sampler_options is None else self.sampler_options)
        crops = np.zeros((len(keys), 4), np.int64)
        left = np.arange(len(keys))
        for number_of_round in range(ROUNDS):
            # Each row has a separate stream: block 0 draws the option, and each trial has a block.
            ids = np.full(len(left), number_of_round, np.uint64)
            units = to_unit(sample_words(ids, np.ascontiguousarray(keys[left]), 1 + self.trials))
            option = options[(units[:, 0, 0] * len(options)).astype(np.intp)]
            is_tried = option < 1.0
            left, option, units = left[is_tried], option[is_tried], units[is_tried, 1:]
            step = max(1, _ROOM // max(1, len(left) * edges.shape[1]))
            for begin in range(0, self.trials, step):
                found = self._first(crops, left, option, units[:, begin : begin + step], size, edges)
                left, option, units = left[~found], option[~found], units[~found]
            if not len(left):
                break
        return crops

    def _first(
        self,
        crops: Crops,
        rows: Rows,
        option: Floats,
        units: Floats,
        size: Int32Array,
        edges: Floats,
    ) -> BoolArray:
        """Write the first accepted trial of each row into ``crops``. Returns a mask of rows with an accepted trial.

        ``units``: uniform numbers, [R, trials, 4].
        """
        whole = size[rows, ::-1][:, None]
        sides = np.trunc(whole * (self.min_scale + (self.max_scale - self.min_scale) * units[..., :2]))
        start = np.trunc((whole - sides) * units[..., 2:])
        with np.errstate(divide="ignore", invalid="ignore"):
            aspect = sides[..., 0] / sides[..., 1]
        serves = (sides > 0).all(axis=2) & (aspect >= self.min_aspect_ratio) & (aspect <= self.max_aspect_ratio)
        tried = np.concatenate([start[..., ::-1], sides[..., ::-1]], axis=2).astype(np.int64)
        overlap = np.where(_has_centers(edges[rows], tried), _overlaps(edges[rows], tried), -1.0).max(axis=2)
        serves &= overlap >= option[:, None]
        found = serves.any(axis=1)
        crops[rows[found]] = tried[found, serves[found].argmax(axis=1)]
        return np.asarray(found)


def _has_centers(edges: Floats, crops: Crops) -> BoolArray:
    """Return whether centers of boxes [R, M, 4] are strictly inside crops [R, T, 4], bool[R, T, M]."""
    x, y = 0.5 * (edges[:, None, :, 0] + edges[:, None, :, 2]), 0.5 * (edges[:, None, :, 1] + edges[:, None, :, 3])
    top, left, height, width = (crops[..., i, None] for i in range(4))
    return np.asarray((left < x) & (x < left + width) & (top < y) & (y < top + height))


def _overlaps(edges: Floats, crops: Crops) -> Floats:
    """Return intersection over union of crops and boxes, float64[R, T, M]; NaN for missing boxes."""
    top, left, height, width = (crops[..., i, None] for i in range(4))
    x0, y0, x1, y1 = (edges[:, None, :, i] for i in range(4))
    common = np.maximum(np.minimum(x1, left + width) - np.maximum(x0, left), 0.0)
    common = common * np.maximum(np.minimum(y1, top + height) - np.maximum(y0, top), 0.0)
    return np.asarray(common / ((x1 - x0) * (y1 - y0) + height * width - common))
