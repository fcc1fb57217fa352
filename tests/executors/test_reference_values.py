"""The plain executor's point-wise and statistics operations against Pillow: bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from tests.images import PHOTOS, gray, photo, sized_images
from tests.oracle import apply
from tests.oracle.values import hsv_to_rgb, rgb_to_hsv
from tests.pillow_oracle import run_pillow
from variegate.program.ops import Op
from variegate.program.pixel_functions import PixelFunction
from variegate.program.program import Tables

IMAGES = {**sized_images(), **{name: photo(60, 70, name) for name in PHOTOS[1:]}}
EVERY_IMAGE = pytest.mark.parametrize("name", IMAGES)
# 1 + 0.9 i / 9 and 1 - 0.9 i / 9 are AutoAugment's; the others lie at and beyond the ends.
FACTORS = [0.0, 1.0, *(1 + s * 0.9 * i / 9 for i in range(1, 10) for s in (1, -1)), 0.001, 1.0001, 3.0, 20.5]
GRID = np.arange(256, dtype=np.uint8)


def same(op: Op, img_HWC: np.ndarray, *args: float) -> None:
    wanted = run_pillow(op.name, img_HWC, *args)
    np.testing.assert_array_equal(apply(op, img_HWC, args), wanted, err_msg=f"{op.name}{args}")


@EVERY_IMAGE
@pytest.mark.parametrize("op", [Op.BRIGHTNESS, Op.SATURATION, Op.CONTRAST], ids=lambda op: op.name)
def test_blends(op: Op, name: str) -> None:
    for factor in FACTORS:
        same(op, IMAGES[name], factor)


@EVERY_IMAGE
@pytest.mark.parametrize("op", [Op.AUTOCONTRAST, Op.EQUALIZE, Op.INVERT, Op.GRAYSCALE], ids=lambda op: op.name)
def test_operations_without_arguments(op: Op, name: str) -> None:
    same(op, IMAGES[name])


@EVERY_IMAGE
def test_tables(name: str) -> None:
    for bits in range(9):
        same(Op.POSTERIZE, IMAGES[name], bits)
    for threshold in (0.0, 28.333, 127.5, 128.0, 255.0, 256.0):
        same(Op.SOLARIZE, IMAGES[name], threshold)
        for addition in (0, 1, 33, 110, 255, -20):
            same(Op.SOLARIZE_ADD, IMAGES[name], addition, threshold)
    for gamma, gain in ((1.0, 1.0), (0.0, 1.0), (0.5, 1.0), (2.2, 0.7), (1.7, 3.0), (1 / 3, 0.0)):
        same(Op.GAMMA, IMAGES[name], gamma, gain)
    same(Op.RGB_SHIFT, IMAGES[name], 20, -30, 255)
    same(Op.PERMUTE, IMAGES[name], 2, 0, 1)


@EVERY_IMAGE
def test_hue(name: str) -> None:
    for factor in (0.0, 0.5, -0.5, 0.1, -0.1, 0.003, -0.003, 0.25):
        same(Op.HUE, IMAGES[name], factor)


@pytest.mark.parametrize("red", range(0, 256, 15))
def test_every_green_and_blue_survives_hsv_as_pillow_has_it(red: int) -> None:
    grid_HWC = np.stack(np.broadcast_arrays(np.uint8(red), GRID[:, None], GRID[None, :]), axis=-1)
    in_hsv = np.array(Image.fromarray(grid_HWC).convert("HSV"))
    np.testing.assert_array_equal(rgb_to_hsv(grid_HWC), in_hsv)
    # Read as hue, saturation and value, the grid holds bytes that no colour converts to.
    from_hsv = np.array(Image.frombytes("HSV", (256, 256), grid_HWC.tobytes()).convert("RGB"))
    np.testing.assert_array_equal(hsv_to_rgb(grid_HWC), from_hsv)


def test_every_colour_has_pillows_luma() -> None:
    for red in range(0, 256, 17):
        grid_HWC = np.stack(np.broadcast_arrays(np.uint8(red), GRID[:, None], GRID[None, :]), axis=-1)
        same(Op.GRAYSCALE, grid_HWC)


def test_lut_reads_its_channel() -> None:
    tables = Tables(luts=np.random.default_rng(0).integers(0, 256, (2, 3, 256), dtype=np.uint8))
    out = apply(Op.LUT, photo(), (1,), tables=tables)
    flat = tables.luts[1].reshape(-1).tolist()
    np.testing.assert_array_equal(out, np.array(Image.fromarray(photo()).point(flat)))
    np.testing.assert_array_equal(apply(Op.LUT, gray(), (1,), tables=tables), tables.luts[1][0][gray()])


def test_color_matrix_is_pillows_convert() -> None:
    sepia = np.array([[0.393, 0.769, 0.189, 0], [0.349, 0.686, 0.168, -9.5], [0.272, 0.534, -0.131, 20]], np.float32)
    out = apply(Op.COLOR_MATRIX, photo(), (0,), tables=Tables(matrices=sepia[None]))
    expected = np.array(Image.fromarray(photo()).convert("RGB", tuple(sepia.reshape(-1).tolist())))
    np.testing.assert_array_equal(out, expected)
    on_gray = apply(Op.COLOR_MATRIX, gray(), (0,), tables=Tables(matrices=sepia[None]))
    three = apply(Op.COLOR_MATRIX, gray().repeat(3, axis=2), (0,), tables=Tables(matrices=sepia[None]))
    np.testing.assert_array_equal(on_gray, three[..., :1])


def test_point_function_rounds_and_clips() -> None:
    tables = Tables(pixel_functions=[PixelFunction(lambda r, g, b, m: (r + m, g * m, b - 300 * m), "test")])
    img_HWC = photo(20, 30)
    x = img_HWC.astype(np.float64)
    expected = np.stack([x[..., 0] + 1.5, x[..., 1] * 1.5, x[..., 2] - 450], axis=-1)
    out = apply(Op.PIXEL_FUNCTION, img_HWC, (0, 1.5), tables=tables)
    np.testing.assert_array_equal(out, np.clip(np.floor(expected + 0.5), 0, 255))


def test_side_tables_are_asked_for() -> None:
    with pytest.raises(ValueError, match="side tables"):
        apply(Op.LUT, photo(), (0,))
