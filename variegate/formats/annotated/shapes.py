"""Outlines of objects: polygons and run lengths, and the pixels that they cover (``outlines.py`` fills them).

A pixel is covered where its centre is inside; pixel (row, column) has its centre at (column + 0.5, row + 0.5). A centre
right on an outline is inside where that is the left or the upper one. A ring is filled by the even-odd rule; several
rings of an object are joined. COCO's own rasteriser rounds outlines to a fifth of a pixel first, so that pixels along
them may differ.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, BoolArray, Float32Array, Int64Array
from variegate.formats.annotated.values import as_list, numbers_of, shown_value

Mask = BoolArray
# Of an RLE, more than any image that is decoded has: float64 adds up so many, and every count below, exactly.
_MOST_PIXELS = 1 << 40
# Kinds of an object's outline.
OUTLINES = NO_OUTLINE, RINGS, RUNS = 0, 1, 2


class Runs(NamedTuple):
    """COCO's RLE: lengths of runs down the columns, of 0 and 1 in turn. ``counts``: compressed, or as they are."""

    height: int
    width: int
    counts: bytes | tuple[int, ...]


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
        """The points of all rings of object ``k``, [P, 2], and where in these each ring ends."""
        ends = self.rings[int(self.first[k]) : int(self.last[k]) + 1]
        return self.points[ends[0] : ends[-1]], (ends[1:] - ends[0]).tolist()

    def kind(self, k: int) -> int:
        """One of ``OUTLINES``."""
        return RUNS if k in self.runs else RINGS if self.last[k] > self.first[k] else NO_OUTLINE

    @property
    def num_outlines(self) -> int:
        """Number of objects that have one."""
        return int(np.count_nonzero(self.last > self.first)) + len(self.runs)

    def parts(self) -> list[bytes]:
        """All of it, for fingerprints."""
        runs = repr(sorted(self.runs.items())).encode() if self.runs else b""
        return [*(part.tobytes() for part in (self.points, self.rings, self.first, self.last)), runs]


@dataclass
class ShapesBuilder:
    """Objects one after another."""

    points: array[float] = field(default_factory=lambda: array("f"))
    rings: array[int] = field(default_factory=lambda: array("q", [0]))
    first: array[int] = field(default_factory=lambda: array("q"))
    last: array[int] = field(default_factory=lambda: array("q"))
    runs: dict[int, Runs] = field(default_factory=dict)
    degenerate: int = 0  # rings of fewer than three points, which cover nothing and are left out

    def add_rings(self, rings: Sequence[Sequence[float]]) -> None:
        """An object of rings x, y, x, y, ...; those of fewer than three points are left out and counted. Raises
        ValueError for what is no ring, and is as before."""
        points = array("f")
        ends = array("q")
        degenerate = 0
        for ring in as_list("segmentation", rings):
            if not isinstance(ring, (list, tuple)):
                raise ValueError(f"a polygon {shown_value(ring)}; accepted: a list of numbers")
            if len(ring) % 2:
                raise ValueError(f"a polygon of {len(ring)} numbers; accepted: x and y of three points or more")
            if len(ring) < 6:
                numbers_of("a polygon", ring)
                degenerate += 1
                continue
            try:
                points.extend(array("f", ring))
            except (TypeError, OverflowError):
                points.extend(numbers_of("a polygon", ring))
            ends.append((len(self.points) + len(points)) // 2)
        # As they are stored: 1e39 is a number, and no float32. A sum of these in float64 does not run over.
        if not isfinite(sum(points)):
            every = [one for ring in rings if len(ring) >= 6 for one in ring]
            odd = next(one for one, stored in zip(every, points, strict=True) if not isfinite(stored))
            raise ValueError(f"a polygon with {shown_value(odd)}; accepted: finite numbers, up to 3.4e38")
        # The same numbers for every object without an outline, wherever the rings of others are stored.
        first = len(self.rings) - 1 if ends else 0
        self.degenerate += degenerate
        self.points.extend(points)
        self.rings.extend(ends)
        self.first.append(first)
        self.last.append(first + len(ends))

    def add_runs(self, height: int, width: int, counts: Any) -> None:
        """An object of run lengths. Raises ValueError or TypeError for what is none."""
        lengths = counts.encode() if isinstance(counts, str) else tuple(int(count) for count in counts)
        runs = Runs(int(height), int(width), lengths)
        if min(runs[:2]) < 0 or runs.height * runs.width > _MOST_PIXELS:
            accepted = f"height and width, of {_MOST_PIXELS:,} pixels at most"
            raise ValueError(f"an RLE of the size {shown_value([height, width])}; accepted: {accepted}")
        if not isinstance(counts, str):
            _lengths(runs)
        self.runs[len(self.last)] = runs
        self.add_rings(())

    def done(self) -> Shapes | None:
        """None where no object has an outline."""
        if len(self.rings) == 1 and not self.runs:
            return None
        points = np.frombuffer(self.points, np.float32).reshape(-1, 2)
        rings, first, last = (np.array(one, np.int64) for one in (self.rings, self.first, self.last))
        return Shapes(points, rings, first, last, self.runs)


def decode_runs(runs: Runs, height: int, width: int) -> Mask:
    """bool [height, width]. Raises ValueError where the runs are of another size, or damaged."""
    if (runs.height, runs.width) != (height, width):
        raise ValueError(f"an RLE of {runs.height} x {runs.width}, and the image is {height} x {width}")
    lengths = _lengths(runs)
    values = np.arange(len(lengths)) % 2 == 1
    return np.ascontiguousarray(np.repeat(values, lengths).reshape(width, height).T)


def uncompressed(counts: bytes) -> Int64Array:
    """COCO's compressed counts (pycocotools' rleFrString): six bits a letter from ``0`` on, five of a number and one
    that more follow, the last with a sign; from the third on, differences from the one before the last."""
    letters = np.frombuffer(counts, np.uint8).astype(np.int64) - 48
    if len(letters) and (letters.min() < 0 or letters.max() > 63 or letters[-1] & 32):
        raise ValueError("an RLE whose counts are damaged")
    ends = np.flatnonzero(letters & 32 == 0)
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    if len(ends) and int((ends - starts).max()) > 11:
        raise ValueError("an RLE whose counts are damaged")
    shifts = 5 * (np.arange(len(letters)) - np.repeat(starts, ends - starts + 1))
    numbers = np.add.reduceat((letters & 31) << shifts, starts) if len(starts) else np.zeros(0, np.int64)
    numbers = numbers - np.where(letters[ends] & 16, np.int64(1) << 5 * (ends - starts + 1), 0)
    # Of differences up to 2**60 none brings a sum past int64 that did not leave the range of counts before it.
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
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
    """Of runs that are as long together as the mask. Raises ValueError."""
    expected = runs.height * runs.width
    if isinstance(runs.counts, bytes):
        lengths = uncompressed(runs.counts)
        odd = lengths[(lengths < 0) | (lengths > expected)].tolist()
    else:
        odd = [count for count in runs.counts if not 0 <= count <= expected]
        lengths = np.array(() if odd else runs.counts, np.int64)
    # Each by itself first: a sum of any numbers may run over to the one that is expected.
    if odd:
        what = f"an RLE of {runs.height} x {runs.width} with a run of {shown_value(odd[0])} pixels"
        raise ValueError(f"{what}; accepted: 0 to {expected:,}")
    if (total := lengths.sum(dtype=np.float64)) != expected:
        raise ValueError(f"an RLE of {total:,.0f} pixels, not {runs.height} x {runs.width}")
    return lengths
