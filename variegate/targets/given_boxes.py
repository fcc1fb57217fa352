"""The boxes of a batch as its samples give them, read and checked all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate.targets.arrays import Floats, as_numbers, not_finite
from variegate.targets.box_formats import BOX_FORMATS, columns_of, corners_of, edges_of
from variegate.targets.settings import Targets

# So far beyond its image a box may reach for rounding's sake, in pixels.
_SLACK = 1e-2


class GivenBoxes(NamedTuple):
    """Those of one image of ``size`` (height, width). ``own_format``: what the value itself says, None for nothing."""

    name: str
    value: Any
    size: tuple[int, int]
    own_format: Any = None


def read_boxes(given: Sequence[GivenBoxes], options: Targets) -> list[Floats]:
    """Of each image the corners of its boxes, float64[M, 4, 2]: x and y in pixels, in turn.

    Raises TypeError or ValueError for the first box that is wrong, by its name.
    """
    each = [_numbers(of_one, options) for of_one in given]
    counts = [len(boxes) for boxes in each]
    ends = np.cumsum(counts)
    boxes = np.concatenate(each)
    whole = np.repeat([(width, height) * 2 for _, _, (height, width), _ in given], counts, axis=0).astype(np.float64)

    def refuse(values: Floats, wrong: Any, accepted: str) -> None:
        n = int(np.searchsorted(ends, wrong.argmax(), side="right"))
        own = slice(ends[n] - counts[n], ends[n])
        height, width = given[n].size
        refuse_line(given[n].name, values[own], wrong[own], accepted.format(width=width, height=height))

    if (wrong := not_finite(boxes)).any():
        refuse(boxes, wrong, _accepted(options.box_format))
    if options.normalized:
        boxes = boxes * whole
    if options.box_format == "cxcywhr":
        if (wrong := (boxes[:, 2:4] < 0).any(axis=1)).any():
            refuse(boxes, wrong, "widths and heights of 0 or more")
        corners = corners_of(boxes, options.box_format)
    else:
        edges = edges_of(boxes, options.box_format)
        if (wrong := (edges[:, :2] > edges[:, 2:]).any(axis=1)).any():
            refuse(edges, wrong, "left <= right and top <= bottom, as (left, top, right, bottom) in pixels")
        if not options.clip and (wrong := ((edges < -_SLACK) | (edges > whole + _SLACK)).any(axis=1)).any():
            span = "0 to 1" if options.normalized else "0 to {width} and 0 to {height} pixels"
            within = f"boxes within the image, {span}, or vg.Targets(clip=True)"
            refuse(edges / whole if options.normalized else edges, wrong, within)
        corners = corners_of(np.clip(edges, 0.0, whole), "xyxy")
    return [corners[end - count : end] for count, end in zip(counts, ends.tolist(), strict=True)]


def refuse_line(name: str, values: Floats, wrong: Any, accepted: str) -> None:
    """Raises ValueError for the first of the lines that are ``wrong``, bool[M]."""
    at = int(wrong.argmax())
    raise ValueError(f"{name}[{at}]: got {[round(v, 4) for v in values[at].tolist()]}; accepted: {accepted}")


def _accepted(box_format: str) -> str:
    return f"finite numbers [M, {columns_of(box_format)}], {box_format}"


def _numbers(given: GivenBoxes, options: Targets) -> Floats:
    name, box_format = given.name, options.box_format
    if given.own_format is not None and given.own_format.name.lower() != box_format:
        own = given.own_format.name
        same = "the same, as vg.Targets(box_format=) says"
        accepted = same if own.lower() in BOX_FORMATS else f"formats {', '.join(BOX_FORMATS).upper()}"
        raise ValueError(
            f"{name}: got BoundingBoxes with format={own}, and box_format={box_format!r}; accepted: {accepted}"
        )
    columns, accepted = columns_of(box_format), _accepted(box_format)
    boxes = as_numbers(name, given.value, accepted)
    boxes = boxes.reshape(0, columns) if boxes.size == 0 else boxes
    if boxes.ndim != 2 or boxes.shape[1] != columns:
        raise ValueError(f"{name}: got shape {boxes.shape}; accepted: {accepted}")
    return boxes
