"""Operations that look at neighbours: Pillow's sharpness, torchvision's Gaussian blur, motion blur, medians."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, Instruction, to_uint8
from variegate.executors.reference.values import blend
from variegate.program.lowering.blurs import (
    AMOUNT_BITS,
    LEVEL_BITS,
    WEIGHT_BITS,
    half_weights,
    motion_kernel,
    whole_amount,
    whole_weights,
)

Ints = npt.NDArray[np.int64]


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
    """Columns first; between the passes levels keep LEVEL_BITS fraction bits."""
    kernel_x, kernel_y = ins.integers(2)
    along_y, along_x = _mirrored(kernel_y, ins.args[3]), _mirrored(kernel_x, ins.args[2])
    columns = _rounded(_correlate(img_HWC.astype(np.int64), along_y[:, None], "reflect"), WEIGHT_BITS + 1 - LEVEL_BITS)
    whole = _rounded(_correlate(columns, along_x[None, :], "reflect"), WEIGHT_BITS + 1 + LEVEL_BITS)
    return whole.astype(np.uint8)


def motion_blur(img_HWC: Image, ins: Instruction) -> Image:
    kernel = motion_kernel(int(ins.args[0]), ins.args[1:2], ins.args[2:3])[0]
    return _rounded(_correlate(img_HWC.astype(np.int64), kernel, "edge"), WEIGHT_BITS).astype(np.uint8)


def filtered(img_HWC: Image, ins: Instruction) -> Image:
    """Sum of the image filtered by several kernels, each result clipped to levels."""
    first, size_x, size_y, count = ins.integers(4)
    weights = ins.side_tables().filters[first : first + size_x * size_y * count]
    total = np.zeros(img_HWC.shape, np.int64)
    for kernel in whole_weights(weights.reshape(count, -1)).reshape(count, size_y, size_x):
        total += to_uint8(_rounded(_correlate(img_HWC.astype(np.int64), kernel, "edge"), WEIGHT_BITS))
    return to_uint8(total)


def unsharp_mask(img_HWC: Image, ins: Instruction) -> Image:
    """Add the difference to the blurred image, times the amount, where it is more than the threshold."""
    away = img_HWC.astype(np.int64) - gaussian_blur(img_HWC, ins)
    added = _rounded(away * whole_amount(ins.args[4]), AMOUNT_BITS)
    return to_uint8(img_HWC + np.where(np.abs(away) > ins.args[5], added, 0))


def median(img_HWC: Image, ins: Instruction) -> Image:
    """The middle one of the levels in a square window."""
    (size,) = ins.integers(1)
    height, width, _ = img_HWC.shape
    padded = np.pad(img_HWC, ((size // 2,) * 2, (size // 2,) * 2, (0, 0)), mode="edge")
    around = [padded[dy : dy + height, dx : dx + width] for dy in range(size) for dx in range(size)]
    middle: Image = np.sort(np.stack(around), axis=0)[size * size // 2]
    return middle


def _mirrored(size: int, sigma: float) -> Ints:
    """int64[size], of sum 2**15."""
    half = half_weights(size, np.array([sigma]))[0]
    return np.concatenate([half[:0:-1], 2 * half[:1], half[1:]])


def _rounded(total: Ints, bits: int) -> Ints:
    """Divided by ``2**bits``, half up."""
    return (total + (1 << (bits - 1))) >> bits


def _correlate(img_HWC: Ints, kernel: Ints, padding: str) -> Ints:
    height, width, _ = img_HWC.shape
    down, right = (size // 2 for size in kernel.shape)
    padded = np.pad(img_HWC, ((down, down), (right, right), (0, 0)), mode=padding)  # type: ignore[call-overload]
    total = np.zeros_like(img_HWC)
    for (dy, dx), weight in np.ndenumerate(kernel):
        if weight:
            total += weight * padded[dy : dy + height, dx : dx + width]
    return total
