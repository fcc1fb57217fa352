"""Filtered pixels; and the filters that read far away pixels: ZOOM_BLUR, ABERRATION, SCATTER.

CPU counterpart: ``native/kernels/warp.cpp``; definition: ``tests/oracle/neighborhood.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.element import (
    begin_sum,
    blue,
    clamp,
    drop_bits,
    end_sum,
    full,
    green,
    pack,
    raise_bits,
    red,
)
from variegate.executors.cuda.kernels.memory import load_float, load_id, load_int, load_word, size_of
from variegate.executors.cuda.kernels.neighborhood import before, equalize_tiles, read_filtered
from variegate.executors.cuda.kernels.values import words
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def read_around(
    buffer, code, args, header, x, y, inside, key_low, key_high, FORMAT: tl.constexpr, HAS_CLAHE: tl.constexpr,
    HAS_WARP: tl.constexpr,
):  # fmt: skip
    """Pixels after the filter of the pass: CLAHE, a warp, or a filter of ``read_filtered``."""
    slot = load_int(header + P.FIRST)
    op = tl.load(code + slot * L.CODE + L.OP)
    black = full(x, 0, FORMAT)
    pixel = pack(black, black, black)
    is_left = True
    if HAS_CLAHE:
        if op == ops.Op.CLAHE:
            pixel = equalize_tiles(buffer, code, args, header, slot, x, y, inside, FORMAT)
        is_left = op != ops.Op.CLAHE
    if HAS_WARP:
        if op == ops.Op.ZOOM_BLUR:
            pixel = _blur_by_zooms(buffer, code, args, header, slot, x, y, inside, FORMAT)
        elif op == ops.Op.ABERRATION:
            pixel = _bend(buffer, code, args, header, slot, x, y, inside, FORMAT)
        elif op == ops.Op.SCATTER:
            pixel = _scatter(buffer, code, args, header, slot, x, y, inside, key_low, key_high, FORMAT)
        is_warp = (op == ops.Op.ZOOM_BLUR) | (op == ops.Op.ABERRATION) | (op == ops.Op.SCATTER)
        is_left &= is_warp == 0
    if is_left:
        pixel = read_filtered(buffer, code, args, header, x, y, inside, FORMAT)
    return pixel


@triton.jit
def _blur_by_zooms(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """ZOOM_BLUR: the mean of the image, counted twice, and its zooms about the center."""
    last_x = load_int(header + P.WIDTH) - 1
    last_y = load_int(header + P.HEIGHT) - 1
    zooms = load_int(args + slot * 8)
    step = tl.load(args + slot * 8 + 1)
    pixel = before(buffer, code, header, slot, x, y, inside, FORMAT)
    count = zooms + 2
    half = count * begin_sum(count, 8, FORMAT)
    r = raise_bits(red(pixel), 9) + half
    g = raise_bits(green(pixel), 9) + half
    b = raise_bits(blue(pixel), 9) + half
    for zoom in range(1, zooms + 1):
        nearer = (32768.0 / (1.0 + zoom * step) + 0.5).to(tl.int32)
        u = ((2 * x - last_x) * nearer + last_x * 32768 + 2048) >> 12
        v = ((2 * y - last_y) * nearer + last_y * 32768 + 2048) >> 12
        p, q, s, t, dx, dy = _around(buffer, code, header, slot, u, v, last_x, last_y, inside, 4, FORMAT)
        r += _between(red(p), red(q), red(s), red(t), dx, dy, 16)
        g += _between(green(p), green(q), green(s), green(t), dx, dy, 16)
        b += _between(blue(p), blue(q), blue(s), blue(t), dx, dy, 16)
    return pack(_share(r, count, FORMAT), _share(g, count, FORMAT), _share(b, count, FORMAT))


@triton.jit
def _share(total, count, FORMAT: tl.constexpr):
    """One of ``count`` equal parts of a sum with 8 fraction bits."""
    total = drop_bits(total, 8)
    if FORMAT >= L.UINT16:
        value = end_sum(total * (1.0 / count), 0, FORMAT)
    else:
        value = total // count
    return value


@triton.jit
def _around(buffer, code, header, slot, u, v, last_x, last_y, inside, BITS: tl.constexpr, FORMAT: tl.constexpr):
    """Four pixels around coordinates with BITS fraction bits -> (the pixels, weights of right and lower pixels)."""
    left = clamp(u >> BITS, 0, last_x)
    top = clamp(v >> BITS, 0, last_y)
    right = tl.minimum(left + 1, last_x)
    bottom = tl.minimum(top + 1, last_y)
    p = before(buffer, code, header, slot, left, top, inside, FORMAT)
    q = before(buffer, code, header, slot, right, top, inside, FORMAT)
    s = before(buffer, code, header, slot, left, bottom, inside, FORMAT)
    t = before(buffer, code, header, slot, right, bottom, inside, FORMAT)
    return p, q, s, t, u & ((1 << BITS) - 1), v & ((1 << BITS) - 1)


@triton.jit
def _between(p, q, s, t, dx, dy, ONE: tl.constexpr):
    return (ONE - dy) * ((ONE - dx) * p + dx * q) + dy * ((ONE - dx) * s + dx * t)


@triton.jit
def _bend(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """ABERRATION: red and blue from positions moved along the radius, green unchanged."""
    height, width = size_of(header)
    pixel = before(buffer, code, header, slot, x, y, inside, FORMAT)
    # The float64 quotient, rounded to float32, equals the CPU's float32 quotient.
    in_x = (1.0 / width.to(tl.float64)).to(tl.float32)
    in_y = (1.0 / height.to(tl.float64)).to(tl.float32)
    away_x = 0.5 * (2 * x - (width - 1)).to(tl.float32)
    away_y = 0.5 * (2 * y - (height - 1)).to(tl.float32)
    squared = (away_x * in_x) * (away_x * in_x) + (away_y * in_y) * (away_y * in_y)
    ins_args = args + slot * 8
    u, v = _bent(ins_args, squared, away_x, away_y, x, y)
    u = clamp(u, 0, 256 * (width - 1))
    v = clamp(v, 0, 256 * (height - 1))
    p, q, s, t, dx, dy = _around(buffer, code, header, slot, u, v, width - 1, height - 1, inside, 8, FORMAT)
    half = begin_sum(x, 16, FORMAT)
    r = end_sum(_between(red(p), red(q), red(s), red(t), dx, dy, 256) + half, 16, FORMAT)
    u, v = _bent(ins_args + 2, squared, away_x, away_y, x, y)
    u = clamp(u, 0, 256 * (width - 1))
    v = clamp(v, 0, 256 * (height - 1))
    p, q, s, t, dx, dy = _around(buffer, code, header, slot, u, v, width - 1, height - 1, inside, 8, FORMAT)
    b = end_sum(_between(blue(p), blue(q), blue(s), blue(t), dx, dy, 256) + half, 16, FORMAT)
    return pack(r, green(pixel), b)


@triton.jit
def _bent(ins_args, squared, away_x, away_y, x, y):
    first = load_float(ins_args)
    second = load_float(ins_args + 1)
    bend = (first + second * squared) * squared
    return 256 * x + _whole(away_x * bend), 256 * y + _whole(away_y * bend)


@triton.jit
def _whole(pixels):
    """Convert pixels to fixed point with 8 fraction bits, rounded half up."""
    return tl.floor(clamp(pixels * 256.0 + 0.5, -8388608.0, 8388608.0)).to(tl.int32)


@triton.jit
def _scatter(buffer, code, args, header, slot, x, y, inside, key_low, key_high, FORMAT: tl.constexpr):
    """SCATTER: each pixel from a position up to three random steps away."""
    height, width = size_of(header)
    ins_args = args + slot * 8
    distance = load_int(ins_args)
    times = load_int(ins_args + 1)
    id_low, id_high = load_id(header)
    noise = load_word(ins_args + 2)
    w0, w1, w2, _ = words(y * width + x, noise, id_low, id_high, key_low, key_high)
    u, v = _step(w0, x, y, distance, times > 0)
    u, v = _step(w1, u, v, distance, times > 1)
    u, v = _step(w2, u, v, distance, times > 2)
    u = clamp(u, 0, width - 1)
    v = clamp(v, 0, height - 1)
    return before(buffer, code, header, slot, u, v, inside, FORMAT)


@triton.jit
def _step(word, u, v, distance, is_taken):
    span = 2 * distance + 1
    low = (word & 0xFFFF).to(tl.int32)
    high = (word >> 16).to(tl.int32)
    step_x = ((low * span) >> 16) - distance
    step_y = ((high * span) >> 16) - distance
    return tl.where(is_taken, u + step_x, u), tl.where(is_taken, v + step_y, v)
