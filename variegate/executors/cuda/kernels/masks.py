"""Masks of a whole batch: each pixel followed back through the maps of its row to the one it shows.

In float64, product by product and sum by sum what the CPU does (``targets/masks.py``), so that no pixel differs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import mask_layout as M
from variegate.executors.cuda.kernels.fetch import clamp, pixels_of, place_of_program
from variegate.executors.cuda.kernels.memory import float64s_at, int16s_at, int64s_at, load_inside, load_int
from variegate.program import stages as S


@triton.jit(do_not_specialize=["rows"])
def read_masks(buffer, rows, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr, VERSION: tl.constexpr):
    """A tile of one of ``rows`` results, in all of its masks. Regions are pasted one over another."""
    tile, n = place_of_program()
    if n >= rows:
        return
    arrays = int64s_at(buffer, 0)
    size = int64s_at(buffer, tl.load(arrays + M.SIZES)) + 2 * n
    height = load_int(size)
    width = load_int(size + 1)
    tiles_x = tl.cdiv(width, BLOCK_X)
    if tile >= tiles_x * tl.cdiv(height, BLOCK_Y):
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)
    at = y.to(tl.int64) * width + x
    first_y = tile // tiles_x * BLOCK_Y
    first_x = tile % tiles_x * BLOCK_X
    regions = int64s_at(buffer, tl.load(arrays + M.REGIONS))
    layers = int64s_at(buffer, tl.load(arrays + M.LAYERS))
    first = int64s_at(buffer, tl.load(arrays + M.FIRST_REGIONS)) + n
    for r in range(tl.load(first), tl.load(first + 1)):
        region = regions + r * M.REGION
        left = load_int(region + M.LEFT)
        right = load_int(region + M.RIGHT)
        top = load_int(region + M.TOP)
        bottom = load_int(region + M.BOTTOM)
        if (left < first_x + BLOCK_X) & (right > first_x) & (top < first_y + BLOCK_Y) & (bottom > first_y):
            seen = inside & (x >= left) & (x < right) & (y >= top) & (y < bottom)
            row = tl.load(region + M.ROW)
            place = _follow(buffer, arrays, row, x, y, seen, tl.load(region + M.IMAGE_WIDTH))
            for k in range(tl.load(region + M.FIRST_LAYER), tl.load(region + M.END_LAYER)):
                layer = layers + k * M.LAYER
                bits = tl.load(layer + M.BITS)
                if bits == 0:
                    _copy(layer, place, at, seen, tl.uint8)
                elif bits == 1:
                    _copy(layer, place, at, seen, tl.int16)
                elif bits == 2:
                    _copy(layer, place, at, seen, tl.int32)
                else:
                    _copy(layer, place, at, seen, tl.int64)


@triton.jit
def _copy(layer, place, at, seen, NUMBER: tl.constexpr):
    """Write what a mask shows at ``place``, or its fill at -1, to the result's pixels ``at`` that are ``seen``."""
    source = tl.load(layer + M.SOURCE).to(tl.pointer_type(NUMBER))
    result = tl.load(layer + M.RESULT).to(tl.pointer_type(NUMBER))
    fill = tl.load(layer + M.FILL).to(NUMBER)
    shown = place >= 0
    tl.store(result + at, tl.where(shown, load_inside(source + place, shown), fill), mask=seen)


@triton.jit
def _follow(buffer, arrays, row, x, y, inside, columns):
    """The pixel of the image that is shown at columns and lines ``x, y`` (int32), counted line by line, int64; -1 where
    none is, and where not ``inside``."""
    u = x.to(tl.float64) + 0.5
    v = y.to(tl.float64) + 0.5
    first = int64s_at(buffer, tl.load(arrays + M.FIRST_STAGES)) + row
    begin = tl.load(first)
    end = tl.load(first + 1)
    kinds = int64s_at(buffer, tl.load(arrays + M.KIND))
    for i in range(end - begin):
        step = end - 1 - i
        kind = tl.load(kinds + step)
        # What is erased stays in masks.
        if kind != S.ERASE:
            numbers = int64s_at(buffer, tl.load(arrays + M.NUMBERS)) + step * S.NUMBERS_PER_STEP
            before = int64s_at(buffer, tl.load(arrays + M.BEFORE)) + step * 2
            height = tl.load(before).to(tl.float64)
            width = tl.load(before + 1).to(tl.float64)
            # What is not inside stays at a place whose numbers are all harmless.
            u = tl.where(inside, u, 0.5)
            v = tl.where(inside, v, 0.5)
            if kind == S.MAP:
                matrix = float64s_at(buffer, tl.load(arrays + M.BACK)) + step * 9
                u, v, inside = _map_back(matrix, u, v, inside)
            elif kind == S.GRID:
                nodes = int16s_at(buffer, tl.load(arrays + M.GRIDS)) + tl.load(numbers + S.FIRST)
                u, v = _displace(nodes, numbers, u, v)
            elif kind == S.REPEAT:
                mode = tl.load(numbers + S.MODE)
                u = _repeat(u - tl.load(numbers + S.LEFT).to(tl.float64), width, mode)
                v = _repeat(v - tl.load(numbers + S.TOP).to(tl.float64), height, mode)
            else:
                after = int64s_at(buffer, tl.load(arrays + M.AFTER)) + step * 2
                column_places = float64s_at(buffer, tl.load(arrays + M.TABLES)) + tl.load(numbers + S.FIRST)
                line_places = column_places + tl.load(after + 1)
                u = tl.load(column_places + u.to(tl.int32), mask=inside, other=0.5)
                v = tl.load(line_places + v.to(tl.int32), mask=inside, other=0.5)
            left = tl.where(width >= S.ENDLESS, -width, 0.0)
            top = tl.where(height >= S.ENDLESS, -height, 0.0)
            inside = inside & (u >= left) & (u < width) & (v >= top) & (v < height)
            if tl.load(buffer + tl.load(arrays + M.ROUNDS) + step) != 0:
                u = tl.floor(u) + 0.5
                v = tl.floor(v) + 0.5
    u = tl.where(inside, u, 0.5)
    v = tl.where(inside, v, 0.5)
    return tl.where(inside, v.to(tl.int64) * columns + u.to(tl.int64), -1)


