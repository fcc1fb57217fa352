"""Blends of images larger and smaller than what is summed at a time: the pixels are the reference's, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import variegate as vg
from tests.images import noise
from variegate import transforms as T
from variegate.executors.cpu.memory import RESULTS

NORMALIZE = [T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD), T.RandomErasing(1.0)]
# Sums of whole images are made so many values at a time.
SPAN = 4096
# One value; a few; around one span of an image in colour, and of a plane; many.
SIZES = [(1, 1), (3, 2), (17, 31), (35, 39), (1, 1366), (64, 64), (17, 241), (61, 101), (100, 223)]


def poison(size: int) -> None:
    """Leave no zeros where results of this size are going to be made."""
    for kept in [RESULTS.take(size) for _ in range(6)]:
        kept.fill(0xA5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("behind", [[], NORMALIZE], ids=["uint8", "float32"])
def test_blends_equal_the_reference(layout: str, channels: int, behind: list[T.Transform]) -> None:
    transform = T.Compose([T.AugMix(severity=8), *behind])
    ours, reference = (
        vg.Augmenter(transform, device, layout=layout, seed=4, geometry="exact") for device in ("cpu", "oracle")
    )
    for i, (height, width) in enumerate(SIZES):
        images = [noise(height, width, channels, seed) for seed in range(2)]
        poison(4 * height * width * channels)
        expected = reference(images, ids=[i, 100 + i])
        for made in (
            ours(images, ids=[i, 100 + i]),
            [ours([image], ids=[k])[0] for image, k in zip(images, (i, 100 + i), strict=True)],
        ):
            for one, wanted in zip(made, expected, strict=True):
                np.testing.assert_array_equal(one.numpy(), wanted.numpy())


def test_sizes_are_on_both_sides_of_a_span() -> None:
    for channels in (1, 3):
        values = [channels * height * width for height, width in SIZES]
        assert any(SPAN - 4 < value <= SPAN for value in values)
        assert any(SPAN < value < SPAN + 4 for value in values)
        assert any(value > 2 * SPAN for value in values)
