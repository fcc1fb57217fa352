"""Output -> input matrices of the affine and perspective families, one per row (conventions: torchvision on PIL)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def inverse_affine(
    center: npt.ArrayLike,
    angle: npt.ArrayLike,
    translate: npt.ArrayLike,
    scale: npt.ArrayLike,
    shear: npt.ArrayLike,
) -> Floats:
    """Pillow's six coefficients of torchvision's ``affine``: float64[R, 6].

    ``center``, ``translate`` and ``shear`` are [R, 2] in x, y order, ``angle`` and ``scale`` [R]; all broadcast.
    Positive angles turn clockwise here and shears are in degrees, as in torchvision's ``_get_inverse_affine_matrix``.
    """
    cx, cy = _xy(center)
    tx, ty = _xy(translate)
    shear_x, shear_y = _xy(np.radians(np.asarray(shear, np.float64)))
    turn = np.radians(np.asarray(angle, np.float64))
    factor = np.asarray(scale, np.float64)
    # Forward, without scale: R(angle) * ShearY * ShearX; its determinant is 1.
    a = np.cos(turn - shear_y) / np.cos(shear_y)
    b = -np.cos(turn - shear_y) * np.tan(shear_x) / np.cos(shear_y) - np.sin(turn)
    c = np.sin(turn - shear_y) / np.cos(shear_y)
    d = -np.sin(turn - shear_y) * np.tan(shear_x) / np.cos(shear_y) + np.cos(turn)
    m0, m1, m3, m4 = d / factor, -b / factor, -c / factor, a / factor
    # The order of these sums is torchvision's, so that nearest neighbours agree on ties.
    m2 = (0.0 + (m0 * (-cx - tx) + m1 * (-cy - ty))) + cx
    m5 = (0.0 + (m3 * (-cx - tx) + m4 * (-cy - ty))) + cy
    return np.stack(np.broadcast_arrays(m0, m1, m2, m3, m4, m5), axis=-1)


def stretch(center: npt.ArrayLike, factor_x: npt.ArrayLike, factor_y: npt.ArrayLike) -> Floats:
    """Coefficients [R, 6] of content ``factor_x`` times as wide and ``factor_y`` times as high about ``center``."""
    cx, cy = _xy(center)
    inverse_x, inverse_y = 1.0 / np.asarray(factor_x, np.float64), 1.0 / np.asarray(factor_y, np.float64)
    zero = np.zeros(())
    return np.stack(
        np.broadcast_arrays(inverse_x, zero, cx - cx * inverse_x, zero, inverse_y, cy - cy * inverse_y), axis=-1
    )


def perspective_coefficients(start: npt.ArrayLike, end: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Pillow's eight coefficients that move the corners ``start`` to ``end``, both [R, 4, 2] of x, y.

    Returns float64[R, 8], rounded to float32 as torchvision's are, and bool[R]: whether they exist. They do not where
    three of the corners are in line (images of one pixel's width, or corners that met): such rows hold the identity.
    """
    start, end = np.asarray(start, np.float64), np.asarray(end, np.float64)
    valid = _is_quadrilateral(start) & _is_quadrilateral(end)
    x, y = end[..., 0], end[..., 1]
    one, zero = np.ones_like(x), np.zeros_like(x)
    matrix = np.empty((*x.shape[:-1], 8, 8))
    matrix[..., 0::2, :] = np.stack([x, y, one, zero, zero, zero, -start[..., 0] * x, -start[..., 0] * y], axis=-1)
    matrix[..., 1::2, :] = np.stack([zero, zero, zero, x, y, one, -start[..., 1] * x, -start[..., 1] * y], axis=-1)
    target = start.reshape(*start.shape[:-2], 8)
    matrix[~valid] = np.eye(8)
    target[~valid] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    solved = np.linalg.solve(matrix, target[..., None])[..., 0]
    return solved.astype(np.float32).astype(np.float64), valid


def _is_quadrilateral(corners: Floats) -> npt.NDArray[np.bool_]:
    """Whether no three of the corners [R, 4, 2] are in line."""
    ok = np.ones(corners.shape[:-2], np.bool_)
    for skipped in range(4):
        p, q, r = (corners[..., i, :] for i in range(4) if i != skipped)
        ok &= (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) != (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])
    return ok


def rotated_size(
    size: npt.ArrayLike, angle: npt.ArrayLike, center: tuple[float, float] | None
) -> npt.NDArray[np.int32]:
    """Height and width int32[R, 2] of Pillow's ``Image.rotate(angle, expand=True, center=center)``."""
    sizes = np.asarray(size)
    angles = np.broadcast_to(np.asarray(angle, np.float64), len(sizes))
    rotated = [_rotated_size(int(h), int(w), float(a), center) for (h, w), a in zip(sizes, angles, strict=True)]
    return np.array(rotated, np.int32).reshape(-1, 2)


def _rotated_size(height: int, width: int, angle: float, center: tuple[float, float] | None) -> tuple[int, int]:
    angle %= 360.0
    if center is None:
        if angle in (0.0, 180.0):
            return height, width
        if angle in (90.0, 270.0):
            return width, height
    cx, cy = (width / 2, height / 2) if center is None else center
    # Pillow rounds these to 15 decimals; a corner that falls on a whole pixel depends on it.
    cos, sin = round(math.cos(-math.radians(angle)), 15), round(math.sin(-math.radians(angle)), 15)
    x0, y0 = cos * -cx + sin * -cy + 0.0 + cx, -sin * -cx + cos * -cy + 0.0 + cy
    corners = ((0, 0), (width, 0), (width, height), (0, height))
    xs = [cos * x + sin * y + x0 for x, y in corners]
    ys = [-sin * x + cos * y + y0 for x, y in corners]
    return math.ceil(max(ys)) - math.floor(min(ys)), math.ceil(max(xs)) - math.floor(min(xs))


def _xy(pair: npt.ArrayLike) -> tuple[Floats, Floats]:
    array = np.asarray(pair, np.float64)
    return array[..., 0], array[..., 1]
