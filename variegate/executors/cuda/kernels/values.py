"""Operations on a tile's pixels by value (tables, colors, hue) and by position (noise, rectangles).

``r, g, b`` are values as in ``element.py``. Images of one channel use ``r``; ``g`` and ``b`` are then arbitrary. CPU
counterparts: ``native/kernels/values.cpp``, ``hue.cpp``, ``noise.cpp`` and ``erase.cpp``; definitions:
``tests/oracle/values.py`` and ``position.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.deep import gray_of, turn_deep_hue
from variegate.executors.cuda.kernels.element import (
    channels_of,
    clamp,
    color_at,
    from_word,
    full,
    round_value,
    select_rgb,
    truncate_value,
)
from variegate.executors.cuda.kernels.memory import float32s_at, int32s_at, load_float, load_id, load_int, load_word
from variegate.executors.cuda.kernels.overlay import overlay
from variegate.program import ops, rng


@triton.jit
def look_up(buffer, table, channels, r, g, b):
    """``table``: offset of uint8[3, 256] in ``buffer``. One channel uses the first table."""
    # The hardware's address mode adds a uint32 offset to a kernel argument without an instruction.
    r = load_int(buffer + (table + r).to(tl.uint32))
    if channels == 3:
        g = load_int(buffer + (table + 256 + g).to(tl.uint32))
        b = load_int(buffer + (table + 512 + b).to(tl.uint32))
    return r, g, b


@triton.jit
def luma(r, g, b, FORMAT: tl.constexpr):
    """Pillow's conversion to "L", of 8 bits; of deep images torchvision's."""
    if FORMAT >= L.UINT16:
        gray = gray_of(r, g, b, FORMAT)
    else:
        gray = (ops.LUMA_RED * r + ops.LUMA_GREEN * g + ops.LUMA_BLUE * b + ops.LUMA_HALF) >> ops.LUMA_SHIFT
    return gray


@triton.jit
def blend(degenerate, level, factor, FORMAT: tl.constexpr):
    """Pillow's Image.blend in float32, truncated and clipped. ``factor``: float32."""
    base = degenerate.to(tl.float32)
    value = base + factor * (level.to(tl.float32) - base)
    return truncate_value(value, FORMAT)


@triton.jit
def apply_value(
    buffer, ins, args, r, g, b, channels, HAS_HUE: tl.constexpr, PIXEL_FUNCTIONS: tl.constexpr, FORMAT: tl.constexpr
):
    """Apply one VALUE instruction. ``ins``, ``args``: addresses of its code and its arguments."""
    op = tl.load(ins + L.OP)
    if channels == 1:
        # The operations below treat gray as three equal channels; only the first is stored.
        g = r
        b = r
    if op == ops.Op.MIX:
        factor = load_float(args)
        gray = luma(r, g, b, FORMAT)
        r = blend(gray, r, factor, FORMAT)
        g = blend(gray, g, factor, FORMAT)
        b = blend(gray, b, factor, FORMAT)
    elif op == ops.Op.PERMUTE:
        r, g, b = (
            _pick(load_int(args), r, g, b),
            _pick(load_int(args + 1), r, g, b),
            _pick(load_int(args + 2), r, g, b),
        )
    elif op == ops.Op.COLOR_MATRIX:
        m = float32s_at(buffer, tl.load(ins + L.ARG))
        red = r.to(tl.float32)
        green = g.to(tl.float32)
        blue = b.to(tl.float32)
        r = _weigh(m, red, green, blue, FORMAT)
        g = _weigh(m + 4, red, green, blue, FORMAT)
        b = _weigh(m + 8, red, green, blue, FORMAT)
    if HAS_HUE:
        if op == ops.Op.HUE:
            if FORMAT >= L.UINT16:
                r, g, b = turn_deep_hue(r, g, b, load_float(args), FORMAT)
            else:
                r, g, b = _turn_hue(r, g, b, (tl.load(args) * 255.0).to(tl.int32) & 255)
    for i in tl.static_range(len(PIXEL_FUNCTIONS)):
        if (op == ops.Op.PIXEL_FUNCTION) & (tl.load(ins + L.ARG) == i):
            red, green, blue = PIXEL_FUNCTIONS[i](
                r.to(tl.float32), g.to(tl.float32), b.to(tl.float32), load_float(args + 1)
            )
            r = _round_number(red, FORMAT)
            g = _round_number(green, FORMAT)
            b = _round_number(blue, FORMAT)
    return r, g, b


@triton.jit
def _round_number(value, FORMAT: tl.constexpr):
    """Round half up and clip; 0 for NaN."""
    return truncate_value(tl.where(value == value, value + 0.5, 0.0), FORMAT)


@triton.jit
def _pick(channel, r, g, b):
    return tl.where(channel == 0, r, tl.where(channel == 1, g, b))


