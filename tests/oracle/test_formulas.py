"""The oracle where Pillow has no word for an instruction: against torch, OpenCV, NumPy, or the formula written out."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch

from tests.executors.corners import warps
from tests.images import gray, noise, photo, sized_images
from tests.oracle import apply
from tests.oracle.philox import philox4x32
from tests.oracle.values import luma
from variegate.program.ops import Interpolation, Op, PadMode
from variegate.program.pixel_functions import PixelFunction
from variegate.program.program import Tables
from variegate.program.rng import stream_key

IMAGES = sized_images()

# -- blurs -------------------------------------------------------------------------------------------------------------


def convolve(img_HWC: np.ndarray, kernel: torch.Tensor, mode: str) -> np.ndarray:
    """float64 [H, W, C] by torch: padded by indices (torch refuses wide reflections), then conv2d per channel."""
    down, right = kernel.shape[0] // 2, kernel.shape[1] // 2
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=mode)  # type: ignore[call-overload]
    planes = torch.from_numpy(padded).permute(2, 0, 1)[:, None].double()
    out = torch.nn.functional.conv2d(planes, kernel[None, None].double())
    return out[:, 0].permute(1, 2, 0).numpy()


def gaussian_weights(size: int, sigma: float) -> torch.Tensor:
    """torchvision's ``_get_gaussian_kernel1d``: a softmax, in float32."""
    end = (size - 1) / (2.0 * 2.0**0.5)
    return torch.softmax(-((torch.linspace(-end, end, size) / sigma) ** 2), dim=0)


@pytest.mark.parametrize(
    ("size", "sigma"),
    [
        ((3, 3), (0.8, 0.8)),
        ((5, 3), (1.1, 0.5)),
        ((9, 9), (2.0, 2.0)),
        ((23, 1), (0.1, 5.0)),
        ((5, 23), (1e-6, 0.7)),
        ((23, 23), (2.0, 1.3)),
        ((99, 61), (1000.0, 30.0)),
    ],
)
def test_gaussian_blur(size: tuple[int, int], sigma: tuple[float, float]) -> None:
    along_x, along_y = (gaussian_weights(*each) for each in zip(size, sigma, strict=True))
    for name, img_HWC in IMAGES.items():
        # One after the other, in double: torch takes half a minute for their product, and gigabytes.
        down = convolve(img_HWC, along_y[:, None], "reflect")
        expected = convolve(down, along_x[None, :], "reflect")
        out = apply(Op.GAUSSIAN_BLUR, img_HWC, (*size, *sigma))
        # Sums of outer weights are off by 2**-16 at most, on either side, and so much of every step between two pixels
        # that follow each other gets lost: of a photo, or of noise, far less than if each were 255. Values between the
        # passes are off by 2**-7 at most.
        assert np.abs(out - expected).max() <= 0.5 + sum(size) * 255 * 2.0**-16 + 2.0**-7 + 1e-4, name
        assert np.abs(out.astype(int) - np.rint(expected)).max() <= 1, name


