"""Matrices of affine and perspective maps from output to input coordinates, as torchvision computes them for PIL."""

from __future__ import annotations

from collections.abc import Sequence

from variegate.program.draws.values import (
    Number,
    ceil,
    cos,
    float32,
    floor,
    maximum,
    minimum,
    radians,
    rint,
    select,
    sin,
    tan,
)

Corner = Sequence[Number]
Corners = Sequence[Corner]
Point3 = tuple[Number, Number, Number]


def inverse_affine_of(center: Corner, angle: Number, translate: Corner, scale: Number, shear: Corner) -> list[Number]:
    """Return Pillow's six coefficients of torchvision's ``affine``.

    ``center``, ``translate`` and ``shear`` are pairs (x, y). Positive angles rotate clockwise, and shears are in
    degrees, as in torchvision's ``_get_inverse_affine_matrix``.
    """
    (cx, cy), (tx, ty) = center, translate
    shear_x, shear_y, turn = radians(shear[0]), radians(shear[1]), radians(angle)
    cosine, sine, cosine_y = cos(turn - shear_y), sin(turn - shear_y), cos(shear_y)
    tangent = tan(shear_x)
    # Forward, without scale: R(angle) * ShearY * ShearX; its determinant is 1.
    a, c = cosine / cosine_y, sine / cosine_y
    b, d = -cosine * tangent / cosine_y - sin(turn), -sine * tangent / cosine_y + cos(turn)
    m0, m1, m3, m4 = d / scale, -b / scale, -c / scale, a / scale
    # Summed in torchvision's order, so that rounding of ties to nearest pixels agrees.
    m2 = (0.0 + (m0 * (-cx - tx) + m1 * (-cy - ty))) + cx
    m5 = (0.0 + (m3 * (-cx - tx) + m4 * (-cy - ty))) + cy
    return [m0, m1, m2, m3, m4, m5]


def inverse_rotated_then_sheared_of(
    center: Corner, angle: Number, translate: Corner, scale: Number, shear: Corner
) -> list[Number]:
    """Return coefficients in Albumentations' order: rotate, then shear along both axes at once.

    Arguments: see ``inverse_affine_of``. The shear changes areas by the factor ``1 - tan(x) * tan(y)``.
    """
    (cx, cy), (tx, ty) = center, translate
    tan_x, tan_y = (tan(radians(each)) for each in shear)
    turn = radians(angle)
    cosine, sine = cos(turn), sin(turn)
    factor = scale * (1.0 - tan_x * tan_y)
    # Forward, without scale: [[1, -tan_x], [-tan_y, 1]] @ R(angle).
    m0, m1 = (cosine + tan_y * sine) / factor, (sine + tan_x * cosine) / factor
    m3, m4 = (tan_y * cosine - sine) / factor, (cosine - tan_x * sine) / factor
    m2, m5 = cx - m0 * (cx + tx) - m1 * (cy + ty), cy - m3 * (cx + tx) - m4 * (cy + ty)
    return [m0, m1, m2, m3, m4, m5]


def stretch(center: Corner, factor_x: Number, factor_y: Number) -> list[Number]:
    """Return six coefficients that scale the content by ``factor_x`` and ``factor_y`` about ``center``."""
    cx, cy = center
    inverse_x, inverse_y = 1.0 / factor_x, 1.0 / factor_y
    return [inverse_x, 0.0, cx - cx * inverse_x, 0.0, inverse_y, cy - cy * inverse_y]


def perspective_coefficients(start: Corners, end: Corners) -> tuple[list[Number], Number]:
    """Return Pillow's eight coefficients that move the corners ``start`` (x, y) to ``end``, and whether they exist.

    Coefficients are rounded to float32, as in torchvision. They do not exist if three corners are collinear, as for
    images one pixel wide, or if the horizon passes through the output's origin.
    """
    from_square, is_start_valid = _from_square(start)
    to_end, is_end_valid = _from_square(end)
    first, second, third = to_end
    adjugate = (_cross(second, third), _cross(third, first), _cross(first, second))
    matrix = [
        from_square[0][i] * adjugate[0][j] + from_square[1][i] * adjugate[1][j] + from_square[2][i] * adjugate[2][j]
        for i in range(3)
        for j in range(3)
    ]
    largest = abs(matrix[0])
    for number in matrix[1:]:
        largest = maximum(largest, abs(number))
    last = matrix[8]
    is_valid = is_start_valid & is_end_valid & (abs(last) > 1e-12 * largest)
    divisor = select(is_valid, last, 1.0)
    return [float32(number / divisor) for number in matrix[:8]], is_valid


def _from_square(corners: Corners) -> tuple[list[Point3], Number]:
    """Return the columns of the map from a fixed quadrilateral to ``corners``, up to scale, and whether it exists.

    It exists if no three corners are collinear.
    """
    p, q, r, s = ((x, y, 1.0) for x, y in corners)
    areas = []
    is_valid: Number = True
    for a, b, c in ((s, q, r), (p, s, r), (p, q, s), (p, q, r)):
        x, y, z = _cross(b, c)
        areas.append(a[0] * x + a[1] * y + a[2] * z)
        is_valid = (areas[-1] != 0.0) & is_valid
    columns = [(area * x, area * y, area * z) for area, (x, y, z) in zip(areas, (p, q, r), strict=False)]
    return columns, is_valid


def _cross(a: Point3, b: Point3) -> Point3:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def rotated_size(height: Number, width: Number, angle: Number, center: Sequence[float] | None) -> tuple[Number, Number]:
    """Return height and width of Pillow's ``Image.rotate(angle, expand=True, center=center)``."""
    angle = angle % 360.0
    cx, cy = (width * 0.5, height * 0.5) if center is None else center
    turn = -radians(angle)
    # Rounded to 15 decimals as in Pillow; the size depends on it if a corner is at an integer.
    cosine, sine = rint(cos(turn) * 1e15) / 1e15, rint(sin(turn) * 1e15) / 1e15
    x0, y0 = cosine * -cx + sine * -cy + 0.0 + cx, -sine * -cx + cosine * -cy + 0.0 + cy
    corners = ((0, 0), (width, 0), (width, height), (0, height))
    xs = [cosine * x + sine * y + x0 for x, y in corners]
    ys = [-sine * x + cosine * y + y0 for x, y in corners]
    new_height, new_width = _extent(ys), _extent(xs)
    if center is not None:
        return new_height, new_width
    is_straight, is_turned = (angle == 0.0) | (angle == 180.0), (angle == 90.0) | (angle == 270.0)
    return (
        select(is_straight, height, select(is_turned, width, new_height)),
        select(is_straight, width, select(is_turned, height, new_width)),
    )


def _extent(values: Sequence[Number]) -> Number:
    """Return the number of pixels that cover all coordinates."""
    least = greatest = values[0]
    for value in values[1:]:
        least, greatest = minimum(least, value), maximum(greatest, value)
    return ceil(greatest) - floor(least)
