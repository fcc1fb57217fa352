"""Plan of one large image that several workers make: a list of steps, each split into bands of lines.

A step begins when the step before it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod
from typing import NamedTuple

import numpy as np

from variegate.executors.cpu.bands import BandProgram
from variegate.native.structs import BandStep
from variegate.program import passes as P
from variegate.program.channels import channel_programs
from variegate.program.ops import MAX_TILES, Op
from variegate.program.passes import PASS_FIELDS, PassSource
from variegate.program.program import Program

Shape = tuple[int, int, int]

# Bands of a step, and lines of a band, unless tiles are lower.
_BANDS = 64
_MIN_LINES = 8
# These maps keep coordinates in 32 bits, 15 or 16 of them fraction bits. They and tables count bytes in 31 bits.
_FIXED_POINT = (PassSource.FIXED, PassSource.CHAIN, PassSource.INTERPOLATED, PassSource.FOLDED)
_MAX_SIDE = 32_767
_MAX_BYTES = 1 << 31


class Work(Enum):
    """Work of a step that is not a pass of a program."""

    READ = "read"  # load the source file into memory
    PICK = "pick"  # copy three channels of an image that has more
    BLEND = "blend"  # blend the rows of a program
    WRITE = "write"  # write the program's output to its file


class Step(NamedTuple):
    """Work that makes ``lines`` lines of ``target`` from ``source``, ``band`` lines at a time.

    ``source`` and ``target`` are names of buffers, see ``Steps.sizes``.
    """

    work: BandStep | Work
    source: str
    target: str
    shape: Shape  # of the source
    lines: int
    band: int
    program: int = 0  # index in Steps.programs
    row: int = 0
    number: int = 0  # index of the pass in the row
    is_last: bool = False
    read: tuple[int, ...] = ()  # the channels that PICK copies

    def bands(self) -> list[tuple[int, int]]:
        return [(begin, min(begin + self.band, self.lines)) for begin in range(0, self.lines, self.band)]


class Part(NamedTuple):
    """Output buffer of a channel group's program; its channels are ``begin`` to ``end`` of the result."""

    name: str
    shape: Shape
    begin: int
    end: int


