"""Operations that move pixels. Each takes and returns a uint8 HWC image."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tests.oracle.instruction import Image, Instruction
from tests.oracle.places import (
    FRACTION_BITS,
    Places,
    double_perspective,
    folded,
    folding_affine,
    gather,
    gather_blended,
    gather_folded,
    gather_nearest,
    gather_real,
    nearest_affine,
    places,
)
from variegate.program.ops import Interpolation, PadMode

Integers = npt.NDArray[np.integer]

STEP_BITS, WEIGHT_BITS, NODE_BITS = 26, 14, 6
# Of the argument that says how the source lies (``program/coords.py``).
WEIGHS_TWICE = 8


def displaced(ins: Instruction, size: tuple[int, int], bits: int) -> Places:
    """The place of every pixel's centre, moved by the instruction's grid. ``size``: height and width of the image."""
    first, lines, columns, _, step_y, step_x, unit = ins.integers(7)
    nodes = ins.side_tables().grids[first : first + 2 * lines * columns].reshape(lines, columns, 2).astype(np.int64)
    height, width = size
    i, down = _cells(height, step_y)
    j, across = _cells(width, step_x)
    upper, lower = nodes[i[:, None], j], nodes[i[:, None] + 1, j]
    upper_right, lower_right = nodes[i[:, None], j + 1], nodes[i[:, None] + 1, j + 1]
    across, down = across[:, None], down[:, None, None]
    one = 1 << WEIGHT_BITS
    total = (upper * (one - across) + upper_right * across) * (one - down)
    total += (lower * (one - across) + lower_right * across) * down
    shift = NODE_BITS + 2 * WEIGHT_BITS - unit - bits
    moved = total + (1 << shift - 1) >> shift
    half = 1 << bits - 1
    x = (np.arange(width) << bits) + half + moved[..., 0]
    y = (np.arange(height)[:, None] << bits) + half + moved[..., 1]
    return Places(x, y, (x >= 0) & (x < width << bits) & (y >= 0) & (y < height << bits))


def _cells(side: int, step: int) -> tuple[Integers, Integers]:
    """Of every pixel along a side: the last node that is not beyond it, and its way from there to the next one."""
    at = np.arange(side, dtype=np.int64) * step
    return at >> STEP_BITS, at >> STEP_BITS - WEIGHT_BITS & (1 << WEIGHT_BITS) - 1


def hflip(img_HWC: Image, _: Instruction) -> Image:
    """Mirror left-right."""
    return img_HWC[:, ::-1]


def vflip(img_HWC: Image, _: Instruction) -> Image:
    """Mirror top-bottom."""
    return img_HWC[::-1]


def rot90(img_HWC: Image, ins: Instruction) -> Image:
    """Turn counter-clockwise by quarter turns, 1 to 3: an exact transposition."""
    return np.rot90(img_HWC, int(ins.args[0]))


def crop(img_HWC: Image, ins: Instruction) -> Image:
    """Cut out whole pixels. The window may extend outside, where the result is ``fill``."""
    top, left, height, width = ins.integers(4)
    x, y = np.meshgrid(np.arange(left, left + width), np.arange(top, top + height))
    return gather_nearest(img_HWC, x, y, ins.colour(img_HWC.shape[2]))


def pad(img_HWC: Image, ins: Instruction) -> Image:
    """Add whole pixels at each side. ``flags`` is the mode, ``fill`` the color of constant borders."""
    left, top, right, bottom = ins.integers(4)
    mode, (height, width, channels) = PadMode(ins.flags), img_HWC.shape
    if mode is not PadMode.CONSTANT:
        lines, columns = np.arange(-top, height + bottom), np.arange(-left, width + right)
        return img_HWC[folded(lines, height, mode)[:, None], folded(columns, width, mode)]
    out = np.empty((top + height + bottom, left + width + right, channels), img_HWC.dtype)
    out[...] = ins.colour(channels)
    out[top : top + height, left : left + width] = img_HWC
    return out


def shear_x(img_HWC: Image, ins: Instruction) -> Image:
    """Map by the output -> input matrix (1, shear, 0, 0, 1, 0), from the top-left corner."""
    return _affine(img_HWC, (1.0, ins.args[0], 0.0, 0.0, 1.0, 0.0), ins)


def shear_y(img_HWC: Image, ins: Instruction) -> Image:
    """Map by the output -> input matrix (1, 0, 0, shear, 1, 0), from the top-left corner."""
    return _affine(img_HWC, (1.0, 0.0, 0.0, ins.args[0], 1.0, 0.0), ins)


def translate_x(img_HWC: Image, ins: Instruction) -> Image:
    """Move the content right by (float) pixels: the matrix (1, 0, -pixels, 0, 1, 0)."""
    return _affine(img_HWC, (1.0, 0.0, -ins.args[0], 0.0, 1.0, 0.0), ins)


def translate_y(img_HWC: Image, ins: Instruction) -> Image:
    """Move the content down by (float) pixels: the matrix (1, 0, 0, 0, 1, -pixels)."""
    return _affine(img_HWC, (1.0, 0.0, 0.0, 0.0, 1.0, -ins.args[0]), ins)


def affine(img_HWC: Image, ins: Instruction) -> Image:
    """Read output pixel (x, y) from the input at (ax + by + c, dx + ey + f), from pixel center to pixel center, as
    Pillow's ``transform(size, AFFINE, (a..f), resample, fillcolor)``.

    Nearest maps are Pillow's to the bit: 16.16 fixed point with shear or rotation, if all coordinates fit, and
    accumulated doubles for pure scale and translation.

    Bilinear and bicubic maps are computed in integers, so that every executor gives the same bytes. They are at most 1
    level off Pillow's on 99.9 % of values, and 2 anywhere. Coefficients are rounded to multiples of 2**-36, and g and h
    of a perspective to 2**-48. Positions have 15 fraction bits (bilinear) or 14 (bicubic, a = -1), and levels have 7
    between the two axes. To positions, 2**-24 is added: a point within 2**-24 of a pixel of the border
    may be inside here and outside in Pillow. Taps beyond the edge use the edge pixel.
    """
    return _affine(img_HWC, ins.args[:6].tolist(), ins)


def perspective(img_HWC: Image, ins: Instruction) -> Image:
    """Map as Pillow's ``transform(size, PERSPECTIVE, (a..h), resample, fillcolor)``, with the sums of ``affine``."""
    coefficients, size = ins.args.tolist(), img_HWC.shape[:2]
    if ins.interpolation is Interpolation.NEAREST:
        real = double_perspective(coefficients, *size)
        if ins.border is not PadMode.CONSTANT:
            return gather_folded(img_HWC, *real, ins.border)
        return gather_real(img_HWC, *real, ins.colour(img_HWC.shape[2]))
    return _interpolated(img_HWC, coefficients, ins, size)


