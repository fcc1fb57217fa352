"""Output -> input matrices of the affine and perspective families, one per row (conventions: torchvision on PIL)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Point = Sequence[float]
Point3 = tuple[float, float, float]


def inverse_affine(
    center: npt.ArrayLike, angle: npt.ArrayLike, translate: npt.ArrayLike, scale: npt.ArrayLike, shear: npt.ArrayLike
) -> Floats:
    """Pillow's six coefficients of torchvision's ``affine``: float64[R, 6].

    ``center``, ``translate`` and ``shear`` are [R, 2] in x, y order, ``angle`` and ``scale`` [R]; all broadcast.
    Positive angles turn clockwise here and shears are in degrees, as in torchvision's ``_get_inverse_affine_matrix``.
    """
    matrix = inverse_affine_of(
        _xy(center), np.asarray(angle, np.float64), _xy(translate), np.asarray(scale, np.float64), _xy(shear)
    )
    return np.stack(np.broadcast_arrays(*matrix), axis=-1)


def plain_or_array(value: Any) -> Any:
    """A function that makes plain numbers of NumPy's, where ``value`` is one; NumPy's sines are not ``math``'s."""
    return float if isinstance(value, (int, float)) else np.asarray


def inverse_affine_of(center: Any, angle: Any, translate: Any, scale: Any, shear: Any) -> list[Any]:
    """The six coefficients of ``inverse_affine``, each an array or a number as the arguments are. ``center``,
    ``translate`` and ``shear`` are pairs (x, y) of those."""
    (cx, cy), (tx, ty) = center, translate
    kind = plain_or_array(angle)
    shear_x, shear_y, turn = kind(np.radians(shear[0])), kind(np.radians(shear[1])), kind(np.radians(angle))
    cos, sin, cos_y = kind(np.cos(turn - shear_y)), kind(np.sin(turn - shear_y)), kind(np.cos(shear_y))
    tan = kind(np.tan(shear_x))
    # Forward, without scale: R(angle) * ShearY * ShearX; its determinant is 1.
    a, c = cos / cos_y, sin / cos_y
    b, d = -cos * tan / cos_y - kind(np.sin(turn)), -sin * tan / cos_y + kind(np.cos(turn))
    m0, m1, m3, m4 = d / scale, -b / scale, -c / scale, a / scale
    # The order of these sums is torchvision's, so that nearest neighbours agree on ties.
    m2 = (0.0 + (m0 * (-cx - tx) + m1 * (-cy - ty))) + cx
    m5 = (0.0 + (m3 * (-cx - tx) + m4 * (-cy - ty))) + cy
    return [m0, m1, m2, m3, m4, m5]


def inverse_rotated_then_sheared(
    center: npt.ArrayLike, angle: npt.ArrayLike, translate: npt.ArrayLike, scale: npt.ArrayLike, shear: npt.ArrayLike
) -> Floats:
    """``inverse_affine`` with Albumentations' order: rotated, then sheared along both axes at once, which changes areas
    by 1 - tan(x) * tan(y)."""
    matrix = inverse_rotated_then_sheared_of(
        _xy(center), np.asarray(angle, np.float64), _xy(translate), np.asarray(scale, np.float64), _xy(shear)
    )
    return np.stack(np.broadcast_arrays(*matrix), axis=-1)


