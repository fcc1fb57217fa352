"""What classes draw, and how often: tables of outcomes with their shares, and of numbers that are uniform."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from variegate import transforms as T
from variegate.program.ops import Op
from variegate.program.program import Program

Outcome = Callable[[Program, int], Any]
Shares = dict[Any, float]

A, B, C = T.Brightness(1.1), T.Contrast(1.2), T.Color(1.3)
OPS = (int(Op.BRIGHTNESS), int(Op.CONTRAST), int(Op.SATURATION))
JITTERED = (Op.BRIGHTNESS, Op.CONTRAST, Op.SATURATION, Op.HUE)
CHANNELS = list(itertools.permutations(range(3)))


def opcodes(program: Program, row: int) -> tuple[int, ...]:
    return tuple(program.opcode[row, : program.length[row]].tolist())


def has(op: Op) -> Outcome:
    return lambda program, row: int(op) in opcodes(program, row)


def times(op: Op) -> Outcome:
    return lambda program, row: opcodes(program, row).count(int(op))


def first_argument(program: Program, row: int) -> float | None:
    return float(program.args[row, 0, 0]) if program.length[row] else None


def second_argument(program: Program, row: int) -> float:
    return float(program.args[row, 0, 1])


def third_argument(program: Program, row: int) -> float:
    return float(program.args[row, 0, 2])


def permutation(program: Program, row: int) -> tuple[int, ...]:
    return tuple(program.args[row, 0, :3].astype(int).tolist()) if program.length[row] else (0, 1, 2)


def final_size(program: Program, row: int) -> tuple[int, int]:
    return program.final_size(row)


def dropped_channels(program: Program, row: int) -> tuple[bool, ...]:
    table = program.tables.curves[int(program.args[row, 0, 0])]
    dropped = (table == np.array([7, 8, 9])[:, None]).all(axis=1)
    kept = (table == np.arange(256)).all(axis=1)
    assert (dropped ^ kept).all()
    return tuple(dropped.tolist())


def num_rectangles(program: Program, row: int) -> int:
    return int(program.args[row, 0, 1])


def order_of_contrast(program: Program, row: int) -> bool | None:
    """Whether contrast comes before saturation; None without one of them."""
    drawn = opcodes(program, row)
    if not {int(Op.CONTRAST), int(Op.SATURATION)} <= set(drawn):
        return None
    return drawn.index(Op.CONTRAST) < drawn.index(Op.SATURATION)


def alike(*outcomes: Any) -> Shares:
    return dict.fromkeys(outcomes, 1 / len(outcomes))


def share(p: float) -> Shares:
    return {True: p, False: 1 - p}


def each(p: float, *outcomes: Any) -> Shares:
    return dict.fromkeys(outcomes, p)


PAIRS = list(itertools.combinations(OPS, 2))
SINGLES = [(op,) for op in OPS]
DISTORT = T.RandomPhotometricDistort()
# Of an image of 32x33.
OUTCOMES: list[tuple[T.Transform, Outcome, Shares]] = [
    (T.Compose([A, B, C]), opcodes, {OPS: 1.0}),
    (T.RandomApply([A, B], p=0.3), opcodes, {OPS[:2]: 0.3, (): 0.7}),
    (T.RandomChoice([A, B, C], p=[1, 0, 3]), opcodes, {OPS[:1]: 0.25, OPS[2:]: 0.75}),
    (T.RandomChoice([A, B, C]), opcodes, alike(*SINGLES)),
    (T.OneOf([A, B], p=0.5, weights=(3, 1)), opcodes, {(): 0.5, OPS[:1]: 0.375, OPS[1:2]: 0.125}),
    (T.SomeOf([A, B, C], 2), opcodes, alike(*PAIRS)),
    (T.SomeOf([A, B, C], (0, 3)), opcodes, {(): 1 / 4, OPS: 1 / 4, **each(1 / 12, *SINGLES, *PAIRS)}),
    (T.RandomOrder([A, B, C]), opcodes, alike(*itertools.permutations(OPS))),
    (T.Cond("uniform", [(0, 0.2, A), (0.2, 0.5, B)], default=C), opcodes, {OPS[:1]: 0.2, OPS[1:2]: 0.3, OPS[2:]: 0.5}),
    (T.ColorJitter(0.4, 0.4, 0.4, 0.1), opcodes, alike(*itertools.permutations(map(int, JITTERED)))),
    (T.ColorJitter(brightness=0.1, hue=0.1), opcodes, alike((20, 22), (22, 20))),
    (T.ColorJitter(), opcodes, {(): 1.0}),
    *((DISTORT, times(op), {0: 0.5, 1: 0.5}) for op in JITTERED),
    # A permutation drawn as the identity is left out.
    (DISTORT, has(Op.PERMUTE), share(0.5 * 5 / 6)),
    (DISTORT, order_of_contrast, {None: 0.75, True: 0.125, False: 0.125}),
    (T.RandomChannelPermutation(), permutation, alike(*CHANNELS)),
    (
        T.ChannelDropout((1, 2), fill=(7, 8, 9), p=1.0),
        dropped_channels,
        alike(*[kept for kept in itertools.product((True, False), repeat=3) if 0 < sum(kept) < 3]),
    ),
    (T.RandomHorizontalFlip(p=0.3), has(Op.HFLIP), share(0.3)),
    (T.RandomVerticalFlip(p=0.3), has(Op.VFLIP), share(0.3)),
    (T.RandomHorizontalFlip(p=0.0), opcodes, {(): 1.0}),
    (T.RandomHorizontalFlip(p=1.0), opcodes, {(int(Op.HFLIP),): 1.0}),
    (T.RandomErasing(p=0.25), has(Op.ERASE), share(0.25)),
    (T.RandomZoomOut(p=0.5), has(Op.PAD), share(0.5)),
    (T.RandomFog(p=0.3), has(Op.OVERLAY), share(0.3)),
    (T.RandomRotate90(p=0.75), first_argument, alike(None, 1.0, 2.0, 3.0)),
    (T.Posterize((2, 5)), first_argument, alike(2.0, 3.0, 4.0, 5.0)),
    (T.MotionBlur((3, 9)), first_argument, alike(3.0, 5.0, 7.0, 9.0)),
    (T.CoarseDropout((2, 4), (3, 6)), num_rectangles, alike(2, 3, 4)),
    (T.RandomCrop((30, 30), padding=(1, 2)), first_argument, alike(*map(float, range(-2, 5)))),
    (T.RandomCrop((30, 30), padding=(1, 2)), second_argument, alike(*map(float, range(-1, 5)))),
    (T.LongestMaxSize([11, 22, 44]), final_size, alike((11, 11), (21, 22), (43, 44))),
    (T.RandomResize(20, 24), final_size, alike((20, 20), (21, 21), (22, 22), (23, 23))),
    # Uniform in -3.3 to 3.3, and rounded.
    (
        T.RandomAffine(0, translate=(0.1, 0.0)),
        third_argument,
        {**each(1 / 6.6, *range(-2, 3)), **each(0.8 / 6.6, -3, 3)},
    ),
]


@pytest.mark.parametrize(("transform", "outcome", "shares"), OUTCOMES, ids=[repr(row[0])[:60] for row in OUTCOMES])
def test_outcomes_have_their_shares(draw: Any, transform: T.Transform, outcome: Outcome, shares: Shares) -> None:
    n = 9000
    program = draw(transform, n, size=(32, 33, 3))
    found = Counter(outcome(program, row) for row in range(n))
    assert set(found) == {key for key, expected in shares.items() if expected}
    for key, expected in shares.items():
        # Five standard deviations.
        assert abs(found[key] - n * expected) <= 5 * math.sqrt(n * expected * (1 - expected)) + 1e-9, key


JITTER = T.ColorJitter(brightness=0.4, contrast=(0.2, 0.3), saturation=2.0, hue=0.1)
# A number of an instruction, and its range.
UNIFORM: list[tuple[T.Transform, Op, int, float, float]] = [
    (T.Brightness((0.5, 1.5)), Op.BRIGHTNESS, 0, 0.5, 1.5),
    (T.RandomRotation(30), Op.ROTATE, 0, -30, 30),
    (T.ShearX((-0.3, 0.1)), Op.SHEAR_X, 0, -0.3, 0.1),
    (T.TranslateX((-8, 8)), Op.TRANSLATE_X, 0, -8, 8),
    (T.MotionBlur(5, (20.0, 80.0)), Op.MOTION_BLUR, 1, 20, 80),
    (T.GaussianBlur(5, (0.5, 2.0)), Op.GAUSSIAN_BLUR, 2, 0.5, 2.0),
    (T.GaussianNoise(0.0, (0.1, 0.3)), Op.GAUSSIAN_NOISE, 1, 0.1, 0.3),
    (JITTER, Op.BRIGHTNESS, 0, 0.6, 1.4),
    (JITTER, Op.CONTRAST, 0, 0.2, 0.3),
    (JITTER, Op.SATURATION, 0, 0.0, 3.0),
    (JITTER, Op.HUE, 0, -0.1, 0.1),
]


@pytest.mark.parametrize(("transform", "op", "index", "low", "high"), UNIFORM)
def test_numbers_are_uniform(draw: Any, transform: T.Transform, op: Op, index: int, low: float, high: float) -> None:
    n = 8000
    program = draw(transform, n)
    drawn = program.args[..., index][program.opcode == op]
    assert len(drawn) == n
    counts, _ = np.histogram(drawn, 10, (low, high))
    assert counts.sum() == n
    assert np.abs(counts - n / 10).max() < 5 * math.sqrt(n / 10)


def test_numbers_of_one_transform_and_of_two_are_independent(draw: Any) -> None:
    n = 20_000
    program = draw(JITTER, n)
    factors = [program.args[np.arange(n), np.argmax(program.opcode == op, axis=1), 0] for op in JITTERED]
    assert np.abs(np.corrcoef(factors) - np.eye(4)).max() < 0.04
    program = draw(T.Compose([T.RandomApply([A]), T.RandomApply([B])]), n)
    taken = [(program.opcode == op).any(axis=1) for op in OPS[:2]]
    assert abs(np.corrcoef(taken)[0, 1]) < 0.04


def test_an_order_of_more_than_four(draw: Any) -> None:
    program = draw(T.RandomOrder([A, B, C, T.Invert(), T.Posterize(3)]), 2000)
    found = {opcodes(program, row) for row in range(2000)}
    assert len(found) == 120
    assert {len(order) for order in found} == {5}


# The only instruction of a row, and the first of its arguments.
EXACT: list[tuple[T.Transform, Op, list[float]]] = [
    (T.Brightness(1.5), Op.BRIGHTNESS, [1.5]),
    (T.Gamma(2.2, gain=0.5), Op.GAMMA, [2.2, 0.5]),
    (T.Posterize(3), Op.POSTERIZE, [3]),
    (T.RandomPosterize(2, p=1.0), Op.POSTERIZE, [2]),
    (T.SolarizeAdd(110), Op.SOLARIZE_ADD, [110, 128]),
    (T.ChannelPermutation(), Op.PERMUTE, [2, 1, 0]),
    (T.RGBShift(1, 2, -3), Op.RGB_SHIFT, [1, 2, -3]),
    (T.GaussianBlur((3, 5), 1.5), Op.GAUSSIAN_BLUR, [3, 5, 1.5, 1.5]),
    (T.MotionBlur(7, 30, 0.5), Op.MOTION_BLUR, [7, 30, 0.5]),
    (T.Rotate(12.5), Op.ROTATE, [12.5]),
    (T.TranslateX(5), Op.TRANSLATE_X, [5]),
    # Of an image of 37x53.
    (T.TranslateX(0.25, relative=True), Op.TRANSLATE_X, [53 / 4]),
    (T.TranslateY(0.5, relative=True), Op.TRANSLATE_Y, [37 / 2]),
    (T.Pad(3), Op.PAD, [3, 3, 3, 3]),
    (T.Pad((1, 2)), Op.PAD, [1, 2, 1, 2]),
    (T.Pad([1, 2, 3, 4]), Op.PAD, [1, 2, 3, 4]),
    (T.Pad([5]), Op.PAD, [5, 5, 5, 5]),
    (T.ZoomBlur(1.1, 0.03), Op.ZOOM_BLUR, [3, 0.03]),
    (T.ZoomBlur(1.31, 0.01), Op.ZOOM_BLUR, [30, 0.01]),
    (T.PixelDropout(0.25, 255), Op.SALT_AND_PEPPER, [0.25, 1.0]),
    (T.PixelDropout(0.25, 0), Op.SALT_AND_PEPPER, [0.25, 0.0]),
]


@pytest.mark.parametrize(("transform", "op", "args"), EXACT, ids=[repr(row[0]) for row in EXACT])
def test_a_number_is_exactly_that_number(draw: Any, transform: T.Transform, op: Op, args: list[float]) -> None:
    program = draw(transform, 5)
    assert program.opcode[:, 0].tolist() == [op] * 5
    np.testing.assert_allclose(program.args[:, 0, : len(args)], [args] * 5, rtol=1e-9)


# Nothing is emitted for an image of 37x53.
NOTHING = [
    T.ColorJitter(),
    T.Cutout(0),
    T.Downscale(1.0),
    T.Pad(0),
    T.Resize((37, 53)),
    T.CenterCrop((37, 53)),
    T.RandomCrop((37, 53)),
    T.RandomPhotometricDistort(p=0.0),
]


@pytest.mark.parametrize("transform", NOTHING, ids=repr)
def test_arguments_that_change_nothing_emit_nothing(draw: Any, transform: T.Transform) -> None:
    assert draw(transform, 5).length.max() == 0
