"""The validator: lowering leaves valid programs, and broken ones are refused with the place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.images import photo
from tests.programs import POINT, erase, grid, program_of, resized_crop, rotate, step
from tests.validating import InvalidProgram, validate
from variegate.program import passes as P
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Blend, Program


def sampled() -> Program:
    identity = np.eye(3, 4, dtype=np.float32)
    table = np.zeros((3, 256), np.uint8)
    chain = [
        resized_crop((0, 0, 20, 30), 16, 18),
        rotate(10.0),
        step(Op.SATURATION, 0.5),
        step(Op.LUT, table=table),
        step(Op.COLOR_MATRIX, table=identity),
        step(Op.PIXEL_FUNCTION, 1.0, table=POINT),
        step(Op.EQUALIZE),
        step(Op.GAUSSIAN_BLUR, 3, 3, 1.0, 1.0),
        erase((1, 1, 2, 2)),
    ]
    return program_of([chain, [step(Op.INVERT)]], [photo(20, 30), photo(8, 9)])


def fused() -> Program:
    return lower(sampled())


def _first(program: Program, op: Op) -> tuple[int, int]:
    row, slot = np.argwhere(program.opcode == op)[0]
    return int(row), int(slot)


def _set_arg(op: Op, value: float, arg: int = 0) -> Callable[[Program], None]:
    def mutate(program: Program) -> None:
        program.args[(*_first(program, op), arg)] = value

    return mutate


def _set_opcode(op: Op, to: Op) -> Callable[[Program], None]:
    def mutate(program: Program) -> None:
        program.opcode[_first(program, op)] = to

    return mutate


def _size(program: Program) -> None:
    program.out_size[_first(program, Op.SATURATION)] = (4, 5)


def _empty(program: Program) -> None:
    program.out_size[0, 0] = 0


def _too_long(program: Program) -> None:
    program.length[1] = 99


def _no_pixels(program: Program) -> None:
    program.in_shape[0, 0] = 0


def _flat_args(program: Program) -> None:
    program.args = program.args[:, :, :4]


def _lost_row(program: Program) -> None:
    program.ids = program.ids[:1]


def _unknown_stage(program: Program) -> None:
    program.stage = "cooked"


def _light_blend(program: Program) -> None:
    program.blend = Blend(np.zeros(2, np.int32), np.ones(1, np.float32))


SAMPLED: dict[str, tuple[Callable[[Program], None], str]] = {
    "unknown stage": (_unknown_stage, "unknown stage 'cooked'"),
    "arguments missing": (_flat_args, "args has shape"),
    "a row missing": (_lost_row, "ids does not have 2 rows"),
    "no pixels": (_no_pixels, "an input image has no pixels"),
    "too long": (_too_long, "row 1 holds 99"),
    "size of a value operation": (_size, r"row 0 instruction 2 \(SATURATION\): changes the size"),
    "empty output": (_empty, r"row 0 instruction 0 \(RESIZED_CROP\): empty output"),
    "infinite argument": (_set_arg(Op.SATURATION, np.inf), r"\(SATURATION\): arguments not finite"),
    "no such LUT": (_set_arg(Op.LUT, 1), "LUT 1 does not exist"),
    "negative LUT": (_set_arg(Op.LUT, -1), "LUT -1 does not exist"),
    "no such matrix": (_set_arg(Op.COLOR_MATRIX, 7), "matrix 7 does not exist"),
    "no such function": (_set_arg(Op.PIXEL_FUNCTION, 3), "pixel function 3 does not exist"),
    "too many rectangles": (_set_arg(Op.ERASE, 2, 1), "rectangles do not exist"),
    "no such quality": (_set_opcode(Op.SATURATION, Op.JPEG), "no such quality"),
    "a primitive": (_set_opcode(Op.SATURATION, Op.MIX), "a primitive in a sampled program"),
    "light blend": (_light_blend, "the blend does not weigh every row"),
}


@pytest.mark.parametrize("mutation", SAMPLED)
def test_broken_sampled_programs_are_refused(mutation: str) -> None:
    mutate, message = SAMPLED[mutation]
    program = validate(sampled())
    mutate(program)
    with pytest.raises(InvalidProgram, match=message):
        validate(program)


@pytest.mark.parametrize(
    ("arg", "value", "message"),
    [
        (0, 1, "grid 1 does not exist"),
        (1, 2, "the grid ends inside of the image"),
        (2, 3, "the grid ends inside of the image"),
        (6, 7, "a grid of unknown steps or units"),
    ],
    ids=["no such grid", "a line missing", "a column missing", "unknown unit"],
)
def test_broken_grids_are_refused(arg: int, value: float, message: str) -> None:
    program = validate(program_of([[grid(np.zeros((3, 4, 2), np.int16), (5.0, 4.0))]], [photo(8, 9)]))
    _set_arg(Op.DISPLACE, value, arg)(program)
    with pytest.raises(InvalidProgram, match=message):
        validate(program)


def _drop_windows(program: Program) -> None:
    program.window = None


def _pass(row: int, slot: int, value: int) -> Callable[[Program], None]:
    def mutate(program: Program) -> None:
        assert program.pass_of is not None
        program.pass_of[row, slot] = value

    return mutate


def _count(program: Program) -> None:
    assert program.num_passes is not None
    program.num_passes[0] += 1


def _all_in_one(program: Program) -> None:
    assert program.pass_of is not None
    assert program.num_passes is not None
    program.pass_of[0, : program.length[0]] = 0
    program.num_passes[0] = 1


def _map_last(program: Program) -> None:
    program.opcode[_first(program, Op.CONVOLVE_FIXED)] = Op.ERASE
    program.args[_first(program, Op.ERASE)] = 0
    program.opcode[0, program.length[0] - 1] = Op.MAP_FIXED


def _plan(column: int, value: int) -> Callable[[Program], None]:
    def mutate(program: Program) -> None:
        assert program.passes is not None
        program.passes[0, 0, column] = value

    return mutate


FUSED: dict[str, tuple[Callable[[Program], None], str]] = {
    "no windows": (_drop_windows, "lacks pass_of, num_passes, passes or window"),
    "a pass skipped": (_pass(1, 0, 1), "row 1: says 1 passes"),
    "an unused slot": (_pass(1, 1, 0), "row 1: unused slots belong to a pass"),
    "a pass too many": (_count, "row 0: says"),
    "out of order": (_pass(0, 0, 1), "out of order|a pass is empty"),
    "two filters in one pass": (_all_in_one, "row 0 pass 0: two filters"),
    "map after erasing": (_map_last, "a map or statistic after an operation that depends on position"),
    "a geometry left": (_set_opcode(Op.MAP_FIXED, Op.ROTATE), "should be a map by now"),
    "a value left": (_set_opcode(Op.MIX, Op.SATURATION), "should be a table by now"),
    "no such kernel": (_set_arg(Op.CONVOLVE_FIXED, 9), "kernel 9 does not exist"),
    "a plan of other slots": (_plan(P.END, 9), "row 0 pass 0: 0..9 by its table"),
    "a plan of another source": (_plan(P.SOURCE, P.PassSource.CHAIN), "row 0 pass 0: read as CHAIN"),
    "a plan without a map": (_plan(P.MAPS_END, -1), "row 0 pass 0: maps outside of the pass"),
    "a plan that measures for nothing": (_plan(P.NEEDS, P.NEEDS_LUMA), "row 0 pass 0: 0 statistics"),
    "a plan of a JPEG that is not there": (_plan(P.QUALITY, 9), "row 0 pass 0: 0 JPEGs, of quality 9"),
    "a first pass apart": (_plan(P.BREAK, P.PassBreak.RESAMPLE_NOT_FIRST), "row 0 pass 0: no reason|reason"),
}


@pytest.mark.parametrize("mutation", FUSED)
def test_broken_fused_programs_are_refused(mutation: str) -> None:
    mutate, message = FUSED[mutation]
    program = validate(fused())
    mutate(program)
    with pytest.raises(InvalidProgram, match=message):
        validate(program)
