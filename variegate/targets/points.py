"""Key points led through a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from variegate.arrays import AnyArray, Float32Array, Float64Array, IndexArray, UInt8Array, split
from variegate.targets.boxes import Frames
from variegate.targets.copying import Pasted
from variegate.targets.pasting import Part, rows_of
from variegate.targets.regions import ERASED, LEFT_IMAGE, SEEN, move_points, where_mirrored
from variegate.targets.samples import ImageTargets
from variegate.targets.settings import Targets


def keep_points(
    frames: Frames,
    options: Targets,
    parts: Sequence[Part],
    images: Sequence[ImageTargets],
    kept: Sequence[IndexArray],
    pasted: Sequence[Pasted | None],
) -> list[AnyArray | None]:
    """Points of each part as results write them; None for each of a batch without points.

    Args:
        images: the image of each part.
        kept: mask of a part's kept boxes; dropped boxes drop their points.
        pasted: objects on top of the output that a part belongs to.
    """
    columns = next((image.points.shape[-1] for image in images if image.points is not None), None)
    if columns is None:
        return [None] * len(parts)
    given = [np.empty((0, columns)) if image.points is None else image.points for image in images]
    flat = [points.reshape(-1, columns) for points in given]
    counts = [len(points) for points in flat]
    points = np.concatenate(flat)
    row = np.repeat(rows_of(parts), counts)

    places, state = move_points(frames.stages, row, points[:, :2])
    height, width = frames.sizes[row, 0].T
    x, y = points[:, 0], points[:, 1]
    state[(x < 0) | (y < 0) | (x > width) | (y > height)] = LEFT_IMAGE
    for part, above, of_part, image, its_state in zip(
        parts, pasted, split(places, counts), images, split(state, counts), strict=True
    ):
        _hide_beyond(part, of_part, its_state)
        if above is not None and image.points is not None:
            _hide_below(part, above, of_part, its_state, is_listed=image.points.ndim == 2)
    written = _as_written(frames, options, points, places, state, row)
    if order := options.mirrored_points:
        origin = where_mirrored(frames.stages, rows_of(parts), np.array(counts, np.int64), tuple(order))
        written = written[origin]
        state = state[origin]

    found: list[AnyArray | None] = []
    of_parts = zip(parts, images, split(written, counts), split(state, counts), kept, strict=True)
    for part, image, its_points, its_state, its_boxes in of_parts:
        found.append(None if image.points is None else _of_part(part, image, its_points, its_state, its_boxes))
    return found


def _hide_beyond(part: Part, places: Float32Array, state: UInt8Array) -> None:
    """Mark points that the part does not show."""
    if part.is_whole:
        return
    at = places[:, None, :]
    is_within = (at >= part.boxes[:, :2]) & (at <= part.boxes[:, 2:])
    is_shown: AnyArray = np.any(np.all(is_within, axis=2), axis=1)
    state[~is_shown] = LEFT_IMAGE


def _hide_below(part: Part, above: Pasted, places: Float32Array, state: UInt8Array, is_listed: bool) -> None:
    """Mark own points below pasted objects, and the partner's points outside of its visible part."""
    is_hidden = above.covers(places) != part.is_pasted
    is_gone = part.is_pasted and is_listed
    state[is_hidden & (state == SEEN)] = LEFT_IMAGE if is_gone else ERASED


def _as_written(
    frames: Frames, options: Targets, points: Float64Array, places: Float32Array, state: UInt8Array, row: AnyArray
) -> Float32Array:
    """Points [P, 2 or 3] as results write them, with the visibility that they have left."""
    written = places
    if points.shape[1] == 3:
        visibility = points[:, 2]
        visibility = np.where(state == ERASED, np.minimum(visibility, 1.0), visibility)
        visibility = np.where(state == LEFT_IMAGE, 0.0, visibility)
        written = np.column_stack([places, visibility.astype(np.float32)])
    if options.point_origin == "center":
        written[:, :2] -= np.float32(0.5)
    if options.normalized:
        height, width = frames.sizes[row, 1].T
        written[:, 0] /= width.astype(np.float32)
        written[:, 1] /= height.astype(np.float32)
    return written


def _of_part(part: Part, image: ImageTargets, points: AnyArray, state: UInt8Array, kept: IndexArray) -> AnyArray:
    assert image.points is not None
    is_by_box = image.points.ndim == 3
    if is_by_box:
        by_box = points.reshape(image.points.shape)
        loses_boxes = image.corners is not None and len(kept) < len(by_box)
        return by_box[kept] if loses_boxes else by_box
    # Without a visibility, a point that cannot be seen is no point of this part.
    is_dropped = image.points.shape[1] == 2 and not part.is_whole
    return points[state != LEFT_IMAGE] if is_dropped else points
