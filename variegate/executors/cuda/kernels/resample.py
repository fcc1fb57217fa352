"""Antialiased resize of a box with fixed-point weights. Of uint8, it equals Pillow's to the bit: values between the two
directions have 8 bits. Of deep images, they are float32.

CPU counterparts: ``native/kernels/resize.cpp``, ``deep_resize.cpp`` and ``resize_weights.cpp``; definition:
``tests/oracle/resample.py``.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.element import add_weighted, begin_sum, pack, to_element, to_intermediate
from variegate.executors.cuda.kernels.fetch import fetch
from variegate.executors.cuda.kernels.memory import int32s_at, load_inside, load_int, size_of
from variegate.program import ops
from variegate.program import passes as P

_ONE = tl.constexpr(float(1 << L.RESIZE_BITS))
_PI = tl.constexpr(math.pi)
# Pillow has these constants in single precision.
_HAMMING_MEAN = tl.constexpr(0.5400000214576721)
_HAMMING_SWING = tl.constexpr(0.46000000834465027)


@triton.jit
def _sine(x):
    """sin(pi x) to a few units in the last place, by its series about the nearest integer.

    The library's sine handles arguments of any size, and uses local memory for large ones.
    """
    whole = tl.floor(x + 0.5)
    z = (x - whole) * _PI
    t = -z * z
    s = 1.0 + t / 420.0
    for i in tl.static_range(9):
        n = 18 - 2 * i
        s = 1.0 + t / (n * (n + 1)) * s
    odd = whole - 2.0 * tl.floor(whole * 0.5)
    return z * s * (1.0 - 2.0 * odd)


@triton.jit
def _sinc(x):
    return tl.where(x == 0.0, 1.0, _sine(x) / tl.where(x == 0.0, 1.0, x * _PI))


@triton.jit
def _filter(x, kind):
    """Pillow's filters, in double: triangle, bicubic (a = -0.5), box, Hamming, Lanczos."""
    in_box = (x > -0.5) & (x <= 0.5)
    x = tl.abs(x)
    if kind == ops.Interpolation.BILINEAR:
        w = tl.where(x < 1.0, 1.0 - x, 0.0)
    elif kind == ops.Interpolation.BICUBIC:
        near = (1.5 * x - 2.5) * x * x + 1.0
        far = (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
        w = tl.where(x < 1.0, near, tl.where(x < 2.0, far, 0.0))
    elif kind == ops.Interpolation.LANCZOS:
        w = tl.where(x < 3.0, _sinc(x) * _sinc(x / 3.0), 0.0)
    elif kind == ops.Interpolation.HAMMING:
        w = tl.where(x < 1.0, _sinc(x) * (_HAMMING_MEAN + _HAMMING_SWING * _sine(x + 0.5)), 0.0)
    else:
        w = tl.where(in_box, 1.0, 0.0).to(tl.float64)
    return w


@triton.jit
def _radius(kind):
    r = 1.0
    if kind == ops.Interpolation.BICUBIC:
        r = 2.0
    elif kind == ops.Interpolation.LANCZOS:
        r = 3.0
    elif kind == ops.Interpolation.BOX:
        r = 0.5
    return r


@triton.jit
def write_weights(buffer, code, args, header, block, BLOCK: tl.constexpr):
    """Write the weights of one block of output columns or lines; blocks of lines are numbered after the columns'."""
    slot = load_int(header + P.FIRST)
    ins_args = args + slot * 8
    height, width = size_of(header)
    taps_x = load_int(header + L.TAPS_X)
    taps_y = load_int(header + L.TAPS_Y)
    base = int32s_at(buffer, tl.load(header + L.WEIGHTS))
    column_blocks = tl.cdiv(width, BLOCK)
    kind = tl.load(code + slot * L.CODE + L.FLAG)
    if block < column_blocks:
        start = tl.load(ins_args + 1)
        extent = tl.load(ins_args + 3)
        in_size = load_int(header + L.IN_WIDTH)
        weights = base + width + height
        _weigh_axis(start, extent, in_size, width, taps_x, kind, block, base, weights, BLOCK)
    elif block < column_blocks + tl.cdiv(height, BLOCK):
        start = tl.load(ins_args)
        extent = tl.load(ins_args + 2)
        in_size = load_int(header + L.IN_HEIGHT)
        weights = base + width + height + taps_x * width
        _weigh_axis(start, extent, in_size, height, taps_y, kind, block - column_blocks, base + width, weights, BLOCK)


@triton.jit
def _weigh_axis(start, extent, in_size, out_size, taps, kind, block, lows, weights, BLOCK: tl.constexpr):
    """Write the first source index and ``taps`` weights, zero if unused, of each output of one block.

    A ``start`` of -1 - s means that pixels from s on are cropped first: the filter does not read outside the crop.
    """
    skipped = tl.where(start < 0.0, -1.0 - start, 0.0).to(tl.int32)
    in_size = tl.where(start < 0.0, extent.to(tl.int32), in_size)
    start = tl.maximum(start, 0.0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    is_used = i < out_size
    # The box is float32, as in Pillow; everything else is double.
    first = start.to(tl.float32)
    scale = ((start + extent).to(tl.float32) - first).to(tl.float64) / out_size.to(tl.float64)
    filter_scale = tl.maximum(scale, 1.0)
    support = _radius(kind) * filter_scale
    inverse = 1.0 / filter_scale
    center = first.to(tl.float64) + (i.to(tl.float64) + 0.5) * scale
    low = tl.maximum((center - support + 0.5).to(tl.int32), 0)
    high = tl.minimum((center + support + 0.5).to(tl.int32), in_size)
    tl.store(lows + i, low + skipped, mask=is_used)
    total = tl.full([BLOCK], 0.0, tl.float64)
    for j in range(taps):
        w = _filter(((low + j).to(tl.float64) - center + 0.5) * inverse, kind)
        total += tl.where(low + j < high, w, 0.0)
    divisor = tl.where(total != 0.0, total, 1.0)
    for j in range(taps):
        w = _filter(((low + j).to(tl.float64) - center + 0.5) * inverse, kind)
        w = tl.where(low + j < high, w, 0.0) / divisor
        fixed = (w * _ONE + tl.where(w >= 0.0, 0.5, -0.5)).to(tl.int32)
        tl.store(weights + j * out_size + i, fixed, mask=is_used)


@triton.jit
def read_resampled(buffer, args, header, x, y, inside, FORMAT: tl.constexpr):
    """Resized pixels. Lowering chose the flip (``args[6]``) and the order of directions (``args[7]``)."""
    ins_args = args + tl.load(header + P.FIRST) * 8
    height, width = size_of(header)
    in_height = load_int(header + L.IN_HEIGHT)
    in_width = load_int(header + L.IN_WIDTH)
    taps_x = load_int(header + L.TAPS_X)
    taps_y = load_int(header + L.TAPS_Y)
    x = tl.where(tl.load(ins_args + 6) != 0.0, width - 1 - x, x)
    base = int32s_at(buffer, tl.load(header + L.WEIGHTS))
    low_x = load_inside(base + x, inside)
    low_y = load_inside(base + width + y, inside)
    along_x = base + width + height + x
    along_y = base + width + height + taps_x * width + y
    r = begin_sum(x, L.RESIZE_BITS, FORMAT)
    g = r
    b = r
    if tl.load(ins_args + 7) == 0.0:
        for j in range(taps_y):
            line = tl.minimum(low_y + j, in_height - 1)
            row_r = begin_sum(x, L.RESIZE_BITS, FORMAT)
            row_g = row_r
            row_b = row_r
            for i in range(taps_x):
                column = tl.minimum(low_x + i, in_width - 1)
                weight = load_inside(along_x + i * width, inside)
                pixel = fetch(header, column, line, inside, FORMAT)
                row_r, row_g, row_b = add_weighted(row_r, row_g, row_b, weight, pixel)
            weight = load_inside(along_y + j * height, inside)
            r += weight * to_intermediate(row_r, L.RESIZE_BITS, FORMAT)
            g += weight * to_intermediate(row_g, L.RESIZE_BITS, FORMAT)
            b += weight * to_intermediate(row_b, L.RESIZE_BITS, FORMAT)
    else:
        for i in range(taps_x):
            column = tl.minimum(low_x + i, in_width - 1)
            line_r = begin_sum(x, L.RESIZE_BITS, FORMAT)
            line_g = line_r
            line_b = line_r
            for j in range(taps_y):
                line = tl.minimum(low_y + j, in_height - 1)
                weight = load_inside(along_y + j * height, inside)
                pixel = fetch(header, column, line, inside, FORMAT)
                line_r, line_g, line_b = add_weighted(line_r, line_g, line_b, weight, pixel)
            weight = load_inside(along_x + i * width, inside)
            r += weight * to_intermediate(line_r, L.RESIZE_BITS, FORMAT)
            g += weight * to_intermediate(line_g, L.RESIZE_BITS, FORMAT)
            b += weight * to_intermediate(line_b, L.RESIZE_BITS, FORMAT)
    return pack(
        to_element(r, L.RESIZE_BITS, FORMAT), to_element(g, L.RESIZE_BITS, FORMAT), to_element(b, L.RESIZE_BITS, FORMAT)
    )
