"""Values of pixels in registers: int32 for uint8 images, float32 for uint16 and float32 images.

Sums of weighted values are in fixed point for uint8, and in float32 for others. Arguments that are pixel values are in
units of uint8: white is 255. FORMAT: see ``layout``. CPU counterpart: ``native/kernels/element.h``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L


@triton.jit
def full(x, number, FORMAT: tl.constexpr):
    """A block of the shape of ``x`` filled with a value."""
    if FORMAT >= L.UINT16:
        block = tl.full(x.shape, number, tl.float32)
    else:
        block = tl.full(x.shape, number, tl.int32)
    return block


@triton.jit
def clamp(value, low, high):
    return tl.minimum(tl.maximum(value, low), high)


@triton.jit
def clipped(level):
    return clamp(level, 0, 255)


@triton.jit
def truncate_value(value, FORMAT: tl.constexpr):
    """Clip a color value, float32, to black and white. Integers are truncated. NaN of deep images becomes black."""
    if FORMAT >= L.UINT16:
        value = tl.minimum(tl.where(value > 0.0, value, 0.0), L.WHITE[FORMAT])
        if FORMAT == L.UINT16:
            value = tl.floor(value)
    else:
        value = clamp(value, 0.0, 255.0).to(tl.int32)
    return value


@triton.jit
def round_value(value, FORMAT: tl.constexpr):
    """Clip a color value, float32, to black and white. Integers are rounded half up."""
    if FORMAT != L.FLOAT32:
        # Truncation differs from floor for negative numbers only, which are clipped.
        value += 0.5
    return truncate_value(value, FORMAT)


@triton.jit
def from_byte(level, FORMAT: tl.constexpr):
    """Scale a color of 8 bits to the image's range."""
    if FORMAT == L.UINT16:
        level = level.to(tl.float32) * L.UNIT[FORMAT]
    elif FORMAT == L.FLOAT32:
        level = tl.div_rn(level.to(tl.float32), tl.full(level.shape, 255.0, tl.float32))
    return level


@triton.jit
def from_word(word, FORMAT: tl.constexpr):
    """A uniformly distributed value: the upper bits of a random word."""
    if FORMAT == L.UINT16:
        value = (word >> 16).to(tl.float32)
    elif FORMAT == L.FLOAT32:
        value = (word >> 8).to(tl.float32) * (1.0 / (1 << 24))
    else:
        value = (word >> 24).to(tl.int32)
    return value


@triton.jit
def begin_sum(x, BITS: tl.constexpr, FORMAT: tl.constexpr):
    """The initial value of sums with ``BITS`` fraction bits: for uint8 half a unit, so that they round half up."""
    if FORMAT >= L.UINT16:
        block = tl.full(x.shape, 0.0, tl.float32)
    else:
        block = tl.full(x.shape, 1 << (BITS - 1), tl.int32)
    return block


@triton.jit
def raise_bits(value, BITS: tl.constexpr):
    """Add fraction bits to a value."""
    if value.dtype.is_floating():
        value = value * (1 << BITS)
    else:
        value = value << BITS
    return value


@triton.jit
def drop_bits(total, BITS: tl.constexpr):
    """Remove the fraction bits of a sum; integers are rounded down."""
    if total.dtype.is_floating():
        total = total * (1.0 / (1 << BITS))
    else:
        total = total >> BITS
    return total


@triton.jit
def end_sum(total, BITS: tl.constexpr, FORMAT: tl.constexpr):
    """Convert a sum to a value. uint16 is rounded and clipped; uint8 is not clipped, and floats may be of any size."""
    total = drop_bits(total, BITS)
    if FORMAT == L.UINT16:
        total = round_value(total, FORMAT)
    return total


@triton.jit
def to_element(total, BITS: tl.constexpr, FORMAT: tl.constexpr):
    """Convert a sum to a value, as ``end_sum`` does, and clip uint8 too."""
    level = end_sum(total, BITS, FORMAT)
    if FORMAT < L.UINT16:
        level = clipped(level)
    return level


@triton.jit
def to_intermediate(total, BITS: tl.constexpr, FORMAT: tl.constexpr):
    """Convert a sum along the first of two axes to a value; of deep images, without rounding and clipping."""
    if FORMAT >= L.UINT16:
        level = drop_bits(total, BITS)
    else:
        level = to_element(total, BITS, FORMAT)
    return level


@triton.jit
def mix(a, b, t):
    """Interpolate by a weight with 15 fraction bits; integers are rounded half up."""
    if a.dtype.is_floating():
        mixed = a + (b - a) * (t.to(tl.float32) * (1.0 / (1 << 15)))
    else:
        mixed = a + (((b - a) * t + (1 << 14)) >> 15)
    return mixed


# A pixel is one word for uint8, with red in the lowest byte, else a tuple of three blocks.


@triton.jit
def pack(r, g, b):
    if r.dtype.is_floating():
        pixel = (r, g, b)
    else:
        pixel = r | (g << 8) | (b << 16)
    return pixel


@triton.jit
def red(pixel):
    if hasattr(pixel, "dtype"):
        level = pixel & 255
    else:
        level = pixel[0]
    return level


@triton.jit
def green(pixel):
    if hasattr(pixel, "dtype"):
        level = (pixel >> 8) & 255
    else:
        level = pixel[1]
    return level


@triton.jit
def blue(pixel):
    if hasattr(pixel, "dtype"):
        level = (pixel >> 16) & 255
    else:
        level = pixel[2]
    return level


@triton.jit
def channels_of(pixel):
    return red(pixel), green(pixel), blue(pixel)


@triton.jit
def add_weighted(r, g, b, weight, pixel):
    """Add the channels of ``pixel`` times ``weight`` to sums."""
    return r + weight * red(pixel), g + weight * green(pixel), b + weight * blue(pixel)


@triton.jit
def select_rgb(where, new_r, new_g, new_b, r, g, b):
    """New channels where the condition is true."""
    return tl.where(where, new_r, r), tl.where(where, new_g, g), tl.where(where, new_b, b)


@triton.jit
def select_pixel(where, new, old):
    """The pixel ``new`` where the condition is true."""
    if hasattr(new, "dtype"):
        pixel = tl.where(where, new, old)
    else:
        pixel = select_rgb(where, new[0], new[1], new[2], old[0], old[1], old[2])
    return pixel


@triton.jit
def color_at(ins, FORMAT: tl.constexpr):
    """The fill color of the instruction at ``ins``, a pixel without axes."""
    color = tl.load(ins + L.FILL)
    if FORMAT >= L.UINT16:
        color = (
            from_byte(color & 255, FORMAT),
            from_byte((color >> 8) & 255, FORMAT),
            from_byte((color >> 16) & 255, FORMAT),
        )
    return color
