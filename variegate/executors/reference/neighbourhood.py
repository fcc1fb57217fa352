"""Operations that look at neighbours: Pillow's sharpness, torchvision's Gaussian blur, motion blur along a line."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, Instruction, to_uint8
from variegate.executors.reference.values import blend

Kernel = npt.NDArray[np.float32]


def sharpness(img_HWC: Image, ins: Instruction) -> Image:
    return blend(smooth(img_HWC), img_HWC, ins.args[0])


def smooth(img_HWC: Image) -> Image:
    """Pillow's ``ImageFilter.SMOOTH``: weights 1 around 5 over 13, the outermost pixels unfiltered."""
    height, width, _ = img_HWC.shape
    if height < 3 or width < 3:
        return img_HWC
    x = img_HWC.astype(np.int64)
    total = 4 * x[1:-1, 1:-1]
    for dy in range(3):
        for dx in range(3):
            total = total + x[dy : dy + height - 2, dx : dx + width - 2]
    out = img_HWC.copy()
    # The nearest integer of total / 13, which is never a tie; Pillow gets the same in float32.
    out[1:-1, 1:-1] = (2 * total + 13) // 26
    return out


def gaussian_blur(img_HWC: Image, ins: Instruction) -> Image:
    kernel_x, kernel_y = ins.integers(2)
    kernel = np.outer(gaussian_weights(kernel_y, ins.args[3]), gaussian_weights(kernel_x, ins.args[2]))
    return np.clip(np.rint(_correlate(img_HWC, kernel, "reflect")), 0, 255).astype(np.uint8)


def motion_blur(img_HWC: Image, ins: Instruction) -> Image:
    kernel = motion_kernel(int(ins.args[0]), ins.args[1], ins.args[2])
    return to_uint8(np.floor(_correlate(img_HWC, kernel, "edge") + 0.5))


def gaussian_weights(size: int, sigma: float) -> Kernel:
    """float32[size], size odd: ``exp(-0.5 (i / sigma)**2)`` about the middle, summing to 1."""
    i = np.arange(size, dtype=np.float64) - size // 2
    # The nearest tap is 1 whatever sigma is, so that the sum cannot vanish.
    w = np.exp(-0.5 * (i / sigma) ** 2)
    return (w / w.sum()).astype(np.float32)


def motion_kernel(size: int, angle: float, direction: float) -> Kernel:
    """float32[size, size], size odd, summing to 1: a line through the middle at ``angle`` degrees counter-clockwise.

    Step i = -size // 2 .. size // 2 along the line lies in the cell ``floor(i cos + 0.5 - 2**-20)`` right and
    ``floor(i sin + 0.5 - 2**-20)`` up of the middle and weighs from (1 + direction) / 2 for the first step to
    (1 - direction) / 2 for the last; steps that share a cell add up.
    """
    half = size // 2
    radians = math.radians(angle)
    kernel = np.zeros((size, size), np.float64)
    for step in range(size):
        along = step / (size - 1) if size > 1 else 0.5
        weight = (1 + direction) / 2 * (1 - along) + (1 - direction) / 2 * along
        right, up = (_nearest_cell((step - half) * v) for v in (math.cos(radians), math.sin(radians)))
        kernel[half - up, half + right] += weight
    return (kernel / kernel.sum()).astype(np.float32)


def _nearest_cell(v: float) -> int:
    # Halves (at 30 and 60 degrees) would fall by the last bit of the cosine; the small bias decides them.
    return math.floor(v + 0.5 - 2.0**-20)


def _correlate(img_HWC: Image, kernel: Kernel, padding: str) -> npt.NDArray[np.float64]:
    height, width, _ = img_HWC.shape
    down, right = (size // 2 for size in kernel.shape)
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=padding)  # type: ignore[call-overload]
    total = np.zeros(img_HWC.shape, np.float64)
    for (dy, dx), weight in np.ndenumerate(kernel):
        if weight:
            total += float(weight) * padded[dy : dy + height, dx : dx + width]
    return total
