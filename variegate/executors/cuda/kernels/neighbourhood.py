"""Sharpness and blurs: a filtered pixel, read at the source through what comes before the filter."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, fetch, green, pack, red
from variegate.executors.cuda.kernels.maps import walk
from variegate.executors.cuda.kernels.values import blend, look_up, to_level
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def read_filtered(buffer, code, args, header, x, y, inside, FORMAT: tl.constexpr):
    """Pixels after the filter of the pass."""
    slot = tl.load(header + P.FIRST).to(tl.int32)
    at = code + slot * L.CODE
    pixel = tl.full(x.shape, 0, tl.int32)
    if tl.load(at + L.OP) == ops.Op.SHARPNESS:
        pixel = _sharpen(buffer, code, args, header, slot, x, y, inside, FORMAT)
    elif tl.load(at + L.FLAG) != 0:
        pixel = _blur_separably(buffer, code, header, slot, x, y, inside, FORMAT)
    else:
        pixel = _convolve(buffer, code, header, slot, x, y, inside, FORMAT)
    return pixel


@triton.jit
def _before(buffer, code, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """The pixel that the filter at ``slot`` sees at ``x, y``: through at most one map, and tables."""
    begin = tl.load(header + P.BEGIN).to(tl.int32)
    u, v, stage, colour = walk(code, begin, slot, x, y)
    is_inside = stage < 0
    pixel = tl.where(is_inside, fetch(header, u, v, inside & is_inside, FORMAT), colour)
    channels = tl.load(header + L.CHANNELS)
    for k in range(begin, slot):
        at = code + k * L.CODE
        if tl.load(at + L.CLASS) == L.LOOKUP:
            r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, red(pixel), green(pixel), blue(pixel))
            pixel = tl.where(stage < k, pack(r, g, b), pixel)
    return pixel


@triton.jit
def _sharpen(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """Pillow's blend with SMOOTH (1 1 1, 1 5 1, 1 1 1)/13; the one-pixel border stays as it is."""
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    is_inner = (x > 0) & (x < width - 1) & (y > 0) & (y < height - 1)
    centre = _before(buffer, code, header, slot, x, y, inside, FORMAT)
    # Two channels in one word: sums of nine levels and four centres stay below 2**16.
    outer, middle = centre & 0xFF00FF, green(centre)
    outer, middle = 4 * outer, 4 * middle
    for tap in range(9):
        dx, dy = tap % 3 - 1, tap // 3 - 1
        pixel = _before(buffer, code, header, slot, x + dx, y + dy, inside & is_inner, FORMAT)
        outer += pixel & 0xFF00FF
        middle += green(pixel)
    factor = tl.load(args + slot * 8).to(tl.float32)
    sharpened = pack(
        blend(_thirteenth(outer & 0xFFFF), red(centre), factor),
        blend(_thirteenth(middle), green(centre), factor),
        blend(_thirteenth(outer >> 16), blue(centre), factor),
    )
    return tl.where(is_inner, sharpened, centre)


@triton.jit
def _thirteenth(total):
    """floor((2 total + 13) / 26), by a product that is exact for every total up to 13 * 255."""
    return ((2 * total + 13) * 20165) >> 19


@triton.jit
def _reflect(i, n):
    """Index ``i`` mirrored into 0..n-1 about the border pixels, repeatedly."""
    period = tl.maximum(2 * (n - 1), 1)
    i = tl.abs(i) % period
    return tl.where(n == 1, 0, tl.where(i >= n, period - i, i))


@triton.jit
def _blur_separably(buffer, code, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """Reflect padding; sums along columns, then along the row (an order that the roundings show); half to even."""
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    at = code + slot * L.CODE
    kx, ky = tl.load(at + L.COEFFICIENT), tl.load(at + L.COEFFICIENT + 1)
    along_x = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.float32))
    along_y = along_x + kx
    total_r = tl.full(x.shape, 0.0, tl.float32)
    total_g, total_b = total_r, total_r
    for i in range(kx):
        u = _reflect(x + (i - kx // 2), width)
        sum_r = tl.full(x.shape, 0.0, tl.float32)
        sum_g, sum_b = sum_r, sum_r
        for j in range(ky):
            v = _reflect(y + (j - ky // 2), height)
            pixel = _before(buffer, code, header, slot, u, v, inside, FORMAT)
            weight = tl.load(along_y + j)
            sum_r += weight * red(pixel).to(tl.float32)
            sum_g += weight * green(pixel).to(tl.float32)
            sum_b += weight * blue(pixel).to(tl.float32)
        weight = tl.load(along_x + i)
        total_r += weight * sum_r
        total_g += weight * sum_g
        total_b += weight * sum_b
    return pack(_half_to_even(total_r), _half_to_even(total_g), _half_to_even(total_b))


@triton.jit
def _half_to_even(value):
    value = tl.minimum(tl.maximum(value, 0.0), 255.0)
    whole = value.to(tl.int32)
    rest = value - whole.to(tl.float32)
    goes_up = (rest > 0.5) | ((rest == 0.5) & (whole % 2 == 1))
    return whole + goes_up.to(tl.int32)


@triton.jit
def _convolve(buffer, code, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """A full kernel, edge padding, rounded half up. Cells of zero weight cost nothing."""
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    at = code + slot * L.CODE
    kx, ky = tl.load(at + L.COEFFICIENT), tl.load(at + L.COEFFICIENT + 1)
    weights = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.float32))
    total_r = tl.full(x.shape, 0.5, tl.float32)
    total_g, total_b = total_r, total_r
    for cell in range(kx * ky):
        weight = tl.load(weights + cell)
        if weight != 0.0:
            i, j = cell % kx, cell // kx
            u = tl.minimum(tl.maximum(x + (i - kx // 2), 0), width - 1)
            v = tl.minimum(tl.maximum(y + (j - ky // 2), 0), height - 1)
            pixel = _before(buffer, code, header, slot, u, v, inside, FORMAT)
            total_r += weight * red(pixel).to(tl.float32)
            total_g += weight * green(pixel).to(tl.float32)
            total_b += weight * blue(pixel).to(tl.float32)
    return pack(to_level(total_r), to_level(total_g), to_level(total_b))
