"""Outlines to the pixels that they cover (``shapes.py`` says which these are), and back to outlines.

A polygon goes through the middles of the pixels' sides along the edge of the mask, which leaves every pixel's centre at
least 0.35 pixels away, and is then simplified by at most 0.3 (Douglas and Peucker, 1973). So it is short, and filled by
the centres of pixels, even-odd, it gives the mask again. The loops are compiled.
"""

from __future__ import annotations

from math import hypot
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.annotated.shapes import Mask, Shapes, decode_runs
from variegate.program.compiled import inner_kernel, pixel_kernel

# Lines and columns that hold all of a mask.
Area = tuple[slice, slice]
Ring = npt.NDArray[np.float64]
TOLERANCE = 0.3
_TOP, _RIGHT, _BOTTOM = 0, 1, 2


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


def outline_of(mask_HW: npt.NDArray[Any], is_single: bool = False) -> list[Ring]:
    """Rings float64 [N, 2] (x, y) of a mask's pixels that are not 0; none where all are.

    One for each part, where parts touch at their corners at most. Where a part has holes, or ``is_single``, there is
    one ring for all, which goes from part to part and to the holes, and back on the same way.
    """
    rings = trace(mask_HW)
    # Twice the area is negative for a hole.
    has_holes = any(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) < 0 for x, y in (ring.T for ring in rings))
    if len(rings) < 2 or not (has_holes or is_single):
        return rings
    # From the first point of the first ring to those of the others and back, along the axes: both ways cross rows of
    # pixels at the very same place, so that they enclose nothing.
    start = rings[0][0]
    parts = [rings[0], start[None]]
    for ring in rings[1:]:
        corner = np.array([[start[0], ring[0, 1]]])
        parts += [corner, ring, ring[:1], corner, start[None]]
    return [np.concatenate(parts[:-1])]


def trace(mask_HW: npt.NDArray[Any]) -> list[Ring]:
    """Rings float64 [N, 2] (x, y) through the middles of sides, simplified: outlines clockwise, holes the other way."""
    inside = mask_HW != 0
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return []
    top, left = int(rows[0]), int(columns[0])
    padded = np.pad(inside[top : rows[-1] + 1, left : columns[-1] + 1], 1).view(np.uint8)
    width, flat = padded.shape[1], padded.ravel()
    num_sides, num_tops = _count(flat, width)
    points = np.empty((num_sides, 2), np.float64)
    kept = np.empty((num_sides, 2), np.float64)
    ends = np.empty(num_tops + 1, np.int64)
    is_traced, is_kept = np.zeros(len(flat), np.uint8), np.empty(num_sides, np.uint8)
    pieces = np.empty((num_sides + 8, 2), np.int64)
    num_rings = _trace(flat, width, is_traced, points, kept, is_kept, pieces, ends)
    kept[: ends[num_rings]] += (left - 1, top - 1)
    return [kept[ends[k] : ends[k + 1]] for k in range(num_rings)]


@pixel_kernel
def _count(flat: Any, width: int) -> Any:
    """-> the sides of pixels that have none beside them there, and those of them at the top."""
    sides = tops = 0
    for pixel in range(width, len(flat) - width):
        if flat[pixel]:
            is_top = flat[pixel - width] == 0
            tops += is_top
            sides += is_top + (flat[pixel + width] == 0) + (flat[pixel - 1] == 0) + (flat[pixel + 1] == 0)
    return sides, tops


@pixel_kernel
def _trace(flat: Any, width: int, is_traced: Any, points: Any, kept: Any, is_kept: Any, pieces: Any, ends: Any) -> Any:
    """-> the number of rings. ``is_traced``, uint8, 0 at first: of the pixels whose upper side has been passed. Every
    ring has such a side, a hole at what is below it."""
    rings = count = 0
    ends[0] = 0
    for first in range(width, len(flat) - width):
        if flat[first] == 0 or flat[first - width] or is_traced[first]:
            continue
        pixel, side, length = first, _TOP, 0
        while True:
            if side == _TOP:
                is_traced[pixel] = 1
                ahead, outside, x, y = 1, -width, 0.5, 0.0
            elif side == _RIGHT:
                ahead, outside, x, y = width, 1, 1.0, 0.5
            elif side == _BOTTOM:
                ahead, outside, x, y = -1, width, 0.5, 1.0
            else:
                ahead, outside, x, y = -width, -1, 0.0, 0.5
            points[length, 0] = pixel % width + x
            points[length, 1] = pixel // width + y
            length += 1
            # Where two pixels touch at a corner, each keeps its own edge.
            if flat[pixel + ahead] == 0:
                side = (side + 1) % 4
            elif flat[pixel + ahead + outside] == 0:
                pixel += ahead
            else:
                pixel += ahead + outside
                side = (side + 3) % 4
            if pixel == first and side == _TOP:
                break
        _simplify(points, length, is_kept, pieces)
        for k in range(length):
            if is_kept[k]:
                kept[count, 0], kept[count, 1] = points[k, 0], points[k, 1]
                count += 1
        rings += 1
        ends[rings] = count
    return rings


@inner_kernel()
def _simplify(points: Any, length: int, is_kept: Any, pieces: Any) -> Any:
    """Douglas and Peucker's, between the outermost points, which stay, so that the ring's bounds do. ``pieces``: room
    for those that are still to be looked at."""
    left = top = right = bottom = 0
    for k in range(length):
        is_kept[k] = 0
        left = k if points[k, 0] < points[left, 0] else left
        right = k if points[k, 0] > points[right, 0] else right
        top = k if points[k, 1] < points[top, 1] else top
        bottom = k if points[k, 1] > points[bottom, 1] else bottom
    is_kept[0] = is_kept[left] = is_kept[top] = is_kept[right] = is_kept[bottom] = 1
    waiting = begin = 0
    for k in range(1, length + 1):
        if k == length or is_kept[k]:
            pieces[waiting, 0], pieces[waiting, 1] = begin, k
            waiting += 1
            begin = k
    while waiting:
        waiting -= 1
        begin, end = pieces[waiting, 0], pieces[waiting, 1]
        x, y = points[begin, 0], points[begin, 1]
        way_x, way_y = points[end % length, 0] - x, points[end % length, 1] - y
        square = max(way_x * way_x + way_y * way_y, 1e-12)
        most, farthest = TOLERANCE, -1
        for k in range(begin + 1, end):
            apart_x, apart_y = points[k, 0] - x, points[k, 1] - y
            share = min(max((apart_x * way_x + apart_y * way_y) / square, 0.0), 1.0)
            away = hypot(apart_x - share * way_x, apart_y - share * way_y)
            if away > most:
                most, farthest = away, k
        if farthest >= 0:
            is_kept[farthest] = 1
            pieces[waiting, 0], pieces[waiting, 1] = begin, farthest
            pieces[waiting + 1, 0], pieces[waiting + 1, 1] = farthest, end
            waiting += 2
    return 0
