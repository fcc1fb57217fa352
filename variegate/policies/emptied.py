"""Pixels that PBA's operations empty, as arcelien/pba treats them.

Its images are RGBA. What a geometric operation or a cutout empties is transparent, and whatever is transparent in the
end becomes the data set's mean. Until then such pixels are black (those of a cutout have the mean's colour): the mean
that Contrast takes and Sharpness's neighbourhoods see that, and operations that are opaque (Invert, Equalize)
drop the transparency, so that inverted black stays in the picture. Here images have no fourth channel; a pair of
operations is emitted so that the same pixels come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.ops.erase import emit_rectangles
from variegate.policies.table import Entry, Index, OperationTable
from variegate.program import rng
from variegate.program.lowering.maps import geometry_to_maps
from variegate.program.ops import SPECS, Kind, Op
from variegate.program.places import ONE
from variegate.program.program import Output
from variegate.program.sampling import Floats, Rows, Sampling


class Emptiness(IntEnum):
    """What an operation does with pixels that are empty, or empties."""

    NONE = 0
    MOVES = 1  # empties; what is empty stays so, and moves
    CUTS = 2
    OPAQUE = 3  # makes of an empty pixel what it makes of its colour
    EACH = 4  # of every pixel by itself; what is empty stays so
    SEES = 5  # what is empty stays so, but has a part in the others


_BY_KIND = {
    Kind.GEOMETRY: Emptiness.MOVES,
    Kind.VALUE: Emptiness.EACH,
    Kind.STATISTIC: Emptiness.SEES,
    Kind.NEIGHBOURHOOD: Emptiness.SEES,
}


def emptiness_of(entry: Entry) -> Emptiness:
    """Of an operation of PBA."""
    if entry.emission.is_opaque:
        return Emptiness.OPAQUE
    # A cutout is the one that emits rectangles of its own.
    return Emptiness.CUTS if entry.emission.emitter else _BY_KIND[SPECS[entry.emission.opcode].kind]


class PairStep(NamedTuple):
    """Of every row its operation (-1: none) and argument; ``slot`` is where the operation's own chances are."""

    entry: Index
    parameter: Floats
    slot: int


@dataclass(frozen=True)
class ReferencePairs:
    """``table``: the operations with the mean as their fill; ``black``: the same, filled with black."""

    table: OperationTable
    black: OperationTable

    def emit(self, sampling: Sampling, rows: Rows, first: PairStep, second: PairStep) -> None:
        """Append both operations to each of ``rows``; there is no second where there is no first."""
        kinds = np.array([*map(emptiness_of, self.table.entries), Emptiness.NONE])
        one, two = kinds[first.entry], kinds[second.entry]
        is_emptied = (one == Emptiness.MOVES) | (one == Emptiness.CUTS)
        # Filled with the mean after an operation on every pixel by itself, which then does not meet it.
        swapped = is_emptied & (two == Emptiness.EACH)
        shown = (one == Emptiness.MOVES) & ((two == Emptiness.OPAQUE) | (two == Emptiness.SEES))
        filled_again = is_emptied & (two == Emptiness.SEES)

        def emit(table: OperationTable, chosen: npt.NDArray[np.bool_], step: PairStep) -> None:
            at = np.flatnonzero(chosen)
            if len(at):
                table.emit(sampling, rows[at], step.entry[at], step.parameter[at], step.slot)

        emit(self.table, swapped, second)
        emit(self.black, shown, first)
        emit(self.table, (first.entry >= 0) & ~shown, first)
        emit(self.table, (second.entry >= 0) & ~swapped, second)
        emit(self.table, filled_again & (one == Emptiness.CUTS), first)  # the same place: it has the same slot
        self._fill(sampling, rows, np.flatnonzero(filled_again & (one == Emptiness.MOVES)), first)

    def _fill(self, sampling: Sampling, rows: Rows, at: Index, step: PairStep) -> None:
        """Give the mean to what the geometric operations of ``step`` have emptied."""
        if len(at) == 0:
            return
        rows = rows[at]
        shapes = np.column_stack([sampling.size[rows], sampling.channels[rows]]).astype(np.int32)
        alone = Sampling(shapes, np.zeros(len(rows), np.uint64), rng.stream_key(0, 0), 0)
        self.table.emit(alone, np.arange(len(rows)), step.entry[at], step.parameter[at], 0)
        maps = geometry_to_maps(alone.finish(Output()))
        assert maps.window is not None
        found, owner = [], []
        for i, (height, width) in enumerate(shapes[:, :2].tolist()):
            rectangles = _outside(maps.opcode[i, 0], maps.args[i, 0], maps.window[i, 0], height, width)
            found.append(rectangles)
            owner.append(np.full(len(rectangles), i))
        emit_rectangles(
            sampling, rows, np.concatenate(found), np.concatenate(owner), self.table.fill, "Fill of emptied pixels"
        )


def _outside(
    opcode: np.int16, args: Floats, window: npt.NDArray[np.int32], height: int, width: int
) -> npt.NDArray[np.int64]:
    """int[2 height, 4]: what lies left and right of the pixels that a nearest affine map fills, line by line."""
    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    a, b, c, d, e, f = args[:6]
    if opcode == Op.MAP_FIXED:
        u, v = (a * x + b * y + c) // ONE, (d * x + e * y + f) // ONE
    else:  # coordinates beyond 16.16, of images of ten thousands of pixels
        u, v = (np.floor(p * (x + 0.5) + q * (y + 0.5) + r) for p, q, r in ((a, b, c), (d, e, f)))
    top, left, bottom, right = window
    inside = (u >= left) & (u < right) & (v >= top) & (v < bottom)
    first = np.where(inside.any(axis=1), inside.argmax(axis=1), width)
    last = np.maximum(width - inside[:, ::-1].argmax(axis=1), first)
    line, one, none = np.arange(height), np.ones(height, np.int64), np.zeros(height, np.int64)
    before, after = (line, none, one, first), (line, last, one, width - last)
    return np.concatenate([np.column_stack(before), np.column_stack(after)]).astype(np.int64)
