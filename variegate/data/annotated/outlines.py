"""Outlines of objects: polygons and run lengths, the pixels that they cover, and outlines of masks.

A pixel is covered if its center is inside; pixel (row, column) has its center at (column + 0.5, row + 0.5). A center
right on an outline is inside if that is the left or the upper one. A ring is filled by the even-odd rule; several rings
of an object are joined. COCO's own rasterizer rounds outlines to a fifth of a pixel first, so that pixels along them
may differ.

A traced polygon connects the midpoints of pixel sides along the edge of the mask, at least 0.35 pixels away from every
pixel's center. It is then simplified by at most 0.3 pixels (Douglas and Peucker, 1973). Filled again, it gives the same
mask. The loops are in ``native/targets/outlines.cpp``.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from ctypes import c_double, c_int64, c_void_p
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, RealArray
from variegate.data.annotated.values import as_list, numbers_of, shown_value
from variegate.native.library import check_status, data_ptr, entry

Mask = BoolArray
# Of an RLE, more than any image that is decoded has.
_MOST_PIXELS = 1 << 40
# Kinds of an object's outline.
OUTLINES = NO_OUTLINE, RINGS, RUNS = 0, 1, 2
_DAMAGED = "an RLE whose counts are damaged"
_MOST_BITS = 60  # of a count


class Runs(NamedTuple):
    """COCO's RLE: lengths of runs down the columns, of 0 and 1 in turn. ``counts``: compressed text, or a list."""

    height: int
    width: int
    counts: bytes | tuple[int, ...]


class Rings(NamedTuple):
    """Polygons: x and y of all points, as bytes of float32; the number of points of each ring; and the number of
    skipped rings, with fewer than three points."""

    points: bytes
    lengths: tuple[int, ...]
    skipped: int = 0


Shape = Rings | Runs


@dataclass(frozen=True, eq=False)
class Shapes:
    """The outlines of many objects. ``points``: float32 [P, 2], x and y. Ring r holds points ``rings[r]:rings[r + 1]``;
    object k has rings ``first[k]:last[k]``, or is in ``runs``."""

    points: Float32Array
    rings: Int64Array
    first: Int64Array
    last: Int64Array
    runs: dict[int, Runs]

    def __getitem__(self, order: Int64Array) -> Shapes:
        """Select outlines by index, in any order; the points are not copied."""
        runs = {new: self.runs[old] for new, old in enumerate(order.tolist()) if old in self.runs} if self.runs else {}
        return Shapes(self.points, self.rings, self.first[order], self.last[order], runs)

    def outline(self, k: int) -> tuple[Float32Array, list[int]]:
        """The points of all rings of object ``k``, [P, 2], and the index after the last point of each ring."""
        ends = self.rings[int(self.first[k]) : int(self.last[k]) + 1]
        return self.points[ends[0] : ends[-1]], (ends[1:] - ends[0]).tolist()

    def kind(self, k: int) -> int:
        """The kind in ``OUTLINES``."""
        return RUNS if k in self.runs else RINGS if self.last[k] > self.first[k] else NO_OUTLINE

    @property
    def num_outlines(self) -> int:
        """Number of objects that have an outline."""
        return int(np.count_nonzero(self.last > self.first)) + len(self.runs)

    def parts(self) -> list[bytes]:
        """All data, for fingerprints."""
        runs = repr(sorted(self.runs.items())).encode() if self.runs else b""
        return [*(part.tobytes() for part in (self.points, self.rings, self.first, self.last)), runs]


class ShapeColumns:
    """Packs the shapes of objects one after another."""

    def __init__(self) -> None:
        self._points = array("f")
        self._lengths = array("q")  # of rings
        self._counts = array("q")  # rings of objects
        self._runs: dict[int, Runs] = {}

    def append(self, shape: Shape | None) -> None:
        if isinstance(shape, Rings):
            self._points.frombytes(shape.points)
            self._lengths.extend(shape.lengths)
        elif shape is not None:
            self._runs[len(self._counts)] = shape
        self._counts.append(len(shape.lengths) if isinstance(shape, Rings) else 0)

    def packed(self) -> Shapes | None:
        """All shapes; None if no object has an outline."""
        if not self._runs and not self._lengths:
            return None
        counts = np.frombuffer(self._counts, np.int64)
        points = np.frombuffer(self._points, np.float32).reshape(-1, 2)
        # The same numbers for every object without an outline, wherever the rings of others are stored.
        first = np.where(counts > 0, np.cumsum(counts) - counts, 0)
        rings = np.append(0, np.cumsum(np.frombuffer(self._lengths, np.int64)))
        return Shapes(points, rings, first, first + counts, self._runs)


