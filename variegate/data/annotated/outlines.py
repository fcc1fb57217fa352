"""Outlines to the pixels that they cover (``shapes.py`` says which these are), and back to outlines.

A polygon goes through the middles of the pixels' sides along the edge of the mask, which leaves every pixel's centre at
least 0.35 pixels away, and is then simplified by at most 0.3 (Douglas and Peucker, 1973). So it is short, and filled by
the centres of pixels, even-odd, it gives the mask again. The loops are in ``native/targets/outlines.cpp``.
"""

from __future__ import annotations

from ctypes import c_double, c_int64, c_void_p

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, BoolArray, Float64Array, RealArray
from variegate.data.annotated.shapes import Mask, Shapes, decode_runs
from variegate.native.library import check_status, data_ptr, entry

# Lines and columns that hold all of a mask.
Area = tuple[slice, slice]
Ring = Float64Array
TOLERANCE = 0.3

_fill_rings = entry("vg_fill_rings", c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_int64, c_void_p)
_count_sides = entry("vg_count_sides", c_void_p, c_int64, c_int64, c_void_p, result=None)
_trace = entry("vg_trace", c_void_p, c_int64, c_int64, c_int64, c_double, c_void_p, c_void_p)


def fill_rings(mask: Mask, points: RealArray, ends: npt.ArrayLike) -> Area:
    """Set the pixels of bool [H, W] whose centres are inside of a ring -> where they are.

    ``points``: [P, 2], x and y; those of ring r end before ``ends[r]``. Each ring is filled even-odd.
    """
    if not mask.flags.carray:
        raise ValueError(f"mask: got one of strides {mask.strides}; accepted: contiguous and writable, bool [H, W]")
    corners = np.ascontiguousarray(points, np.float64)
    rings = np.array(ends, np.int64)
    found = np.empty(4, np.int64)
    polygons = data_ptr(corners), len(corners), data_ptr(rings), len(rings)
    status = _fill_rings(*polygons, data_ptr(mask), *mask.shape, data_ptr(found))
    check_status(status)
    if status:
        raise ValueError(
            f"ends: got {rings.tolist()}; accepted: ascending numbers, up to that of {len(corners)} points"
        )
    top, left, bottom, right = found.tolist()
    return slice(top, max(top, bottom)), slice(left, max(left, right))


def masks_of(
    shapes: Shapes | None, some: range, size: tuple[int, int], scale: tuple[float, float]
) -> tuple[BoolArray, list[Area]]:
    """bool [M, height, width] of objects ``some``, and the part of each mask that may be True.

    ``scale``: x and y are multiplied by it. Raises ValueError for runs of another size.
    """
    masks = np.zeros((len(some), *size), np.bool_)
    areas: list[Area] = [(slice(0), slice(0))] * len(some)
    if shapes is None:
        return masks, areas
    for at, k in enumerate(some):
        if (runs := shapes.runs.get(k)) is not None:
            masks[at] = decode_runs(runs, *size)
            areas[at] = slice(None), slice(None)
        else:
            points, ends = shapes.outline(k)
            areas[at] = fill_rings(masks[at], points * np.array(scale), ends)
    return masks, areas


def outline_of(mask_HW: AnyArray, is_single: bool = False) -> list[Ring]:
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


def trace(mask_HW: AnyArray) -> list[Ring]:
    """Rings float64 [N, 2] (x, y) through the middles of sides, simplified: outlines clockwise, holes the other way."""
    inside = mask_HW != 0
    rows = np.flatnonzero(inside.any(axis=1))
    columns = np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return []
    top = int(rows[0])
    left = int(columns[0])
    padded = np.pad(inside[top : rows[-1] + 1, left : columns[-1] + 1], 1).view(np.uint8)
    width = padded.shape[1]
    flat = padded.ravel()
    counts = np.empty(2, np.int64)
    _count_sides(data_ptr(flat), len(flat), width, data_ptr(counts))
    num_sides, num_tops = counts.tolist()
    points = np.empty((num_sides, 2), np.float64)
    ends = np.zeros(num_tops + 1, np.int64)
    num_rings = _trace(data_ptr(flat), len(flat), width, num_sides, TOLERANCE, data_ptr(points), data_ptr(ends[1:]))
    if num_rings < 0:
        raise MemoryError("outlines: no memory for the sides of a mask's pixels")
    points[: ends[num_rings]] += (left - 1, top - 1)
    return [points[ends[k] : ends[k + 1]] for k in range(num_rings)]
