"""Boxes moved through a program: the visible part of each in an output, and the kept boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from variegate.arrays import AnyArray, BoolArray, Float32Array, Float64Array, IndexArray, Int64Array, split
from variegate.program.stages import Stages
from variegate.targets.box_formats import from_corners, from_edges
from variegate.targets.pasting import Part, rows_of
from variegate.targets.regions import move_boxes, move_points
from variegate.targets.samples import ImageTargets
from variegate.targets.settings import Targets

_NO_BOXES = np.empty((0, 4, 2))
# Thinner boxes, in pixels, are rounding errors: as float32 their sides may be equal.
_LEAST_SIDE = 1e-3
# Rounding must not drop a box that has just the wanted share.
_SLACK = 1e-9


class Frames(NamedTuple):
    """The steps of a program's rows. ``sizes``: int64[R, 2, 2], height and width of their images and of their
    results."""

    stages: Stages
    sizes: Int64Array


class KeptBoxes(NamedTuple):
    """Boxes of a part that are left, float32 as results write them. ``kept``: which of its image's these are."""

    boxes: Float32Array
    kept: IndexArray


def keep_boxes(
    frames: Frames,
    options: Targets,
    parts: Sequence[Part],
    images: Sequence[ImageTargets],
    least: Float64Array,
    dropped: BoolArray | None,
) -> list[KeptBoxes]:
    """Cut the boxes of each part to their visible parts.

    Args:
        images: the image of each part.
        least: [parts, 2], the side and the area in pixels that a box needs to be kept.
        dropped: [R, boxes], boxes that the program drops; None for none.
    """
    corners_of = [_NO_BOXES if image.corners is None else image.corners for image in images]
    counts = [len(corners) for corners in corners_of]
    corners = np.concatenate([_NO_BOXES, *corners_of])
    part = np.repeat(np.arange(len(parts)), counts)
    row = np.repeat(rows_of(parts), counts)

    seen, share_before = move_boxes(frames.stages, row, corners, frames.sizes[row, 0])
    in_last_frame, before_last_frame = seen[:, 0], seen[:, 1]
    edges, area = _cut_to(in_last_frame, [each.boxes for each in parts], part)
    share = share_before * area / np.maximum(_areas(before_last_frame), 1e-12)
    least_side, least_area = least[part].T
    shorter_side = (edges[:, 2:] - edges[:, :2]).min(axis=1)
    written = _as_written(frames, options, row, corners, edges)
    is_kept = area > 0.0
    is_kept &= area >= least_area - _SLACK
    is_kept &= shorter_side >= least_side - _SLACK
    is_kept &= np.minimum(share, 1.0) >= options.min_visibility - _SLACK
    is_kept &= np.isfinite(written).all(axis=1)
    if dropped is not None and len(corners):
        number_in_image = np.concatenate([np.arange(count) for count in counts])
        is_kept &= ~dropped[row, number_in_image]

    kept = [np.flatnonzero(of_part) for of_part in split(is_kept, counts)]
    boxes = split(written[is_kept], [len(of_part) for of_part in kept])
    return [KeptBoxes(*each) for each in zip(boxes, kept, strict=True)]


def _as_written(
    frames: Frames, options: Targets, row: Int64Array, corners: Float64Array, edges: Float64Array
) -> Float32Array:
    """Boxes as results write them. ``edges``: of the visible parts."""
    if options.box_format == "cxcywhr":
        moved, _ = move_points(frames.stages, np.repeat(row, 4), corners.reshape(-1, 2))
        return from_corners(moved.astype(np.float64).reshape(-1, 4, 2)).astype(np.float32)
    if options.normalized:
        height, width = frames.sizes[row, 1].T
        edges = edges / np.stack([width, height, width, height], axis=1)
    return from_edges(edges, options.box_format).astype(np.float32)


def _areas(edges: Float64Array) -> Float64Array:
    """Areas of left, top, right, bottom [B, 4]; 0 for inverted boxes."""
    return np.asarray(np.maximum(edges[:, 2:] - edges[:, :2], 0.0).prod(axis=1))


def _cut_to(edges: Float64Array, windows: Sequence[AnyArray], part: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Bounds [B, 4] and area [B] of the visible parts of edges [B, 4] within the windows of their ``part``.

    ``windows``: [W, 4] of each part, which do not overlap.
    """
    windows_of_part = np.array([len(each) for each in windows], np.int64)
    counts = windows_of_part[part]
    # All pairs of a box and a window of its part, sorted by box.
    box = np.repeat(np.arange(len(edges)), counts)
    if not len(box):
        return np.zeros((0, 4)), np.zeros(0)
    first_pair = np.cumsum(counts) - counts
    first_window = (np.cumsum(windows_of_part) - windows_of_part)[part]
    number_in_part = np.arange(len(box)) - first_pair[box]
    window = np.concatenate(windows)[first_window[box] + number_in_part]

    low = np.maximum(edges[box, :2], window[:, :2])
    high = np.minimum(edges[box, 2:], window[:, 2:])
    is_seen = (high - low > _LEAST_SIDE).all(axis=1)
    bounds_low = np.minimum.reduceat(np.where(is_seen[:, None], low, np.inf), first_pair)
    bounds_high = np.maximum.reduceat(np.where(is_seen[:, None], high, -np.inf), first_pair)
    bounds = np.concatenate([bounds_low, bounds_high], axis=1)
    area = np.add.reduceat(_areas(np.concatenate([low, high], axis=1)), first_pair)
    is_unseen = ~np.logical_or.reduceat(is_seen, first_pair)
    bounds[is_unseen] = 0.0
    area[is_unseen] = 0.0
    return bounds, area
