"""The plain executor's sharpness against Pillow and its blurs against torch's convolution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.images import noise, sized_images
from tests.pillow_oracle import oracle
from variegate.executors.reference import apply
from variegate.program.ops import Op

IMAGES = sized_images()
EVERY_IMAGE = pytest.mark.parametrize("name", IMAGES)


@EVERY_IMAGE
def test_sharpness(name: str) -> None:
    for factor in (0.0, 0.1, 0.73, 1.0, 1.27, 1.9, 3.5):
        expected = oracle("SHARPNESS", IMAGES[name], factor)
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
    ("size", "sigma"), [((3, 3), (0.8, 0.8)), ((5, 3), (1.1, 0.5)), ((9, 9), (2.0, 2.0)), ((23, 1), (0.1, 5.0))]
)
def test_gaussian_blur(name: str, size: tuple[int, int], sigma: tuple[float, float]) -> None:
    kernel = torch.outer(_torchvision_weights(size[1], sigma[1]), _torchvision_weights(size[0], sigma[0]))
    expected = _convolved(IMAGES[name], kernel, "reflect")
    out = apply(Op.GAUSSIAN_BLUR, IMAGES[name], (*size, *sigma))
    # Weights that differ in float32's last bit move a value by less than 255 * 2e-7 * 2, which may cross a half.
    assert np.abs(out - expected).max() <= 0.5 + 1e-4


def test_gaussian_blur_agrees_with_torchvisions_float32() -> None:
    img_HWC = noise(40, 50)
    kernel = torch.outer(_torchvision_weights(7, 1.4), _torchvision_weights(7, 1.4)).expand(3, 1, 7, 7)
    planes = torch.nn.functional.pad(torch.from_numpy(img_HWC).permute(2, 0, 1)[None].float(), (3, 3, 3, 3), "reflect")
    expected = torch.nn.functional.conv2d(planes, kernel, groups=3).round().byte()[0].permute(1, 2, 0).numpy()
    out = apply(Op.GAUSSIAN_BLUR, img_HWC, (7, 7, 1.4, 1.4))
    # torchvision sums 49 products in float32, so that values within 1e-4 of a half may round the other way.
    differs = out != expected
    assert differs.mean() < 1e-3
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
    # The executor's weights are rounded to float32, which may carry a value across a half.
    assert np.abs(out - expected).max() <= 0.5 + 1e-4


def test_motion_blur_smears_along_its_angle() -> None:
    dot = np.zeros((9, 9, 1), np.uint8)
    dot[4, 4] = 255
    rows, columns, _ = np.nonzero(apply(Op.MOTION_BLUR, dot, (5, 90, 0.0)))
    assert set(rows) == {2, 3, 4, 5, 6}
    assert set(columns) == {4}


@pytest.mark.parametrize("op_args", [(Op.GAUSSIAN_BLUR, (1, 1, 1.0, 1.0)), (Op.MOTION_BLUR, (1, 30.0, 0.5))])
def test_kernels_of_one_pixel_change_nothing(op_args: tuple[Op, tuple[float, ...]]) -> None:
    op, args = op_args
    np.testing.assert_array_equal(apply(op, noise(), args), noise())
