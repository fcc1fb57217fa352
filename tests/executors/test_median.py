"""Medians: every way of cutting a row, what stands beside them in a pass, and the sorting network that finds them."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

import variegate as vg
from tests.executors.contract import Device, check, every_device
from tests.images import gray, noise, photo
from tests.programs import SIZES, crop, program_of, rotate, step
from variegate.executors import cpu
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Output


@every_device
@pytest.mark.parametrize("size", [3, 5, 7])
def test_every_size(device: Device, size: int) -> None:
    images = [make(h, w) for h, w in (*SIZES, (5, 300)) for make in (noise, gray)]
    chains = [[step(Op.MEDIAN, size)] for _ in images]
    check(device, program_of(chains, images), images, chains)


@every_device
def test_among_others(device: Device) -> None:
    median = step(Op.MEDIAN, 5)
    chains = [
        [step(Op.HFLIP), median, step(Op.INVERT)],
        [crop(-3, 4, 12, 70, fill=(255, 0, 9)), step(Op.POSTERIZE, 4), median, step(Op.EQUALIZE)],
        [rotate(20.0, 1), median, step(Op.MEDIAN, 7), rotate(-20.0)],
        [median, step(Op.CONVOLVE_FLOAT, table=np.ones((1, 9, 9)) / 81), step(Op.GAUSSIAN_BLUR, 5, 5, 1.0, 1.0)],
    ]
    images = [photo(60, 80), noise(33, 65), photo(40, 50), gray(17, 31)]
    check(device, program_of(chains, images), images, chains)


def test_it_is_a_pass_of_its_own_behind_a_rotation_alone() -> None:
    images = [photo(20, 30)] * 2
    fused = lower(program_of([[step(Op.HFLIP), step(Op.MEDIAN, 3)], [rotate(9.0), step(Op.MEDIAN, 3)]], images))
    assert fused.num_passes is not None
    assert fused.num_passes.tolist() == [1, 2]


@pytest.mark.parametrize("size", [3, 5, 7])
def test_the_middle_is_found_in_all_sorted_squares(size: int) -> None:
    """Networks that sort black and white squares sort all (Knuth's zero-one principle)."""
    zeros = list(combinations_with_replacement(range(size, -1, -1), size))
    images = [
        np.array([[255 * (j >= each[i]) for j in range(size)] for i in range(size)], np.uint8)[:, :, None]
        for each in zeros
    ]
    chains = [[step(Op.MEDIAN, size)] for _ in images]
    results = cpu.run(program_of(chains, images, Output(layout="NHWC")), images, 1)
    middles = [int(result[size // 2, size // 2, 0]) for result in results]
    assert middles == [255 * int(2 * sum(z) < size * size) for z in zeros]


def test_the_transform_draws_odd_sizes_and_agrees_with_the_reference() -> None:
    images = vg.sample_images(4)
    t = vg.transforms.Compose([vg.transforms.MedianBlur(), vg.transforms.RandomHorizontalFlip(1.0)])
    outputs = [vg.Augmenter(t, device=device, layout="NHWC")(images, ids=range(4)) for device in ("cpu", "oracle")]
    for one, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("value", [1, 4, 9, (3, 6), (7, 3), "3", 3.5])
def test_bad_sizes_are_named(value: object) -> None:
    with pytest.raises(
        vg.transforms.ArgumentError, match=r"kernel_size=.*; accepted: an odd integer, or a pair \(low, high"
    ):
        vg.transforms.MedianBlur(value)  # type: ignore[arg-type]
