"""Interpolating maps, in integers and one float32 division; and nearest ones beyond fixed point, in Pillow's doubles.

What is computed is defined in ``executors/reference/places.py`` and ``gather.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import (
    blue,
    fetch,
    form,
    green,
    nearest_in_grid,
    pack,
    place,
    red,
    walk_grids,
    walk_records,
)
from variegate.executors.cuda.kernels.values import look_up
from variegate.program import ops
from variegate.program import passes as P
from variegate.program import places as R


@triton.jit
def read_interpolated(buffer, code, args, header, x, y, inside, HAS_GRID: tl.constexpr, FORMAT: tl.constexpr):
    """The pixels that a chain of real maps shows at ``x, y`` -> (pixel, stage), see ``maps.walk``."""
    first, end = tl.load(header + P.FIRST).to(tl.int32), tl.load(header + P.MAPS_END).to(tl.int32)
    at = code + first * L.CODE
    flag = tl.load(at + L.FLAG)
    window = at + L.WINDOW
    pixel = tl.full(x.shape, 0, tl.int32)
    stage = tl.full(x.shape, -1, tl.int32)
    if flag == ops.Interpolation.NEAREST:
        op = tl.load(at + L.OP)
        u, v, is_inside = _nearest(args + first * 8, op, window, x, y)
        if HAS_GRID:
            if op == ops.Op.MAP_GRID:
                u, v, is_inside = nearest_in_grid(buffer, at, x, y)
        stage = tl.where(is_inside, -1, first)
        pixel = _tap(buffer, code, header, first, window, u, v, inside & is_inside, FORMAT)
    else:
        bits = tl.where(flag == ops.Interpolation.BILINEAR, R.BILINEAR_BITS, R.BICUBIC_BITS)
        half = (1 << bits) >> 1
        if HAS_GRID:
            u, v, stage = walk_grids(buffer, code, first, end, x, y, bits)
        else:
            record = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int64))
            u, v, depth = form(record + R.U, x, y), form(record + R.V, x, y), form(record + R.DEPTH, x, y)
            stage = walk_records(buffer, code, first, end, record, u, v, depth, x, y)
            u, v = place(record, u, v, depth, bits)
            u, v = u - half, v - half
        inside = inside & (stage < 0)
        column, line = u >> bits, v >> bits
        dx, dy = u & ((1 << bits) - 1), v & ((1 << bits) - 1)
        if flag == ops.Interpolation.BILINEAR:
            p00 = _tap(buffer, code, header, first, window, column, line, inside, FORMAT)
            p01 = _tap(buffer, code, header, first, window, column + 1, line, inside, FORMAT)
            p10 = _tap(buffer, code, header, first, window, column, line + 1, inside, FORMAT)
            p11 = _tap(buffer, code, header, first, window, column + 1, line + 1, inside, FORMAT)
            pixel = pack(
                _bilinear(red(p00), red(p01), red(p10), red(p11), dx, dy),
                _bilinear(green(p00), green(p01), green(p10), green(p11), dx, dy),
                _bilinear(blue(p00), blue(p01), blue(p10), blue(p11), dx, dy),
            )
        else:
            # One channel and one line after another: all at once would not fit into registers.
            for channel in range(3):
                shift = 8 * channel
                total = tl.full(x.shape, 0, tl.int32)
                for j in range(4):
                    row = _cubic_row(
                        buffer, code, header, first, window, column, line - 1 + j, dx, inside, shift, FORMAT
                    )
                    total += _weight(dy, j) * row
                pixel |= tl.minimum(tl.maximum(total >> 20, 0), 255) << shift
    return pixel, stage


@triton.jit
def _nearest(a, op, window, x, y):
    """The pixel that lies under a pixel's centre -> (column, line, whether it is inside)."""
    x, y = x.to(tl.float64) + 0.5, y.to(tl.float64) + 0.5
    u = tl.load(a) * x + tl.load(a + 1) * y + tl.load(a + 2)
    v = tl.load(a + 3) * x + tl.load(a + 4) * y + tl.load(a + 5)
    if op == ops.Op.MAP_PERSPECTIVE:
        depth = tl.load(a + 6) * x + tl.load(a + 7) * y + 1.0
        u, v = u / depth, v / depth
    # False for NaN, a point at infinity.
    in_x = (u >= tl.load(window + 1).to(tl.float64)) & (u < tl.load(window + 3).to(tl.float64))
    in_y = (v >= tl.load(window).to(tl.float64)) & (v < tl.load(window + 2).to(tl.float64))
    is_inside = in_x & in_y
    return tl.where(is_inside, u, 0.0).to(tl.int32), tl.where(is_inside, v, 0.0).to(tl.int32), is_inside


@triton.jit
def _tap(buffer, code, header, first, window, column, line, inside, FORMAT: tl.constexpr):
    """A pixel of the first map's window, clamped to it, through the tables before that map."""
    top, left = tl.load(window), tl.load(window + 1)
    column = tl.minimum(tl.maximum(column, left), tl.load(window + 3) - 1)
    line = tl.minimum(tl.maximum(line, top), tl.load(window + 2) - 1)
    return through_tables(buffer, code, header, first, fetch(header, column, line, inside, FORMAT))


@triton.jit
def through_tables(buffer, code, header, end, pixel):
    """``pixel`` through the tables from the pass's begin up to slot ``end``."""
    channels = tl.load(header + L.CHANNELS)
    for slot in range(tl.load(header + P.BEGIN).to(tl.int32), end):
        at = code + slot * L.CODE
        if tl.load(at + L.CLASS) == L.LOOKUP:
            r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, red(pixel), green(pixel), blue(pixel))
            pixel = pack(r, g, b)
    return pixel


@triton.jit
def _mix(a, b, t):
    """Of levels with seven fraction bits, by a weight with fifteen."""
    return a + (((b - a) * t + (1 << 14)) >> 15)


@triton.jit
def _bilinear(p00, p01, p10, p11, dx, dy):
    return _mix(_mix(p00 << 7, p01 << 7, dx), _mix(p10 << 7, p11 << 7, dx), dy) >> 7


@triton.jit
def _cubic_row(buffer, code, header, first, window, column, line, dx, inside, shift, FORMAT: tl.constexpr):
    """A line's taps, weighed: in 1/64 levels."""
    total = tl.full(dx.shape, 1 << 7, tl.int32)
    for i in range(4):
        tap = _tap(buffer, code, header, first, window, column - 1 + i, line, inside, FORMAT)
        total += _weight(dx, i) * ((tap >> shift) & 255)
    return total >> 8


@triton.jit
def _weight(t, i):
    """Of tap ``i``, in 2**-14: a cubic convolution with a = -1."""
    u = (1 << 14) - t
    # From the other side, the last taps are the first.
    t, u = tl.where(i < 2, t, u), tl.where(i < 2, u, t)
    product = (t * u + (1 << 13)) >> 14
    outer = -((product * u + (1 << 13)) >> 14)
    return tl.where((i == 0) | (i == 3), outer, u - outer)
