"""Statistics of a whole image: counted by rectangles in any order, added up, made into tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import statistics as S
from variegate.executors.cpu.neighbourhood import fill_table
from variegate.executors.cpu.tiled.areas import Area, Image
from variegate.executors.cpu.tiled.stages import PassStage
from variegate.executors.cpu.values import luma
from variegate.executors.reference.places import folded
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import KIND_OF, LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, Kind, Op, PadMode
from variegate.program.places import ONE


@pixel_kernel
def count_tiles(levels: Any, first: Any, begins_y: Any, of_y: Any, begins_x: Any, of_x: Any, counts: Any) -> None:
    """Lumas of levels uint8[H, W, C], whose first pixel is at ``first`` (line, column), into counts int64[tiles_y,
    tiles_x, 256]. Line y counts for the tiles ``of_y[begins_y[y] : begins_y[y + 1]]``, likewise columns."""
    channels = levels.shape[2]
    for y in range(levels.shape[0]):
        line = first[0] + y
        for x in range(levels.shape[1]):
            column = first[1] + x
            level = np.int64(levels[y, x, 0])
            if channels == 3:
                level = luma(levels[y, x, 0], levels[y, x, 1], levels[y, x, 2])
            for i in range(begins_y[line], begins_y[line + 1]):
                for j in range(begins_x[column], begins_x[column + 1]):
                    counts[of_y[i], of_x[j], level] += 1


@pixel_kernel
def fill_contrast(mean: Any, factor: Any, tables: Any) -> None:
    for c in range(3):
        S.contrast_table(mean, factor, tables[c])


@pixel_kernel
def fill_autocontrast(counts: Any, tables: Any) -> None:
    for c in range(counts.shape[0]):
        low, high = 255, 0
        for i in range(256):
            if counts[c, i] > 0:
                low, high = min(low, i), max(high, i)
        S.autocontrast_table(low, high, tables[c])


@pixel_kernel
def fill_equalize(counts: Any, tables: Any) -> None:
    for c in range(counts.shape[0]):
        S.equalize_table(counts[c], tables[c])


@pixel_kernel
def fill_clahe(counts: Any, limit: Any, total: Any, tables: Any) -> None:
    """Counts int64[T, 256] -> tables uint8[T, 256]."""
    for t in range(counts.shape[0]):
        fill_table(counts[t], limit, total, tables[t])


Counts = npt.NDArray[np.int64]
Tables = npt.NDArray[np.uint8]


class Statistic:
    """``seen``: what is looked at of the image before ``stage``; ``key``: the same for two of one stage that count the
    same."""

    stage: PassStage
    seen: Area
    key: tuple[object, ...]

    def gather(self, levels: Image, area: Area) -> Counts:
        """Of one rectangle. Statistics before this one are set."""
        raise NotImplementedError

    def resolve(self, total: Counts) -> Tables:
        """The tables that the sum over all rectangles leads to."""
        raise NotImplementedError

    def set(self, tables: Tables) -> None:
        """Have ``stage`` use them."""
        raise NotImplementedError

    def zero(self) -> Counts:
        """Statistics of no pixels."""
        raise NotImplementedError


class TableStatistic(Statistic):
    """CONTRAST, AUTOCONTRAST or EQUALIZE at slot ``slot`` of a pass: tables, and at most one whole-pixel map,
    come before it."""

    def __init__(self, stage: PassStage, slot: int) -> None:
        self.stage, self._slot = stage, slot
        program, before = stage.workspace.program, stage.before
        self._op, self._args = stage.workspace.statistics[slot]
        maps = [k for k in range(stage.workspace.begin, slot) if KIND_OF[program.opcode[0, k]] == Kind.GEOMETRY]
        self._map = maps[0] if maps else -1
        self.seen, self._outside = Area(0, 0, before.height, before.width), 0
        if maps:
            height, width = (int(side) for side in program.out_size[0, self._map])
            self.seen = _shown(program.args[0, self._map], height, width).meet(stage.window_of(self._map))
            self._outside = height * width - self._num_seen
        # Lumas are of what the tables before have made of levels.
        self.key = ("lumas", slot) if self._op == Op.CONTRAST else ("counts", *self.seen)

    @property
    def _num_seen(self) -> int:
        return 0 if self.seen.is_empty else self.seen.height * self.seen.width

    def zero(self) -> Counts:
        return np.zeros(1 if self._op == Op.CONTRAST else (self.stage.channels, 256), np.int64)

    def gather(self, levels: Image, area: Area) -> Counts:
        if self._op == Op.CONTRAST:
            return np.array([self.stage.on.add_lumas(levels, self._joined(self.stage.workspace.begin))])
        return self.stage.on.count(levels)

    def resolve(self, total: Counts) -> Tables:
        tables, channels, outside = np.zeros((3, 256), np.uint8), self.stage.channels, self._outside
        colour = self._colour()
        if self._op == Op.CONTRAST:
            gray = int(total[0]) + outside * (_luma(colour) if channels == 3 else int(colour[0]))
            fill_contrast(int(gray / (self._num_seen + outside) + 0.5), np.float32(self._args[0]), tables)
            return tables
        joined, counts = self._joined(self.stage.workspace.begin), np.zeros((channels, 256), np.int64)
        for c in range(channels):
            np.add.at(counts[c], joined[c], total[c])
            counts[c, colour[c]] += outside
        if self._op == Op.AUTOCONTRAST:
            fill_autocontrast(counts, tables)
        else:
            fill_equalize(counts, tables)
        return tables

    def set(self, tables: Tables) -> None:
        self.stage.workspace.tables_of[self._slot][:] = tables

    def _joined(self, begin: int) -> Tables:
        """The tables from slot ``begin`` to this one, as one."""
        workspace = self.stage.workspace
        joined = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
        for k in range(begin, self._slot):
            if workspace.program.opcode[0, k] == Op.LUT:
                table = workspace.luts[int(workspace.program.args[0, k, 0])]
                joined = np.stack([table[c][joined[c]] for c in range(3)])
        return joined

    def _colour(self) -> Tables:
        """Of what lies outside of the map, as this statistic sees it."""
        if self._map < 0:
            return np.zeros(3, np.uint8)
        joined = self._joined(self._map + 1)
        return np.array([joined[c, level] for c, level in enumerate(self.stage.workspace.program.fill[0, self._map])])


class TileStatistic(Statistic):
    """The tables of a CLAHE, which is the first of its pass."""

    def __init__(self, stage: PassStage) -> None:
        self.stage, before = stage, stage.before
        self.seen, self.key = Area(0, 0, before.height, before.width), ("tiles",)
        self._limit, tiles_x, tiles_y = stage.workspace.program.args[0, stage.workspace.begin, :3].tolist()
        self._tiles = int(tiles_y), int(tiles_x)
        is_whole = before.height % self._tiles[0] == 0 and before.width % self._tiles[1] == 0
        self._sides = [
            side // tiles + (not is_whole)
            for side, tiles in zip((before.height, before.width), self._tiles, strict=True)
        ]
        self._axes = [
            _tiles_of(size, side, tiles)
            for size, side, tiles in zip((before.height, before.width), self._sides, self._tiles, strict=True)
        ]

    def zero(self) -> Counts:
        return np.zeros((*self._tiles, 256), np.int64)

    def gather(self, levels: Image, area: Area) -> Counts:
        counts = self.zero()
        count_tiles(levels, np.array([area.top, area.left]), *self._axes[0], *self._axes[1], counts)
        return counts

    def resolve(self, total: Counts) -> Tables:
        number = self._sides[0] * self._sides[1]
        tables = np.zeros((self._tiles[0] * self._tiles[1], 256), np.uint8)
        fill_clahe(total.reshape(-1, 256), max(int(self._limit * number / 256.0), 1), number, tables)
        return tables

    def set(self, tables: Tables) -> None:
        self.stage.workspace.tile_luts = tables


def statistics_of(stage: PassStage) -> list[Statistic]:
    """In the order in which they can be worked out."""
    found: list[Statistic] = [TableStatistic(stage, slot) for slot in sorted(stage.workspace.statistics)]
    workspace = stage.workspace
    if workspace.end > workspace.begin and workspace.program.opcode[0, workspace.begin] == Op.CLAHE:
        found.insert(0, TileStatistic(stage))
    return found


def _shown(a: npt.NDArray[np.float64], height: int, width: int) -> Area:
    """Of the source, by a whole-pixel map of this output."""
    xs = [int(a[0]) * x + int(a[1]) * y + int(a[2]) for x in (0, width - 1) for y in (0, height - 1)]
    ys = [int(a[3]) * x + int(a[4]) * y + int(a[5]) for x in (0, width - 1) for y in (0, height - 1)]
    return Area(min(ys) // ONE, min(xs) // ONE, max(ys) // ONE + 1, max(xs) // ONE + 1)


def _luma(colour: Tables) -> int:
    red, green, blue = (int(level) for level in colour)
    return LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF >> LUMA_SHIFT


def _tiles_of(size: int, side: int, tiles: int) -> tuple[Counts, Counts]:
    """For every pixel along an axis, the tiles that it counts for, of the image continued to whole ones -> where they
    begin, int64[size + 1], and the tiles."""
    every = np.arange(side * tiles, dtype=np.int64)
    pixel = folded(every, size, PadMode.REFLECT)
    order = np.argsort(pixel, kind="stable")
    return np.searchsorted(pixel[order], np.arange(size + 1)), every[order] // side
