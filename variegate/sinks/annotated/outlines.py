"""Pixels of an object to its outline: polygons, and COCO's run lengths.

A polygon goes through the middles of the pixels' sides along the edge of the mask, which leaves every pixel's centre at
least 0.35 pixels away, and is then simplified by at most 0.3 (Douglas and Peucker, 1973). So it is short, and filled by
the centres of pixels, even-odd, it gives the mask again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Mask_HW = npt.NDArray[Any]
Ring = npt.NDArray[np.float64]
_TOLERANCE = 0.3
# By the side of a pixel that an edge runs along, clockwise: top, right, bottom, left. The way it goes, and what lies
# outside, as (row, column); the middle of the side, as (x, y).
_AHEAD = ((0, 1), (1, 0), (0, -1), (-1, 0))
_OUTSIDE = ((-1, 0), (0, 1), (1, 0), (0, -1))
_MIDDLE = ((0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5))


def outline_of(mask_HW: Mask_HW, is_single: bool = False) -> list[Ring]:
    """Rings float64 [N, 2] (x, y) of a mask's pixels that are not 0; none where all are.

    One for each part, where parts touch at their corners at most. Where a part has holes, or ``is_single``, there is
    one ring for all, which goes from part to part and to the holes, and back on the same way.
    """
    rings = [_simplified(ring) for ring in _trace(mask_HW)]
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


def _trace(mask_HW: Mask_HW) -> list[Ring]:
    """Through the middles of sides, outlines clockwise and holes the other way."""
    inside = mask_HW != 0
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return []
    top, left = int(rows[0]), int(columns[0])
    padded = np.pad(inside[top : rows[-1] + 1, left : columns[-1] + 1], 1)
    following, middles = _edges(padded)
    rings = []
    while following:
        first, edge = next(iter(following.items()))
        ring = [first]
        del following[first]
        while edge != first:
            ring.append(edge)
            edge = following.pop(edge)
        rings.append(middles(np.array(ring, np.int64)) + np.array([left - 1, top - 1]))
    return rings


def _edges(padded: Mask_HW) -> tuple[dict[int, int], Any]:
    """Of the sides of pixels that have none beside them there: which follows which, and a function to their middles."""
    height, width = padded.shape
    following: dict[int, int] = {}
    for side in range(4):
        down, right = _OUTSIDE[side]
        outside = np.roll(padded, (-down, -right), (0, 1))
        pixels = np.flatnonzero(padded & ~outside)
        ahead = pixels + _AHEAD[side][0] * width + _AHEAD[side][1]
        beyond = ahead + down * width + right
        flat = padded.ravel()
        # Where two pixels touch at a corner, each keeps its own edge.
        turns, goes_on = ~flat[ahead], flat[ahead] & ~flat[beyond]
        size = height * width
        after = np.where(goes_on, side * size + ahead, (side - 1) % 4 * size + beyond)
        after[turns] = (side + 1) % 4 * size + pixels[turns]
        following.update(zip((side * size + pixels).tolist(), after.tolist(), strict=True))

    def middles(edges: npt.NDArray[np.int64]) -> Ring:
        side, pixel = np.divmod(edges, height * width)
        row, column = np.divmod(pixel, width)
        return np.stack([column, row], axis=1) + np.array(_MIDDLE)[side]

    return following, middles


def _simplified(ring: Ring) -> Ring:
    """All pieces of the ring are cut at their farthest points at once, until none is far from its line. It begins with
    the outermost points, so that its bounds stay."""
    closed = np.concatenate([ring, ring[:1]])
    ends = np.unique([0, *ring.argmin(axis=0), *ring.argmax(axis=0), len(ring)])
    while True:
        piece = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        away = _distances(ring, closed[ends[:-1]], closed[ends[1:]], piece)
        most = np.maximum.reduceat(away, ends[:-1])
        cuts = np.flatnonzero((away == most[piece]) & (away > _TOLERANCE))
        if not len(cuts):
            return ring[ends[:-1]]
        _, first = np.unique(piece[cuts], return_index=True)
        ends = np.sort(np.concatenate([ends, cuts[first]]))


def _distances(points: Ring, first: Ring, last: Ring, piece: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Of each point from the line of its piece, which goes from ``first`` to ``last``."""
    way = last - first
    length = np.maximum((way**2).sum(axis=1), 1e-12)
    apart = points - first[piece]
    share = np.clip((apart * way[piece]).sum(axis=1) / length[piece], 0.0, 1.0)
    return np.asarray(np.hypot(*(apart - share[:, None] * way[piece]).T))


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