@dataclass
class Steps:
    """Steps in order, for the fused ``program`` of one image of ``shape``.

    ``made``: the shape of the result, [H, W, C]. ``sizes``: buffer name -> bytes, except "source" and "result".
    Raises ValueError naming the part of the program that cannot run in bands.
    """

    program: Program
    shape: Shape
    tile: int
    is_direct: bool  # the last pass writes to the result, without a WRITE step
    is_cuda: bool
    programs: list[Program] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)  # for WRITE

    def __post_init__(self) -> None:
        self._itemsize = self.program.depth.dtype.itemsize
        is_split = self.program.has_many_channels
        self.is_direct = self.is_direct and not is_split
        for i, (group, part) in enumerate(channel_programs(self.program)):
            made = "result" if self.is_direct else f"made{i}"
            output = part.output if self.is_direct else replace(part.output, layout="NHWC", dtype="float32")
            source, shape, lines = "source", self.shape, self.shape[0]
            if is_split:
                pick = Step(Work.PICK, source, "picked", shape, lines, self.band(lines), read=tuple(group.read))
                source, shape = "picked", (*shape[:2], 3)
                self._add(pick, prod((*shape[:2], 3)))
            shape = self._part(part.replace(output=output), source, shape, made)
            self.parts.append(Part(made, shape, group.begin, group.end))
        self.made: Shape = (shape[0], shape[1], self.shape[2])
        if not self.is_direct:
            self.steps.append(Step(Work.WRITE, "made0", "result", self.made, self.made[0], self.tile))

    def _part(self, program: Program, source: str, shape: Shape, made: str) -> Shape:
        """Add the steps of a program of one or three channels; return the shape of its output."""
        if program.blend is None:
            if program.num_rows != 1:
                raise ValueError(f"tiles: got {program.num_rows} rows; accepted: one image, augmented once")
            return self._chain(program, 0, source, shape, made)
        entries = program.blend.entries()
        if len(entries.start) != 1 or program.blend.box is not None:
            raise ValueError("tiles: got several images that are mixed; accepted: transforms of one image alone")
        shapes = [self._chain(program, row, source, shape, f"row{row}", False) for row in range(program.num_rows)]
        blended = shapes[0]
        lines = blended[0]
        blend = Step(Work.BLEND, "row0", "blended", blended, lines, self.band(lines), len(self.programs) - 1)
        self._add(blend, prod(blended))
        return self._chain(_finishing(program, int(entries.row[0]), blended), 0, "blended", blended, made)

    def _chain(self, program: Program, row: int, source: str, shape: Shape, made: str, is_last: bool = True) -> Shape:
        """Add the steps of a row's passes; return the shape of their output."""
        assert program.passes is not None
        assert program.num_passes is not None
        if not self.programs or self.programs[-1] is not program:
            self.programs.append(program)
        native = BandProgram(program)
        count = int(program.num_passes[row])
        for number in range(count):
            plan = program.passes[row, number]
            target = made if number == count - 1 else f"canvas{number % 2}"
            result = int(plan[P.HEIGHT]), int(plan[P.WIDTH]), shape[2]
            _refuse(int(plan[P.SOURCE]), shape, result, self._itemsize)
            step = Step(
                BandStep.PASS,
                source,
                target,
                shape,
                result[0],
                self.band(result[0]),
                len(self.programs) - 1,
                row,
                number,
            )
            if plan[P.QUALITY]:
                coded = step._replace(work=BandStep.CODE, target="coded", lines=shape[0], band=shape[0])
                self._add(coded, prod(shape))
                step = step._replace(source="coded")
            if plan[P.NEEDS]:
                measure = step._replace(work=BandStep.MEASURE, target="tables", lines=1, band=1)
                self._add(measure, 768 * program.opcode.shape[1], itemsize=1)
            is_filter = plan[P.SOURCE] == PassSource.FILTER
            if self.is_cuda:
                if is_filter and plan[P.FIRST] > plan[P.BEGIN]:
                    self._add(step._replace(work=BandStep.INPUT, target="input"), prod(result))
                    step = step._replace(source="input", shape=result)
                elif plan[P.SOURCE] in (PassSource.TABLE, PassSource.RESAMPLE):
                    step = step._replace(band=step.lines)
            elif size := native.input_bytes(row, number, shape):
                lines = result[0] if is_filter else shape[0]
                self._add(
                    step._replace(work=BandStep.INPUT, target="input", lines=lines, band=self.band(lines)), size, 1
                )
                if program.opcode[row, plan[P.FIRST]] == Op.CLAHE:
                    tiles = step._replace(work=BandStep.TILES, target="tiles", lines=1, band=1)
                    self._add(tiles, 256 * MAX_TILES * MAX_TILES, itemsize=1)
            is_result = is_last and number == count - 1
            itemsize = 4 if is_result and self.program.output.is_float else None
            self._add(step._replace(is_last=is_result), prod(result), itemsize)
            source = target
            shape = result
        return shape

    def _add(self, step: Step, size: int, itemsize: int | None = None) -> None:
        """Add a step. ``size``: number of values of its target; ``itemsize``: bytes of a value, None for a pixel's."""
        self.steps.append(step)
        if step.target != "result":
            nbytes = size * (itemsize or self._itemsize)
            self.sizes[step.target] = max(self.sizes.get(step.target, 1), nbytes)

    def band(self, lines: int) -> int:
        return min(self.tile, max(_MIN_LINES, -(-lines // _BANDS)))


def _refuse(source: int, before: Shape, made: Shape, itemsize: int) -> None:
    """Raise ValueError for sizes that overflow a pass. ``before``, ``made``: shapes of its input and its output."""
    height, width, _ = before
    is_wide = source in _FIXED_POINT and max(height, width, *made[:2]) > _MAX_SIDE
    is_large = (source in _FIXED_POINT or source == PassSource.TABLE) and prod(before) * itemsize >= _MAX_BYTES
    if is_wide or is_large:
        raise ValueError(
            f"tiles: got {height:,} x {width:,} pixels, which the transform turns, bends, pads or scales; accepted: "
            f"sides of at most {_MAX_SIDE:,} pixels, and less than 2 GiB"
        )


def _finishing(program: Program, row: int, shape: Shape) -> Program:
    """A program of one pass that stores the blended image and applies the operations after Normalize."""
    length = int(program.length[row])
    plan = np.zeros((1, 1, PASS_FIELDS), np.int32)
    plan[..., [P.END, P.STATISTICS, P.STATISTICS_END]] = length
    plan[..., [P.HEIGHT, P.WIDTH]] = shape[:2]
    one = {
        name: getattr(program, name)[row : row + 1].copy()
        for name in ("opcode", "args", "flags", "fill", "out_size", "window", "length", "ids", "key")
    }
    is_normalized = (one["opcode"] == Op.ERASE) & (one["args"][..., 7] != 0.0)
    one["opcode"][~is_normalized] = Op.NOP
    return program.replace(
        **one,
        passes=plan,
        num_passes=np.ones(1, np.int32),
        in_shape=np.array([shape], np.int32),
        source=np.zeros(1, np.int32),
        blend=None,
    )