@triton.jit
def _map_back(m, u, v, inside):
    g = tl.load(m + 6)
    h = tl.load(m + 7)
    across = tl.load(m) * u + tl.load(m + 1) * v + tl.load(m + 2)
    down = tl.load(m + 3) * u + tl.load(m + 4) * v + tl.load(m + 5)
    if (g != 0.0) | (h != 0.0):
        depth = g * u + h * v + tl.load(m + 8)
        # A quotient by zero is no place.
        inside &= depth != 0.0
        depth = tl.where(depth != 0.0, depth, 1.0)
        across = across / depth
        down = down / depth
    return across, down, inside


@triton.jit
def _displace(nodes, numbers, u, v):
    """Places moved by what a grid says between its nodes, of which (0, 0) lies at the centre of the first pixel."""
    lines = load_int(numbers + S.LINES)
    columns = load_int(numbers + S.COLUMNS)
    p = (u - 0.5) * (tl.load(numbers + S.STEP_X).to(tl.float64) * S.NODES_PER_STEP)
    q = (v - 0.5) * (tl.load(numbers + S.STEP_Y).to(tl.float64) * S.NODES_PER_STEP)
    p = clamp(p, 0.0, columns.to(tl.float64) - 1.0)
    q = clamp(q, 0.0, lines.to(tl.float64) - 1.0)
    j = tl.maximum(tl.minimum(p.to(tl.int32), columns - 2), 0)
    i = tl.maximum(tl.minimum(q.to(tl.int32), lines - 2), 0)
    s = p - j.to(tl.float64)
    t = q - i.to(tl.float64)
    right = tl.where(columns > 1, 2, 0)
    below = tl.where(lines > 1, 2 * columns, 0)
    nodes += 2 * (i.to(tl.int64) * columns + j)
    # 2 ** (UNIT - 6), by its bits.
    unit = ((tl.load(numbers + S.UNIT) + (1023 - 6)) << 52).to(tl.float64, bitcast=True)
    return u + _between(nodes, right, below, s, t) * unit, v + _between(nodes + 1, right, below, s, t) * unit


@triton.jit
def _between(nodes, right, below, s, t):
    upper = tl.load(nodes).to(tl.float64) * (1.0 - s) + tl.load(nodes + right).to(tl.float64) * s
    lower = tl.load(nodes + below).to(tl.float64) * (1.0 - s) + tl.load(nodes + below + right).to(tl.float64) * s
    return upper * (1.0 - t) + lower * t


@triton.jit
def _repeat(place, side, mode):
    """A place beyond an image that is continued by its edge or the other side, or mirrored about its last pixels or its
    border."""
    if (mode == M.EDGE) | (side == 1.0):
        repeated = clamp(place, 0.5, side - 0.5)
    elif mode == M.WRAP:
        repeated = _remainder(place, side)
        repeated = tl.where(repeated < side, repeated, 0.0)
    else:
        first = tl.where(mode == M.REFLECT, 0.5, 0.0).to(tl.float64)
        length = tl.where(mode == M.REFLECT, side - 1.0, side)
        period = _remainder(place - first, 2.0 * length)
        repeated = first + tl.where(period > length, 2.0 * length - period, period)
        repeated = tl.where(repeated < side, repeated, side - 0.5)
    return tl.where((place >= 0.0) & (place < side), place, repeated)


@triton.jit
def _remainder(number, divisor):
    """Python's ``number % divisor`` for whole divisors: exact but for the sum that makes it positive.

    The quotient may be rounded up to a whole number; what is left is below zero then, and exact all the same.
    """
    size = tl.abs(number)
    left = size - tl.floor(size / divisor) * divisor
    left = tl.where(left < 0.0, left + divisor, left)
    return tl.where((number < 0.0) & (left != 0.0), divisor - left, left)
