"""What the compiled loop of outlines computes, with NumPy and a dict of edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.annotated.outlines import TOLERANCE, Ring

Mask_HW = npt.NDArray[Any]
# By the side of a pixel that an edge runs along, clockwise: top, right, bottom, left. The way it goes, and what lies
# outside, as (row, column); the middle of the side, as (x, y).
_AHEAD = ((0, 1), (1, 0), (0, -1), (-1, 0))
_OUTSIDE = ((-1, 0), (0, 1), (1, 0), (0, -1))
_MIDDLE = ((0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5))


def plain_trace(mask_HW: Mask_HW) -> list[Ring]:
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
        rings.append(_simplified(middles(np.array(ring, np.int64))) + np.array([left - 1, top - 1]))
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
        cuts = np.flatnonzero((away == most[piece]) & (away > TOLERANCE))
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
