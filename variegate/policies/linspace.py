"""The magnitudes of torchvision: elements of ``torch.linspace``, to the bit, without torch.

They decide pixels: with 31 bins from 0 to 32, bin 15 is a little below 16 there, and moves an image by 15 pixels.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from variegate.program.sampling import Floats


def linspace(low: Any, high: Any, full: Any, level: Any) -> Floats:
    """``torch.linspace(low, high, full + 1)[level]``: float32 numbers, as float64. Any of the four may be arrays.

    Torch steps from the nearer end and rounds every element once, since multiplication and addition are one
    instruction: so it is on every x86-64 processor with AVX2. Products and sums of such numbers are exact in float64.
    """
    first, last = np.asarray(low, np.float32), np.asarray(high, np.float32)
    step = ((last - first) / np.asarray(full, np.float32)).astype(np.float64)
    is_below = np.asarray(level) < (np.asarray(full) + 1) // 2
    value = np.where(is_below, first + step * level, last - step * (full - level))
    return np.asarray(value.astype(np.float32), np.float64)


def elements(end: Any, full: Any, fraction: Any, side: Any) -> Floats:
    """Of a linspace from 0 to ``end * side`` pixels the element at ``fraction`` of ``side``; signs are kept."""
    level = np.round(np.abs(fraction) * (full / end), 6)
    return np.asarray(np.copysign(linspace(0.0, end * side, full, level), fraction))


@functools.lru_cache(maxsize=4096)  # single images often have one size, and NumPy is slow with single numbers
def one_element(end: float, full: float, fraction: float, side: int) -> float:
    """``elements`` for one number."""
    return float(elements(end, full, fraction, side))
