"""Places that maps read: those of nearest maps are Pillow 13's (``src/libImaging/Geometry.c``), three affine paths and
perspective, and indices outside of the source mean the fill colour. Those of interpolating maps have 14 or 15 fraction
bits, and what is inside is decided exactly.

An interpolating map is three linear functions of the output's column x and line y: u's numerator, v's numerator and
their denominator, the depth (1 where the map is affine). In place of the numerators stand their distances from the
first column and line of the source, which are 0 there. All three become integers, times one power of two. Every
executor computes the same integers, so that all read the same places.

Reading is nearest, bilinear or bicubic, with the fill colour outside; or the image goes on beyond its edges by a
PadMode, to either side without end, as ``numpy.pad`` has it: the pixels that are read, taps too, are then folded back
into the image, one by one. Interpolation is Pillow's in integers: taps are
clamped to the edge, sums are rounded once per axis, and the result is cut off to a level, not rounded. Both kinds of
weights are the same numbers read from either side, so that a mirrored image is interpolated to the mirrored result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.oracle.instruction import Image, to_pixels
from variegate.program.ops import Interpolation, PadMode

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]

FRACTION_BITS = {Interpolation.BILINEAR: 15, Interpolation.BICUBIC: 14}

# Coefficients are multiples of 2**-36, and those of a denominator of 2**-48. Sums and products with whole pixels are
# then exact in float64, as when a flip or a crop is taken into a map.
GRID, DEPTH_GRID = 2.0**36, 2.0**48
_LARGE = 2.0**17
# Added to every place. A point on the border, or on a pixel's centre, is there in spite of rounded coefficients.
_NUDGE = 2.0**-24
# Fraction bits of an affine map's integers: one more than those of its coefficients, for the halves of pixel centres.
_AFFINE_BITS = 37
# The integers, and products of the depth with a side of the source, stay below 2**61.
_INTEGER_BITS = 61
# A map that reaches farther than so many pixels shows nothing; where the image goes on, its first pixel.
_LIMIT = 2.0**46


class Places(NamedTuple):
    """Places that output pixels read, (0, 0) being the corner of the first pixel."""

    x_HW: Integers  # with ``bits`` fraction bits; anything outside, unless the image goes on there
    y_HW: Integers
    inside_HW: npt.NDArray[np.bool_]


def snapped(coefficients: Sequence[float]) -> list[float]:
    """Six or eight coefficients, rounded half up to their grids. Large ones lie on them, or mean nothing."""
    grids = [GRID] * 6 + [DEPTH_GRID] * 2
    return [
        math.floor(v * grid + 0.5) / grid if abs(v) < _LARGE else v
        for v, grid in zip(coefficients, grids, strict=False)
    ]


def places(
    coefficients: Sequence[float], out_size: tuple[int, int], in_size: tuple[int, int], bits: int, goes_on: bool = False
) -> Places:
    """The places that a map of six or eight coefficients reads; sizes are heights and widths. ``goes_on``: the image
    does beyond its edges, so that places there count."""
    a, b, c, d, e, f, *rest = snapped(coefficients)
    (g, h), is_affine = (rest or (0.0, 0.0)), not rest
    depth_form = _at_centres(g, h, 1.0)
    forms = [_nudged(_at_centres(*form), depth_form) for form in ((a, b, c), (d, e, f))] + [depth_form]
    (height, width), (in_height, in_width) = out_size, in_size
    reach = np.array(
        [
            abs(form[0] * x + form[1] * y + form[2]) * factor
            for form, factor in zip(forms, (1, 1, max(in_height, in_width)), strict=True)
            for x in (0, width - 1)
            for y in (0, height - 1)
        ]
    )
    if not (reach < _LIMIT).all():
        nothing = np.zeros((height, width), np.int64)
        return Places(nothing, nothing, nothing > 0)
    scale = _INTEGER_BITS - math.frexp(reach.max())[1]
    if is_affine:
        scale = min(scale, _AFFINE_BITS)
    x, y = np.arange(width), np.arange(height)[:, None]
    u, v, depth = (_integer(form, scale, x, y) for form in forms)
    ahead = (depth > 0) & (u >= 0) & (u < in_width * depth) & (v >= 0) & (v < in_height * depth)
    # Behind the viewer all signs are turned.
    behind = (depth < 0) & (u <= 0) & (u > in_width * depth) & (v <= 0) & (v > in_height * depth)
    if is_affine:
        return Places(u >> scale - bits, v >> scale - bits, ahead)
    corners = depth[[0, 0, -1, -1], [0, -1, 0, -1]]
    shift = max(0, math.frexp(float(np.abs(corners).max()))[1] - 30)
    divisor = _float32(np.where(depth >> shift == 0, 1, depth >> shift))
    factor = np.float32(2.0 ** (bits + 31 - shift))
    ends = [(-FAR_QUOTIENT, FAR_QUOTIENT)] * 2 if goes_on else [(0, in_width << bits), (0, in_height << bits)]
    return Places(_quotient(u, divisor, factor, *ends[0]), _quotient(v, divisor, factor, *ends[1]), ahead | behind)


def _at_centres(x: float, y: float, constant: float) -> tuple[float, float, float]:
    """A function of points, as one of whole columns and lines."""
    return x, y, constant + (x + y) * 0.5


def _nudged(form: tuple[float, float, float], depth: tuple[float, float, float]) -> tuple[float, ...]:
    return tuple(v + _NUDGE * w for v, w in zip(form, depth, strict=True))


def _integer(form: tuple[float, ...], scale: int, x: Integers, y: Integers) -> Integers:
    # A step that is never taken may be as large as it likes.
    a, b, c = (math.floor(math.ldexp(v, scale) + 0.5) for v in form)
    return (a if x.size > 1 else 0) * x + (b if y.size > 1 else 0) * y + c


def _float32(whole: Integers) -> npt.NDArray[np.float32]:
    """Of integers below 2**31, rounded to the nearest."""
    return whole.astype(np.int32).astype(np.float32)


def _quotient(
    numerator: Integers, divisor: npt.NDArray[np.float32], factor: np.float32, low: int, high: int
) -> Integers:
    """One float32 division, rounded as IEEE 754 says, then cut off to an integer from low to high."""
    quotient = _float32(numerator >> 31) / divisor * factor
    return np.floor(np.clip(quotient, np.float32(low), np.float32(high))).astype(np.int32)


Indices = npt.NDArray[np.int64]

FIXED_LIMIT = 32768.0  # 16.16 fixed point holds coordinates of less than this magnitude
_OUTSIDE = -1
# Beyond so many pixels, and of a perspective fractions of them, places where the image goes on are not told apart.
FAR, FAR_QUOTIENT = 2.0**46, 1 << 30


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


def folding_affine(matrix: Sequence[float], height: int, width: int) -> tuple[Floats, Floats]:
    """The same where the image goes on beyond its edges: real places, whose floors are the pixels."""
    a, b, c, d, e, f = matrix
    if (a, b, d, e) == (1.0, 0.0, 0.0, 1.0):
        c, f = (float(np.clip(shift, -FAR / 2, FAR / 2)) for shift in (c, f))
    if b == 0 and d == 0:
        x, y = np.meshgrid(_accumulate(c + a * 0.5, a, width), _accumulate(f + e * 0.5, e, height))
        return x, y
    if _fits_fixed_point(matrix, height, width):
        fixed = _fixed_affine(matrix, height, width)
        return fixed[0].astype(np.float64), fixed[1].astype(np.float64)
    return double_perspective([*matrix, 0.0, 0.0], height, width)


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


def folded(index: Integers, size: int, mode: PadMode) -> Indices:
    """Pixels of a line of ``size`` that goes on by ``mode``, as those of the line itself."""
    at = np.asarray(index, np.int64)
    if mode is PadMode.EDGE or (mode is PadMode.REFLECT and size == 1):
        return np.clip(at, 0, size - 1)
    if mode is PadMode.WRAP:
        return at % size
    # There and back: with a reflection the pixels at the two ends come once.
    back = np.arange(size)[::-1] if mode is PadMode.SYMMETRIC else np.arange(size)[-2:0:-1]
    period = np.concatenate([np.arange(size), back])
    return period[at % len(period)]


def gather_folded(img_HWC: Image, x_HW: Floats | Integers, y_HW: Floats | Integers, mode: PadMode) -> Image:
    """The pixels that real places lie in, of an image that goes on by ``mode``; what is no place is at the first."""
    x, y = (np.floor(np.clip(np.where(np.isnan(v), 0.0, v), -FAR, FAR)).astype(np.int64) for v in (x_HW, y_HW))
    return img_HWC[folded(y, img_HWC.shape[0], mode), folded(x, img_HWC.shape[1], mode)]


def gather_nearest(
    img_HWC: Image, x_HW: npt.NDArray[np.int64], y_HW: npt.NDArray[np.int64], colour: npt.NDArray[np.uint8]
) -> Image:
    """Source pixels at integer places."""
    height, width, _ = img_HWC.shape
    inside = (x_HW >= 0) & (x_HW < width) & (y_HW >= 0) & (y_HW < height)
    taken = img_HWC[np.where(inside, y_HW, 0), np.where(inside, x_HW, 0)]
    return np.where(inside[..., None], taken, colour)


def gather_real(img_HWC: Image, x_HW: Floats, y_HW: Floats, colour: npt.NDArray[np.uint8]) -> Image:
    """The pixels that real places lie in, (0.5, 0.5) being the centre of the first."""
    height, width, _ = img_HWC.shape
    x_HW, y_HW = np.broadcast_arrays(x_HW, y_HW)
    inside = (x_HW >= 0) & (x_HW < width) & (y_HW >= 0) & (y_HW < height)
    # Outside places may be infinite or NaN.
    columns, lines = np.where(inside, x_HW, 0).astype(np.int64), np.where(inside, y_HW, 0).astype(np.int64)
    return np.where(inside[..., None], img_HWC[lines, columns], colour)


def gather(
    img_HWC: Image,
    places: Places,
    colour: npt.NDArray[np.uint8],
    interpolation: Interpolation,
    mode: PadMode = PadMode.CONSTANT,
) -> Image:
    """Source values interpolated at ``places``, which have as many fraction bits as FRACTION_BITS says."""
    read = _bilinear if interpolation is Interpolation.BILINEAR else _bicubic
    if mode is not PadMode.CONSTANT:
        return read(img_HWC, places.x_HW, places.y_HW, mode)
    x_HW, y_HW = (np.where(places.inside_HW, place, 0) for place in (places.x_HW, places.y_HW))
    return np.where(places.inside_HW[..., None], read(img_HWC, x_HW, y_HW, PadMode.EDGE), colour)


def gather_blended(img_HWC: Image, places: Places, colour: npt.NDArray[np.uint8], *, weighs_twice: bool) -> Image:
    """Bilinear values at ``places`` of an image surrounded by ``colour``, with which places less than a pixel from the
    centers of the outermost pixels are blended.

    ``weighs_twice``: as torchvision's ``elastic``, w (w image) + (1 - w) colour with the weight w of the image.
    """
    height, width, channels = img_HWC.shape
    x, dx = _split(places.x_HW, 15)
    y, dy = _split(places.y_HW, 15)
    outside = np.zeros_like(colour) if weighs_twice else colour
    framed = np.empty((height + 2, width + 2, channels), np.int64)
    framed[...] = outside
    framed[1:-1, 1:-1] = img_HWC
    is_near = (x >= -1) & (x < width) & (y >= -1) & (y < height)
    i, j = np.where(is_near, y, 0) + 1, np.where(is_near, x, 0) + 1
    upper = _mix(framed[i, j] << 7, framed[i, j + 1] << 7, dx)
    lower = _mix(framed[i + 1, j] << 7, framed[i + 1, j + 1] << 7, dx)
    blended = _mix(upper, lower, dy)
    if weighs_twice:
        weight_x = np.where(x >= 0, 32768 - dx[..., 0], 0) + np.where(x + 1 < width, dx[..., 0], 0)
        weight_y = np.where(y >= 0, 32768 - dy[..., 0], 0) + np.where(y + 1 < height, dy[..., 0], 0)
        weight = weight_x * weight_y + (1 << 14) >> 15
        blended = _mix(np.broadcast_to(colour.astype(np.int64) << 7, blended.shape), blended, weight[..., None])
    return np.where(is_near[..., None], to_pixels(blended >> 7), colour)


def _split(place: Integers, bits: int) -> tuple[Integers, Integers]:
    """The last pixel whose centre is not beyond a place, and how far beyond it the place lies."""
    from_centre = place.astype(np.int64) - (1 << bits - 1)
    return from_centre >> bits, (from_centre & (1 << bits) - 1)[..., None]


def _tap(img_HWC: Image, y: Integers, x: Integers, mode: PadMode) -> Integers:
    height, width, _ = img_HWC.shape
    return img_HWC[folded(y, height, mode), folded(x, width, mode)].astype(np.int64)


def _bilinear(img_HWC: Image, x_HW: Integers, y_HW: Integers, mode: PadMode) -> Image:
    x, dx = _split(x_HW, 15)
    y, dy = _split(y_HW, 15)
    upper = _mix(_tap(img_HWC, y, x, mode) << 7, _tap(img_HWC, y, x + 1, mode) << 7, dx)
    lower = _mix(_tap(img_HWC, y + 1, x, mode) << 7, _tap(img_HWC, y + 1, x + 1, mode) << 7, dx)
    return to_pixels(_mix(upper, lower, dy) >> 7)


def _mix(a: Integers, b: Integers, t: Integers) -> Integers:
    return a + ((b - a) * t + (1 << 14) >> 15)


def _bicubic(img_HWC: Image, x_HW: Integers, y_HW: Integers, mode: PadMode) -> Image:
    x, dx = _split(x_HW, 14)
    y, dy = _split(y_HW, 14)
    # Lines in 1/64 levels.
    taps = [[_tap(img_HWC, y + j, x + i, mode) for i in (-1, 0, 1, 2)] for j in (-1, 0, 1, 2)]
    lines = [_weighed(line, dx) + (1 << 7) >> 8 for line in taps]
    return to_pixels(_weighed(lines, dy) >> 20)


def _weighed(taps: Sequence[Integers], t: Integers) -> Integers:
    return np.sum([w * tap for w, tap in zip(_weights(t), taps, strict=True)], axis=0)


def _weights(t: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Of a cubic convolution with a = -1 through four neighbours, ``t`` / 2**14 from the second toward the third; in
    2**-14, of which they sum up to one."""
    u = (1 << 14) - t
    product = t * u + (1 << 13) >> 14
    first, last = -(product * u + (1 << 13) >> 14), -(product * t + (1 << 13) >> 14)
    return first, u - first, t - last, last
