"""Colours: exact values, ranges, and torchvision's distributions of ColorJitter and its relatives."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.ops.examples import EXAMPLES
from variegate import transforms as T
from variegate.ops.magnitude import MagnitudeOp, PlainOp
from variegate.program.ops import Op
from variegate.program.program import Program

JITTERED = (Op.BRIGHTNESS, Op.CONTRAST, Op.SATURATION, Op.HUE)


def orders(program: Program) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for row in range(program.num_rows):
        order = tuple(program.opcode[row, : program.length[row]].tolist())
        found[order] = found.get(order, 0) + 1
    return found


@pytest.mark.parametrize(
    ("transform", "op", "args"),
    [
        (T.Brightness(1.5), Op.BRIGHTNESS, [1.5]),
        (T.Gamma(2.2, gain=0.5), Op.GAMMA, [2.2, 0.5]),
        (T.Posterize(3), Op.POSTERIZE, [3]),
        (T.SolarizeAdd(110), Op.SOLARIZE_ADD, [110, 128]),
        (T.ChannelPermutation(), Op.PERMUTE, [2, 1, 0]),
        (T.RGBShift(1, 2, -3), Op.RGB_SHIFT, [1, 2, -3]),
        (T.GaussianBlur((3, 5), 1.5), Op.GAUSSIAN_BLUR, [3, 5, 1.5, 1.5]),
        (T.MotionBlur(7, 30, 0.5), Op.MOTION_BLUR, [7, 30, 0.5]),
        (T.RandomPosterize(2, p=1.0), Op.POSTERIZE, [2]),
    ],
)
def test_a_number_is_exactly_that_number(draw: Any, transform: T.Transform, op: Op, args: list[float]) -> None:
    program = draw(transform, 5)
    assert program.opcode[:, 0].tolist() == [op] * 5
    assert program.args[:, 0, : len(args)].tolist() == [args] * 5


def test_a_range_is_uniform_with_both_whole_ends(draw: Any) -> None:
    bits, counts = np.unique(draw(T.Posterize((2, 5)), 8000).args[:, 0, 0], return_counts=True)
    assert bits.tolist() == [2, 3, 4, 5]
    assert np.abs(counts - 2000).max() < 5 * math.sqrt(2000)
    factor = draw(T.Brightness((0.5, 1.5)), 8000).args[:, 0, 0]
    histogram, _ = np.histogram(factor, 10, (0.5, 1.5))
    assert histogram.sum() == 8000
    assert np.abs(histogram - 800).max() < 5 * math.sqrt(800)
    kernel = draw(T.MotionBlur((3, 9)), 400).args[:, 0, 0]
    assert sorted(set(kernel.tolist())) == [3, 5, 7, 9]


def test_color_jitter_takes_every_order_alike_per_image(draw: Any) -> None:
    found = orders(draw(T.ColorJitter(0.4, 0.4, 0.4, 0.1), 24_000))
    assert set(found) == set(itertools.permutations(map(int, JITTERED)))
    assert np.abs(np.array(list(found.values())) - 1000).max() < 5 * math.sqrt(1000)


def test_color_jitter_draws_torchvisions_ranges(draw: Any) -> None:
    program = draw(T.ColorJitter(brightness=0.4, contrast=(0.2, 0.3), saturation=2.0, hue=0.1), 20_000)
    ranges = {Op.BRIGHTNESS: (0.6, 1.4), Op.CONTRAST: (0.2, 0.3), Op.SATURATION: (0.0, 3.0), Op.HUE: (-0.1, 0.1)}
    drawn = {op: program.args[..., 0][program.opcode == op] for op in ranges}
    for op, (low, high) in ranges.items():
        assert len(drawn[op]) == 20_000
        assert low <= drawn[op].min()
        assert drawn[op].max() <= high
        assert abs(drawn[op].mean() - (low + high) / 2) < 5 * (high - low) / math.sqrt(12 * 20_000)
    factors = np.stack(
        [program.args[..., 0][np.arange(20_000), np.argmax(program.opcode == op, axis=1)] for op in ranges]
    )
    assert np.abs(np.corrcoef(factors) - np.eye(4)).max() < 0.04


def test_color_jitter_leaves_out_what_changes_nothing(draw: Any) -> None:
    assert draw(T.ColorJitter(), 5).length.max() == 0
    assert T.ColorJitter(brightness=0, hue=0.0) == T.ColorJitter()
    assert set(orders(draw(T.ColorJitter(brightness=0.1, hue=0.1), 500))) == {(20, 22), (22, 20)}


def test_photometric_distort_is_torchvisions(draw: Any) -> None:
    n = 20_000
    program = draw(T.RandomPhotometricDistort(), n)
    for op in JITTERED:
        times = (program.opcode == op).sum(axis=1)
        assert times.max() == 1
        assert abs(times.mean() - 0.5) < 0.02
    # A permutation drawn as the identity is left out.
    assert abs((program.opcode == Op.PERMUTE).any(axis=1).mean() - 0.5 * 5 / 6) < 0.02
    contrast = np.argmax(program.opcode == Op.CONTRAST, axis=1)
    saturation = np.argmax(program.opcode == Op.SATURATION, axis=1)
    both = (program.opcode == Op.CONTRAST).any(axis=1) & (program.opcode == Op.SATURATION).any(axis=1)
    assert abs((contrast < saturation)[both].mean() - 0.5) < 0.03
    gray = draw(T.RandomPhotometricDistort(p=1.0), 50, size=(4, 4, 1))
    assert not (gray.opcode == Op.PERMUTE).any()


def test_channel_permutations_are_all_alike(draw: Any) -> None:
    program = draw(T.RandomChannelPermutation(), 6000)
    found = dict.fromkeys(itertools.permutations(range(3)), 0)
    for row in range(6000):
        found[tuple(program.args[row, 0, :3].astype(int)) if program.length[row] else (0, 1, 2)] += 1
    assert np.abs(np.array(list(found.values())) - 1000).max() < 5 * math.sqrt(1000)


BY_MAGNITUDE = [
    examples[0]
    for examples in EXAMPLES.values()
    if isinstance(examples[0], (MagnitudeOp, PlainOp)) and hasattr(examples[0], "_op")
]


@pytest.mark.parametrize("transform", BY_MAGNITUDE)
def test_policies_may_give_the_magnitude(draw: Any, transform: MagnitudeOp | PlainOp) -> None:
    program = draw(T.Augmentation("it", transform, magnitude=(0.25, 0.25)), 3, size=(8, 8, 3))
    assert program.length.tolist() == [1, 1, 1]
    if isinstance(transform, MagnitudeOp):
        assert any((program.args[:, 0, i] == 0.25).all() for i in range(4))


def test_noise_has_a_slot_of_its_own(draw: Any) -> None:
    program = draw(T.Compose([T.GaussianNoise(), T.SaltAndPepper(), T.ShotNoise()]), 3)
    slots = [program.args[:, 0, 2], program.args[:, 1, 2], program.args[:, 2, 1]]
    assert [set(s.tolist()) for s in slots] == [{1}, {3}, {5}]


def test_sepia_is_the_matrix_and_gray_stays() -> None:
    image = np.array([[[10, 200, 30], [255, 255, 255]]], np.uint8)
    out = vg.Augmenter(T.ToSepia(), layout="NHWC")([image])[0].numpy()
    assert out[0, 0].tolist() == [163, 146, 113]
    assert out[0, 1].tolist() == [255, 255, 239]
    gray = image[..., :1]
    np.testing.assert_array_equal(vg.Augmenter(T.ToSepia(), layout="NHWC")([gray])[0].numpy(), gray)


def test_tone_curves_go_from_black_to_white_through_drawn_heights() -> None:
    levels = np.arange(256, dtype=np.uint8).repeat(3).reshape(1, 256, 3)
    along = np.arange(256) / 255
    plain = 255 * (0.75 * (1 - along) ** 2 * along + 2.25 * (1 - along) * along**2 + along**3)
    curves = vg.Augmenter(T.RandomToneCurve(0.0), layout="NHWC")([levels])[0].numpy()
    np.testing.assert_allclose(curves, plain[None, :, None].repeat(3, axis=2), atol=0.51)
    for per_channel in (False, True):
        outputs = vg.Augmenter(T.RandomToneCurve(0.2, per_channel), layout="NHWC")([levels] * 30, ids=range(30)).numpy()
        assert (outputs[:, 0, 0] == 0).all()
        assert (outputs[:, 0, 255] == 255).all()
        assert (outputs[..., 0] != outputs[..., 2]).any() == per_channel
        assert outputs[:, 0, 128].std() > 15
