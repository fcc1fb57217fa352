"""Draws that are recorded once: the machine computes what Python would, and any number of images alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.ops.examples import EXAMPLES, POLICIES
from tests.oracle.philox import philox4x32
from variegate import transforms as T
from variegate.augmenter.planner import Request
from variegate.ops.base import Transform
from variegate.program import rng
from variegate.program.draws import values as V
from variegate.program.draws.record import record_of
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.row_draw import RowDraw
from variegate.program.draws.trace import trace
from variegate.program.program import INSTRUCTION_ARRAYS, Output, Program
from variegate.program.sampling import Sampling

EVERY = [(name, t) for name, examples in EXAMPLES.items() for t in examples]
EVERY += [(type(t).__name__, t) for t in POLICIES]


def is_recorded(t: Transform) -> bool:
    record = record_of(t, Output(), 3, 0)
    return not record.callbacks and record.output == Output()


RECORDED = [(name, t) for name, t in EVERY if is_recorded(t)]

SHAPES = np.random.default_rng(2).integers(1, 300, (70, 3)).astype(np.int32)
SHAPES[:, 2] = np.where(SHAPES[:, 2] % 4 == 0, 1, 3)
SHAPES[:9, :2] = [(1, 1), (1, 9), (9, 1), (2, 3), (224, 224), (3, 500), (500, 3), (7, 7), (64, 65)]


def sampling_of(augmenter: vg.Augmenter, shapes: np.ndarray) -> Sampling:
    values = {"label": np.arange(len(shapes)) % 5, "magnitude": np.arange(len(shapes)) / len(shapes)}
    call = Request(np.arange(len(shapes)), 3, 0, values)  # type: ignore[arg-type]
    return augmenter._planner._sampling(shapes, call)


def check_equal(a: Program, b: Program) -> None:
    for name in (*INSTRUCTION_ARRAYS, "length"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def rectangles_of(program: Program, row: int) -> list[list[int]]:
    """Those of the row's erasings, wherever they lie in the table."""
    found: list[list[int]] = []
    for op, args in program.operations(row):
        if op.name == "ERASE":
            first, count = int(args[0]), int(args[1])
            found += program.tables.rectangles[first : first + count].tolist()
    return found


@pytest.mark.parametrize(("name", "t"), RECORDED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(RECORDED)])
def test_known_numbers_give_what_the_record_gives(name: str, t: Transform) -> None:
    """``draw`` for one row after another, in Python's numbers, is the machine's program to the last bit."""
    augmenter = vg.Augmenter(t, seed=5)
    recorded = sampling_of(augmenter, SHAPES)
    t.sample(recorded, np.arange(len(SHAPES)), 0)
    known = sampling_of(augmenter, SHAPES)
    for row in range(len(SHAPES)):
        t.draw(RowDraw(known, row), 0)
    a, b = recorded.finish(recorded.output), known.finish(known.output)
    assert a.output == b.output
    np.testing.assert_array_equal(a.length, b.length)
    for row in range(len(SHAPES)):
        assert rectangles_of(a, row) == rectangles_of(b, row)
        for (op, args), (other, others) in zip(a.operations(row), b.operations(row), strict=True):
            assert op == other
            # Where in their tables rectangles and luts begin depends on the order of drawing.
            first = 1 if op.name in ("ERASE", "LUT", "CONVOLVE_FLOAT") else 0
            np.testing.assert_array_equal(args[first:], others[first:])


@pytest.mark.parametrize("number", [1, 2, 63, 64, 65, 70])
def test_programs_do_not_depend_on_the_size_of_a_batch(number: int) -> None:
    t = T.Compose([T.RandomResizedCrop(32), T.RandAugment(), T.OneOf([T.RandomRotation(9), T.D4(), T.RandomErasing()])])
    augmenter = vg.Augmenter(t, seed=1)
    every = sampling_of(augmenter, SHAPES)
    t.sample(every, np.arange(len(SHAPES)), 0)
    some = sampling_of(augmenter, SHAPES[:number])
    t.sample(some, np.arange(number), 0)
    a, b = every.finish(Output()), some.finish(Output())
    for row in range(number):
        assert a.length[row] == b.length[row]
        assert rectangles_of(a, row) == rectangles_of(b, row)
        assert a.final_size(row) == b.final_size(row)


def test_numbers_are_words_of_the_whole_id() -> None:
    """As Philox defines them, in a batch of any size, for ids up to 2 ** 64 - 1."""
    augmenter = vg.Augmenter(T.Rotate((0.0, 1.0)), seed=5)
    for ids in ([2**40 + 1], [0, 1, 2**32 - 1, 2**32, 2**63 + 12345, 2**64 - 1]):
        program = augmenter.program(np.zeros((len(ids), 8, 8, 3), np.uint8), ids=ids, epoch=3)
        key = rng.stream_key(seed=5, epoch=3, copy=0)
        words = [philox4x32([0, 0, number & 0xFFFFFFFF, number >> 32], key) for number in ids]
        np.testing.assert_array_equal(program.args[:, 0, 0], np.array(words)[:, 0] / 2.0**32)


