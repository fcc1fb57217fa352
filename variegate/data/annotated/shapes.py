"""Outlines of objects: polygons and run lengths, and the pixels that they cover (``outlines.py`` fills them).

A pixel is covered if its center is inside; pixel (row, column) has its center at (column + 0.5, row + 0.5). A center
right on an outline is inside if that is the left or the upper one. A ring is filled by the even-odd rule; several rings
of an object are joined. COCO's own rasterizer rounds outlines to a fifth of a pixel first, so that pixels along them
may differ.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, BoolArray, Float32Array, Int64Array
from variegate.data.annotated.values import as_list, numbers_of, shown_value

Mask = BoolArray
# Of an RLE, more than any image that is decoded has.
_MOST_PIXELS = 1 << 40
# Kinds of an object's outline.
OUTLINES = NO_OUTLINE, RINGS, RUNS = 0, 1, 2
_DAMAGED = "an RLE whose counts are damaged"
_MOST_BITS = 60  # of a count


class Runs(NamedTuple):
    """COCO's RLE: lengths of runs down the columns, of 0 and 1 in turn. ``counts``: compressed, or as they are."""

    height: int
    width: int
    counts: bytes | tuple[int, ...]


class Rings(NamedTuple):
    """Polygons: x and y of all points, as bytes of float32, the number of points of each ring, and the number of rings
    that were skipped, because fewer than three points cover nothing."""

    points: bytes
    lengths: tuple[int, ...]
    skipped: int = 0


Shape = Rings | Runs
_NO_RINGS = Rings(b"", ())


@dataclass(frozen=True, eq=False)
class Shapes:
    """Of many objects. ``points``: float32 [P, 2], x and y. Ring r holds points ``rings[r]:rings[r + 1]``; object k has
    rings ``first[k]:last[k]``, or is in ``runs``."""

    points: Float32Array
    rings: Int64Array
    first: Int64Array
    last: Int64Array
    runs: dict[int, Runs]

    def __getitem__(self, order: Int64Array) -> Shapes:
        """Those of some objects, in another order; the points stay where they are."""
        runs = {new: self.runs[old] for new, old in enumerate(order.tolist()) if old in self.runs} if self.runs else {}
        return Shapes(self.points, self.rings, self.first[order], self.last[order], runs)

    def outline(self, k: int) -> tuple[Float32Array, list[int]]:
        """The points of all rings of object ``k``, [P, 2], and the index after the last point of each ring."""
        ends = self.rings[int(self.first[k]) : int(self.last[k]) + 1]
        return self.points[ends[0] : ends[-1]], (ends[1:] - ends[0]).tolist()

    def kind(self, k: int) -> int:
        """One of ``OUTLINES``."""
        return RUNS if k in self.runs else RINGS if self.last[k] > self.first[k] else NO_OUTLINE

    @property
    def num_outlines(self) -> int:
        """Number of objects that have an outline."""
        return int(np.count_nonzero(self.last > self.first)) + len(self.runs)

    def parts(self) -> list[bytes]:
        """All of it, for fingerprints."""
        runs = repr(sorted(self.runs.items())).encode() if self.runs else b""
        return [*(part.tobytes() for part in (self.points, self.rings, self.first, self.last)), runs]


def pack_shapes(shapes: Sequence[Shape | None]) -> Shapes | None:
    """Shapes of objects in order; None if no object has an outline."""
    if not any(shapes):
        return None
    runs = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Runs)}
    rings = [shape if isinstance(shape, Rings) else _NO_RINGS for shape in shapes]
    counts = np.array([len(one.lengths) for one in rings], np.int64)
    if not runs and not counts.any():
        return None
    points = np.frombuffer(b"".join(one.points for one in rings), np.float32).reshape(-1, 2)
    lengths = np.array([length for one in rings for length in one.lengths], np.int64)
    # The same numbers for every object without an outline, wherever the rings of others are stored.
    first = np.where(counts > 0, np.cumsum(counts) - counts, 0)
    return Shapes(points, np.append(0, np.cumsum(lengths)), first, first + counts, runs)


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
    # As they are stored: 1e39 is a number, and no float32. A sum of these in float64 does not overflow.
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
    numbers[3:] -= lengths[1:-2]  # the first three stand as they are
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
