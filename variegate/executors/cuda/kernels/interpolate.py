"""Interpolating (and real-valued nearest) maps, with Pillow's double arithmetic."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, fetch, green, pack, red
from variegate.executors.cuda.kernels.values import look_up
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def read_interpolated(buffer, code, args, header, x, y, inside, FORMAT: tl.constexpr):
    """The pixels that a chain of real maps shows at ``x, y`` -> (pixel, stage, colour), see ``maps.walk``."""
    first, end = tl.load(header + P.FIRST).to(tl.int32), tl.load(header + P.MAPS_END).to(tl.int32)
    u, v, stage, colour = _walk_real(code, args, first, end, x, y)
    inside = inside & (stage < 0)
    at = code + first * L.CODE
    flag = tl.load(at + L.FLAG)
    window = at + L.WINDOW
    pixel = tl.full(x.shape, 0, tl.int32)
    if flag == ops.Interpolation.NEAREST:
        pixel = _tap(buffer, code, header, first, window, u.to(tl.int32), v.to(tl.int32), inside, FORMAT)
    else:
        u, v = u - 0.5, v - 0.5
        column, line = tl.floor(u).to(tl.int32), tl.floor(v).to(tl.int32)
        dx, dy = u - column.to(tl.float64), v - line.to(tl.float64)
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
                row0, row1, row2, row3 = dx, dx, dx, dx
                for j in range(4):
                    row = _cubic_row(
                        buffer, code, header, first, window, column, line - 1 + j, dx, inside, shift, FORMAT
                    )
                    row0, row1, row2, row3 = row1, row2, row3, row
                level = tl.minimum(tl.maximum(_cubic(row0, row1, row2, row3, dy), 0.0), 255.0)
                pixel |= level.to(tl.int32) << shift
    return pixel, stage, colour


@triton.jit
def _walk_real(code, args, begin, end, x, y):
    """Continuous source places of pixel centres, float64 -> (u, v, stage, colour)."""
    u, v = x.to(tl.float64) + 0.5, y.to(tl.float64) + 0.5
    stage = tl.full(x.shape, -1, tl.int32)
    colour = tl.full(x.shape, 0, tl.int32)
    for i in range(end - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        op = tl.load(at + L.OP)
        if (op == ops.Op.MAP_FLOAT) | (op == ops.Op.MAP_PERSPECTIVE):
            a = args + slot * 8
            new_u = tl.load(a) * u + tl.load(a + 1) * v + tl.load(a + 2)
            new_v = tl.load(a + 3) * u + tl.load(a + 4) * v + tl.load(a + 5)
            a6, a7 = tl.load(a + 6), tl.load(a + 7)
            is_perspective = op == ops.Op.MAP_PERSPECTIVE
            if is_perspective:
                depth = a6 * u + a7 * v + 1.0
                new_u, new_v = new_u / depth, new_v / depth
            window = at + L.WINDOW
            top, left = tl.load(window).to(tl.float64), tl.load(window + 1).to(tl.float64)
            bottom, right = tl.load(window + 2).to(tl.float64), tl.load(window + 3).to(tl.float64)
            # False for NaN, a point at infinity. A map that took in a flip has the border that counts on the far side.
            is_mirrored = (not is_perspective) & (a6 != 0.0)
            inside_x = tl.where(is_mirrored, (new_u > left) & (new_u <= right), (new_u >= left) & (new_u < right))
            is_mirrored = (not is_perspective) & (a7 != 0.0)
            inside_y = tl.where(is_mirrored, (new_v > top) & (new_v <= bottom), (new_v >= top) & (new_v < bottom))
            is_inside = inside_x & inside_y
            leaves = (is_inside == 0) & (stage < 0)
            stage = tl.where(leaves, slot, stage)
            colour = tl.where(leaves, tl.load(at + L.FILL), colour)
            u = tl.where(is_inside, new_u, left + 0.5)
            v = tl.where(is_inside, new_v, top + 0.5)
    return u, v, stage, colour


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
    return a + (b - a) * t


@triton.jit
def _bilinear(p00, p01, p10, p11, dx, dy):
    upper = _mix(p00.to(tl.float64), p01.to(tl.float64), dx)
    lower = _mix(p10.to(tl.float64), p11.to(tl.float64), dx)
    return _mix(upper, lower, dy).to(tl.int32)


@triton.jit
def _cubic_row(buffer, code, header, first, window, column, line, dx, inside, shift, FORMAT: tl.constexpr):
    v1 = _tap(buffer, code, header, first, window, column - 1, line, inside, FORMAT)
    v2 = _tap(buffer, code, header, first, window, column, line, inside, FORMAT)
    v3 = _tap(buffer, code, header, first, window, column + 1, line, inside, FORMAT)
    v4 = _tap(buffer, code, header, first, window, column + 2, line, inside, FORMAT)
    return _cubic(
        ((v1 >> shift) & 255).to(tl.float64),
        ((v2 >> shift) & 255).to(tl.float64),
        ((v3 >> shift) & 255).to(tl.float64),
        ((v4 >> shift) & 255).to(tl.float64),
        dx,
    )


@triton.jit
def _cubic(v1, v2, v3, v4, d):
    """Pillow's cubic through four values (a = -1)."""
    p2 = v3 - v1
    p3 = 2.0 * (v1 - v2) + v3 - v4
    p4 = v2 - v1 - v3 + v4
    return v2 + d * (p2 + d * (p3 + d * p4))
