"""Outlines to the pixels that they cover (``shapes.py`` says which these are), by a compiled loop over their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.annotated.shapes import Mask, Shapes, decode_runs
from variegate.program.compiled import inner_kernel, pixel_kernel

# Lines and columns that hold all of a mask.
Area = tuple[slice, slice]


def fill_rings(mask: Mask, points: npt.NDArray[np.floating], ends: npt.ArrayLike) -> Area:
    """Set the pixels of bool [H, W] whose centres are inside of a ring -> where they are.

    ``points``: [P, 2], x and y; those of ring r end before ``ends[r]``. Each ring is filled even-odd.
    """
    height, width = mask.shape
    flips = np.zeros((height, width + 1), np.uint8)
    found = np.array([height, width, 0, 0], np.int64)
    corners = np.ascontiguousarray(points, np.float64)
    _fill(corners, np.array(ends, np.int64), mask.view(np.uint8), flips, found)
    top, left, bottom, right = found.tolist()
    return slice(top, max(top, bottom)), slice(left, max(left, right))


def masks_of(
    shapes: Shapes, some: range, size: tuple[int, int], scale: tuple[float, float]
) -> tuple[npt.NDArray[np.bool_], list[Area]]:
    """bool [M, height, width] of objects ``some``, and where in each they are. ``scale``: what x and y are multiplied
    by. Raises ValueError for runs of another size."""
    masks, areas = np.zeros((len(some), *size), np.bool_), []
    for mask, k in zip(masks, some, strict=True):
        area: Area = (slice(None), slice(None))
        if (runs := shapes.runs.get(k)) is not None:
            mask[:] = decode_runs(runs, *size)
        else:
            points, ends = shapes.outline(k)
            area = fill_rings(mask, points * np.array(scale), ends)
        areas.append(area)
    return masks, areas


@pixel_kernel
def _fill(points: Any, ends: Any, mask: Any, flips: Any, found: Any) -> None:
    """``flips``: uint8 [H, W + 1] of zeros, as which it is left; ``found``: top, left, bottom and right, widened."""
    height, width = mask.shape
    begin = 0
    for end in ends:
        top, left, bottom, right = height, width, 0, 0
        for n in range(begin, end):
            m = n + 1 if n + 1 < end else begin
            x, y, next_x, next_y = points[n, 0], points[n, 1], points[m, 0], points[m, 1]
            # An edge crosses the rows whose centres are from its upper end on, and before its lower one.
            above = _within(np.ceil(min(y, next_y) - 0.5), height)
            below = _within(np.ceil(max(y, next_y) - 0.5), height)
            if above >= below:
                continue
            slope = (next_x - x) / (next_y - y)
            for row in range(above, below):
                column = _within(np.ceil(x + (row + 0.5 - y) * slope - 0.5), width)
                flips[row, column] ^= np.uint8(1)
                left, right = min(left, column), max(right, column)
            top, bottom = min(top, above), max(bottom, below)
        for row in range(top, bottom):
            inside = np.uint8(0)
            for column in range(left, right + 1):
                inside ^= flips[row, column]
                flips[row, column] = 0
                if column < width:
                    mask[row, column] |= inside
        if top < bottom:
            found[0], found[1] = min(found[0], top), min(found[1], left)
            found[2], found[3] = max(found[2], bottom), max(found[3], right)
        begin = end


@inner_kernel()
def _within(place: float, limit: int) -> int:
    """From 0 to ``limit``, whatever the place is: what is no number is 0, as ``int`` of it would be any."""
    if not place > 0.0:
        return 0
    return limit if place >= limit else int(place)
