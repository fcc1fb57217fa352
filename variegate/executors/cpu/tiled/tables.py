"""Where nearest scales and pads that repeat the image read: see ``program/coordinate_tables.py``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.program.ops import PadMode

Indices = npt.NDArray[np.int64]


def scale_indices(start: float, step: float, in_size: int, size: int) -> Indices:
    """Of ``size`` outputs; -1 outside. The step is added up, as Pillow adds it."""
    at = np.full(size, step)
    at[0] = start + step * 0.5
    at = np.add.accumulate(at)
    inside = (at >= 0.0) & (at < in_size)
    return np.where(inside, np.where(inside, at, 0.0).astype(np.int64), -1)


def pad_indices(before: int, mode: int, in_size: int, size: int) -> Indices:
    """Of edge, reflect or symmetric padding, repeated where it is wider than the image."""
    at = np.arange(size, dtype=np.int64) - before
    if mode == PadMode.EDGE:
        return at.clip(0, in_size - 1)
    if mode == PadMode.REFLECT:
        return reflected(at, in_size)
    at %= 2 * in_size
    return np.where(at >= in_size, 2 * in_size - 1 - at, at)


def reflected(at: Indices, size: int) -> Indices:
    """Mirrored into 0..size-1 about the border pixels, repeatedly."""
    if size == 1:
        return np.zeros_like(at)
    period = 2 * (size - 1)
    at = np.abs(at) % period
    return np.where(at >= size, period - at, at)