@pytest.mark.parametrize(("size", "sigma"), [(5, 0.8), (7, 1.4), (23, 1.9)])
def test_gaussian_blur_agrees_with_torchvisions_float32(size: int, sigma: float) -> None:
    weights = gaussian_weights(size, sigma)
    kernel = torch.outer(weights, weights).expand(3, 1, size, size)
    for img_HWC in (noise(40, 50), photo(40, 50)):
        planes = torch.from_numpy(img_HWC).permute(2, 0, 1)[None].float()
        padded = torch.nn.functional.pad(planes, (size // 2,) * 4, "reflect")
        blurred = torch.nn.functional.conv2d(padded, kernel, groups=3)
        expected = blurred.round().byte()[0].permute(1, 2, 0).numpy()
        out = apply(Op.GAUSSIAN_BLUR, img_HWC, (size, size, sigma, sigma))
        # Values have 6 fraction bits between the passes: within 2**-7 of a half, and nowhere else, rounding may differ.
        assert (out != expected).mean() < 0.02
        assert np.abs(out.astype(int) - expected).max() <= 1


def line_kernel(size: int, angle: float, direction: float) -> torch.Tensor:
    """Points along the line shared among the four cells around each, written out one by one."""
    kernel = torch.zeros(size, size, dtype=torch.float64)
    half = size // 2
    for i in range(size):
        along = i / (size - 1) if size > 1 else 0.0
        weight = (1 + direction) / 2 - direction * along
        x = round(half + (i - half) * float(np.cos(np.radians(angle))), 9)
        y = round(half - (i - half) * float(np.sin(np.radians(angle))), 9)
        for row in range(size):
            for column in range(size):
                kernel[row, column] += weight * max(0.0, 1 - abs(x - column)) * max(0.0, 1 - abs(y - row))
    return kernel / kernel.sum()


@pytest.mark.parametrize(("size", "angle", "direction"), [(3, 0, 0.0), (5, 90, 1.0), (7, 37, -0.4), (9, 225, 0.6)])
def test_motion_blur(size: int, angle: float, direction: float) -> None:
    for name, img_HWC in IMAGES.items():
        expected = convolve(img_HWC, line_kernel(size, angle, direction), "edge")
        out = apply(Op.MOTION_BLUR, img_HWC, (size, angle, direction))
        # Weights are off by less than 2**-14 each, at most four a point of the line, and sum to one.
        assert np.abs(out - expected).max() <= 0.5 + 2 * size * 255 * 2.0**-14, name
        assert np.abs(out.astype(int) - np.floor(expected + 0.5)).max() <= 1, name


def test_clahe_of_gray_is_opencvs() -> None:
    """What ``cv2.createCLAHE(limit, tiles).apply`` of OpenCV 5.0 makes of these images: a sum, and every twelfth."""
    for (height, width, limit, tiles), expected in CLAHE.items():
        y, x = np.mgrid[:height, :width]
        img_HWC = ((x * x * 3 + y * 5 + x * y) % 251 // 2 + 40).astype(np.uint8)[..., None]
        made = apply(Op.CLAHE, img_HWC, (limit, *tiles)).reshape(-1)
        assert [int(made.sum()), *made[:: max(1, made.size // 12)].tolist()] == expected


CLAHE: dict[tuple[int, int, float, tuple[int, int]], list[int]] = {
    (64, 64, 2.0, (8, 8)): [517378, 12, 192, 228, 124, 215, 207, 61, 210, 162, 206, 178, 88, 92],
    (61, 77, 4.0, (8, 8)): [584435, 13, 185, 104, 69, 62, 67, 94, 156, 232, 102, 232, 149, 103],
    (64, 77, 1.0, (3, 2)): [575451, 25, 37, 39, 27, 148, 30, 86, 45, 177, 114, 96, 111, 114],
    (7, 5, 40.0, (8, 8)): [7 * 5 * 255, *[255] * 18],
    (200, 100, 3.3, (1, 1)): [2571148, 2, 153, 29, 230, 27, 86, 254, 234, 220, 98, 6, 175, 18],
}


def test_clahe_of_colors_keeps_their_differences() -> None:
    img_HWC = photo(60, 80) // 4 + 96  # nothing is cut off at either end
    out = apply(Op.CLAHE, img_HWC, (2.0, 2, 2))
    differences = [image.astype(int)[..., 1:] - image.astype(int)[..., :1] for image in (img_HWC, out)]
    np.testing.assert_array_equal(*differences)
    np.testing.assert_allclose(luma(out)[..., 0], apply(Op.CLAHE, luma(img_HWC), (2.0, 2, 2))[..., 0], atol=1)


# -- borders and places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [PadMode.EDGE, PadMode.REFLECT, PadMode.SYMMETRIC], ids=lambda mode: mode.name)
def test_pad_is_numpys(mode: PadMode) -> None:
    left, top, right, bottom = 5, 9, 2, 1  # wider than the small images, so that they repeat
    for img_HWC in IMAGES.values():
        sides = ((top, bottom), (left, right), (0, 0))
        expected = np.pad(img_HWC, sides, mode=mode.name.lower())  # type: ignore[call-overload]
        np.testing.assert_array_equal(apply(Op.PAD, img_HWC, (left, top, right, bottom), int(mode)), expected)


# Of ``cv2.getStructuringElement(cv2.MORPH_ELLIPSE, size)`` of OpenCV 5.0, line by line.
ELEMENTS = {
    (2, 3): "01 11 01",
    (4, 4): "0010 1111 1111 1111",
    (5, 1): "00100",
    (5, 7): "00100 01110 11111 11111 11111 01110 00100",
}


@pytest.mark.parametrize("dilates", [0, 1])
def test_morphology_has_opencvs_ellipse(dilates: int) -> None:
    for (width, height), lines in ELEMENTS.items():
        img_HWC = np.full((15, 15, 1), 0 if dilates else 255, np.uint8)
        img_HWC[7, 7] = 255 - img_HWC[0, 0]
        seen = apply(Op.MORPHOLOGY, img_HWC, (width, height, dilates))[..., 0] != img_HWC[0, 0]
        element = np.array([[int(cell) for cell in line] for line in lines.split()], bool)
        top, left = 7 - (height - 1 - height // 2), 7 - (width - 1 - width // 2)
        np.testing.assert_array_equal(seen[top : top + height, left : left + width], element[::-1, ::-1])
        assert seen.sum() == element.sum()


def test_a_zoom_blur_keeps_the_center() -> None:
    img_HWC = np.zeros((31, 31, 1), np.uint8)
    img_HWC[15, 15] = 255
    out = apply(Op.ZOOM_BLUR, img_HWC, (5, 0.1))
    assert out[15, 15, 0] == 255
    np.testing.assert_array_equal(out, out[::-1, ::-1])


def test_aberration_moves_red_and_blue_by_its_formula() -> None:
    """A ramp shows places: red from farther, blue from nearer, green as it was."""
    height, width = 41, 61
    line = np.arange(width)
    ramp = np.broadcast_to(line[None, :, None] * 4, (height, width, 3)).astype(np.uint8)
    out = apply(Op.ABERRATION, ramp, (0.1, 0.2, -0.1, 0.0)).astype(float)
    x, y = np.meshgrid(line - 30.0, np.arange(height) - 20.0)
    squared = (x / width) ** 2 + (y / height) ** 2
    moved = {0: x * (0.1 + 0.2 * squared) * squared, 2: -0.1 * x * squared}
    for channel, by in moved.items():
        np.testing.assert_allclose(out[..., channel], 4 * np.clip(line + by, 0, width - 1), atol=0.6)
    np.testing.assert_array_equal(out[..., 1], ramp[..., 1])


def test_pixels_scatter_evenly_and_no_farther() -> None:
    places = np.stack(np.meshgrid(np.arange(100), np.arange(100)), axis=-1).astype(np.uint8)
    img_HWC = np.concatenate([places, places[..., :1] * 0], axis=2)
    for distance, times in ((3, 1), (2, 3)):
        out = apply(Op.SCATTER, img_HWC, (distance, times, 0), key=np.array([1, 2], np.uint32)).astype(int)
        moved = (out - img_HWC)[10:-10, 10:-10, :2]
        assert np.abs(moved).max() == distance * times
        variance = times * ((2 * distance + 1) ** 2 - 1) / 12
        np.testing.assert_allclose(moved.var(axis=(0, 1)), variance, rtol=0.1)
        np.testing.assert_allclose(moved.mean(axis=(0, 1)), 0, atol=0.1)


# -- noise and rectangles, pixel by pixel ------------------------------------------------------------------------------

KEY = stream_key(seed=7, epoch=3)
ID = (5 << 32) + 12345


def run(op: Op, img_HWC: np.ndarray, *args: float, sample_id: int = ID, **options: object) -> np.ndarray:
    return apply(op, img_HWC, args, sample_id=sample_id, key=KEY, **options)


def words_at(index: int, slot: int) -> list[int]:
    """The four words of a pixel, from its counter."""
    return [int(word) for word in philox4x32([index, slot, ID & 0xFFFFFFFF, ID >> 32], KEY)]


def normals_at(index: int, slot: int) -> list[float]:
    """Three standard normal numbers of a pixel, as exact quantiles: the lower 31 bits of a word, made odd, are 2**32
    times the probability of more; the top bit is the sign."""
    sizes = [-NormalDist().inv_cdf((word & 0x7FFFFFFF | 1) * 2.0**-32) for word in words_at(index, slot)[:3]]
    return [-size if word >> 31 else size for size, word in zip(sizes, words_at(index, slot), strict=False)]


@pytest.mark.parametrize("img_HWC", [photo(11, 13), gray(11, 13), photo(1, 1)], ids=["rgb", "gray", "1x1"])
def test_normal_noise(img_HWC: np.ndarray) -> None:
    gaussian = run(Op.GAUSSIAN_NOISE, img_HWC, 0.05, 0.1, 4)
    shot = run(Op.SHOT_NOISE, img_HWC, 2.5, 9)
    for (y, x, c), pixel in np.ndenumerate(img_HWC):
        index, value = y * img_HWC.shape[1] + x, float(pixel)
        exact = value + 255 * (0.05 + 0.1 * normals_at(index, 4)[c])
        # The table is within 3e-6 of a quantile: here 1e-4 of a value, which tips what lies next to a half.
        assert abs(min(max(exact, 0), 255) - gaussian[y, x, c]) <= 0.5 + 1e-3
        exact = value + math.sqrt(value * 2.5) * normals_at(index, 9)[c]
        assert abs(min(max(exact, 0), 255) - shot[y, x, c]) <= 0.5 + 1e-3


def test_salt_and_pepper() -> None:
    img_HWC = noise(150, 200).clip(1, 254)
    out = run(Op.SALT_AND_PEPPER, img_HWC, 0.2, 0.25, 6)
    white, black = (out == 255).all(axis=-1), (out == 0).all(axis=-1)
    np.testing.assert_array_equal(out[~white & ~black], img_HWC[~white & ~black])
    assert abs(white.mean() - 0.05) < 0.005
    assert abs(black.mean() - 0.15) < 0.01
    for index in (0, 1, 777, 29_999):
        hit, color = [(word >> 8) * 2.0**-24 for word in words_at(index, 6)][:2]
        y, x = divmod(index, 200)
        salt = 255 if color < np.float32(0.25) else 0
        expected = img_HWC[y, x] if hit >= np.float32(0.2) else salt
        np.testing.assert_array_equal(out[y, x], np.broadcast_to(expected, 3))
    assert (run(Op.SALT_AND_PEPPER, img_HWC, 1.0, 1.0, 6) == 255).all()


def test_noise_depends_on_id_and_slot() -> None:
    first = run(Op.GAUSSIAN_NOISE, photo(20, 30), 0, 0.1, 1)
    np.testing.assert_array_equal(first, run(Op.GAUSSIAN_NOISE, photo(20, 30), 0, 0.1, 1))
    for slot, sample_id in ((2, ID), (1, ID + 1), (1, ID & 0xFFFFFFFF)):
        other = run(Op.GAUSSIAN_NOISE, photo(20, 30), 0, 0.1, slot, sample_id=sample_id)
        assert (first != other).mean() > 0.5


@pytest.mark.parametrize("img_HWC", [photo(20, 30), gray(20, 30)], ids=["rgb", "gray"])
def test_erase_clips_its_rectangles(img_HWC: np.ndarray) -> None:
    rectangles = np.array([[0, 0, 20, 30], [2, 3, 4, 5], [18, 25, 9, 9], [-3, -2, 5, 4], [50, 50, 2, 2]], np.int32)
    expected = img_HWC.copy()
    expected[2:6, 3:8] = expected[18:, 25:] = expected[:2, :2] = (9, 8, 7)[: img_HWC.shape[2]]
    # The first rectangle, the full image, is not among the four that are asked for.
    out = run(Op.ERASE, img_HWC, 1, 4, fill=(9, 8, 7), tables=Tables(rectangles=rectangles))
    np.testing.assert_array_equal(out, expected)


def test_erase_with_uniform_noise() -> None:
    img_HWC = photo(20, 30)
    out = run(Op.ERASE, img_HWC, 0, 1, 1, 8, tables=Tables(rectangles=np.array([[5, 6, 7, 8]], np.int32)))
    expected = img_HWC.copy()
    for y in range(5, 12):
        for x in range(6, 14):
            expected[y, x] = [word >> 24 for word in words_at(y * 30 + x, 8)[:3]]
    np.testing.assert_array_equal(out, expected)


def test_point_function_rounds_and_clips() -> None:
    tables = Tables(pixel_functions=[PixelFunction(lambda r, g, b, m: (r + m, g * m, b - 300 * m), "test")])
    x = photo(20, 30).astype(np.float64)
    expected = np.stack([x[..., 0] + 1.5, x[..., 1] * 1.5, x[..., 2] - 450], axis=-1)
    out = apply(Op.PIXEL_FUNCTION, photo(20, 30), (0, 1.5), tables=tables)
    np.testing.assert_array_equal(out, np.clip(np.floor(expected + 0.5), 0, 255))


# -- identities and refusals -------------------------------------------------------------------------------------------

# Of any image.
NEUTRAL: list[tuple[Op, tuple[float, ...]]] = [
    (Op.MEDIAN, (1,)),
    (Op.GAUSSIAN_BLUR, (1, 1, 1.0, 1.0)),
    (Op.MOTION_BLUR, (1, 30.0, 0.5)),
    (Op.MORPHOLOGY, (1, 1, 0)),
    (Op.ZOOM_BLUR, (0, 0.1)),
    (Op.SALT_AND_PEPPER, (0.0, 0.5, 6)),
]
# Of constant images: nothing is lost by rounding, and nothing overflows, at the highest value under wide kernels.
SMOOTHING: list[tuple[Op, tuple[float, ...]]] = [
    (Op.GAUSSIAN_BLUR, (2001, 2001, 1000.0, 1000.0)),
    (Op.GAUSSIAN_BLUR, (23, 1023, 4.0, 300.0)),
    (Op.MOTION_BLUR, (255, 12.0, 0.2)),
    (Op.ZOOM_BLUR, (30, 0.2)),
    (Op.MEDIAN, (5,)),
]


@pytest.mark.parametrize(("op", "args"), NEUTRAL + SMOOTHING, ids=lambda v: v.name if isinstance(v, Op) else str(v))
def test_arguments_that_change_nothing(op: Op, args: tuple[float, ...]) -> None:
    images = [np.full((30, 70, 3), 255, np.uint8)] + ([noise(), gray()] if (op, args) in NEUTRAL else [])
    for img_HWC in images:
        np.testing.assert_array_equal(run(op, img_HWC, *args), img_HWC)


@pytest.mark.parametrize("flags", [Interpolation.BILINEAR, Interpolation.BICUBIC])
def test_weights_of_interpolation_sum_up_to_one(flags: int) -> None:
    color = (255, 1, 130)
    img_HWC = np.full((20, 30, 3), color, np.uint8)
    for warp in warps(30, flags):
        np.testing.assert_array_equal(apply(warp.op, img_HWC, warp.args, flags, color), img_HWC)


@pytest.mark.parametrize(
    ("op", "args", "options", "message"),
    [
        (Op.HFLIP, (), {"out_size": (64, 81)}, r"HFLIP: the result is 64x80, the program says \(64, 81\)"),
        (Op.RESIZED_CROP, (0, 0, 64, 81, 10, 10), {}, r"box=\(0.0, 0.0, 81.0, 64.0\); accepted: .* inside the 80x64"),
        (Op.LUT, (0,), {}, "side tables"),
        (Op.GAUSSIAN_NOISE, (0, 0.1, 0), {}, "stream key"),
    ],
    ids=["size", "box", "tables", "key"],
)
def test_refusals(op: Op, args: tuple[float, ...], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        apply(op, photo(), args, **options)
