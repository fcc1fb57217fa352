"""Lowering keeps the meaning: whatever maps are merged, the pixels stay."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.images import gray, noise
from tests.programs import SEMANTIC, Step, crop, program_of, random_program, rotate, step
from variegate.executors import cpu
from variegate.program import lowering
from variegate.program.lowering import lower
from variegate.program.lowering.rewrites import rewrite_program
from variegate.program.ops import Op
from variegate.program.program import Program


def copy_of(program: Program) -> Program:
    """With arrays of its own; tables, which rewrites replace and never write to, may be shared."""
    names = ("opcode", "args", "flags", "fill", "out_size", "label", "length")
    return program.replace(**{name: getattr(program, name).copy() for name in names})


def test_lowering_leaves_the_sampled_program_alone_and_repeats_itself() -> None:
    for seed in range(40):
        program, _, _ = random_program(seed, SEMANTIC)
        before, curves = copy_of(program), program.tables.curves.copy()
        first, again = lower(program), lower(program)
        for name in ("opcode", "args", "flags", "fill", "out_size", "length"):
            np.testing.assert_array_equal(getattr(program, name), getattr(before, name), err_msg=name)
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name), err_msg=name)
        np.testing.assert_array_equal(program.tables.curves, curves)
        assert program.window is None
        assert program.stage == "sampled"


def test_lowering_an_unknown_geometry_is_refused() -> None:
    with pytest.raises(ValueError, match='geometry: got \'fast\'; accepted: "composed", "exact" or "nearest"'):
        lower(program_of([[]], [noise(3, 3)]), "fast")


@pytest.mark.parametrize("opcode", [-7, 39, 99, 128, 3000])
@pytest.mark.parametrize("num_rows", [1, 3])
def test_an_opcode_that_nobody_declares_is_refused(opcode: int, num_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the validator of these tests."""
    monkeypatch.setattr(lowering, "rewrite_program", rewrite_program)
    images = [noise(5, 6)] * num_rows
    program = program_of([[step(Op.HFLIP), step(Op.INVERT)]] * num_rows, images)
    program.opcode[-1, 1] = opcode
    where = f"row {num_rows - 1} instruction 1"
    with pytest.raises(ValueError, match=f"{where}: got opcode {opcode}, which no imported module .*accepted: 1 HFLIP"):
        cpu.run(program, images)


_UNKNOWN = """
import numpy as np
from variegate.program.ops import Kind, Op, OpSpec, declare
from variegate.program.lowering import lower
from variegate.program.lowering.rewrites import rewrite_program
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling

sampling = Sampling(np.array([[4, 5, 3]], np.int32), np.zeros(1, np.uint64), stream_key(0, 0), 0)
sampling.emit(np.array([0]), Op.EQUALIZE)
program = sampling.finish(Output())
declare(39, OpSpec("LiftShadows", Kind.VALUE, ("lift",), Op.LUT))
for opcode in (24, 39):
    program.opcode[:] = opcode
    try:
        lower(program)
    except ValueError as error:
        print(error)
"""


@pytest.mark.process
def test_an_opcode_of_a_module_not_imported_or_without_native_code_is_refused() -> None:
    """Both would write tables for which no memory was reserved, or none at all."""
    code = subprocess.run([sys.executable, "-c", _UNKNOWN], capture_output=True, text=True, check=True)
    posterize, lift = code.stdout.splitlines()
    assert posterize.startswith("row 0 instruction 0: got opcode 24, which no imported module declares; accepted: ")
    assert lift.startswith(
        "row 0 instruction 0: got LiftShadows (opcode 39), which native/lowering does not have; accepted: 1 HFLIP, "
    )


SHAPES = st.sampled_from([(1, 1), (1, 9), (8, 1), (5, 7), (16, 16), (13, 40), (33, 70)])
FILLS = st.sampled_from([(0, 0, 0), (255, 0, 9)])


@st.composite
def chains(draw: st.DrawFn, shape: tuple[int, int], rotations: int) -> list[Step]:
    """Flips, quarter turns, crops, pads, whole translations and tables in any order, with ``rotations`` among them."""
    height, width = shape
    kinds = ["hflip", "vflip", "turn", "crop", "pad", "shift", "value", "statistic"]
    length = draw(st.integers(1, 6))
    places = [draw(st.integers(0, length - 1)) for _ in range(rotations)]
    chain: list[Step] = []
    for i in range(length):
        fill = draw(FILLS)
        kind = "rotate" if i in places else draw(st.sampled_from(kinds))
        if kind == "rotate":
            chain.append(rotate(draw(st.floats(-180, 180)), fill=fill))
        elif kind == "hflip":
            chain.append(step(Op.HFLIP))
        elif kind == "vflip":
            chain.append(step(Op.VFLIP))
        elif kind == "turn":
            turns = draw(st.integers(1, 3))
            height, width = (width, height) if turns % 2 else (height, width)
            chain.append(step(Op.ROT90, turns, size=(height, width)))
        elif kind == "crop":
            top, left = draw(st.integers(-6, height + 2)), draw(st.integers(-6, width + 2))
            height, width = draw(st.integers(1, height + 4)), draw(st.integers(1, width + 4))
            chain.append(crop(top, left, height, width, fill=fill))
        elif kind == "pad":
            left, top, right, bottom = (draw(st.integers(0, 5)) for _ in range(4))
            height, width = height + top + bottom, width + left + right
            chain.append(step(Op.PAD, left, top, right, bottom, size=(height, width), fill=fill))
        elif kind == "shift":
            op = draw(st.sampled_from([Op.TRANSLATE_X, Op.TRANSLATE_Y]))
            chain.append(step(op, float(draw(st.integers(-12, 12))), fill=fill))
        elif kind == "value":
            chain.append(draw(st.sampled_from([step(Op.INVERT), step(Op.SOLARIZE, 99.0), step(Op.SATURATION, 0.4)])))
        else:
            chain.append(draw(st.sampled_from([step(Op.AUTOCONTRAST), step(Op.CONTRAST, 1.7), step(Op.EQUALIZE)])))
    return chain


@settings(max_examples=120)
@given(st.data())
def test_merged_maps_read_the_same_pixels(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    chain = data.draw(chains(shape, data.draw(st.integers(0, 2))))
    img = noise(*shape) if data.draw(st.booleans()) else gray(*shape)
    program = program_of([chain], [img])
    np.testing.assert_array_equal(cpu.run(program, [img], 1)[0], oracle.run(program, [img])[0])


@settings(max_examples=100)
@given(st.data())
def test_integer_maps_of_one_fill_are_one_map(data: st.DataObject) -> None:
    """Flips, turns, inner crops and pads by one colour always end as at most one map, whatever their order."""
    shape = data.draw(SHAPES)
    drawn = data.draw(chains(shape, 0))
    geometry = [s for s in drawn if s.op in (Op.HFLIP, Op.VFLIP, Op.ROT90)]
    height, width = shape
    chain: list[Step] = []
    for s in geometry:
        if s.op is Op.ROT90 and s.args[0] % 2:
            height, width = width, height
        chain.append(Step(s.op, s.args, size=(height, width)))
        chain.append(step(Op.PAD, 1, 2, 3, 0, size=(height + 2, width + 4)))
        height, width = height + 2, width + 4
    fused = lower(program_of([chain], [noise(*shape)]))
    assert fused.length[0] <= 1
    assert fused.num_passes is not None
    assert fused.num_passes[0] == 1
