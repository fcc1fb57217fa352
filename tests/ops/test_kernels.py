"""Convolutions against Pillow's, and against their formulas in NumPy; and the CPU's vectors against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from tests import oracle
from tests.images import gray, noise, photo
from tests.oracle import apply
from variegate import transforms as T
from variegate.program.ops import Op

SHARPEN = [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]


def made(draw: Any, transform: T.Transform, img_HWC: np.ndarray) -> np.ndarray:
    shape = (*img_HWC.shape, 1)[:3]
    return np.asarray(oracle.run(draw(transform, [shape]), [img_HWC])[0]).transpose(1, 2, 0)


def correlated(img_HWC: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Not rounded, with edges repeated."""
    down, right = kernel.shape[0] // 2, kernel.shape[1] // 2
    x = np.pad(img_HWC.astype(np.float64), ((down, down), (right, right), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape, (0, 1))
    return np.asarray(np.einsum("yxcij,ij->yxc", windows, kernel))


@pytest.mark.parametrize("side", [3, 5])
def test_it_is_pillows_kernel_within_the_border(draw: Any, side: int) -> None:
    kernel = np.random.default_rng(side).integers(-3, 4, (side, side))
    kernel[side // 2, side // 2] += 1 - kernel.sum()
    img_HWC = photo(40, 61)
    theirs = Image.fromarray(img_HWC).filter(ImageFilter.Kernel((side, side), kernel[::-1].ravel().tolist(), 1))
    inner = slice(side // 2, -(side // 2))
    # Pillow counts the lines of a kernel from below.
    ours = made(draw, T.Convolve(kernel.tolist()), img_HWC)
    np.testing.assert_array_equal(ours[inner, inner], np.asarray(theirs)[inner, inner])


def test_weights_of_sum_one_leave_a_constant_image_and_clip(draw: Any) -> None:
    kernel = np.random.default_rng(0).random((7, 5))
    kernel /= kernel.sum()
    flat = np.full((9, 33, 3), 201, np.uint8)
    assert (made(draw, T.Convolve(kernel), flat) == 201).all()
    bright, dark = (made(draw, T.Convolve([[w]]), flat) for w in (256.0, -256.0))
    assert (bright == 255).all()
    assert not dark.any()


@pytest.mark.parametrize("image", [photo(23, 45), gray(9, 7), noise(3, 2)])
def test_edges_are_absolute_derivatives(draw: Any, image: np.ndarray) -> None:
    img_HWC = image if image.ndim == 3 else image[..., None]
    second = correlated(img_HWC, np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]]))
    np.testing.assert_array_equal(made(draw, T.Edges(), image), np.minimum(np.abs(second), 255))
    x = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    first = sum(np.minimum(np.abs(correlated(img_HWC, k)), 255) for k in (x, x.T))
    np.testing.assert_array_equal(made(draw, T.Edges("sobel"), image), np.minimum(first, 255))


def test_emboss_is_the_relief_blended_with_the_image(draw: Any) -> None:
    img_HWC = photo(20, 31)
    relief = np.array([[-1.5, -0.5, 0], [-0.5, 1, 0.5], [0, 0.5, 1.5]])
    exact = 0.3 * correlated(img_HWC, relief) + 0.7 * img_HWC
    ours = made(draw, T.Emboss(0.3, 0.5), img_HWC)
    # Half a level of rounding, and weights in steps of 2**-14 times nine levels.
    assert np.abs(ours - np.clip(exact, 0, 255)).max() < 0.5 + 9 * 255 * 2.0**-15
    assert (made(draw, T.Emboss(0.0), img_HWC) == img_HWC).all()


def test_unsharp_mask_adds_what_a_blur_takes_away(draw: Any) -> None:
    img_HWC = photo(40, 50)
    blurred = apply(Op.GAUSSIAN_BLUR, img_HWC, (5, 5, 1.1, 1.1)).astype(np.float64)
    away = img_HWC - blurred
    exact = np.clip(img_HWC + np.where(np.abs(away) > 6, 1.5 * away, 0), 0, 255)
    # A kernel of five pixels has sigma 1.1 where none is given.
    ours = made(draw, T.UnsharpMask(5, 0, 1.5, threshold=6), img_HWC)
    assert np.abs(ours - exact).max() <= 0.5
    assert (ours != img_HWC).any()
    assert (made(draw, T.UnsharpMask(threshold=255), img_HWC) == img_HWC).all()
