"""The plain executor's sharpness against Pillow and its blurs against torch's convolution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.ImageFilter import MedianFilter

from tests.images import noise, photo, sized_images
from tests.oracle import apply
from tests.pillow_oracle import run_pillow
from variegate.program.ops import Op

IMAGES = sized_images()
EVERY_IMAGE = pytest.mark.parametrize("name", IMAGES)


@EVERY_IMAGE
def test_sharpness(name: str) -> None:
    for factor in (0.0, 0.1, 0.73, 1.0, 1.27, 1.9, 3.5):
        expected = run_pillow("SHARPNESS", IMAGES[name], factor)
        np.testing.assert_array_equal(apply(Op.SHARPNESS, IMAGES[name], (factor,)), expected, err_msg=str(factor))


def _convolved(img_HWC: np.ndarray, kernel: torch.Tensor, mode: str) -> np.ndarray:
    """float64 [H, W, C] by torch: padded by indices (torch refuses wide reflections), then conv2d per channel."""
    down, right = kernel.shape[0] // 2, kernel.shape[1] // 2
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=mode)  # type: ignore[call-overload]
    planes = torch.from_numpy(padded).permute(2, 0, 1)[:, None].double()
    out = torch.nn.functional.conv2d(planes, kernel[None, None].double())
    return out[:, 0].permute(1, 2, 0).numpy()


def _torchvision_weights(size: int, sigma: float) -> torch.Tensor:
    """torchvision's ``_get_gaussian_kernel1d``: a softmax, in float32."""
    end = (size - 1) / (2.0 * 2.0**0.5)
    return torch.softmax(-((torch.linspace(-end, end, size) / sigma) ** 2), dim=0)


@EVERY_IMAGE
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
def test_gaussian_blur(name: str, size: tuple[int, int], sigma: tuple[float, float]) -> None:
    along_x, along_y = (_torchvision_weights(*each) for each in zip(size, sigma, strict=True))
    # One after the other, in double: torch takes half a minute for their product, and gigabytes.
    expected = _convolved(_convolved(IMAGES[name], along_y[:, None], "reflect"), along_x[None, :], "reflect")
    out = apply(Op.GAUSSIAN_BLUR, IMAGES[name], (*size, *sigma))
    # Sums of outer weights are off by 2**-16 at most, on either side, and so much of every step between two pixels that
    # follow each other gets lost: of a photo, or of noise, far less than if each were 255. Levels between the passes
    # are off by 2**-7 at most.
    assert np.abs(out - expected).max() <= 0.5 + sum(size) * 255 * 2.0**-16 + 2.0**-7 + 1e-4
    assert np.abs(out.astype(int) - np.rint(expected)).max() <= 1


@pytest.mark.parametrize("img_HWC", [noise(40, 50), photo(40, 50)], ids=["noise", "photo"])
@pytest.mark.parametrize(("size", "sigma"), [(5, 0.8), (7, 1.4), (23, 1.9)])
def test_gaussian_blur_agrees_with_torchvisions_float32(img_HWC: np.ndarray, size: int, sigma: float) -> None:
    kernel = torch.outer(_torchvision_weights(size, sigma), _torchvision_weights(size, sigma)).expand(3, 1, size, size)
    planes = torch.from_numpy(img_HWC).permute(2, 0, 1)[None].float()
    padded = torch.nn.functional.pad(planes, (size // 2,) * 4, "reflect")
    expected = torch.nn.functional.conv2d(padded, kernel, groups=3).round().byte()[0].permute(1, 2, 0).numpy()
    out = apply(Op.GAUSSIAN_BLUR, img_HWC, (size, size, sigma, sigma))
    # Levels with 6 fraction bits between the passes: values within 2**-7 of a half, and no others, may round otherwise.
    assert (out != expected).mean() < 0.02
    assert np.abs(out.astype(int) - expected).max() <= 1


def _line(size: int, angle: float, direction: float) -> torch.Tensor:
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


@EVERY_IMAGE
@pytest.mark.parametrize(("size", "angle", "direction"), [(3, 0, 0.0), (5, 90, 1.0), (7, 37, -0.4), (9, 225, 0.6)])
def test_motion_blur(name: str, size: int, angle: float, direction: float) -> None:
    expected = _convolved(IMAGES[name], _line(size, angle, direction), "edge")
    out = apply(Op.MOTION_BLUR, IMAGES[name], (size, angle, direction))
    # Weights are off by less than 2**-14 each, at most four a point of the line, and sum to one.
    assert np.abs(out - expected).max() <= 0.5 + 2 * size * 255 * 2.0**-14
    assert np.abs(out.astype(int) - np.floor(expected + 0.5)).max() <= 1


def test_motion_blur_smears_along_its_angle() -> None:
    dot = np.zeros((9, 9, 1), np.uint8)
    dot[4, 4] = 255
    rows, columns, _ = np.nonzero(apply(Op.MOTION_BLUR, dot, (5, 90, 0.0)))
    assert set(rows) == {2, 3, 4, 5, 6}
    assert set(columns) == {4}


@EVERY_IMAGE
@pytest.mark.parametrize("size", [3, 5, 7])
def test_median(name: str, size: int) -> None:
    """Pillow's MedianFilter, which is OpenCV's medianBlur."""
    channels = [Image.fromarray(channel).filter(MedianFilter(size)) for channel in np.moveaxis(IMAGES[name], 2, 0)]
    np.testing.assert_array_equal(apply(Op.MEDIAN, IMAGES[name], (size,)), np.stack(channels, axis=2))


@pytest.mark.parametrize(
    "op_args", [(Op.MEDIAN, (1,)), (Op.GAUSSIAN_BLUR, (1, 1, 1.0, 1.0)), (Op.MOTION_BLUR, (1, 30.0, 0.5))]
)
def test_kernels_of_one_pixel_change_nothing(op_args: tuple[Op, tuple[float, ...]]) -> None:
    op, args = op_args
    np.testing.assert_array_equal(apply(op, noise(), args), noise())