def inverse_rotated_then_sheared_of(center: Any, angle: Any, translate: Any, scale: Any, shear: Any) -> list[Any]:
    """Its six coefficients, as those of ``inverse_affine_of``."""
    (cx, cy), (tx, ty) = center, translate
    tan_x, tan_y = (np.tan(np.radians(each)) for each in shear)
    turn = np.radians(angle)
    cos, sin = np.cos(turn), np.sin(turn)
    factor = scale * (1.0 - tan_x * tan_y)
    # Forward, without scale: [[1, -tan_x], [-tan_y, 1]] @ R(angle).
    m0, m1 = (cos + tan_y * sin) / factor, (sin + tan_x * cos) / factor
    m3, m4 = (tan_y * cos - sin) / factor, (cos - tan_x * sin) / factor
    m2, m5 = cx - m0 * (cx + tx) - m1 * (cy + ty), cy - m3 * (cx + tx) - m4 * (cy + ty)
    return [m0, m1, m2, m3, m4, m5]


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
    three of the corners are in line (images of one pixel's width, or corners that met), nor where the horizon runs
    through the output's origin: such rows hold the identity.
    """
    from_square, start_valid = _from_square(np.asarray(start, np.float64))
    to_end, end_valid = _from_square(np.asarray(end, np.float64))
    first, second, third = (to_end[..., i] for i in range(3))
    adjugate = np.stack([np.cross(second, third), np.cross(third, first), np.cross(first, second)], axis=-2)
    matrix = from_square @ adjugate
    last = matrix[..., 2, 2]
    valid = start_valid & end_valid & (np.abs(last) > 1e-12 * np.abs(matrix).max(axis=(-2, -1)))
    coefficients = matrix.reshape(*matrix.shape[:-2], 9)[..., :8] / np.where(valid, last, 1.0)[..., None]
    coefficients[~valid] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    return coefficients.astype(np.float32).astype(np.float64), valid


def _from_square(corners: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The projective map [R, 3, 3] that takes one fixed quadrilateral to ``corners`` [R, 4, 2], up to its scale, and
    whether no three corners are in line.
    """
    p, q, r, s = (np.append(corners[..., i, :], np.ones_like(corners[..., i, :1]), axis=-1) for i in range(4))
    triples = ((s, q, r), (p, s, r), (p, q, s), (p, q, r))
    areas = [np.sum(a * np.cross(b, c), axis=-1) for a, b, c in triples]
    columns = [area[..., None] * corner for area, corner in zip(areas, (p, q, r), strict=False)]
    return np.stack(columns, axis=-1), np.all(np.stack(areas) != 0.0, axis=0)


def perspective_coefficients_one(start: Sequence[Point], end: Sequence[Point]) -> list[float] | None:
    """``perspective_coefficients`` of one row, to the bit; None where they do not exist."""
    from_square, to_end = _from_square_one(start), _from_square_one(end)
    if from_square is None or to_end is None:
        return None
    first, second, third = to_end
    adjugate = (_cross(second, third), _cross(third, first), _cross(first, second))
    # NumPy's product, which may round once where two operations round twice.
    matrix = np.array(from_square).T.copy() @ np.array(adjugate)
    last = matrix.item(8)
    if not abs(last) > 1e-12 * float(np.abs(matrix).max()):
        return None
    coefficients: list[float] = (matrix.reshape(9)[:8] / last).astype(np.float32).tolist()
    return coefficients


def _cross(a: Point3, b: Point3) -> Point3:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _from_square_one(corners: Sequence[Point]) -> list[Point3] | None:
    """Columns of ``_from_square``; None where three corners are in line."""
    p, q, r, s = ((float(x), float(y), 1.0) for x, y in corners)
    areas = []
    for a, b, c in ((s, q, r), (p, s, r), (p, q, s), (p, q, r)):
        x, y, z = _cross(b, c)
        areas.append(a[0] * x + a[1] * y + a[2] * z)
    if 0.0 in areas:
        return None
    return [(area * x, area * y, area * z) for area, (x, y, z) in zip(areas, (p, q, r), strict=False)]


def rotated_size(size: npt.ArrayLike, angle: npt.ArrayLike, center: Sequence[float] | None) -> npt.NDArray[np.int32]:
    """Height and width int32[R, 2] of Pillow's ``Image.rotate(angle, expand=True, center=center)``."""
    sizes = np.asarray(size)
    angles = np.broadcast_to(np.asarray(angle, np.float64), len(sizes))
    rotated = [_rotated_size(int(h), int(w), float(a), center) for (h, w), a in zip(sizes, angles, strict=True)]
    return np.array(rotated, np.int32).reshape(-1, 2)


def _rotated_size(height: int, width: int, angle: float, center: Sequence[float] | None) -> tuple[int, int]:
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
