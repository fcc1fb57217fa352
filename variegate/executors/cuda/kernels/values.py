"""Value operations on a tile's pixels: tables, blends with luma, hue, matrices, users' point functions.

``r, g, b`` are int32 levels. Images of one channel live in ``r``; the other two are then arbitrary.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.program import ops


@triton.jit
def look_up(buffer, table, channels, r, g, b):
    """``table``: offset of uint8[3, 256] in ``buffer``. One channel uses the first table."""
    # Offsets as uint32 from a kernel's argument are what the hardware adds by itself.
    r = tl.load(buffer + (table + r).to(tl.uint32)).to(tl.int32)
    if channels == 3:
        g = tl.load(buffer + (table + 256 + g).to(tl.uint32)).to(tl.int32)
        b = tl.load(buffer + (table + 512 + b).to(tl.uint32)).to(tl.int32)
    return r, g, b


@triton.jit
def luma(r, g, b):
    """Pillow's L."""
    return (ops.LUMA_RED * r + ops.LUMA_GREEN * g + ops.LUMA_BLUE * b + ops.LUMA_HALF) >> ops.LUMA_SHIFT


@triton.jit
def blend(degenerate, level, factor):
    """Pillow's Image.blend: float32, truncated, clipped. ``factor``: float32."""
    base = degenerate.to(tl.float32)
    value = base + factor * (level.to(tl.float32) - base)
    return to_level(value)


@triton.jit
def to_level(value):
    """Truncated and clipped to 0..255."""
    return tl.minimum(tl.maximum(value, 0.0), 255.0).to(tl.int32)


@triton.jit
def apply_value(buffer, at, real, r, g, b, channels, HAS_HUE: tl.constexpr, POINTS: tl.constexpr):
    """One VALUE instruction. ``at`` and ``real``: addresses of its code and arguments."""
    op = tl.load(at + L.OP)
    if channels == 1:
        # What follows acts on gray as on a colour of three equal channels, and keeps the first.
        g = r
        b = r
    if op == ops.Op.MIX:
        factor = tl.load(real).to(tl.float32)
        gray = luma(r, g, b)
        r, g, b = blend(gray, r, factor), blend(gray, g, factor), blend(gray, b, factor)
    elif op == ops.Op.PERMUTE:
        r, g, b = (
            _pick(tl.load(real).to(tl.int32), r, g, b),
            _pick(tl.load(real + 1).to(tl.int32), r, g, b),
            _pick(tl.load(real + 2).to(tl.int32), r, g, b),
        )
    elif op == ops.Op.COLOR_MATRIX:
        m = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.float32))
        red, green, blue = r.to(tl.float32), g.to(tl.float32), b.to(tl.float32)
        r = _weigh(m, red, green, blue)
        g = _weigh(m + 4, red, green, blue)
        b = _weigh(m + 8, red, green, blue)
    if HAS_HUE:
        if op == ops.Op.HUE:
            r, g, b = _turn_hue(r, g, b, (tl.load(real) * 255.0).to(tl.int32) & 255)
    for i in tl.static_range(len(POINTS)):
        if (op == ops.Op.POINT) & (tl.load(at + L.ARG) == i):
            red, green, blue = POINTS[i](
                r.to(tl.float32), g.to(tl.float32), b.to(tl.float32), tl.load(real + 1).to(tl.float32)
            )
            r = to_level(red.to(tl.float32) + 0.5)
            g = to_level(green.to(tl.float32) + 0.5)
            b = to_level(blue.to(tl.float32) + 0.5)
    return r, g, b


@triton.jit
def _pick(channel, r, g, b):
    return tl.where(channel == 0, r, tl.where(channel == 1, g, b))


@triton.jit
def _weigh(m, r, g, b):
    """One row of a 3x4 matrix, rounded half up."""
    value = tl.load(m) * r + tl.load(m + 1) * g + tl.load(m + 2) * b + tl.load(m + 3)
    return to_level(value + 0.5)


@triton.jit
def _turn_hue(r, g, b, shift):
    """Pillow's RGB -> HSV -> RGB in 8 bits; ``shift`` is added to the hue byte. The CPU's formula (simd_values.py)."""
    high = tl.maximum(tl.maximum(r, g), b)
    low = tl.minimum(tl.minimum(r, g), b)
    span = high - low
    red_is_low, blue_is_low = r == low, b == low
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
    # How far the hue is from a channel's own, in 85ths of a sextant; it is full up to 85, and least from 170 on.
    value = high.to(tl.float32) * (1.0 / 21675)
    r1 = _faded(value, s, 170 - tl.abs(place - 255))
    g1 = _faded(value, s, tl.abs(place - 170) - 85)
    b1 = _faded(value, s, tl.abs(place - 340) - 85)
    return r1, g1, b1


@triton.jit
def _faded(value, s, weight):
    fade = 21675 - s * tl.minimum(tl.maximum(weight, 0), 85)
    # 2**23 rounds to an integer, which the lower bits then hold.
    return (value * fade.to(tl.float32) + 8388608.0).to(tl.int32, bitcast=True) & 255
