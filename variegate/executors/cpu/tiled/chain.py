"""The stages of a fused program, for one image; and those that are no passes: a resize, one axis at a time, and a JPEG,
by whole blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.jpeg import through_jpeg
from variegate.executors.cpu.resizing import PRECISION, axis_of_box, filter_radius, fixed_weight, weigh_output
from variegate.executors.cpu.tiled import areas
from variegate.executors.cpu.tiled.areas import Area, CutStage, Image, Stage
from variegate.executors.cpu.tiled.stages import PassStage
from variegate.executors.cpu.tiled.statistics import Counts, Statistic, Tables, TableStatistic, statistics_of
from variegate.program import passes as P
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import (
    INTERPOLATION_MASK,
    IS_REAL_MAP,
    KIND_OF,
    SPECS,
    Interpolation,
    Kind,
    Op,
    require_branches,
)
from variegate.program.passes import PASS_FIELDS, PassSource
from variegate.program.places import ONE
from variegate.program.program import Program

# Of other kinds the kernel runs whatever it runs of whole images.
require_branches(
    "tiles",
    {
        Kind.STATISTIC: (TableStatistic.resolve, Op.EQUALIZE),
        Kind.NEIGHBOURHOOD: (PassStage.seen_by_filter, statistics_of),
    },
    lambda op: SPECS[op].kind in (Kind.STATISTIC, Kind.NEIGHBOURHOOD) and SPECS[op].becomes is None,
)
# Beyond these, quotients of a perspective do not fit the integers that they are cut off to.
MOST_PERSPECTIVE = 65_535


class TiledImage:
    """The result of a fused program of one image on ``source``, rectangle by rectangle.

    Before the first, every one of ``statistics`` has to be given its tables, in order: by ``gather`` over all of
    ``seen``, in any rectangles, sums of which ``resolve`` takes. One thread may use it.

    Raises ValueError naming an operation that cannot be done in tiles.
    """

    def __init__(self, program: Program, source: Stage) -> None:
        program = program.replace(output=replace(program.output, layout="NHWC"))
        self.statistics: list[Statistic] = []
        self._output = program.output
        if program.blend is None:
            if program.num_rows != 1:
                raise ValueError(f"tiles: got {program.num_rows} rows; accepted: one image, augmented once")
            self._last: Stage = self._chain(program, 0, source, True)
        else:
            rows = [self._chain(program, row, source, False) for row in range(program.num_rows)]
            self._last = _Blended(program, rows)
            if program.output.is_float:
                row = int(program.blend.entries().row[0])
                self._last = PassStage(self._last, *_only_erasing(program, row), is_last=True)
        self.height, self.width = self._last.height, self._last.width
        self.channels = 1 if getattr(program.output, "channels", None) == 1 else self._last.channels

    def make(self, area: Area) -> Image:
        """uint8 or float32 [H, W, C]."""
        made = self._last.make(area)
        return made if made.shape[2] == self.channels else np.ascontiguousarray(made[..., : self.channels])

    def gather(self, number: int, area: Area) -> Counts:
        """Of statistic ``number``, once all before it are set."""
        statistic = self.statistics[number]
        total = statistic.zero()
        for block in area.blocks(math.isqrt(areas.MOST_BYTES // self._last.channels)):
            total += statistic.gather(statistic.stage.before.make(block), block)
        return total

    def set_tables(self, tables: list[Tables]) -> None:
        """Of as many statistics as are known."""
        for statistic, table in zip(self.statistics, tables, strict=False):
            statistic.set(table)

    def _chain(self, program: Program, row: int, source: Stage, is_last: bool) -> Stage:
        stage = source
        if program.detour is not None and (place := int(program.detour.place[row])) >= 0:
            before = program.detour.program
            before = before.replace(output=replace(before.output, layout="NHWC"))
            stage = CodedStage(self._chain(before, place, source, False), int(program.detour.quality[row]))
        assert program.passes is not None
        assert program.num_passes is not None
        count = int(program.num_passes[row])
        for p in range(count):
            plan = program.passes[row, p]
            _refuse(program, row, plan, stage)
            if plan[P.SOURCE] == PassSource.FILTER and plan[P.FIRST] > plan[P.BEGIN]:
                stage = self._add(PassStage(stage, program, row, _before_filter(program, row, plan), False))
                plan = plan.copy()
                plan[P.BEGIN] = plan[P.FIRST]
            elif plan[P.SOURCE] == PassSource.RESAMPLE:
                k = int(plan[P.FIRST])
                size = int(program.out_size[row, k, 0]), int(program.out_size[row, k, 1])
                stage = resized(stage, program.args[row, k], int(program.flags[row, k]), size)
                program, plan = program.replace(opcode=program.opcode.copy()), plan.copy()
                program.opcode[row, k], plan[P.SOURCE] = Op.NOP, PassSource.DIRECT
            stage = self._add(PassStage(stage, program, row, plan, is_last and p == count - 1))
        return stage

    def _add(self, stage: PassStage) -> PassStage:
        self.statistics += statistics_of(stage)
        return stage


def _before_filter(program: Program, row: int, plan: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The pass before a filter: tables, and at most one map."""
    before = np.zeros(PASS_FIELDS, np.int32)
    begin, end = int(plan[P.BEGIN]), int(plan[P.FIRST])
    before[[P.BEGIN, P.FIRST, P.MAPS_END, P.VALUES]] = begin
    before[[P.END, P.POSITION, P.STATISTICS, P.STATISTICS_END]] = end
    before[P.SOURCE] = PassSource.DIRECT
    for k in range(begin, end):
        if KIND_OF[program.opcode[row, k]] == Kind.GEOMETRY:
            a = program.args[row, k]
            keeps_lines = abs(a[0]) == abs(a[4]) == ONE and a[1] == a[3] == a[2] % ONE == a[5] % ONE == 0.0
            before[P.SOURCE] = PassSource.STRETCH if keeps_lines else PassSource.FIXED
            before[P.FIRST], before[P.MAPS_END] = k, k + 1
    return before


