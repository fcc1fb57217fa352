"""References: what images are matched to, a few numbers of each channel of another image.

Of a channel, first the shares of pixels at or below each of the 256 levels, in units of 1 / WHOLE; then mean, standard
deviation, lowest and highest level in units of 1 / LEVEL; and one of the principal axes of all three, in units of
1 / WHOLE. Integers, so that every executor makes the same tables. For FDA, the spectrum of the channel instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

METHODS = ("histogram", "standard", "minmax")
HISTOGRAM, STANDARD, MINMAX = range(len(METHODS))
WHOLE, LEVEL = 32_767, 128
# Where these begin in a channel's part, and its length.
MEAN, DEVIATION, LOW, HIGH, AXIS, REFERENCE = 256, 257, 258, 259, 260, 263
# Cycles per image, along either side, that a spectrum ends before; and its length.
CYCLES = 64
SPECTRUM = (2 * CYCLES - 1) * CYCLES
Floats = npt.NDArray[np.float64]


def reference_of(levels: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """The part int16[REFERENCE] of a channel, without an axis."""
    counts = np.bincount(levels.reshape(-1), minlength=256)
    used = np.flatnonzero(counts)
    part = np.zeros(REFERENCE, np.int16)
    part[:256] = (2 * counts.cumsum() * WHOLE + levels.size) // (2 * levels.size)
    numbers: list[Any] = [levels.mean(), levels.std(), used[0], used[-1]]
    part[MEAN:AXIS] = np.floor(np.array(numbers, np.float64) * LEVEL + 0.5)
    return part


def axes_of(planes: Floats) -> Floats:
    """Levels [3, pixels] -> their principal axes [axis, channel], that of the least variance first."""
    mean, products = planes.mean(axis=1), np.einsum("in,jn->ij", planes, planes) / planes.shape[1]
    # Equal variances would leave the axes to rounding errors.
    return np.linalg.eigh(products - np.outer(mean, mean) + np.diag([0.0, 1e-6, 2e-6])).eigenvectors.T


def low_frequencies(planes: Floats, down: int, across: int) -> npt.NDArray[np.complex128]:
    """Fourier coefficients of [..., H, W] below so many cycles per image, [..., 2 * down - 1, across], in levels.

    Lines are of 1 - down to down - 1 cycles, columns of 0 to across - 1, as those of the others are their conjugates.
    """
    lines = np.fft.rfft(planes)[..., :across]
    return np.fft.fft(lines, axis=-2)[..., np.arange(1 - down, down), :] / (planes.shape[-2] * planes.shape[-1])


def spectrum_of(levels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
    """The amplitudes [2 * CYCLES - 1, CYCLES] of a channel; -1 for frequencies that its pixels cannot hold."""
    spectrum = np.full((2 * CYCLES - 1, CYCLES), -1.0, np.float16)
    down, across = (min((side + 1) // 2, CYCLES) for side in levels.shape)
    low = low_frequencies(levels.astype(np.float64), down, across)
    spectrum[CYCLES - down : CYCLES + down - 1, :across] = np.sqrt(low.real**2 + low.imag**2)
    return spectrum