def displace(img_HWC: Image, ins: Instruction) -> Image:
    """Move each position by a displacement between the nodes of a grid, ``tables.grids[first : first + 2 * lines *
    columns]``, int16 [lines, columns, 2]: along x, along y. All deformations are this map.

    Node (0, 0) is at the center of the first pixel, and each pixel advances by ``step / 2**26`` nodes. A displacement
    is in units of ``2**(unit - 6)`` pixels: unit -6 holds 8 pixels to 2**-12, and 0 holds 512 to 1/64. The four
    surrounding nodes are weighted by 14-bit fractions, summed exactly and rounded half up, once. ``displacement``, the
    maximum in pixels, is for readers.

    Bilinear sampling with a constant border blends the image with ``fill`` along its border, as OpenCV and torchvision
    do for grids. ``turn`` 8 (``ElasticTransform``; ``F.elastic`` with a ``fill``) is torchvision's elastic, which
    applies the weight w of the image twice: ``w (w image) + (1 - w) fill``. In a composed chain, only a DISPLACE that
    reads the source blends; later ones cut as other maps do. A grid of zeros is therefore the image to the bit.
    """
    colour, interpolation = ins.colour(img_HWC.shape[2]), ins.interpolation
    if interpolation is Interpolation.NEAREST:
        bits = FRACTION_BITS[Interpolation.BILINEAR]
        read = displaced(ins, img_HWC.shape[:2], bits)
        if ins.border is not PadMode.CONSTANT:
            return gather_folded(img_HWC, read.x_HW >> bits, read.y_HW >> bits, ins.border)
        return gather_nearest(img_HWC, read.x_HW >> bits, read.y_HW >> bits, colour)
    read = displaced(ins, img_HWC.shape[:2], FRACTION_BITS[interpolation])
    if interpolation is Interpolation.BILINEAR and ins.border is PadMode.CONSTANT:
        return gather_blended(img_HWC, read, colour, weighs_twice=bool(int(ins.args[3]) & WEIGHS_TWICE))
    return gather(img_HWC, read, colour, interpolation, ins.border)


