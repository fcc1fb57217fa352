"""References: what images are matched to, a few integers of each channel of another image.

Of a channel, first the shares of pixels at or below each of the 256 levels, in units of 1 / WHOLE; then mean, standard
deviation, lowest and highest level in units of 1 / LEVEL. Integers, so that every executor makes the same tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

METHODS = ("histogram", "standard", "minmax")
HISTOGRAM, STANDARD, MINMAX = range(len(METHODS))
WHOLE, LEVEL = 32_767, 128
# Where these begin in a channel's part, and its length.
MEAN, DEVIATION, LOW, HIGH, REFERENCE = 256, 257, 258, 259, 260


def reference_of(levels: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """The part int16[REFERENCE] of a channel."""
    counts = np.bincount(levels.reshape(-1), minlength=256)
    used = np.flatnonzero(counts)
    part = np.empty(REFERENCE, np.int16)
    part[:256] = (2 * counts.cumsum() * WHOLE + levels.size) // (2 * levels.size)
    numbers: list[Any] = [levels.mean(), levels.std(), used[0], used[-1]]
    part[256:] = np.floor(np.array(numbers, np.float64) * LEVEL + 0.5)
    return part
