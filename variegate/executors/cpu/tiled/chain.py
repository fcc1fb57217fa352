"""The stages of a fused program, for one image; and those that are no passes: a resize, one axis at a time, and a JPEG,
by whole blocks."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.batch import jpeg_memory
from variegate.executors.cpu.jpeg import code_image
from variegate.executors.cpu.memory import place_of
from variegate.executors.cpu.resizing import axis_of_box, filter_radius, fixed_weight, weigh_output
from variegate.executors.cpu.tiled import areas
from variegate.executors.cpu.tiled.areas import Area, CutStage, Image, Stage
from variegate.executors.cpu.tiled.host import HostPixels
from variegate.executors.cpu.tiled.stages import PassStage
from variegate.executors.cpu.tiled.statistics import Counts, Statistic, Tables, statistics_of
from variegate.program import passes as P
from variegate.program.compiled import pixel_kernel
from variegate.program.lowering.fuse import describe_filter_input
from variegate.program.ops import INTERPOLATION_MASK, IS_REAL_MAP, Interpolation, Op
from variegate.program.passes import PASS_FIELDS, PassSource
from variegate.program.program import Program

# Beyond these, quotients of a perspective do not fit the integers that they are cut off to.
MOST_PERSPECTIVE = 65_535


class TiledImage:
    """The result of a fused program of one image on ``source``, rectangle by rectangle.

    Before the first, every one of ``statistics`` has to be given its tables, in order: by ``gather`` over all of
    ``seen``, in any rectangles, sums of which ``resolve`` takes. One thread may use it. ``on``: where it is made.

    Raises ValueError naming an operation that cannot be done in tiles.
    """

    def __init__(self, program: Program, source: Stage, on: HostPixels | None = None) -> None:
        self._on = HostPixels() if on is None else on
        source = self._on.source(source)
        self.statistics: list[Statistic] = []
        self._output = program.output
        if program.blend is None:
            if program.num_rows != 1:
                raise ValueError(f"tiles: got {program.num_rows} rows; accepted: one image, augmented once")
            self._last: Stage = self._chain(program, 0, source, True)
        else:
            rows = [self._chain(program, row, source, False) for row in range(program.num_rows)]
            self._last = _Blended(self._on, program, rows)
            if program.output.is_float:
                row = int(program.blend.entries().row[0])
                self._last = PassStage(self._on, self._last, *_only_erasing(program, row), is_last=True)
        self.height, self.width = self._last.height, self._last.width
        self.channels = 1 if getattr(program.output, "channels", None) == 1 else self._last.channels

    def make(self, area: Area) -> Image:
        """uint8 or floats [H, W, C]; of a program in NCHW, a view of its planes."""
        return self._last.make(area)[..., : self.channels]

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
        assert program.passes is not None
        assert program.num_passes is not None
        count = int(program.num_passes[row])
        for p in range(count):
            plan = program.passes[row, p]
            _refuse(program, row, plan, stage)
            if plan[P.QUALITY]:
                stage = CodedStage(self._on, stage, int(plan[P.QUALITY]))
            if plan[P.SOURCE] == PassSource.FILTER and plan[P.FIRST] > plan[P.BEGIN]:
                before = np.zeros(PASS_FIELDS, np.int32)
                describe_filter_input(program.opcode[row], program.args[row], plan, before)
                stage = self._add(PassStage(self._on, stage, program, row, before, False))
                plan = plan.copy()
                plan[P.BEGIN] = plan[P.FIRST]
            elif plan[P.SOURCE] == PassSource.RESAMPLE:
                k = int(plan[P.FIRST])
                size = int(program.out_size[row, k, 0]), int(program.out_size[row, k, 1])
                stage = resized(self._on, stage, program.args[row, k], int(program.flags[row, k]), size)
                program, plan = program.replace(opcode=program.opcode.copy()), plan.copy()
                program.opcode[row, k], plan[P.SOURCE] = Op.NOP, PassSource.DIRECT
            stage = self._add(PassStage(self._on, stage, program, row, plan, is_last and p == count - 1))
        return stage

    def _add(self, stage: PassStage) -> PassStage:
        self.statistics += statistics_of(stage)
        return stage


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

    def __init__(self, on: HostPixels, program: Program, rows: list[Stage]) -> None:
        assert program.blend is not None
        self.on = on
        entries = program.blend.entries()
        if len(entries.start) != 1 or program.blend.box is not None:
            raise ValueError("tiles: got several images that are mixed; accepted: transforms of one image alone")
        self._rows, self._weights, self._start = [rows[i] for i in entries.row], entries.weight, entries.start[0]
        self.height, self.width, self.channels = rows[0].height, rows[0].width, rows[0].channels

    def reads(self, area: Area) -> Area:
        return area

    def make_from(self, area: Area, read: Area | None) -> Image:
        total = self.on.empty((area.height, area.width, self.channels), np.float32)
        total[:] = float(self._start)
        return self.on.blend(total, self._weights, (row.make(area) for row in self._rows))


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


Ints = npt.NDArray[Any]


class ResizedAxis(CutStage):
    """The image before it, resized along x (axis 1) or y (axis 0).

    ``box``: its start and extent along this axis, as a RESIZED_CROP has them; ``kind``: the filter.
    """

    most_made = most_read = 1 << 62

    def __init__(
        self, on: HostPixels, before: Stage, axis: int, box: tuple[float, float], size: int, kind: int, mirrors: bool
    ) -> None:
        self.on, self.before, self.axis, self.channels = on, before, axis, before.channels
        self.height, self.width = (size, before.width) if axis == 0 else (before.height, size)
        self._in_size = before.height if axis == 0 else before.width
        self._box, self._size, self._kind, self._mirrors = box, size, kind, mirrors
        self._taps = axis_taps(*box, size, kind)
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
        first = read.top if self.axis == 0 else read.left
        return self.on.resize(self.before.make(read), self.axis, bounds, weights, first)

    def _outputs(self, area: Area) -> tuple[int, int]:
        """Along the axis, as they are before a mirror."""
        begin, end = (area.top, area.bottom) if self.axis == 0 else (area.left, area.right)
        return (self._size - end, self._size - begin) if self._mirrors else (begin, end)

    def _weigh(self, begin: int, end: int) -> tuple[Ints, Ints]:
        bounds, weights = np.empty((end - begin, 2), np.int64), np.zeros((end - begin, self._taps), np.int32)
        axis_weights(
            self._in_size, *self._box, self._size, self._kind, begin, bounds, weights, np.empty(self._taps, np.float64)
        )
        return (bounds[::-1].copy(), weights[::-1].copy()) if self._mirrors else (bounds, weights)


def resized(on: HostPixels, before: Stage, args: Any, kind: int, size: tuple[int, int]) -> Stage:
    """``before`` through a RESIZED_CROP as lowering leaves it, with its arguments, to a height and width."""
    top, left, height, width, *_, mirrors, is_vertical_first = (float(value) for value in args)
    axes = [(0, (top, height), size[0], kind, False), (1, (left, width), size[1], kind, mirrors != 0.0)]
    for axis in axes if is_vertical_first else axes[::-1]:
        before = ResizedAxis(on, before, *axis)
    return before


# Chroma blocks of 4:2:0 cover so many pixels. Upsampling looks at the chroma beside a pixel's own, which lies in the
# block beside; what blocks are made of begins and ends with them.
_BLOCK = 16


class CodedStage(CutStage):
    def __init__(self, on: HostPixels, before: Stage, quality: int) -> None:
        self.on, self.before, self._quality = on, before, quality
        self.height, self.width, self.channels = before.height, before.width, before.channels

    def reads(self, area: Area) -> Area:
        top, left = area.top // _BLOCK * _BLOCK - _BLOCK, area.left // _BLOCK * _BLOCK - _BLOCK
        bottom, right = -(-area.bottom // _BLOCK) * _BLOCK + _BLOCK, -(-area.right // _BLOCK) * _BLOCK + _BLOCK
        return Area(top, left, bottom, right).meet(self.whole)

    def make_from(self, area: Area, read: Area | None) -> Image:
        assert read is not None
        pixels = np.ascontiguousarray(self.before.make(read))
        coded = np.empty_like(pixels)
        memory = np.empty(jpeg_memory(read.height, read.width), np.uint8)
        code_image(place_of(pixels), place_of(coded), *pixels.shape, self._quality, place_of(memory))
        return np.ascontiguousarray(coded[area.within(read)])
