"""Operations that need a statistic of the image (as in Pillow 13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.oracle.instruction import Image, Instruction, to_pixels, white
from tests.oracle.values import blend, luma

Ints = npt.NDArray[np.int64]


def contrast(img_HWC: Image, ins: Instruction) -> Image:
    """Blend with the mean of the luma, ``int(mean + 0.5)``, as Pillow's ``ImageEnhance.Contrast``."""
    gray = luma(img_HWC)
    mean = int(gray.sum(dtype=np.int64)) / gray.size
    if white() == 255:
        mean = int(mean + 0.5)
    return blend(mean, img_HWC, ins.args[0])


def autocontrast(img_HWC: Image, _: Instruction) -> Image:
    """Stretch each channel from its lowest and highest level to 0 and 255, as Pillow's ``ImageOps.autocontrast``."""
    if white() != 255:
        low, high = img_HWC.min(axis=(0, 1)), img_HWC.max(axis=(0, 1))
        scale = white() / np.maximum(high - low, 1)
        return to_pixels(np.where(low == high, img_HWC, (img_HWC - low) * scale))
    return _per_channel(img_HWC, _table_of_extremes)


def percentile_stretch(img_HWC: Image, ins: Instruction) -> Image:
    """Stretch each channel to 0..255 from the value above its ``low`` percent smallest values to the value below its
    ``100 - high`` percent greatest, as Pillow's ``ImageOps.autocontrast(cutoff=(low, 100 - high))``."""
    low, high = ins.args[:2].tolist()
    channels = []
    for c in range(img_HWC.shape[2]):
        values = np.sort(img_HWC[..., c].reshape(-1))
        first = int(values[int(values.size * low // 100)])
        last = int(values[-1 - int(values.size * (100 - high) // 100)])
        if white() == 255:
            channels.append(_stretching_table(first, last)[img_HWC[..., c]])
        else:
            stretched = (img_HWC[..., c] - first) * (white() / max(last - first, 1))
            channels.append(img_HWC[..., c] if first == last else stretched)
    return to_pixels(np.stack(channels, axis=-1))


def equalize(img_HWC: Image, _: Instruction) -> Image:
    """Equalize the histogram of each channel, as Pillow's ``ImageOps.equalize``."""
    if white() != 255:
        # Through uint8, as in torchvision, which shifts integers.
        is_16_bit = white() == 65535
        levels = img_HWC >> 8 if is_16_bit else (img_HWC / white() * 255.999).astype(np.int64)
        return to_pixels(_per_channel(levels, _equalizing_table) * np.int64(256 if is_16_bit else white() // 255))
    return _per_channel(img_HWC, _equalizing_table)


def _per_channel(img_HWC: Image, make_table: Callable[[Ints], npt.NDArray[np.uint8]]) -> Image:
    out = np.empty_like(img_HWC)
    for c in range(img_HWC.shape[2]):
        histogram = np.bincount(img_HWC[..., c].reshape(-1), minlength=256)
        out[..., c] = make_table(histogram)[img_HWC[..., c]]
    return out


def _table_of_extremes(histogram: Ints) -> npt.NDArray[np.uint8]:
    used = np.flatnonzero(histogram)
    return _stretching_table(int(used[0]), int(used[-1]))


def _stretching_table(low: int, high: int) -> npt.NDArray[np.uint8]:
    if low == high:
        return np.arange(256, dtype=np.uint8)
    scale = 255.0 / (high - low)
    return to_pixels(np.arange(256) * scale + -low * scale)


def _equalizing_table(histogram: Ints) -> npt.NDArray[np.uint8]:
    used = np.flatnonzero(histogram)
    step = int(histogram.sum() - histogram[used[-1]]) // 255
    if len(used) <= 1 or step == 0:
        return np.arange(256, dtype=np.uint8)
    before = np.cumsum(histogram) - histogram
    return np.clip((step // 2 + before) // step, 0, 255).astype(np.uint8)
