"""What is done to training images besides the policy."""

from __future__ import annotations

import numpy as np
import pytest

from variegate.learn.images import BaselineAugmentation, load_images


@pytest.mark.parametrize(("channels", "seed"), [(1, 0), (3, 1), (3, 3)])
def test_means_and_deviations_are_exact(channels: int, seed: int) -> None:
    # Sums of floats are some 1e-7 off, and with the second and third of these a sixth digit.
    pixels = np.random.default_rng(seed).integers(0, 256, (64, 32, 32, channels)).astype(np.uint8)
    baseline = BaselineAugmentation.of(
        load_images((pixels, [0, 1] * 32), device="cpu"), padding=0, flip=False, cutout=0
    )
    values = pixels.reshape(-1, channels) / 255
    assert baseline.mean == tuple(round(mean, 6) for mean in values.mean(0).tolist())
    assert baseline.std == tuple(round(std, 6) for std in values.std(0).tolist())


def test_a_channel_that_never_changes_can_be_divided_by() -> None:
    images = load_images((np.full((4, 8, 6, 3), 51, np.uint8), [0, 1] * 2), device="cpu")
    baseline = BaselineAugmentation.of(images, padding=0, flip=False, cutout=0)
    assert (baseline.size, baseline.mean, baseline.std) == ((8, 6), (0.2,) * 3, (0.001,) * 3)
