"""Operations on values of uint16 and float32 images, which uint8 images look up in tables; statistics; and medians.

CPU counterparts: ``native/kernels/deep.cpp`` and ``median.cpp``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.element import clamp, from_byte, full, round_value, truncate_value
from variegate.executors.cuda.kernels.elementary import power
from variegate.executors.cuda.kernels.memory import float32s_at, load_int
from variegate.program import ops


@triton.jit
def change_values(buffer, ins, channels, r, g, b, FORMAT: tl.constexpr):
    """Apply the per-channel operation or the statistic at ``ins``. Images of one channel use ``r``."""
    r = _changed(buffer, ins, 0, r, FORMAT)
    if channels == 3:
        g = _changed(buffer, ins, 1, g, FORMAT)
        b = _changed(buffer, ins, 2, b, FORMAT)
    return r, g, b


@triton.jit
def _changed(buffer, ins, channel, value, FORMAT: tl.constexpr):
    op = tl.load(ins + L.OP)
    numbers = (ins + L.PARAMS).to(tl.pointer_type(tl.float32))
    first = tl.load(numbers)
    second = tl.load(numbers + 1)
    new = value
    if op == ops.Op.BRIGHTNESS:
        new = first * value
    elif op == ops.Op.GAMMA:
        gain = second * L.GREATEST[FORMAT]
        new = gain * power(value * (1.0 / L.WHITE[FORMAT]), first)
    elif op == ops.Op.POSTERIZE:
        new = _posterized(value, clamp(first, 0.0, 8.0).to(tl.int32), FORMAT)
    elif op == ops.Op.SOLARIZE:
        new = tl.where(value < _threshold(first, FORMAT), value, L.WHITE[FORMAT] - value)
    elif op == ops.Op.SOLARIZE_ADD:
        new = value + tl.where(value < _threshold(second, FORMAT), first * L.UNIT[FORMAT], 0.0)
    elif op == ops.Op.INVERT:
        new = L.WHITE[FORMAT] - value
    elif op == ops.Op.RGB_SHIFT:
        new = value + tl.load(numbers + channel).to(tl.int32).to(tl.float32) * L.UNIT[FORMAT]
    elif op == ops.Op.WINDOW:
        scale = tl.div_rn(tl.full([], L.WHITE[FORMAT], tl.float32), second)
        new = round_value((value - first) * scale + L.WHITE[FORMAT] / 2, FORMAT).to(tl.float32)
    elif op == ops.Op.LUT:
        curve = float32s_at(buffer, tl.load(ins + L.ARG)) + 256 * channel
        new = round_value(_interpolated(curve, value, FORMAT), FORMAT).to(tl.float32)
    elif op == ops.Op.EQUALIZE:
        known = buffer + tl.load(ins + L.ARG) + 256 * channel
        level = load_int(known + bin_of(value, FORMAT))
        # uint16 is scaled as in torchvision, to 256 times the level.
        new = level.to(tl.float32) * 256.0 if FORMAT == L.UINT16 else from_byte(level, FORMAT)
    else:
        line = float32s_at(buffer, tl.load(ins + L.ARG)) + 3 * channel
        new = tl.load(line + 2) + tl.load(line + 1) * (value - tl.load(line))
    return truncate_value(new, FORMAT)


@triton.jit
def _interpolated(curve, value, FORMAT: tl.constexpr):
    """Interpolate linearly between the 256 values of 0..255 at ``curve``."""
    black_to_white = clamp(tl.where(value == value, value, 0.0), 0.0, L.WHITE[FORMAT])
    position = black_to_white * (255.0 / L.WHITE[FORMAT])
    level = tl.minimum(position.to(tl.int32), 254)
    low = tl.load(curve + level)
    high = tl.load(curve + level + 1)
    return (low + (position - level.to(tl.float32)) * (high - low)) * L.UNIT[FORMAT]


@triton.jit
def _threshold(level, FORMAT: tl.constexpr):
    """Scale a threshold so that a pixel on it is not below it, however callers scaled their pixels."""
    scaled = tl.div_rn(level * L.WHITE[FORMAT], tl.full([], 255.0, tl.float32))
    return tl.minimum(scaled, level * L.UNIT[FORMAT])


@triton.jit
def _posterized(value, bits, FORMAT: tl.constexpr):
    """Keep the highest bits. Floats are rounded down to a multiple of 2**-bits."""
    if FORMAT == L.UINT16:
        kept = (value.to(tl.int32) >> (16 - bits) << (16 - bits)).to(tl.float32)
    else:
        levels = (1 << bits).to(tl.float32)
        # The reciprocal of a power of two is exact.
        unit = tl.div_rn(tl.full([], 1.0, tl.float32), levels)
        kept = clamp(tl.floor(value * levels), 0.0, levels - 1.0) * unit
    return kept


@triton.jit
def bin_of(value, FORMAT: tl.constexpr):
    """Convert to 8 bits as torchvision does: integers by their highest bits."""
    if FORMAT == L.UINT16:
        level = value.to(tl.int32) >> 8
    else:
        level = (truncate_value(value, FORMAT) * 255.999).to(tl.int32)
    return level


@triton.jit
def gray_of(r, g, b, FORMAT: tl.constexpr):
    """torchvision's luma, whose weights do not sum to 1; integers are truncated."""
    gray = r * 0.2989 + g * 0.587 + b * 0.114
    if FORMAT == L.UINT16:
        gray = tl.floor(gray)
    return gray


@triton.jit
def turn_deep_hue(r, g, b, turn, FORMAT: tl.constexpr):
    """HUE as in torchvision: to HSV and back. ``turn``: a fraction of a full turn."""
    forward = turn - tl.floor(turn) + 1.0  # for positive sums, because sextants are from -1 to 5
    one = full(r, 1.0, FORMAT)
    high = tl.maximum(tl.maximum(r, g), b)
    span = high - tl.minimum(tl.minimum(r, g), b)
    is_color = span > 0.0
    per_span = tl.div_rn(one, tl.where(is_color, span, one))
    saturation = tl.div_rn(span, tl.where(is_color, high, one))
    from_r = (high - r) * per_span
    from_g = (high - g) * per_span
    from_b = (high - b) * per_span
    sextant = tl.where(high == g, 2.0 + from_r - from_b, 4.0 + from_g - from_r)
    sextant = tl.where(high == r, from_b - from_g, sextant)
    turned = sextant * (1.0 / 6.0) + forward
    hue = 6.0 * (turned - tl.floor(turned))
    return (
        _faded(high, saturation, hue, FORMAT),
        _faded(high, saturation, tl.abs(hue - 2.0), FORMAT),
        _faded(high, saturation, tl.abs(hue - 4.0), FORMAT),
    )


@triton.jit
def _faded(high, saturation, apart, FORMAT: tl.constexpr):
    """A channel is ``high`` around its center sextant, and falls to the least value with the distance from it."""
    fade = clamp(tl.minimum(apart, 6.0 - apart) - 1.0, 0.0, 1.0)
    return truncate_value(high * (1.0 - saturation * fade) * (L.GREATEST[FORMAT] / L.WHITE[FORMAT]), FORMAT)


# -- order of floats ---------------------------------------------------------------------------------------------------


@triton.jit
def key_of(value):
    """Map float32 to int32 in the same order."""
    bits = value.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    """The inverse of ``key_of``."""
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