def test_rows_in_any_order_and_at_another_slot() -> None:
    """A record runs for some rows of a batch, by slots from any on; others are left alone."""
    t = T.RandomRotation(30)
    rows = np.array([60, 3, 17])
    some = sampling_of(vg.Augmenter(t), SHAPES)
    t.sample(some, rows, 4)
    assert np.flatnonzero(some.length).tolist() == sorted(rows.tolist())
    words = rng.sample_words(np.arange(len(SHAPES), dtype=np.uint64)[rows], rng.stream_key(0, 3), 5)[:, 4, 0]
    expected = -30 + 60 * rng.to_unit(words)
    np.testing.assert_array_equal(some.instructions["args"][rows, 0, 0], expected)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[float, float]]] = {
    "sin": (V.sin, np.sin, (-1e4, 1e4)),
    "cos": (V.cos, np.cos, (-1e4, 1e4)),
    "tan": (V.tan, np.tan, (-1.5, 1.5)),
    "exp": (V.exp, np.exp, (-700, 700)),
    "log": (V.log, np.log, (1e-300, 1e300)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_are_within_two_units(name: str) -> None:
    ours, theirs, (low, high) = FUNCTIONS[name]
    generator = np.random.default_rng(0)
    points = np.concatenate([generator.uniform(low, high, 4000), generator.uniform(max(low, -2.0), 2.0, 4000)])
    points = points[points > 0] if name == "log" else points
    wanted = theirs(points.astype(np.longdouble))
    found = np.array([ours(point) for point in points.tolist()])
    unit = np.spacing(np.maximum(np.abs(wanted.astype(np.float64)), 1e-290))
    assert float((np.abs(found - wanted) / unit).max()) < (3.0 if name == "tan" else 2.0)


def test_elementary_functions_are_pinned() -> None:
    """The same bits on every platform."""
    assert [V.sin(1.0).hex(), V.cos(1.0).hex(), V.tan(0.5).hex()] == [
        "0x1.aed548f090ceep-1",
        "0x1.14a280fb5068cp-1",
        "0x1.17b4f5bf3474ap-1",
    ]
    assert [V.exp(1.0).hex(), V.log(3.0).hex(), V.exp(-3.25).hex()] == [
        "0x1.5bf0a8b14576ap+1",
        "0x1.193ea7aad030ap+0",
        "0x1.3da368521902dp-5",
    ]
    assert V.exp(1000.0) == math.inf
    assert V.exp(-1000.0) == 0.0
    assert V.log(0.0) == -math.inf
    assert math.isnan(V.log(-1.0))
    assert math.isnan(V.sin(math.inf))


def test_a_draw_that_asks_for_the_number_runs_for_each_image() -> None:
    """An ``if`` over a drawn number, and a loop as long as one."""

    class Stairs(T.Transform):
        num_slots = 1

        def draw(self, image: DrawContext, slot: int) -> None:
            if image.uniform(slot) < 0.5:
                return
            for _ in range(int(image.uniform(slot, 1) * 4)):
                T.Posterize(3).draw(image, slot)

    try:
        t = T.Compose([T.RandomHorizontalFlip(1.0), Stairs(), T.Normalize(0.5, 0.5)])
        sampling = sampling_of(vg.Augmenter(t), SHAPES)
        t.sample(sampling, np.arange(len(SHAPES)), 0)
        unit = sampling.uniform(np.arange(len(SHAPES)), 1)
        steps = np.where(unit[:, 0] < 0.5, 0, (unit[:, 1] * 4).astype(int))
        np.testing.assert_array_equal(sampling.length, 1 + steps)
        assert sampling.output.is_float
    finally:
        T.Transform.registry.pop("Stairs")


def test_checks_name_the_numbers_of_the_image_that_fails() -> None:
    augmenter = vg.Augmenter(T.RandomCrop(50), num_threads=1)
    with pytest.raises(ValueError, match=r"RandomCrop: size=\(50, 50\) .* larger than an image of \(40, 60\)"):
        augmenter.program([(60, 60), (40, 60), (30, 60)])
    with pytest.raises(ValueError, match="Pad to 33000x33000; accepted: sides of at most 32,767 pixels"):
        vg.Augmenter(T.Pad(16_000)).program([(1000, 1000)])


def test_a_trace_shows_the_record() -> None:
    assert trace(T.RandomHorizontalFlip(0.25)).splitlines() == [
        "r0 = words(slot=0)",
        "r4 = unit(r0)",
        "r5 = less(r4, 0.25)",
        "if r5: HorizontalFlip()",
    ]
    with pytest.raises(TypeError, match="transform: got str; accepted: a transform"):
        vg.trace("randaugment")
    text = trace(T.Compose([T.GridMask(), T.RandomApply([T.Rotate((-9, 9))], 0.5)]))
    assert "python GridMask" in text
    assert "if none" in text