def rings_of(polygons: Any) -> Rings:
    """Check polygons, lists x, y, x, y, ... Raises ValueError for anything else."""
    points = array("f")
    lengths = []
    skipped = 0
    for polygon in as_list("segmentation", polygons):
        if not isinstance(polygon, list):
            raise ValueError(f"a polygon {shown_value(polygon)}; accepted: a list of numbers")
        if len(polygon) % 2:
            raise ValueError(f"a polygon of {len(polygon)} numbers; accepted: x and y of three points or more")
        if len(polygon) < 6:
            numbers_of("a polygon", polygon)
            skipped += 1
            continue
        try:
            points.fromlist(polygon)
        except (TypeError, OverflowError):
            points.fromlist(numbers_of("a polygon", polygon))
        lengths.append(len(polygon) // 2)
    # Compare as float32: 1e39 is a number, but no float32. A sum of these in float64 does not overflow.
    if not isfinite(sum(points)):
        numbers = [number for polygon in polygons if len(polygon) >= 6 for number in polygon]
        odd = next(number for number, stored in zip(numbers, points, strict=True) if not isfinite(stored))
        raise ValueError(f"a polygon with {shown_value(odd)}; accepted: finite numbers, up to 3.4e38")
    return Rings(points.tobytes(), tuple(lengths), skipped)


def runs_in(rle: Mapping[str, Any]) -> Runs:
    """Check COCO's RLE, ``size`` and ``counts``. Raises ValueError, TypeError or KeyError."""
    height, width = map(int, rle["size"])
    counts = rle["counts"]
    if min(height, width) < 0 or height * width > _MOST_PIXELS:
        accepted = f"height and width, of {_MOST_PIXELS:,} pixels at most"
        raise ValueError(f"an RLE of the size {shown_value([height, width])}; accepted: {accepted}")
    if isinstance(counts, str):  # decompressed when its mask is read
        return Runs(height, width, counts.encode())
    runs = Runs(height, width, tuple(map(int, counts)))
    _lengths(runs)
    return runs


def decode_runs(runs: Runs, height: int, width: int) -> Mask:
    """bool [height, width]. Raises ValueError for runs of another size, and for damaged ones."""
    if (runs.height, runs.width) != (height, width):
        raise ValueError(f"an RLE of {runs.height} x {runs.width}, and the image is {height} x {width}")
    lengths = _lengths(runs)
    values = np.arange(len(lengths)) % 2 == 1
    return np.ascontiguousarray(np.repeat(values, lengths).reshape(width, height).T)


def uncompressed(counts: bytes) -> list[int]:
    """COCO's compressed counts (pycocotools' rleFrString): six bits per letter from ``0`` on, five of a number and one
    that more follow, the last with a sign; from the third on, differences from the count before the last."""
    if counts and not (min(counts) >= 48 and max(counts) < 48 + 64):
        raise ValueError(_DAMAGED)
    numbers: list[int] = []
    number = 0
    shift = 0
    for letter in counts:
        bits = letter - 48
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            if shift > _MOST_BITS:
                break
            continue
        if bits & 16:
            number -= 1 << shift
        if len(numbers) > 2:
            number += numbers[-2]
        numbers.append(number)
        number = 0
        shift = 0
    if shift:
        raise ValueError(_DAMAGED)
    return numbers


def runs_of(mask_HW: AnyArray) -> str:
    """COCO's compressed counts (pycocotools' rleToString): runs down the columns, of 0 and 1 in turn."""
    flat = (mask_HW != 0).T.ravel()
    ends = np.append(np.flatnonzero(flat[1:] != flat[:-1]) + 1, flat.size)
    lengths = np.diff(ends, prepend=0)
    if flat.size and flat[0]:
        lengths = np.append(0, lengths)
    numbers = lengths.copy()
    numbers[3:] -= lengths[1:-2]  # the first three are not differences
    letters = []
    for number in numbers.tolist():
        while True:
            bits = number & 31
            number >>= 5
            is_last = number == (-1 if bits & 16 else 0)
            letters.append(chr(48 + (bits if is_last else bits | 32)))
            if is_last:
                break
    return "".join(letters)


def _lengths(runs: Runs) -> Int64Array:
    """Check that the runs are as long together as the mask. Raises ValueError."""
    expected = runs.height * runs.width
    counts = uncompressed(runs.counts) if isinstance(runs.counts, bytes) else runs.counts
    if counts and not 0 <= min(counts) <= max(counts) <= expected:
        odd = next(count for count in counts if not 0 <= count <= expected)
        what = f"an RLE of {runs.height} x {runs.width} with a run of {shown_value(odd)} pixels"
        raise ValueError(f"{what}; accepted: 0 to {expected:,}")
    if (total := sum(counts)) != expected:
        raise ValueError(f"an RLE of {total:,} pixels, not {runs.height} x {runs.width}")
    return np.array(counts, np.int64)


# Lines and columns that hold all of a mask.
Area = tuple[slice, slice]
Ring = Float64Array
TOLERANCE = 0.3

_fill_rings = entry("vg_fill_rings", c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_int64, c_void_p)
_count_sides = entry("vg_count_sides", c_void_p, c_int64, c_int64, c_void_p, result=None)
_trace = entry("vg_trace", c_void_p, c_int64, c_int64, c_int64, c_double, c_void_p, c_void_p)


def fill_rings(mask: Mask, points: RealArray, ends: npt.ArrayLike) -> Area:
    """Set the pixels of bool [H, W] whose centers are inside of a ring -> the box of these pixels.

    ``points``: [P, 2], x and y; ring r ends before ``ends[r]``. Each ring is filled even-odd.
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

    One for each part, where parts touch at their corners at most. For a part with holes, and with ``is_single``, a
    single ring connects all parts and holes and returns on the same path.
    """
    rings = trace(mask_HW)
    # Twice the area is negative for a hole.
    has_holes = any(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) < 0 for x, y in (ring.T for ring in rings))
    if len(rings) < 2 or not (has_holes or is_single):
        return rings
    # The path from the first point of the first ring to the other rings and back is axis-aligned: both directions cross
    # rows of pixels at the same position, so that they enclose nothing.
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
