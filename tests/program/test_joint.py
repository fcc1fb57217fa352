"""All rewrites in one compiled call, as production lowers, make what the validated steps make one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from tests.ops.examples import EXAMPLES, POLICIES
from tests.programs import OUTPUTS, SEMANTIC, random_program
from variegate import transforms as T
from variegate.program import lowering
from variegate.program.lowering import InvalidProgram
from variegate.program.ops import Op
from variegate.program.program import INSTRUCTION_ARRAYS, Program

TRANSFORMS = [(name, t) for name, examples in EXAMPLES.items() for t in examples]
TRANSFORMS += [(type(t).__name__, t) for t in POLICIES]
# No two alike, and sides at which resizes, crops and blurs do nothing.
SHAPES = [(1, 1), (17, 31), (64, 64), (223, 225), (24, 24, 1)]


def check_equal(at_once: Program, stepwise: Program) -> None:
    assert at_once.stage == stepwise.stage == "fused"
    np.testing.assert_array_equal(at_once.length, stepwise.length)
    assert stepwise.window is not None
    assert stepwise.pass_of is not None
    for name in (*INSTRUCTION_ARRAYS, "window", "pass_of"):
        a, b = getattr(at_once, name), getattr(stepwise, name)
        used = np.arange(b.shape[1]) < stepwise.length[:, None]
        np.testing.assert_array_equal(a[used], b[used], err_msg=name)
    for name in ("passes", "num_passes", "source", "in_shape", "ids", "key"):
        np.testing.assert_array_equal(getattr(at_once, name), getattr(stepwise, name), err_msg=name)
    for name in ("luts", "matrices", "kernels", "filters", "rectangles", "grids"):
        np.testing.assert_array_equal(getattr(at_once.tables, name), getattr(stepwise.tables, name), err_msg=name)
    assert at_once.tables.points == stepwise.tables.points
    assert (at_once.detour is None) == (stepwise.detour is None)
    if at_once.detour is not None and stepwise.detour is not None:
        np.testing.assert_array_equal(at_once.detour.place, stepwise.detour.place)
        np.testing.assert_array_equal(at_once.detour.args, stepwise.detour.args)
        check_equal(at_once.detour.program, stepwise.detour.program)


def check_both_ways(program: Program) -> None:
    for geometry in lowering.GEOMETRY_MODES:
        for measured_once in (False, True):
            made = []
            for validates in (False, True):
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(lowering, "DEBUG", validates)
                    made.append(lowering.lower(program, geometry, measured_once))
            check_equal(*made)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 6), longest=st.integers(1, 12))
@pytest.mark.random
def test_random_programs(seed: int, rows: int, longest: int) -> None:
    program, _, _ = random_program(seed, (*SEMANTIC, Op.JPEG, Op.FDA), longest, rows)
    check_both_ways(program)


@pytest.mark.parametrize(("name", "t"), TRANSFORMS, ids=[f"{i}-{name}" for i, (name, _) in enumerate(TRANSFORMS)])
def test_every_transform_and_policy(name: str, t: T.Transform) -> None:
    augmenter = vg.Augmenter(t, seed=7)
    check_both_ways(augmenter.program(SHAPES * 2, ids=np.arange(len(SHAPES) * 2)))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda o: f"{'float' if o.is_float else 'uint8'}-{o.layout}")
def test_the_validator_is_asked_before_and_after_every_rewrite(output: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it off, as in production, a program that it refuses is lowered; so it is the validator that refuses."""
    program, _, _ = random_program(3, SEMANTIC)
    stages: list[str] = []
    monkeypatch.setattr(lowering, "DEBUG", True)
    monkeypatch.setattr(lowering, "validate", lambda program: stages.append(program.stage))
    lowering.lower(program.replace(output=output))
    assert stages == ["sampled", "compact", "mapped", "tabled", "merged", "composed", "fused"]


def test_what_a_rewrite_breaks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    program, _, _ = random_program(3, SEMANTIC)

    def broken(program: Program) -> Program:
        return program.replace(length=program.length + 1000)

    steps = list(lowering.rewrites())
    steps[1] = lowering.Rewrite("mapped", broken)
    monkeypatch.setattr(lowering, "rewrites", lambda *arguments: tuple(steps))
    monkeypatch.setattr(lowering, "DEBUG", True)
    with pytest.raises(InvalidProgram, match=r"^mapped: "):
        lowering.lower(program)