def _refuse(program: Program, row: int, plan: npt.NDArray[np.int32], before: Stage) -> None:
    sides = before.height, before.width
    for k in range(int(plan[P.BEGIN]), int(plan[P.END])):
        op, flag = program.opcode[row, k], program.flags[row, k] & INTERPOLATION_MASK
        is_nearest = flag == Interpolation.NEAREST
        if op == Op.MAP_PERSPECTIVE and IS_REAL_MAP[op] and not is_nearest and max(sides) > MOST_PERSPECTIVE:
            raise ValueError(
                f"Perspective, interpolated, of {sides[0]:,} x {sides[1]:,} pixels in tiles; accepted: sides of at "
                f'most {MOST_PERSPECTIVE:,} pixels, or interpolation="nearest"'
            )


def _only_erasing(program: Program, row: int) -> tuple[Program, int, npt.NDArray[np.int32]]:
    """A pass that does nothing but what comes after Normalize."""
    length = int(program.length[row])
    plan = np.zeros(PASS_FIELDS, np.int32)
    plan[[P.END, P.STATISTICS, P.STATISTICS_END]] = length
    plan[P.SOURCE] = PassSource.DIRECT
    opcode = np.where((program.opcode == Op.ERASE) & (program.args[..., 7] != 0.0), program.opcode, np.int16(Op.NOP))
    return program.replace(opcode=opcode), row, plan


class _Blended(CutStage):
    """The weighted sum of several rows over one image."""

    def __init__(self, program: Program, rows: list[Stage]) -> None:
        assert program.blend is not None
        entries = program.blend.entries()
        if len(entries.start) != 1 or program.blend.box is not None:
            raise ValueError("tiles: got several images that are mixed; accepted: transforms of one image alone")
        self._rows, self._weights, self._start = [rows[i] for i in entries.row], entries.weight, entries.start[0]
        self.height, self.width, self.channels = rows[0].height, rows[0].width, rows[0].channels

    def reads(self, area: Area) -> Area:
        return area

    def make_from(self, area: Area, read: Area | None) -> Image:
        total = np.full((area.height, area.width, self.channels), self._start, np.float32)
        for row, weight in zip(self._rows, self._weights, strict=True):
            total += weight * row.make(area).astype(np.float32)
        return np.clip(total, 0.0, 255.0, out=total).astype(np.uint8)


@pixel_kernel
def axis_taps(start: Any, extent: Any, out_size: Any, kind: Any) -> int:
    """The greatest number of weights of an output."""
    _, _, _, _, filter_scale = axis_of_box(0, start, extent, out_size)
    return int(np.ceil(filter_radius(kind) * filter_scale)) * 2 + 2


@pixel_kernel
def axis_weights(
    in_size: Any, start: Any, extent: Any, out_size: Any, kind: Any, begin: Any, bounds: Any, weights: Any, real: Any
) -> None:
    """Of the outputs from ``begin`` on: first source index and number of weights, bounds int64[N, 2], and the weights,
    int32[N, taps]. See ``resizing.coefficients``."""
    skipped, in_size, first, scale, filter_scale = axis_of_box(in_size, start, extent, out_size)
    support, inverse = filter_radius(kind) * filter_scale, 1.0 / filter_scale
    for i in range(bounds.shape[0]):
        centre = first + (begin + i + 0.5) * scale
        low, count = weigh_output(centre, support, inverse, in_size, kind, real)
        for j in range(count):
            weights[i, j] = fixed_weight(real[j])
        bounds[i, 0], bounds[i, 1] = skipped + low, count


@pixel_kernel
def resize_columns(levels: Any, bounds: Any, weights: Any, left: Any, out: Any) -> None:
    """Levels uint8[H, W, C], which begin at column ``left``, into out uint8[H, N, C]."""
    channels = levels.shape[2]
    for y in range(levels.shape[0]):
        for x in range(out.shape[1]):
            first, count = bounds[x, 0] - left, bounds[x, 1]
            for c in range(channels):
                total: Any = np.int32(1 << (PRECISION - 1))
                for j in range(count):
                    total += np.int32(levels[y, first + j, c]) * weights[x, j]
                out[y, x, c] = np.uint8(min(max(total >> PRECISION, 0), 255))


