"""Measures of pixels: those of NumPy, at any size, and sharpness that goes by edges alone."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageFilter

import variegate as vg
from variegate.apps.check.pixels import SHARPNESS_SIDE, measure_pixels, reduction_of

Image_HWC = npt.NDArray[np.uint8]
images = st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3)).flatmap(lambda shape: arrays(np.uint8, shape))
PHOTO = vg.sample_images(1)[0]


def blurred(image: Image_HWC, sigma: float) -> Image_HWC:
    return np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(sigma)))


def sharpness(image: Image_HWC) -> float:
    found = measure_pixels(image).sharpness
    assert found is not None
    return found


@settings(max_examples=60)
@given(images)
def test_measures_are_those_of_numpy(image: Image_HWC) -> None:
    found = measure_pixels(image)
    luma = np.asarray(Image.fromarray(image).convert("L")).astype(np.float64)
    pixels = luma.size
    assert found.mean == tuple(int(one) / (255 * pixels) for one in image.sum((0, 1), dtype=np.int64))
    assert found.std == pytest.approx(image.std((0, 1)) / 255, abs=1e-9)
    exact = (image @ np.array([299, 587, 114])).sum() / (255_000 * pixels)
    assert found.brightness == exact
    assert found.contrast == pytest.approx(luma.std() / 255, abs=1e-9)
    ends = np.quantile(luma, [0.05, 0.95], method="inverted_cdf") / 255
    assert (found.dark_end, found.bright_end) == pytest.approx(tuple(ends))
    shares = np.unique(luma, return_counts=True)[1] / pixels
    assert found.entropy == pytest.approx(-(shares * np.log2(shares)).sum(), abs=1e-9)


def test_white_in_more_pixels_than_32_bits_add_up() -> None:
    found = measure_pixels(np.full((2, 70_001, 3), 255, np.uint8))
    assert found[:7] == ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), 1.0, 1.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (40, 40), (1, 5000)])
def test_without_edges_there_is_no_sharpness(shape: tuple[int, int]) -> None:
    assert measure_pixels(np.full((*shape, 3), 77, np.uint8)).sharpness is None


def test_a_slow_gradient_has_no_sharpness() -> None:
    sky = np.repeat(np.linspace(90, 220, 200)[:, None, None], 300, 1).repeat(3, 2).astype(np.uint8)
    assert measure_pixels(sky).sharpness is None


def test_what_is_blurrier_is_not_sharper() -> None:
    found = [sharpness(blurred(PHOTO, sigma)) for sigma in (0, 0.7, 1, 1.5, 2, 3)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.6 * found[0]


@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.0])
def test_sharpness_is_one_through_the_blur_of_an_edge(sigma: float) -> None:
    at = np.arange(128) - 64
    edge = np.vectorize(math.erf)(at / (sigma * 2**0.5))
    image = np.rint(127 + 60 * (edge[:, None] + edge[None, :]))[:, :, None].repeat(3, 2).astype(np.uint8)
    assert sharpness(image) == pytest.approx(1 / sigma, rel=0.25)


def test_sharpness_does_not_go_by_contrast_or_brightness() -> None:
    pale = (PHOTO * 0.5 + 100).astype(np.uint8)
    assert sharpness(pale) == pytest.approx(sharpness(PHOTO), rel=0.1)


def test_a_photo_with_one_sharp_part_is_sharp() -> None:
    part = blurred(PHOTO, 4).copy()
    height, width = part.shape[:2]
    part[height // 4 : 3 * height // 4, width // 4 : 3 * width // 4] = PHOTO[
        height // 4 : 3 * height // 4, width // 4 : 3 * width // 4
    ]
    assert sharpness(part) > 0.8 * sharpness(PHOTO)


def test_blur_in_one_direction_is_found() -> None:
    moved = np.mean([np.roll(PHOTO, by, 1) for by in range(12)], 0).astype(np.uint8)
    assert sharpness(moved) < 0.6 * sharpness(PHOTO)


def test_large_pictures_are_judged_as_they_are_reduced() -> None:
    assert [reduction_of(one, 9000) for one in (1, SHARPNESS_SIDE, 2 * SHARPNESS_SIDE, 3000)] == [1, 1, 2, 7]
    rng = np.random.default_rng(3)
    small = rng.integers(0, 256, (SHARPNESS_SIDE, SHARPNESS_SIDE, 3)).astype(np.uint8)
    assert measure_pixels(small.repeat(2, 0).repeat(2, 1)).sharpness == measure_pixels(small).sharpness
