"""Masks of a whole batch: each pixel followed back through the maps of its row to the one it shows.

In float64, product by product and sum by sum what the CPU does (``targets/masks.py``), so that no pixel differs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import mask_layout as M
from variegate.executors.cuda.kernels.fetch import clamp, pixels_of, place_of_program
from variegate.executors.cuda.kernels.memory import float64s_at, int16s_at, int64s_at, load_inside, load_int


@triton.jit(do_not_specialize=["rows"])
def read_masks(
    buffer,
    outputs_at,
    entries_at,
    planes_at,
    steps_at,
    rows,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """A tile of one of ``rows`` outputs, in all of its masks. Entries are pasted one over another."""
    tile, n = place_of_program()
    if n >= rows:
        return
    output = int64s_at(buffer, outputs_at) + n * M.OUTPUT
    height = load_int(output + M.HEIGHT)
    width = load_int(output + M.WIDTH)
    tiles_x = tl.cdiv(width, BLOCK_X)
    if tile >= tiles_x * tl.cdiv(height, BLOCK_Y):
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)
    at = y.to(tl.int64) * width + x
    first_y = tile // tiles_x * BLOCK_Y
    first_x = tile % tiles_x * BLOCK_X
    steps = int64s_at(buffer, steps_at)
    planes = int64s_at(buffer, planes_at)
    for e in range(tl.load(output + M.ENTRIES), tl.load(output + M.ENTRIES_END)):
        entry = int64s_at(buffer, entries_at) + e * M.ENTRY
        left = load_int(entry + M.LEFT)
        right = load_int(entry + M.RIGHT)
        top = load_int(entry + M.TOP)
        bottom = load_int(entry + M.BOTTOM)
        meets = (left < first_x + BLOCK_X) & (right > first_x) & (top < first_y + BLOCK_Y) & (bottom > first_y)
        if meets | (tl.load(entry + M.HAS_FIRST) != 0):
            seen = inside & (x >= left) & (x < right) & (y >= top) & (y < bottom)
            place = tl.full(x.shape, -1, tl.int64)
            if meets:
                begin = tl.load(entry + M.STEPS)
                end = tl.load(entry + M.STEPS_END)
                place = _follow(buffer, steps, begin, end, x, y, seen, tl.load(entry + M.COLUMNS))
            for p in range(tl.load(entry + M.PLANES), tl.load(entry + M.PLANES_END)):
                plane = planes + p * M.PLANE
                is_first = x * 0 + load_int(plane + M.IS_FIRST) != 0
                written = inside & (seen | is_first)
                _store(plane, at, _value(buffer, plane, place), written)


@triton.jit
def _follow(buffer, steps, begin, end, x, y, inside, columns):
    """The pixel of the image that is shown at columns and lines ``x, y`` (int32), counted line by line, int64; -1 where
    none is, and where not ``inside``."""
    u = x.to(tl.float64) + 0.5
    v = y.to(tl.float64) + 0.5
    for i in range(end - begin):
        step = steps + (end - 1 - i) * M.STEP
        kind = tl.load(step + M.STEP_KIND)
        numbers = step + M.NUMBERS
        reals = numbers.to(tl.pointer_type(tl.float64))
        sides = step.to(tl.pointer_type(tl.float64))
        height = tl.load(sides + M.BEFORE_HEIGHT)
        width = tl.load(sides + M.BEFORE_WIDTH)
        # What is not inside stays at a place whose numbers are all harmless.
        u = tl.where(inside, u, 0.5)
        v = tl.where(inside, v, 0.5)
        if kind == M.MAP:
            u, v, inside = _map_back(reals, u, v, inside)
        elif kind == M.GRID:
            u, v = _displace(buffer, numbers, reals, u, v)
        elif kind == M.REPEAT:
            mode = tl.load(numbers + M.PAD_MODE)
            u = _repeat(u - tl.load(reals + M.PAD_LEFT), width, mode)
            v = _repeat(v - tl.load(reals + M.PAD_TOP), height, mode)
        else:
            column_places = float64s_at(buffer, tl.load(numbers + M.COLUMN_PLACES))
            line_places = float64s_at(buffer, tl.load(numbers + M.LINE_PLACES))
            u = tl.load(column_places + u.to(tl.int32), mask=inside, other=0.5)
            v = tl.load(line_places + v.to(tl.int32), mask=inside, other=0.5)
        left = tl.where(width >= M.ENDLESS, -width, 0.0)
        top = tl.where(height >= M.ENDLESS, -height, 0.0)
        inside = inside & (u >= left) & (u < width) & (v >= top) & (v < height)
        if tl.load(step + M.ROUNDS) != 0:
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
def _displace(buffer, numbers, reals, u, v):
    """Places moved by what a grid says between its nodes, of which (0, 0) lies at the centre of the first pixel."""
    lines = load_int(numbers + M.NODE_LINES)
    columns = load_int(numbers + M.NODE_COLUMNS)
    p = (u - 0.5) * tl.load(reals + M.NODES_PER_COLUMN)
    q = (v - 0.5) * tl.load(reals + M.NODES_PER_LINE)
    p = clamp(p, 0.0, columns.to(tl.float64) - 1.0)
    q = clamp(q, 0.0, lines.to(tl.float64) - 1.0)
    j = tl.maximum(tl.minimum(p.to(tl.int32), columns - 2), 0)
    i = tl.maximum(tl.minimum(q.to(tl.int32), lines - 2), 0)
    s = p - j.to(tl.float64)
    t = q - i.to(tl.float64)
    right = tl.where(columns > 1, 2, 0)
    below = tl.where(lines > 1, 2 * columns, 0)
    nodes = int16s_at(buffer, tl.load(numbers + M.NODES)) + 2 * (i.to(tl.int64) * columns + j)
    unit = tl.load(reals + M.UNIT)
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


@triton.jit
def _value(buffer, plane, place):
    """Values of a mask at each place, its fill at -1, as int64."""
    shown = place >= 0
    address = tl.load(plane + M.SOURCE) + tl.load(plane + M.IS_IN_BUFFER) * buffer.to(tl.int64)
    kind = tl.load(plane + M.SOURCE_KIND)
    value = tl.full(place.shape, 0, tl.int64)
    if kind == M.BYTE:
        value = load_inside(address.to(tl.pointer_type(tl.uint8)) + place, shown).to(tl.int64)
    elif kind == M.SHORT:
        value = load_inside(address.to(tl.pointer_type(tl.int16)) + place, shown).to(tl.int64)
    elif kind == M.INT:
        value = load_inside(address.to(tl.pointer_type(tl.int32)) + place, shown).to(tl.int64)
    else:
        value = load_inside(address.to(tl.pointer_type(tl.int64)) + place, shown)
    return tl.where(shown, value, tl.load(plane + M.FILL))


@triton.jit
def _store(plane, at, value, written):
    address = tl.load(plane + M.TARGET)
    kind = tl.load(plane + M.TARGET_KIND)
    if kind == M.BYTE:
        tl.store(address.to(tl.pointer_type(tl.uint8)) + at, value.to(tl.uint8), mask=written)
    elif kind == M.SHORT:
        tl.store(address.to(tl.pointer_type(tl.int16)) + at, value.to(tl.int16), mask=written)
    elif kind == M.INT:
        tl.store(address.to(tl.pointer_type(tl.int32)) + at, value.to(tl.int32), mask=written)
    else:
        tl.store(address.to(tl.pointer_type(tl.int64)) + at, value, mask=written)
