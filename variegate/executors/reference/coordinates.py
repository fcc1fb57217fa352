"""Places that nearest maps read: Pillow's three affine paths, and perspective (other maps: ``places.py``).

Source of the behaviour: Pillow 13 ``src/libImaging/Geometry.c``. Coordinates are returned per output pixel as
``x_HW, y_HW``; indices of the nearest paths may lie outside the source, which means the fill colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]

FIXED_LIMIT = 32768.0  # 16.16 fixed point holds coordinates of less than this magnitude
_OUTSIDE = -1


def nearest_affine(matrix: Sequence[float], height: int, width: int) -> tuple[Indices, Indices]:
    """Source pixel of each pixel of a ``height x width`` output under (a..f), as Pillow's nearest affine picks it."""
    a, b, c, d, e, f = matrix
    if b == 0 and d == 0:
        x_W = _accumulate(c + a * 0.5, a, width)
        y_H = _accumulate(f + e * 0.5, e, height)
        return tuple(np.meshgrid(_truncate(x_W), _truncate(y_H)))  # type: ignore[return-value]
    if _fits_fixed_point(matrix, height, width):
        return _fixed_affine(matrix, height, width)
    return _accumulated_affine(matrix, height, width)


def double_perspective(coefficients: Sequence[float], height: int, width: int) -> tuple[Floats, Floats]:
    """Source point of each output pixel's centre under the eight coefficients; not finite where it divides by 0."""
    a, b, c, d, e, f, g, h = coefficients
    x, y = _pixel_centres(height, width)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = g * x + h * y + 1
        return (a * x + b * y + c) / below, (d * x + e * y + f) / below


def _pixel_centres(height: int, width: int) -> tuple[Floats, Floats]:
    return np.arange(width)[None, :] + 0.5, np.arange(height)[:, None] + 0.5


def _truncate(v: Floats) -> Indices:
    # Truncation alone would read pixel 0 for coordinates in (-1, 0).
    return np.where((v >= 0) & (v < 2**31), v, _OUTSIDE).astype(np.int64)


def _accumulate(start: float, step: float, count: int) -> Floats:
    # Pillow adds the step from pixel to pixel; a product would round differently and move borders of pixels.
    return np.add.accumulate(np.concatenate([[start], np.full(count - 1, step)]))


def _fits_fixed_point(matrix: Sequence[float], height: int, width: int) -> bool:
    a, b, c, d, e, f = matrix
    corners = [(0, 0), (width, height), (0, height), (width, 0)]
    return all(abs(x * a + y * b + c) < FIXED_LIMIT and abs(x * d + y * e + f) < FIXED_LIMIT for x, y in corners)


def _fixed_affine(matrix: Sequence[float], height: int, width: int) -> tuple[Indices, Indices]:
    a, b, c, d, e, f = matrix
    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    x_fixed = _fix(c + a * 0.5 + b * 0.5) + _fix(a) * x + _fix(b) * y
    y_fixed = _fix(f + d * 0.5 + e * 0.5) + _fix(d) * x + _fix(e) * y
    return x_fixed >> 16, y_fixed >> 16


def _fix(v: float) -> int:
    return math.floor(v * 65536.0 + 0.5)


def _accumulated_affine(matrix: Sequence[float], height: int, width: int) -> tuple[Indices, Indices]:
    a, b, c, d, e, f = matrix
    x_H = _accumulate(c + b * 0.5 + a * 0.5, b, height)
    y_H = _accumulate(f + e * 0.5 + d * 0.5, e, height)
    x_HW = np.add.accumulate(np.column_stack([x_H, np.full((height, width - 1), a)]), axis=1)
    y_HW = np.add.accumulate(np.column_stack([y_H, np.full((height, width - 1), d)]), axis=1)
    return _truncate(x_HW), _truncate(y_HW)