@triton.jit
def _weigh(m, r, g, b, FORMAT: tl.constexpr):
    """One row of a 3x4 matrix, rounded half up."""
    value = tl.load(m) * r + tl.load(m + 1) * g + tl.load(m + 2) * b + tl.load(m + 3) * L.UNIT[FORMAT]
    return round_value(value, FORMAT)


@triton.jit
def _turn_hue(r, g, b, shift):
    """Pillow's RGB -> HSV -> RGB in 8 bits; ``shift`` is added to the hue byte.

    The formula of ``native/kernels/hue.cpp``, which explains it; definition: ``hue`` in ``tests/oracle/values.py``.
    """
    high = tl.maximum(tl.maximum(r, g), b)
    low = tl.minimum(tl.minimum(r, g), b)
    span = high - low
    red_is_low = r == low
    blue_is_low = b == low
    base = tl.where(g == high, tl.where(blue_is_low, 1, 3), tl.where(red_is_low, 3, 5))
    base = tl.where(r == high, tl.where(blue_is_low, 1, -1), base)
    falls = tl.where(r == high, blue_is_low, tl.where(g == high, b != low, r != low))
    from_middle = high + high + low - r - g - b
    from_middle = tl.where(falls, -from_middle, from_middle)
    part = tl.div_rn(from_middle.to(tl.float32), tl.maximum(span, 1).to(tl.float32))
    turn = tl.div_rn(base.to(tl.float32) + part, tl.full(part.shape, 6.0, tl.float32))
    turn = tl.where(turn < 0.0, turn + 1.0, turn)
    s = tl.div_rn((span * 255).to(tl.float32), tl.maximum(high, 1).to(tl.float32)).to(tl.int32)
    place = 2 * (((turn * 255.0).to(tl.int32) + shift) & 255)
    # Weights are distances between the hue and a channel's primary hue, in 85ths of a sextant: the channel is at its
    # maximum up to a distance of 85, and at its minimum from 170.
    value = high.to(tl.float32) * (1.0 / 21675)
    r1 = _faded(value, s, 170 - tl.abs(place - 255))
    g1 = _faded(value, s, tl.abs(place - 170) - 85)
    b1 = _faded(value, s, tl.abs(place - 340) - 85)
    return r1, g1, b1


@triton.jit
def _faded(value, s, weight):
    fade = 21675 - s * clamp(weight, 0, 85)
    # Adding 2**23 rounds to an integer, which is then in the lower bits.
    return (value * fade.to(tl.float32) + 8388608.0).to(tl.int32, bitcast=True) & 255


_UNIT = tl.constexpr(2.0**-24)
_M0 = tl.constexpr(0xD2511F53)
_M1 = tl.constexpr(0xCD9E8D57)
_W0 = tl.constexpr(0x9E3779B9)
_W1 = tl.constexpr(0xBB67AE85)


