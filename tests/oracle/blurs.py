"""Weights of blurs: integers, of deep images real numbers in the same units."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.oracle.instruction import white
from variegate.program.lowering.blurs import AMOUNT_BITS, LEVEL_BITS, WEIGHT_BITS

__all__ = ["AMOUNT_BITS", "LEVEL_BITS", "WEIGHT_BITS", "half_weights", "motion_kernel", "whole_amount", "whole_weights"]

_ONE = 1 << WEIGHT_BITS
Floats = npt.NDArray[np.float64]


def _whole(weights: Any) -> Any:
    """The nearest integers, unless images are deep."""
    return np.floor(weights + 0.5) if white() == 255 else weights


def whole_weights(weights: npt.NDArray[np.float32]) -> Floats:
    """Weights of M kernels in units of 2**-14, [M, cells]; running sums are rounded, so that sum 1 stays sum 1."""
    return np.diff(_whole(weights.astype(np.float64).cumsum(axis=1) * _ONE), axis=1, prepend=0)


def whole_amount(amount: Any) -> Any:
    """In units of 2**-8."""
    return _whole(np.asarray(amount, np.float64) * (1 << AMOUNT_BITS))


def half_weights(size: int, sigma: Floats, shade: Any = 0.0) -> Floats:
    """Gaussian weights in units of 2**-15, the centre's half and those of one side: [N, size // 2 + 1], sum
    2**14 but for the share ``shade``. Sums from outside are rounded: constant images stay, small weights as well."""
    total = _whole(_ONE * (1.0 - np.broadcast_to(shade, len(sigma))))
    away = np.arange(size // 2, 0, -1) / sigma[:, None]
    outer = np.zeros((len(sigma), size // 2 + 1))
    np.cumsum(np.exp(-0.5 * away * away), axis=1, out=outer[:, 1:])
    whole = _whole(outer * (2 * total[:, None] / (2.0 * outer[:, -1:] + 1.0)))
    return np.hstack([total[:, None] - whole[:, -1:], np.diff(whole, axis=1)[:, ::-1]])


def motion_kernel(size: int, angle: Floats, direction: Floats) -> Floats:
    """Lines through the centre at ``angle`` degrees, counter-clockwise: [N, size, size], each of sum 2**14.
    Weights run linearly from (1 + direction) / 2 to (1 - direction) / 2, shared bilinearly among cells; running sums
    rounded."""
    number, half = len(angle), size // 2
    step, angle = np.arange(size) - half, np.deg2rad(angle)[:, None]
    along = np.arange(size) / (size - 1) if size > 1 else np.array([0.5])
    weight = (1.0 + direction[:, None]) / 2.0 - direction[:, None] * along
    # Cosines of 90 degrees are 6e-17, not 0: without rounding, such dust would light a neighbour cell.
    x, y = np.round(half + step * np.cos(angle), 9), np.round(half - step * np.sin(angle), 9)
    x0, y0 = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    kernel, wide = np.zeros(number * (size + 1) ** 2), size + 1
    first = np.arange(number)[:, None] * wide * wide
    for dy in (0, 1):
        for dx in (0, 1):
            share = (1.0 - np.abs(x - x0 - dx)) * (1.0 - np.abs(y - y0 - dy))
            at = first + (y0 + dy) * wide + x0 + dx
            kernel += np.bincount(at.ravel(), (weight * share).ravel(), minlength=len(kernel))
    outer = kernel.reshape(number, wide, wide)[:, :size, :size].reshape(number, -1).cumsum(axis=1)
    whole = _whole(outer * (_ONE / outer[:, -1:]))
    whole[:, 1:] -= whole[:, :-1].copy()
    return whole.reshape(number, size, size)
