"""A fused pass as a stage: which rectangle of the image before it a rectangle of its own is made of, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.tiled.areas import Area, CutStage, Image, Stage
from variegate.executors.cpu.tiled.follow import (
    pad_indices,
    reach_of_grid,
    reach_of_maps,
    reach_of_nearest,
    records_of,
    scale_indices,
)
from variegate.executors.cpu.tiled.host import HostPixels
from variegate.program import passes as P
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, KIND_OF, Interpolation, Kind, Op
from variegate.program.passes import PassSource
from variegate.program.places import BICUBIC_BITS, BILINEAR_BITS, FOLD, GRID, ONE, RECORD
from variegate.program.program import Program

_SHIFT = 16
# A filter holds an image as wide as it is high, of its longer side.
_MOST_FILTERED = 2048
_FIXED = (PassSource.STRETCH, PassSource.FIXED, PassSource.CHAIN, PassSource.FOLDED)


class PassStage(CutStage):
    """``plan``: a row of the pass table, of a program's row ``row``, which reads the image ``before``."""

    def __init__(
        self, on: HostPixels, before: Stage, program: Program, row: int, plan: npt.NDArray[np.int32], is_last: bool
    ) -> None:
        self.on, self.before, self.channels, self._is_last = on, before, before.channels, is_last
        begin, end, first = int(plan[P.BEGIN]), int(plan[P.END]), int(plan[P.FIRST])
        self.height, self.width, self.most_read = before.height, before.width, on.most_read
        if end > begin:
            self.height, self.width = (int(side) for side in program.out_size[row, end - 1])
        # A pass of nothing but a JPEG ends behind the last slot.
        slot = min(first, program.opcode.shape[1] - 1)
        self._op, flag = int(program.opcode[row, slot]), int(program.flags[row, slot])
        self._flag, self._mode = flag & INTERPOLATION_MASK, flag >> INTERPOLATION_BITS
        records = np.empty((0, RECORD), np.int64)
        source = PassSource(int(plan[P.SOURCE]))
        if source == PassSource.FILTER:
            self.most_made = _MOST_FILTERED
        if source == PassSource.INTERPOLATED:
            records = self._records(program, row, first, int(plan[P.MAPS_END]))
        self.workspace = on.workspace(program, row, plan, (self.height, self.width), is_last, records)
        self.dtype = self.workspace.dtype
        self._args = self.workspace.program.args[0].copy()
        self._windows = [Area(*map(int, window)) for window in self.workspace.program.window[0]]
        self._maps = [
            k
            for k in range(first, int(plan[P.MAPS_END]))
            if KIND_OF[self.workspace.program.opcode[0, k]] == Kind.GEOMETRY
        ]
        self._first, self._source, self._records_of_maps = first, source, records
        self._tables = self._indices() if source == PassSource.TABLE else None

    def window_of(self, slot: int) -> Area:
        """Inside of the source of the map at ``slot``."""
        return self._windows[slot]

    # -- what is read ------------------------------------------------------------------------------------------

    def reads(self, area: Area) -> Area | None:
        if self._source == PassSource.FILTER:
            return self.seen_by_filter(area)
        if self._source in _FIXED:
            return self._walk(area, False)
        if self._source == PassSource.INTERPOLATED:
            return self._reach(area)
        if self._tables is not None:
            _, lines, _, columns = self._inside(area)
            if not len(lines) or not len(columns):
                return None
            return Area(int(lines.min()), int(columns.min()), int(lines.max()) + 1, int(columns.max()) + 1)
        return area

    def seen_by_filter(self, area: Area) -> Area:
        """With what the filter sees around it."""
        a, op = self._args[self._first], self.workspace.program.opcode[0, self._first]
        lines = columns = 0
        if op == Op.SHARPNESS:
            lines = columns = 1
        elif op == Op.MEDIAN:
            lines = columns = int(a[0]) // 2
        elif op == Op.CONVOLVE:
            lines, columns = int(a[2]) // 2, int(a[1]) // 2
        elif op == Op.MORPHOLOGY:
            lines, columns = int(a[1]) // 2, int(a[0]) // 2
        elif op == Op.SCATTER:
            lines = columns = int(a[0] * a[1])
        elif op == Op.ZOOM_BLUR or op == Op.ABERRATION:
            # A share of the way to the center, or of that beyond it, where r^2 is a half at most.
            share = max(abs(a[0]) + abs(a[1]) / 2, abs(a[2]) + abs(a[3]) / 2) / 2
            if op == Op.ZOOM_BLUR:
                share = 1 - 1 / (1 + a[0] * a[1])
            lines, columns = (int(min(share, 2) * side / 2) + 2 for side in (self.height, self.width))
        return area.grown(lines, columns).meet(self.whole)

    def _walk(self, area: Area, is_set: bool) -> Area | None:
        """Through nearest maps in fixed point, from the last to the first; with ``is_set`` each is made one from
        rectangle to rectangle."""
        program, seen, is_lost = self.workspace.program, area, False
        for k in reversed(self._maps):
            a, read = self._args[k], Area(0, 0, 1, 1)
            if not is_lost:
                corners = [(x, y) for x in (seen.left, seen.right - 1) for y in (seen.top, seen.bottom - 1)]
                columns = [int(a[0]) * x + int(a[1]) * y + int(a[2]) >> _SHIFT for x, y in corners]
                lines = [int(a[3]) * x + int(a[4]) * y + int(a[5]) >> _SHIFT for x, y in corners]
                read = Area(min(lines), min(columns), max(lines) + 1, max(columns) + 1)
                mode = program.flags[0, k] >> INTERPOLATION_BITS
                read = _folded(read, self._windows[k], mode) if mode else read.meet(self._windows[k])
                is_lost = read.is_empty
            if is_set:
                program.out_size[0, k] = seen.height, seen.width
                _set_map(program.args[0, k], a, seen, read)
                program.window[0, k] = (0, 0, 0, 0) if is_lost else (0, 0, read.height, read.width)
                if not is_lost and program.flags[0, k] > INTERPOLATION_MASK:
                    program.window[0, k] = _seen_from(self._windows[k], read)
            seen = Area(0, 0, 1, 1) if is_lost else read
        return None if is_lost else seen

    def _reach(self, area: Area) -> Area | None:
        far = np.iinfo(np.int64).max
        out, slot, records = np.array([far, far, -far, -far]), self._first, self._records_of_maps
        tile, bits = np.array(area, np.int64), BICUBIC_BITS if self._flag == Interpolation.BICUBIC else BILINEAR_BITS
        if (records[:, [GRID, FOLD]] != 0).any() and (self._flag or self._op == Op.MAP_GRID):
            grids = self.workspace.grids
            reach_of_grid(records, grids, len(records), tile, self._flag, bits, out)
        elif self._flag == Interpolation.NEAREST:
            window = np.array(self._windows[slot], np.int64)
            reach_of_nearest(self._args[slot], window, self._mode, self._op == Op.MAP_PERSPECTIVE, tile, out)
        else:
            reach_of_maps(records[0], np.empty(RECORD, np.int64), tile, bits, out)
        if out[2] < out[0]:
            return None
        # Taps around a place; and one more, as a quotient's rounding may move the farthest.
        around = {Interpolation.BILINEAR: 2, Interpolation.BICUBIC: 4}.get(Interpolation(self._flag), 0)
        found = Area(*map(int, out)).grown(around, around)
        found = _folded(found, self._windows[slot], self._mode) if self._mode else found.meet(self._windows[slot])
        return None if found.is_empty else found

    # -- how it is made ----------------------------------------------------------------------------------------

    def make_from(self, area: Area, read: Area | None) -> Image:
        program, begin, end = self.workspace.program, self.workspace.begin, self.workspace.end
        made = read if self._source == PassSource.FILTER and read is not None else area
        program.out_size[0, begin:end] = made.height, made.width
        if read is not None:
            levels = self.on.packed(self.before.make(read))
        else:
            levels = self.on.empty((1, 1, self.channels), np.uint8)
        if self._source in _FIXED:
            self._walk(area, True)
            program.out_size[0, end - 1] = made.height, made.width
        elif self._source == PassSource.INTERPOLATED:
            is_nowhere = read is None and self._flag == Interpolation.NEAREST
            program.window[0, self._first] = (0, 0, 0, 0) if is_nowhere else (0, 0, *levels.shape[:2])
            if self._mode and read is not None:
                program.window[0, self._first] = _seen_from(self._windows[self._first], read)
        elif self._tables is not None:
            levels = self._gathered(area, read, levels)
        result = self.workspace.run(made, levels, read)
        return result[area.within(made)] if self._is_last else self.on.packed(result[area.within(made)])

    def _gathered(self, area: Area, read: Area | None, levels: Image) -> Image:
        """Gather by the tables, of which ``area`` then shows a stretch: see ``TileWorkspace``."""
        first_line, lines, first_column, columns = self._inside(area)
        if read is not None:
            levels = self.on.packed(levels[lines - read.top][:, columns - read.left])
        program, k = self.workspace.program, self._first
        seen = Area(-first_line, -first_column, 0, 0)
        program.args[0, k] = (ONE, 0, ONE * seen.left, 0, ONE, ONE * seen.top, 0, 0)
        program.opcode[0, k] = Op.MAP_FIXED
        program.window[0, k] = (0, 0, 0, 0) if read is None else (0, 0, *levels.shape[:2])
        self.workspace.plan[P.SOURCE] = PassSource.STRETCH
        return levels

    def _inside(self, area: Area) -> tuple[int, npt.NDArray[np.int64], int, npt.NDArray[np.int64]]:
        """The first line of ``area`` that is inside and the lines of the source that it and those after it read;
        likewise columns."""
        assert self._tables is not None
        found: list[Any] = []
        for table, begin, end in zip(self._tables, area[:2], area[2:], strict=True):
            read = table[begin:end]
            inside = np.flatnonzero(read >= 0)
            found += [int(inside[0]), read[inside]] if len(inside) else [0, read[:0]]
        return tuple(found)

    def _indices(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Source line of every line, source column of every column; -1 outside."""
        a, before = self._args[self._first], self.before
        if self._op == Op.MAP_SCALE:
            columns = scale_indices(a[1], a[0], before.width, self.width, self._mode)
            lines = scale_indices(a[3], a[2], before.height, self.height, self._mode)
            return lines, columns[::-1] if a[4] != 0.0 else columns
        return (
            pad_indices(int(a[1]), self._flag, before.height, self.height),
            pad_indices(int(a[0]), self._flag, before.width, self.width),
        )

    def _records(self, program: Program, row: int, first: int, end: int) -> npt.NDArray[np.int64]:
        one = program.replace(
            **{
                name: np.ascontiguousarray(getattr(program, name)[row : row + 1])
                for name in ("opcode", "args", "flags", "fill", "out_size", "label", "window", "pass_of", "passes")
            }
        )
        room = np.zeros((end - first, RECORD), np.int64)
        return room[: records_of(one.arrays(), first, end, room)]


def _folded(area: Area, window: Area, mode: int) -> Area:
    """Part of a window that places in ``area`` read, if it goes on by ``mode`` beyond its edges."""
    ends = []
    for axis in range(2):
        low, high, begin, end = area[axis], area[2 + axis], window[axis], window[2 + axis]
        if high - low < end - begin:
            read = begin + pad_indices(begin - low, mode, end - begin, high - low)
            begin, end = int(read.min()), int(read.max()) + 1
        ends.append((begin, end))
    return Area(ends[0][0], ends[1][0], ends[0][1], ends[1][1])


def _seen_from(window: Area, read: Area) -> Area:
    """A window's sides, counted from the first pixel that is read of it."""
    return Area(window.top - read.top, window.left - read.left, window.bottom - read.top, window.right - read.left)


def _set_map(args: npt.NDArray[np.float64], whole: npt.NDArray[np.float64], seen: Area, read: Area) -> None:
    """``args``: those of ``whole``, from places in ``seen`` to places in ``read``. Whole numbers, all of them exact."""
    args[:] = whole
    args[2] += whole[0] * seen.left + whole[1] * seen.top - ONE * read.left
    args[5] += whole[3] * seen.left + whole[4] * seen.top - ONE * read.top
