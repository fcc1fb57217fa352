"""Output -> input matrices of the affine and perspective families, one per row (conventions: torchvision on PIL)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# Numbers, or arrays of one for each image.
Corners = Sequence[tuple[Any, Any]]
Point3 = tuple[Any, Any, Any]


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


def inverse_rotated_then_sheared_of(center: Any, angle: Any, translate: Any, scale: Any, shear: Any) -> list[Any]:
    """``inverse_affine_of`` with Albumentations' order: rotated, then sheared along both axes at once, which changes
    areas by 1 - tan(x) * tan(y)."""
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


def perspective_coefficients(start: Corners, end: Corners) -> tuple[Floats, Any]:
    """Pillow's eight coefficients that move the four corners ``start`` (x, y) to ``end``, numbers or arrays [R] each.

    Returns float64[R, 8] or [8], rounded to float32 as torchvision's are, and whether they exist, bool[R] or bool. They
    do not where three of the corners are in line (images of one pixel's width, or corners that met), nor where the
    horizon runs through the output's origin: the identity then.
    """
    from_square, is_start_valid = _from_square(start)
    to_end, is_end_valid = _from_square(end)
    first, second, third = to_end
    adjugate = (_cross(second, third), _cross(third, first), _cross(first, second))
    columns, rows = (
        np.stack([np.stack(each, axis=-1) for each in of], axis=axis)
        for of, axis in ((from_square, -1), (adjugate, -2))
    )
    matrix = columns @ rows
    last = matrix[..., 2, 2]
    is_valid = is_start_valid & is_end_valid & (np.abs(last) > 1e-12 * np.abs(matrix).max(axis=(-2, -1)))
    coefficients = matrix.reshape(*matrix.shape[:-2], 9)[..., :8] / np.where(is_valid, last, 1.0)[..., None]
    coefficients = np.where(is_valid[..., None], coefficients, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    return coefficients.astype(np.float32).astype(np.float64), is_valid


def _from_square(corners: Corners) -> tuple[list[Point3], Any]:
    """Columns of the projective map that takes one fixed quadrilateral to ``corners``, up to its scale, and whether no
    three corners are in line."""
    p, q, r, s = ((x, y, 1.0 + 0.0 * x) for x, y in corners)
    areas = []
    for a, b, c in ((s, q, r), (p, s, r), (p, q, s), (p, q, r)):
        x, y, z = _cross(b, c)
        areas.append(a[0] * x + a[1] * y + a[2] * z)
    columns = [(area * x, area * y, area * z) for area, (x, y, z) in zip(areas, (p, q, r), strict=False)]
    return columns, np.all(np.stack(areas) != 0.0, axis=0)


def _cross(a: Point3, b: Point3) -> Point3:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


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
