"""The plain executor's geometry against Pillow: nearest bit for bit, interpolated within its tolerance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.images import gray, noise, photo, sized_images
from tests.oracle import apply
from tests.pillow_oracle import run_pillow
from variegate.program.ops import Op, PadMode

IMAGES = sized_images()
FILL = (10, 200, 77)
INTERPOLATIONS = pytest.mark.parametrize("flags", [0, 1, 2], ids=["nearest", "bilinear", "bicubic"])
EVERY_IMAGE = pytest.mark.parametrize("name", IMAGES)


def same(op: Op, img_HWC: np.ndarray, *args: float, flags: int = 0) -> None:
    expected = run_pillow(op.name, img_HWC, *args, flags=flags, fill=FILL)
    out = apply(op, img_HWC, args, flags, FILL)
    if flags == 0:
        np.testing.assert_array_equal(out, expected, err_msg=f"{op.name}{args}")
        return
    assert_like_pillow(out, expected, f"{op.name}{args}")


def assert_like_pillow(out: np.ndarray, expected: np.ndarray, what: str) -> None:
    # A point on the border, to 2**-24 of a pixel, may be inside in sums of integers and outside in sums of doubles.
    is_fill = [(image == FILL[: image.shape[2]]).all(axis=2) for image in (out, expected)]
    difference = np.abs(out.astype(int) - expected)
    on_border = (is_fill[0] ^ is_fill[1]) & (difference > 2).any(axis=2)
    assert on_border.sum() <= 6, what
    # Places have 14 or 15 fraction bits where Pillow has doubles: a level that is cut off may be the next one.
    difference = difference[~on_border]
    assert np.count_nonzero(difference > 1) <= difference.size // 1000, what
    assert difference.max(initial=0) <= 2, what


@EVERY_IMAGE
def test_flips_and_quarter_turns(name: str) -> None:
    same(Op.HFLIP, IMAGES[name])
    same(Op.VFLIP, IMAGES[name])
    for turns in (1, 2, 3):
        same(Op.ROT90, IMAGES[name], turns)


@EVERY_IMAGE
@INTERPOLATIONS
@pytest.mark.parametrize("center", [(math.nan, math.nan), (3.0, 5.5), (0.0, 0.0)], ids=["middle", "given", "corner"])
def test_rotate(name: str, flags: int, center: tuple[float, float]) -> None:
    for angle in (0, 90, 180, 270, 360, -90, 30, -17.3, 45, 359.9, 1e-3, 135, 720.5):
        for expand in (0, 1):
            same(Op.ROTATE, IMAGES[name], angle, *center, expand, flags=flags)


@EVERY_IMAGE
@INTERPOLATIONS
def test_shear_and_translate(name: str, flags: int) -> None:
    for value in (0.0, 0.3, -0.21, 0.99, 1 / 3):
        same(Op.SHEAR_X, IMAGES[name], value, flags=flags)
        same(Op.SHEAR_Y, IMAGES[name], value, flags=flags)
    for pixels in (0.0, 7.0, -32.0, 0.5, -2.7, 1000.0):
        same(Op.TRANSLATE_X, IMAGES[name], pixels, flags=flags)
        same(Op.TRANSLATE_Y, IMAGES[name], pixels, flags=flags)


MATRICES = {
    "identity": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
    "scale": (0.8, 0.0, 2.0, 0.0, 1.3, -4.0),
    "scale by thirds": (1 / 3, 0.0, 0.1, 0.0, 2 / 3, 0.2),
    "mirror": (-0.7, 0.0, 30.0, 0.0, -1.0, 30.0),
    "collapse": (0.0, 0.0, 0.5, 0.0, 0.0, 0.5),
    "general": (1.1, 0.2, -3.0, 0.3, 0.9, 1.0),
    "turn and scale": (0.001, 1.1, -3.0, -0.9, 0.3, 10.0),
    "too far for fixed point": (1.0, 2000.0, 0.0, 0.1, 1.0, 0.0),
    "moved beyond fixed point": (1.0, 1e-4, 40000.0, 0.0, 1.0, 0.0),
    "large factors that cancel": (1e5, 3.0, -5e4, 0.2, 1.0, 0.0),
}


@EVERY_IMAGE
@INTERPOLATIONS
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_affine(name: str, flags: int, matrix: tuple[float, ...]) -> None:
    same(Op.AFFINE, IMAGES[name], *matrix, flags=flags)


@INTERPOLATIONS
@pytest.mark.parametrize("img_HWC", [photo(41, 67), gray(41, 67), noise(41, 67)], ids=["rgb", "gray", "noise"])
def test_random_affine_and_perspective(flags: int, img_HWC: np.ndarray) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        change = rng.normal(size=8) * (0.3, 0.3, 10, 0.3, 0.3, 10, 0.004, 0.004)
        coefficients = np.array([1.0, 0, 0, 0, 1.0, 0, 0, 0]) + change
        same(Op.AFFINE, img_HWC, *coefficients[:6].tolist(), flags=flags)
        same(Op.PERSPECTIVE, img_HWC, *coefficients.tolist(), flags=flags)


@EVERY_IMAGE
@INTERPOLATIONS
def test_perspective_with_its_horizon_in_the_image(name: str, flags: int) -> None:
    # Pixel centres at x = 5.5 divide by zero; those beyond lie behind the viewer.
    same(Op.PERSPECTIVE, IMAGES[name], 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1 / 5.5, 0.0, flags=flags)


@EVERY_IMAGE
def test_crop_inside_across_and_outside(name: str) -> None:
    height, width, _ = IMAGES[name].shape
    for box in ((0, 0, height, width), (-3, -2, height + 5, width + 4), (height, width, 2, 3), (height // 2, 0, 1, 1)):
        same(Op.CROP, IMAGES[name], *box)


@EVERY_IMAGE
def test_pad_constant(name: str) -> None:
    for borders in ((0, 0, 0, 0), (4, 4, 4, 4), (1, 2, 3, 4), (0, 9, 0, 0)):
        same(Op.PAD, IMAGES[name], *borders)


def _source(index: int, length: int, mode: PadMode) -> int:
    """Where a padded index reads along one axis, one step at a time."""
    if length == 1 or mode is PadMode.EDGE:
        return min(max(index, 0), length - 1)
    while not 0 <= index < length:
        mirror = 0 if mode is PadMode.REFLECT else 1
        index = -index - mirror if index < 0 else 2 * length - 2 + mirror - index
    return index


@EVERY_IMAGE
@pytest.mark.parametrize("mode", [PadMode.EDGE, PadMode.REFLECT, PadMode.SYMMETRIC])
def test_pad_from_the_image(name: str, mode: PadMode) -> None:
    img_HWC = IMAGES[name]
    height, width, _ = img_HWC.shape
    left, top, right, bottom = 5, 9, 2, 1  # wider than the small images, so that they repeat
    rows = [_source(y - top, height, mode) for y in range(top + height + bottom)]
    columns = [_source(x - left, width, mode) for x in range(left + width + right)]
    out = apply(Op.PAD, img_HWC, (left, top, right, bottom), int(mode))
    np.testing.assert_array_equal(out, img_HWC[np.ix_(rows, columns)])


def test_size_is_checked_against_the_program() -> None:
    with pytest.raises(ValueError, match=r"HFLIP: the result is 64x80, the program says \(64, 81\)"):
        apply(Op.HFLIP, photo(), (), out_size=(64, 81))
