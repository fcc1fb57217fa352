"""The oracle's pixels are Pillow's: bit for bit, or within a stated tolerance where Pillow interpolates in doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from PIL import Image
from PIL.ImageFilter import MedianFilter

from tests.images import PHOTOS, SIZES, gray, noise, photo, sized_images
from tests.oracle import apply
from tests.oracle.resample import vertical_pass_first
from tests.oracle.values import hsv_to_rgb, rgb_to_hsv
from tests.pillow_oracle import run_pillow
from tests.programs import INTERPOLATING
from variegate.program.ops import Op
from variegate.program.program import Tables

Arguments = list[tuple[float, ...]]

IMAGES = {**sized_images(), **{name: photo(60, 70, name) for name in PHOTOS[1:]}}
FILL = (10, 200, 77)
NAN = math.nan
ANGLES = (0, 90, 180, 270, 360, -90, 30, -17.3, 45, 359.9, 1e-3, 135, 720.5)
MIDDLE = (NAN, NAN)
SHEARS = (0.0, 0.3, -0.21, 0.99, 1 / 3)
SHIFTS = (0.0, 7.0, -32.0, 0.5, -2.7, 1000.0)
THRESHOLDS = (0.0, 28.333, 127.5, 128.0, 255.0, 256.0)
# 1 + 0.9 i / 9 and 1 - 0.9 i / 9 are AutoAugment's; the others lie at and beyond the ends.
FACTORS = [0.0, 1.0, *(1 + s * 0.9 * i / 9 for i in range(1, 10) for s in (1, -1)), 0.001, 1.0001, 3.0, 20.5]
BLENDS = [(factor,) for factor in FACTORS]
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

ARGUMENTS: dict[Op, Arguments] = {
    Op.HFLIP: [()],
    Op.VFLIP: [()],
    Op.ROT90: [(1,), (2,), (3,)],
    Op.ROTATE: [
        *((angle, *MIDDLE, number % 2) for number, angle in enumerate(ANGLES)),
        *((angle, *MIDDLE, 1) for angle in (0, 180, -90, 30)),
        *((angle, *center, 1) for angle, center in product((90, -17.3, 135), ((3.0, 5.5), (0.0, 0.0)))),
        *((angle, 3.0, 5.5, 0) for angle in (-90, 45)),
    ],
    Op.SHEAR_X: [(shear,) for shear in SHEARS],
    Op.SHEAR_Y: [(shear,) for shear in SHEARS],
    Op.TRANSLATE_X: [(pixels,) for pixels in SHIFTS],
    Op.TRANSLATE_Y: [(pixels,) for pixels in SHIFTS],
    Op.AFFINE: list(MATRICES.values()),
    # Pixel centers at x = 5.5 divide by zero; pixels beyond them lie behind the viewer.
    Op.PERSPECTIVE: [(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1 / 5.5, 0.0)],
    Op.PAD: [(0, 0, 0, 0), (4, 4, 4, 4), (1, 2, 3, 4), (0, 9, 0, 0)],
    Op.BRIGHTNESS: BLENDS,
    Op.SATURATION: BLENDS,
    Op.CONTRAST: BLENDS,
    Op.SHARPNESS: [(0.0,), (0.1,), (0.73,), (1.0,), (1.27,), (1.9,), (3.5,)],
    Op.HUE: [(0.0,), (0.5,), (-0.5,), (0.1,), (-0.1,), (0.003,), (-0.003,), (0.25,)],
    Op.AUTOCONTRAST: [()],
    Op.EQUALIZE: [()],
    Op.PERCENTILE_STRETCH: [(0, 100), (1, 99), (7.3, 60.1), (29, 30)],
    Op.WINDOW: [(127.5, 255), (100, 60), (-3.5, 300), (255, 0.01)],
    Op.INVERT: [()],
    Op.GRAYSCALE: [()],
    Op.POSTERIZE: [(bits,) for bits in range(9)],
    Op.SOLARIZE: [(threshold,) for threshold in THRESHOLDS],
    Op.SOLARIZE_ADD: list(product((0, 1, 33, 110, 255, -20), THRESHOLDS)),
    Op.GAMMA: [(1.0, 1.0), (0.0, 1.0), (0.5, 1.0), (2.2, 0.7), (1.7, 3.0), (1 / 3, 0.0)],
    Op.RGB_SHIFT: [(20, -30, 255)],
    Op.PERMUTE: [(2, 0, 1)],
}


def crops(height: int, width: int) -> Arguments:
    """Inside, across the border, and outside."""
    return [
        (0, 0, height, width),
        (-3, -2, height + 5, width + 4),
        (height, width, 2, 3),
        (height // 2, 0, 1, 1),
    ]


def resizes(height: int, width: int) -> Arguments:
    sizes = [*SIZES[:-1], (height, width), (2 * height, width), (height, 2 * width + 1), (224, 224)]
    return [(0, 0, height, width, *size) for size in sizes]


BY_SIZE: dict[Op, Callable[[int, int], Arguments]] = {Op.CROP: crops, Op.RESIZED_CROP: resizes}


def check(op: Op, img_HWC: np.ndarray, args: tuple[float, ...], flags: int = 0) -> None:
    out = apply(op, img_HWC, args, flags, FILL)
    expected = run_pillow(op.name, img_HWC, *args, flags=flags, fill=FILL)
    what = f"{op.name}{args} {flags} of {img_HWC.shape}"
    if op in INTERPOLATING and flags:
        assert_interpolated_alike(out, expected, what)
    else:
        np.testing.assert_array_equal(out, expected, err_msg=what)


def assert_interpolated_alike(out: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert out.shape == expected.shape, what
    # A point on the border, to 2**-24 of a pixel, may be inside in sums of integers and outside in sums of doubles.
    fill = FILL[: out.shape[2]]
    is_fill = (out == fill).all(axis=2) ^ (expected == fill).all(axis=2)
    difference = np.abs(out.astype(int) - expected)
    on_border = is_fill & (difference > 2).any(axis=2)
    assert on_border.sum() <= 6, what
    # Coordinates have 14 or 15 fraction bits where Pillow has doubles: a value that is cut off may be the next one.
    difference = difference[~on_border]
    assert np.count_nonzero(difference > 1) <= difference.size // 1000, what
    assert difference.max(initial=0) <= 2, what


def interpolations(op: Op) -> range:
    if op is Op.RESIZED_CROP:
        return range(6)
    return range(3) if op in INTERPOLATING else range(1)


CASES = [(op, flags) for op in (*ARGUMENTS, *BY_SIZE) for flags in interpolations(op)]


@pytest.mark.parametrize(("op", "flags"), CASES, ids=[f"{op.name}-{flags}" for op, flags in CASES])
def test_every_image(op: Op, flags: int) -> None:
    for img_HWC in IMAGES.values():
        arguments = BY_SIZE[op](*img_HWC.shape[:2]) if op in BY_SIZE else ARGUMENTS[op]
        for args in arguments:
            check(op, img_HWC, args, flags)


@pytest.mark.parametrize("flags", range(3))
def test_random_affine_and_perspective(flags: int) -> None:
    for img_HWC in (photo(41, 67), gray(41, 67), noise(41, 67)):
        rng = np.random.default_rng(5)
        for _ in range(40):
            change = rng.normal(size=8) * (0.3, 0.3, 10, 0.3, 0.3, 10, 0.004, 0.004)
            coefficients = (np.array([1.0, 0, 0, 0, 1.0, 0, 0, 0]) + change).tolist()
            check(Op.AFFINE, img_HWC, tuple(coefficients[:6]), flags)
            check(Op.PERSPECTIVE, img_HWC, tuple(coefficients), flags)


@pytest.mark.parametrize("flags", [1, 2])
def test_interpolation_at_any_width(flags: int) -> None:
    """A photo's pixels over a strip, which is smooth, beside noise, which is not."""
    for width in (32, 223, 1024, 4000):
        strip = np.concatenate([photo(12, 300)] * (width // 300 + 1), axis=1)[:, :width]
        img_HWC = np.concatenate([strip, noise(12, width)])
        check(Op.ROTATE, img_HWC, (0.31, NAN, NAN, 0), flags)
        check(Op.SHEAR_X, img_HWC, (-0.27,), flags)
        check(Op.AFFINE, img_HWC, (0.83, 0.2, 1.7, 1e-4, 0.9, 0.4), flags)
        check(Op.PERSPECTIVE, img_HWC, (1.02, 0.1, -3, 1e-4, 1.1, 1, 0.11 / width, 1e-3), flags)
        # Behind the viewer, on the right of the image's middle.
        check(Op.PERSPECTIVE, img_HWC, (-0.9, 0.03, width / 2, -1e-3, 0.7, 9.3, -2.03 / width, 1e-3), flags)


@pytest.mark.parametrize("flags", range(6))
def test_random_boxes_of_a_resample(flags: int) -> None:
    for img_HWC in (photo(90, 120), gray(90, 120), noise(90, 61)):
        rng = np.random.default_rng(3)
        height, width, _ = img_HWC.shape
        check(Op.RESIZED_CROP, img_HWC, (3, 5, 20, 30, 20, 30), flags)  # a crop
        for _ in range(25):
            top, bottom = np.sort(rng.uniform(0, height, 2)).tolist()
            left, right = np.sort(rng.uniform(0, width, 2)).tolist()
            box = (top, left, bottom - top, right - left)
            mirrored = int(rng.integers(2))
            check(Op.RESIZED_CROP, img_HWC, (*box, *rng.integers(1, 130, 2).tolist(), mirrored), flags)


def test_pillow_takes_the_vertical_pass_first_for_lost_height() -> None:
    # Noise and bicubic clipping make the order of the passes visible; a Pillow that changes its rule fails here.
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(60):
        height, width, out_height, out_width = np.exp(rng.uniform(0.7, 4.8, 4)).astype(int).tolist()
        seen.add(vertical_pass_first(height, width, out_height, out_width))
        check(Op.RESIZED_CROP, noise(height, width, 1), (0, 0, height, width, out_height, out_width), 2)
    assert seen == {True, False}


def test_every_color_in_hsv_and_luma() -> None:
    every = np.arange(256, dtype=np.uint8)
    for red in range(0, 256, 15):
        grid_HWC = np.stack(np.broadcast_arrays(np.uint8(red), every[:, None], every[None, :]), axis=-1)
        in_hsv = np.array(Image.fromarray(grid_HWC).convert("HSV"))
        np.testing.assert_array_equal(rgb_to_hsv(grid_HWC), in_hsv)
        # Read as hue, saturation and value, the grid holds bytes that no color converts to.
        from_hsv = np.array(Image.frombytes("HSV", (256, 256), grid_HWC.tobytes()).convert("RGB"))
        np.testing.assert_array_equal(hsv_to_rgb(grid_HWC), from_hsv)
        check(Op.GRAYSCALE, grid_HWC, ())


@pytest.mark.parametrize("size", [3, 5, 7])
def test_median(size: int) -> None:
    """Pillow's MedianFilter, which is OpenCV's medianBlur."""
    for img_HWC in IMAGES.values():
        channels = [Image.fromarray(channel).filter(MedianFilter(size)) for channel in np.moveaxis(img_HWC, 2, 0)]
        np.testing.assert_array_equal(apply(Op.MEDIAN, img_HWC, (size,)), np.stack(channels, axis=2))


def test_lut_reads_its_channel() -> None:
    tables = Tables(curves=np.random.default_rng(0).integers(0, 256, (2, 3, 256)).astype(np.float64))
    out = apply(Op.LUT, photo(), (1,), tables=tables)
    flat = tables.curves[1].astype(int).reshape(-1).tolist()
    np.testing.assert_array_equal(out, np.array(Image.fromarray(photo()).point(flat)))
    np.testing.assert_array_equal(apply(Op.LUT, gray(), (1,), tables=tables), tables.curves[1][0][gray()])


def test_color_matrix_is_pillows_convert() -> None:
    sepia = np.array([[0.393, 0.769, 0.189, 0], [0.349, 0.686, 0.168, -9.5], [0.272, 0.534, -0.131, 20]], np.float32)
    tables = Tables(matrices=sepia[None])
    out = apply(Op.COLOR_MATRIX, photo(), (0,), tables=tables)
    expected = np.array(Image.fromarray(photo()).convert("RGB", tuple(sepia.reshape(-1).tolist())))
    np.testing.assert_array_equal(out, expected)
    on_gray = apply(Op.COLOR_MATRIX, gray(), (0,), tables=tables)
    three = apply(Op.COLOR_MATRIX, gray().repeat(3, axis=2), (0,), tables=tables)
    np.testing.assert_array_equal(on_gray, three[..., :1])