def rotate(img_HWC: Image, ins: Instruction) -> Image:
    """Rotate by degrees counter-clockwise, as Pillow's ``Image.rotate(angle, resample, expand, center, fillcolor)``. A
    center of nan is the image's. About it, 0 and 180 degrees are exact transpositions, and so are 90 and 270 of a
    square or with ``expand``; other angles are an affine map.
    """
    height, width, _ = img_HWC.shape
    angle, expand = float(ins.args[0]) % 360.0, bool(ins.args[3])
    center = None if math.isnan(ins.args[1]) else (float(ins.args[1]), float(ins.args[2]))
    turns_exactly = angle in (0.0, 180.0) or (angle in (90.0, 270.0) and (expand or width == height))
    if center is None and turns_exactly:
        return np.rot90(img_HWC, int(angle) // 90)
    matrix, size = rotation(angle, height, width, center, expand)
    return _affine(img_HWC, matrix, ins, size)


def rotation(
    angle: float, height: int, width: int, center: tuple[float, float] | None, expand: bool
) -> tuple[list[float], tuple[int, int]]:
    """Output -> input matrix (a..f) of a counter-clockwise rotation in degrees, and the output's height and width.

    Pillow 13 ``Image.rotate``: entries rounded to 15 decimals, ``center`` (x, y) in pixels from the top-left corner,
    None for the middle; ``expand`` grows the canvas to hold every corner and assumes that nothing was moved.
    """
    radians = -math.radians(angle)
    cos, sin = round(math.cos(radians), 15), round(math.sin(radians), 15)
    center_x, center_y = center if center is not None else (width / 2, height / 2)

    def turn(x: float, y: float, c: float, f: float) -> tuple[float, float]:
        return cos * x + sin * y + c, -sin * x + cos * y + f

    c, f = turn(-center_x, -center_y, 0.0, 0.0)
    c, f = c + center_x, f + center_y
    if expand:
        corners = [turn(x, y, c, f) for x, y in ((0, 0), (width, 0), (width, height), (0, height))]
        new_width = math.ceil(max(x for x, _ in corners)) - math.floor(min(x for x, _ in corners))
        new_height = math.ceil(max(y for _, y in corners)) - math.floor(min(y for _, y in corners))
        c, f = turn(-(new_width - width) / 2.0, -(new_height - height) / 2.0, c, f)
        height, width = new_height, new_width
    return [cos, sin, c, -sin, cos, f], (height, width)


def _affine(img_HWC: Image, matrix: Sequence[float], ins: Instruction, size: tuple[int, int] | None = None) -> Image:
    height, width = size or img_HWC.shape[:2]
    matrix = [float(v) for v in matrix]
    colour = ins.colour(img_HWC.shape[2])
    if ins.interpolation is Interpolation.NEAREST:
        if ins.border is not PadMode.CONSTANT:
            return gather_folded(img_HWC, *folding_affine(matrix, height, width), ins.border)
        return gather_nearest(img_HWC, *nearest_affine(matrix, height, width), colour)
    return _interpolated(img_HWC, matrix, ins, (height, width))


def _interpolated(img_HWC: Image, coefficients: Sequence[float], ins: Instruction, size: tuple[int, int]) -> Image:
    interpolation, goes_on = ins.interpolation, ins.border is not PadMode.CONSTANT
    read = places(coefficients, size, img_HWC.shape[:2], FRACTION_BITS[interpolation], goes_on)
    return gather(img_HWC, read, ins.colour(img_HWC.shape[2]), interpolation, ins.border)
