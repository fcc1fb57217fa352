"""The compiled loop of outlines: along the sides of pixels, and from many points to few (tests: plain_outlines.py)."""

from __future__ import annotations

from math import hypot
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import inner_kernel, pixel_kernel

Ring = npt.NDArray[np.float64]
TOLERANCE = 0.3
_TOP, _RIGHT, _BOTTOM = 0, 1, 2


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