@pixel_kernel
def resize_lines(levels: Any, bounds: Any, weights: Any, top: Any, totals: Any, out: Any) -> None:
    """Levels uint8[H, W C], which begin at line ``top``, into out uint8[N, W C]. ``totals``: room, int32[W C]."""
    for y in range(out.shape[0]):
        first, count = bounds[y, 0] - top, bounds[y, 1]
        totals[:] = np.int32(1 << (PRECISION - 1))
        for j in range(count):
            weight, line = weights[y, j], levels[first + j]
            for x in range(totals.shape[0]):
                totals[x] += np.int32(line[x]) * weight
        for x in range(totals.shape[0]):
            out[y, x] = np.uint8(min(max(totals[x] >> PRECISION, 0), 255))


Ints = npt.NDArray[Any]


class ResizedAxis(CutStage):
    """The image before it, resized along x (axis 1) or y (axis 0).

    ``start``, ``extent``: of the box along this axis, as a RESIZED_CROP has them; ``kind``: the filter.
    """

    most_made = most_read = 1 << 62

    def __init__(
        self, before: Stage, axis: int, start: float, extent: float, size: int, kind: int, mirrors: bool = False
    ) -> None:
        self.before, self.axis, self.channels = before, axis, before.channels
        self.height, self.width = (size, before.width) if axis == 0 else (before.height, size)
        self._in_size = before.height if axis == 0 else before.width
        self._box, self._size, self._kind, self._mirrors = (start, extent), size, kind, mirrors
        self._taps = axis_taps(start, extent, size, kind)
        self._weights = lru_cache(maxsize=4)(self._weigh)

    def reads(self, area: Area) -> Area:
        begin, end = self._outputs(area)
        bounds, _ = self._weights(begin, end)
        first, stop = int(bounds[:, 0].min()), int(bounds.sum(axis=1).max())
        if self.axis == 0:
            return Area(first, area.left, stop, area.right)
        return Area(area.top, first, area.bottom, stop)

    def make_from(self, area: Area, read: Area | None) -> Image:
        assert read is not None
        begin, end = self._outputs(area)
        bounds, weights = self._weights(begin, end)
        levels = self.before.make(read)
        made = np.empty((area.height, area.width, self.channels), np.uint8)
        if self.axis == 1:
            resize_columns(levels, bounds, weights, read.left, made)
            return np.ascontiguousarray(made[:, ::-1]) if self._mirrors else made
        length = area.width * self.channels
        totals = np.empty(length, np.int32)
        resize_lines(levels.reshape(-1, length), bounds, weights, read.top, totals, made.reshape(area.height, length))
        return made

    def _outputs(self, area: Area) -> tuple[int, int]:
        """Along the axis, as they are before a mirror."""
        begin, end = (area.top, area.bottom) if self.axis == 0 else (area.left, area.right)
        return (self._size - end, self._size - begin) if self._mirrors else (begin, end)

    def _weigh(self, begin: int, end: int) -> tuple[Ints, Ints]:
        bounds, weights = np.empty((end - begin, 2), np.int64), np.zeros((end - begin, self._taps), np.int32)
        axis_weights(
            self._in_size, *self._box, self._size, self._kind, begin, bounds, weights, np.empty(self._taps, np.float64)
        )
        return bounds, weights


def resized(before: Stage, args: Any, kind: int, size: tuple[int, int]) -> Stage:
    """``before`` through a RESIZED_CROP as lowering leaves it, with its arguments, to a height and width."""
    top, left, height, width, *_, mirrors, is_vertical_first = (float(value) for value in args)
    if is_vertical_first:
        lines = ResizedAxis(before, 0, top, height, size[0], kind)
        return ResizedAxis(lines, 1, left, width, size[1], kind, mirrors != 0.0)
    columns = ResizedAxis(before, 1, left, width, size[1], kind, mirrors != 0.0)
    return ResizedAxis(columns, 0, top, height, size[0], kind)


# Chroma blocks of 4:2:0 cover so many pixels. Upsampling looks at the chroma beside a pixel's own, which lies in the
# block beside; what blocks are made of begins and ends with them.
_BLOCK = 16


class CodedStage(CutStage):
    def __init__(self, before: Stage, quality: int) -> None:
        self.before, self._quality = before, quality
        self.height, self.width, self.channels = before.height, before.width, before.channels

    def reads(self, area: Area) -> Area:
        top, left = area.top // _BLOCK * _BLOCK - _BLOCK, area.left // _BLOCK * _BLOCK - _BLOCK
        bottom, right = -(-area.bottom // _BLOCK) * _BLOCK + _BLOCK, -(-area.right // _BLOCK) * _BLOCK + _BLOCK
        return Area(top, left, bottom, right).meet(self.whole)

    def make_from(self, area: Area, read: Area | None) -> Image:
        assert read is not None
        coded = through_jpeg(np.ascontiguousarray(self.before.make(read)), self._quality)
        return np.ascontiguousarray(coded[area.within(read)])
