"""Pixels of an object to its outline: polygons, and COCO's run lengths.

A polygon goes through the middles of the pixels' sides along the edge of the mask, which leaves every pixel's centre at
least 0.35 pixels away, and is then simplified by at most 0.3 (Douglas and Peucker, 1973). So it is short, and filled by
the centres of pixels, even-odd, it gives the mask again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.annotated.writing.tracing import Ring, trace

Mask_HW = npt.NDArray[Any]


def outline_of(mask_HW: Mask_HW, is_single: bool = False) -> list[Ring]:
    """Rings float64 [N, 2] (x, y) of a mask's pixels that are not 0; none where all are.

    One for each part, where parts touch at their corners at most. Where a part has holes, or ``is_single``, there is
    one ring for all, which goes from part to part and to the holes, and back on the same way.
    """
    rings = trace(mask_HW)
    has_holes = any(_area(ring) < 0 for ring in rings)
    return [_joined(rings)] if len(rings) > 1 and (has_holes or is_single) else rings


def runs_of(mask_HW: Mask_HW) -> str:
    """COCO's compressed counts (pycocotools' rleToString): runs down the columns, of 0 and 1 in turn."""
    flat = (mask_HW != 0).T.ravel()
    ends = np.append(np.flatnonzero(flat[1:] != flat[:-1]) + 1, flat.size)
    lengths = np.diff(ends, prepend=0)
    if flat.size and flat[0]:
        lengths = np.append(0, lengths)
    numbers = lengths.copy()
    numbers[3:] -= lengths[1:-2]  # the first three are told as they are
    letters = []
    for number in numbers.tolist():
        while True:
            bits, number = number & 31, number >> 5
            is_last = number == (-1 if bits & 16 else 0)
            letters.append(chr(48 + (bits if is_last else bits | 32)))
            if is_last:
                break
    return "".join(letters)


def _area(ring: Ring) -> float:
    """Twice the area, negative for a hole."""
    x, y = ring[:, 0], ring[:, 1]
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())


def _joined(rings: list[Ring]) -> Ring:
    """From the first point of the first ring to those of the others and back, along the axes: both ways cross rows of
    pixels at the very same place, so that they enclose nothing."""
    start = rings[0][0]
    parts = [rings[0], start[None]]
    for ring in rings[1:]:
        corner = np.array([[start[0], ring[0, 1]]])
        parts += [corner, ring, ring[:1], corner, start[None]]
    return np.concatenate(parts[:-1])
