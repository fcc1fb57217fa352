"""Operations that look at neighbours: Pillow's sharpness, torchvision's Gaussian blur, motion blur along a line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, Instruction, to_uint8
from variegate.executors.reference.values import blend
from variegate.program.lowering.blurs import gaussian_kernel, motion_kernel


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
    kernel = np.outer(gaussian_kernel(kernel_y, ins.args[3]), gaussian_kernel(kernel_x, ins.args[2]))
    return to_uint8(np.rint(_correlate(img_HWC, kernel, "reflect")))


def motion_blur(img_HWC: Image, ins: Instruction) -> Image:
    kernel = motion_kernel(int(ins.args[0]), ins.args[1], ins.args[2])
    return to_uint8(np.floor(_correlate(img_HWC, kernel, "edge") + 0.5))


def _correlate(img_HWC: Image, kernel: npt.NDArray[np.float32], padding: str) -> npt.NDArray[np.float64]:
    height, width, _ = img_HWC.shape
    down, right = (size // 2 for size in kernel.shape)
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=padding)  # type: ignore[call-overload]
    total = np.zeros(img_HWC.shape, np.float64)
    for (dy, dx), weight in np.ndenumerate(kernel):
        if weight:
            total += float(weight) * padded[dy : dy + height, dx : dx + width]
    return total
