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
    """Pillow's RGB -> HSV -> RGB in 8 bits, with float and double as there; ``shift`` is added to the hue byte."""
    high = tl.maximum(tl.maximum(r, g), b)
    low = tl.minimum(tl.minimum(r, g), b)
    is_gray = high == low
    span = tl.where(is_gray, 1, high - low).to(tl.float32)
    share = tl.div_rn(span, tl.maximum(high, 1).to(tl.float32))
    s = tl.where(is_gray, 0, (share.to(tl.float64) * 255.0).to(tl.int32))
    from_r = tl.div_rn((high - r).to(tl.float32), span)
    from_g = tl.div_rn((high - g).to(tl.float32), span)
    from_b = tl.div_rn((high - b).to(tl.float32), span)
    # Pillow adds the 2 and the 4 in double.
    second = (from_r.to(tl.float64) + 2.0 - from_b.to(tl.float64)).to(tl.float32)
    third = (from_g.to(tl.float64) + 4.0 - from_r.to(tl.float64)).to(tl.float32)
    sextant = tl.where(r == high, from_b - from_g, tl.where(g == high, second, third))
    turn = sextant.to(tl.float64) / 6.0 + 1.0
    turn = (turn - tl.floor(turn)).to(tl.float32)
    h = tl.where(is_gray, 0, (turn.to(tl.float64) * 255.0).to(tl.int32))
    h = (tl.minimum(tl.maximum(h, 0), 255) + shift) & 255

    place = h.to(tl.float64) * 6.0 / 255.0
    sector = place.to(tl.int32)
    part = (place - sector.to(tl.float64)).to(tl.float32)
    strength = (s.to(tl.float64) / 255.0).to(tl.float32)
    value = high.to(tl.float64)
    p = _rounded(value * (1.0 - strength.to(tl.float64)))
    q = _rounded(value * (1.0 - (strength * part).to(tl.float64)))
    t = _rounded(value * (1.0 - strength.to(tl.float64) * (1.0 - part.to(tl.float64))))
    sector = sector % 6
    r1 = tl.where((sector == 0) | (sector == 5), high, tl.where(sector == 1, q, tl.where(sector == 4, t, p)))
    g1 = tl.where((sector == 1) | (sector == 2), high, tl.where(sector == 0, t, tl.where(sector == 3, q, p)))
    b1 = tl.where((sector == 3) | (sector == 4), high, tl.where(sector == 2, t, tl.where(sector == 5, q, p)))
    return tl.where(s == 0, high, r1), tl.where(s == 0, high, g1), tl.where(s == 0, high, b1)


@triton.jit
def _rounded(value):
    """C's round() of a non-negative number, clipped to a level."""
    return tl.minimum((value + 0.5).to(tl.int32), 255)
