"""Erosion, zooms, fringes of color and scattered pixels: every size, and among others."""

from __future__ import annotations

import numpy as np
import pytest

from tests.executors.contract import Device, check, every_device
from tests.images import gray, noise, photo
from tests.oracle import apply
from tests.programs import SIZES, Step, crop, program_of, rotate, step
from tests.validating import InvalidProgram, validate
from variegate.program.ops import Op

STEPS = {
    "dilation": step(Op.MORPHOLOGY, 2, 3, 1),
    "erosion": step(Op.MORPHOLOGY, 7, 5, 0),
    "line": step(Op.MORPHOLOGY, 31, 1, 0),
    "ellipse": step(Op.MORPHOLOGY, 9, 31, 1),
    "no zoom": step(Op.ZOOM_BLUR, 0, 0.1),
    "zooms": step(Op.ZOOM_BLUR, 7, 0.04),
    "most zooms": step(Op.ZOOM_BLUR, 30, 0.5),
    "fringes": step(Op.ABERRATION, 0.03, 0.05, -0.02, -0.05),
    "wide fringes": step(Op.ABERRATION, 1, 1, -1, -1),
    "scatter": step(Op.SCATTER, 4, 2, 3),
    "far scatter": step(Op.SCATTER, 400, 3, 7),
}


@every_device
@pytest.mark.parametrize("name", STEPS)
def test_every_size(device: Device, name: str) -> None:
    images = [make(h, w) for h, w in (*SIZES, (5, 300)) for make in (noise, gray)]
    chains = [[STEPS[name]] for _ in images]
    check(device, program_of(chains, images), images, chains)


@every_device
def test_among_others(device: Device) -> None:
    images, chains = [], []
    for i, taken in enumerate(STEPS.values()):
        before: list[Step] = [step(Op.HFLIP), crop(-3, 4, 40, 70, fill=(255, 0, 9)), rotate(20.0, 1)][i % 3 : i % 3 + 1]
        chains.append([*before, step(Op.POSTERIZE, 4), taken, step(Op.EQUALIZE), taken, rotate(-20.0)])
        images.append([photo, gray, noise][i % 3](60 - i, 50 + i))
    check(device, program_of(chains, images), images, chains)


@pytest.mark.parametrize("dilates", [0, 1])
def test_an_element_is_an_ellipse(dilates: int) -> None:
    """Those of ``cv2.getStructuringElement(cv2.MORPH_ELLIPSE, size)`` of OpenCV 5.0, seen around one pixel."""
    elements = {(2, 3): "01 11 01", (4, 4): "0010 1111 1111 1111", (5, 1): "00100"}
    elements[5, 7] = "00100 01110 11111 11111 11111 01110 00100"
    for (width, height), lines in elements.items():
        img = np.full((15, 15, 1), 0 if dilates else 255, np.uint8)
        img[7, 7] = 255 - img[0, 0]
        seen = apply(Op.MORPHOLOGY, img, (width, height, dilates))[..., 0] != img[0, 0]
        element = np.array([[int(cell) for cell in line] for line in lines.split()], bool)
        top, left = 7 - (height - 1 - height // 2), 7 - (width - 1 - width // 2)
        np.testing.assert_array_equal(seen[top : top + height, left : left + width], element[::-1, ::-1])
        assert seen.sum() == element.sum()


def test_a_zoom_blur_keeps_the_center_and_constant_images() -> None:
    img = np.zeros((31, 31, 1), np.uint8)
    img[15, 15] = 255
    out = apply(Op.ZOOM_BLUR, img, (5, 0.1))
    assert out[15, 15, 0] == 255
    np.testing.assert_array_equal(out, out[::-1, ::-1])
    np.testing.assert_array_equal(apply(Op.ZOOM_BLUR, np.full((9, 8, 3), 255, np.uint8), (30, 0.2)), 255)


def test_fringes_are_those_of_the_formula() -> None:
    """A ramp shows places: red from farther, blue from nearer, green as it was."""
    height, width = 41, 61
    ramp = np.repeat(np.arange(width)[None, :, None] * 4, height, axis=0).repeat(3, axis=2).astype(np.uint8)
    out = apply(Op.ABERRATION, ramp, (0.1, 0.2, -0.1, 0.0)).astype(float)
    x, y = np.meshgrid((np.arange(width) - 30.0), np.arange(height) - 20.0)
    squared = (x / width) ** 2 + (y / height) ** 2
    red, blue = x * (0.1 + 0.2 * squared) * squared, -0.1 * x * squared
    for channel, moved in ((0, red), (2, blue)):
        expected = 4 * np.clip(np.arange(width) + moved, 0, width - 1)
        np.testing.assert_allclose(out[..., channel], expected, atol=0.6)
    np.testing.assert_array_equal(out[..., 1], ramp[..., 1])


def test_pixels_scatter_evenly_and_no_farther() -> None:
    places = np.stack(np.meshgrid(np.arange(100), np.arange(100)), axis=-1).astype(np.uint8)
    img = np.concatenate([places, places[..., :1] * 0], axis=2)
    key = np.array([1, 2], np.uint32)
    for distance, times in ((3, 1), (2, 3)):
        out = apply(Op.SCATTER, img, (distance, times, 0), key=key).astype(int)
        moved = (out - img)[10:-10, 10:-10, :2]
        assert np.abs(moved).max() == distance * times
        variance = times * ((2 * distance + 1) ** 2 - 1) / 12
        np.testing.assert_allclose(moved.var(axis=(0, 1)), variance, rtol=0.1)
        np.testing.assert_allclose(moved.mean(axis=(0, 1)), 0, atol=0.1)


@pytest.mark.parametrize(
    "broken",
    [
        step(Op.MORPHOLOGY, 0, 3, 1),
        step(Op.MORPHOLOGY, 3, 33, 1),
        step(Op.ZOOM_BLUR, 31, 0.1),
        step(Op.SCATTER, 4, 4, 1),
    ],
)
def test_what_indexes_memory_has_ends(broken: Step) -> None:
    with pytest.raises(InvalidProgram, match=r"no such|no element"):
        validate(program_of([[broken]], [photo(9, 9)]))