@triton.jit
def philox(c0, c1, c2, c3, k0, k1):
    """One Philox block per lane, all uint32 -> four uint32 words. See ``program/rng.py`` and ``native/philox.h``."""
    m0 = tl.full(c0.shape, _M0, tl.uint32)
    m1 = tl.full(c0.shape, _M1, tl.uint32)
    for _ in tl.static_range(10):
        high0 = tl.umulhi(c0, m0)
        low0 = c0 * m0
        high1 = tl.umulhi(c2, m1)
        low1 = c2 * m1
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += tl.full([], _W0, tl.uint32)
        k1 += tl.full([], _W1, tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def words(pixel, slot, id_low, id_high, key_low, key_high):
    """The four random words of every pixel; ``pixel`` is its index in the image, int32."""
    index = pixel.to(tl.uint32)
    zero = index ^ index
    return philox(index, zero + slot, zero + id_low, zero + id_high, key_low, key_high)


@triton.jit
def unit(word):
    """24 bits of a word as float32 in [0, 1)."""
    return (word >> 8).to(tl.float32) * _UNIT


@triton.jit
def normals(segments, pixel, slot, id_low, id_high, key_low, key_high):
    """Three standard normal float32 of every pixel. ``segments``: float32[segments, 2] of program/rng.py."""
    w0, w1, w2, _ = words(pixel, slot, id_low, id_high, key_low, key_high)
    return _normal(segments, w0), _normal(segments, w1), _normal(segments, w2)


@triton.jit
def _normal(segments, word):
    number = ((word & rng.MAGNITUDE) | 1).to(tl.int32).to(tl.float32)
    line = segments + 2 * ((number.to(tl.int32, bitcast=True) >> rng.SEGMENT_SHIFT) - rng.FIRST_SEGMENT)
    quantile = tl.load(line) + tl.load(line + 1) * number
    return tl.where((word & rng.SIGN) != 0, -quantile, quantile)


@triton.jit
def is_erased(buffer, ins, x, y):
    """True for pixels in one of the instruction's rectangles (top, left, height, width)."""
    rectangles = int32s_at(buffer, tl.load(ins + L.ARG))
    erased = tl.full(x.shape, 0, tl.int1)
    for q in range(tl.load(ins + L.COUNT)):
        top = tl.load(rectangles + 4 * q)
        left = tl.load(rectangles + 4 * q + 1)
        bottom = top + tl.load(rectangles + 4 * q + 2)
        right = left + tl.load(rectangles + 4 * q + 3)
        erased |= (y >= top) & (y < bottom) & (x >= left) & (x < right)
    return erased


@triton.jit
def apply_position(
    buffer,
    ins,
    args,
    header,
    constants,
    x,
    y,
    height,
    width,
    channels,
    r,
    g,
    b,
    key_low,
    key_high,
    HAS_NOISE: tl.constexpr,
    HAS_OVERLAY: tl.constexpr,
    FORMAT: tl.constexpr,
):
    """Apply one POSITION instruction to pixels ``x, y`` of an image of ``height x width``."""
    op = tl.load(ins + L.OP)
    if HAS_OVERLAY:
        if op == ops.Op.OVERLAY:
            r, g, b = overlay(buffer, ins, x, y, channels, r, g, b)
    if op == ops.Op.ERASE:
        erased = is_erased(buffer, ins, x, y)
        fill_r, fill_g, fill_b = channels_of(color_at(ins, FORMAT))
        new_r = fill_r + 0 * x
        new_g = fill_g + 0 * x
        new_b = fill_b + 0 * x
        if HAS_NOISE:
            if tl.load(args + 2) != 0.0:
                slot = load_word(args + 3)
                w0, w1, w2, _ = _words(header, x, y, width, slot, key_low, key_high)
                new_r = from_word(w0, FORMAT)
                new_g = from_word(w1, FORMAT)
                new_b = from_word(w2, FORMAT)
        r, g, b = select_rgb(erased, new_r, new_g, new_b, r, g, b)
    if HAS_NOISE:
        if op == ops.Op.SALT_AND_PEPPER:
            slot = load_word(args + 2)
            w0, w1, _, _ = _words(header, x, y, width, slot, key_low, key_high)
            is_hit = unit(w0) < load_float(args)
            is_white = unit(w1) < load_float(args + 1)
            extreme = tl.where(is_white, full(r, L.WHITE[FORMAT], FORMAT), full(r, 0, FORMAT))
            r, g, b = select_rgb(is_hit, extreme, extreme, extreme, r, g, b)
        elif (op == ops.Op.GAUSSIAN_NOISE) | (op == ops.Op.SHOT_NOISE):
            first = load_float(args)
            second = load_float(args + 1)
            is_gaussian = op == ops.Op.GAUSSIAN_NOISE
            slot = load_word(args + tl.where(is_gaussian, 2, 1))
            n0, n1, n2 = _normals(header, constants, x, y, width, slot, key_low, key_high)
            r = _add_noise(r, n0, first, second, is_gaussian, FORMAT)
            g = _add_noise(g, n1, first, second, is_gaussian, FORMAT)
            b = _add_noise(b, n2, first, second, is_gaussian, FORMAT)
    return r, g, b


@triton.jit
def _add_noise(level, n, first, second, is_gaussian, FORMAT: tl.constexpr):
    value = level.to(tl.float32)
    gaussian = L.WHITE[FORMAT] * (first + second * n)
    shot = tl.sqrt_rn(tl.maximum(value * (first * L.UNIT[FORMAT]), 0.0)) * n
    return round_value(value + tl.where(is_gaussian, gaussian, shot), FORMAT)


@triton.jit
def _words(header, x, y, width, slot, key_low, key_high):
    id_low, id_high = load_id(header)
    return words(y * width + x, slot, id_low, id_high, key_low, key_high)


@triton.jit
def _normals(header, constants, x, y, width, slot, key_low, key_high):
    id_low, id_high = load_id(header)
    return normals(constants + L.SEGMENTS, y * width + x, slot, id_low, id_high, key_low, key_high)


@triton.jit
def erase_normalized(
    buffer, code, args, header, constants, begin, end, x, y, width, r, g, b, key_low, key_high, HAS_NOISE: tl.constexpr
):
    """Apply the ERASE instructions after Normalize, on float32 values."""
    for slot in range(begin, end):
        ins = code + slot * L.CODE
        if tl.load(ins + L.CLASS) == L.POSITION_NORMALIZED:
            ins_args = args + slot * 8
            erased = is_erased(buffer, ins, x, y)
            new_r = load_float(ins_args + 4) + 0.0 * r
            new_g = load_float(ins_args + 5) + 0.0 * r
            new_b = load_float(ins_args + 6) + 0.0 * r
            if HAS_NOISE:
                if tl.load(ins_args + 2) != 0.0:
                    noise_slot = load_word(ins_args + 3)
                    new_r, new_g, new_b = _normals(header, constants, x, y, width, noise_slot, key_low, key_high)
            r, g, b = select_rgb(erased, new_r, new_g, new_b, r, g, b)
    return r, g, b
