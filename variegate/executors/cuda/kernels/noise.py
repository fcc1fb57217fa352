"""Random numbers of a pixel: Philox4x32-10 under the stream key, the same words as on the host."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.program import normal_table as table

_UNIT = tl.constexpr(2.0**-24)
_M0, _M1 = tl.constexpr(0xD2511F53), tl.constexpr(0xCD9E8D57)
_W0, _W1 = tl.constexpr(0x9E3779B9), tl.constexpr(0xBB67AE85)


@triton.jit
def philox(c0, c1, c2, c3, k0, k1):
    """One block per lane, all uint32 -> four uint32 words. See program/rng.py."""
    m0 = tl.full(c0.shape, _M0, tl.uint32)
    m1 = tl.full(c0.shape, _M1, tl.uint32)
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, m0), c0 * m0
        high1, low1 = tl.umulhi(c2, m1), c2 * m1
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 = k0 + tl.full([], _W0, tl.uint32)
        k1 = k1 + tl.full([], _W1, tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def words(pixel, slot, id_low, id_high, key_low, key_high):
    """The four words of every pixel; ``pixel`` is its index in the image, int32."""
    index = pixel.to(tl.uint32)
    zero = index ^ index
    return philox(index, zero + slot, zero + id_low, zero + id_high, key_low, key_high)


@triton.jit
def unit(word):
    """24 bits of a word as float32 in [0, 1)."""
    return (word >> 8).to(tl.float32) * _UNIT


@triton.jit
def normals(segments, pixel, slot, id_low, id_high, key_low, key_high):
    """Three standard normal float32 of every pixel. ``segments``: float32[segments, 2] of program/normal_table.py."""
    w0, w1, w2, _ = words(pixel, slot, id_low, id_high, key_low, key_high)
    return _normal(segments, w0), _normal(segments, w1), _normal(segments, w2)


@triton.jit
def _normal(segments, word):
    number = ((word & table.MAGNITUDE) | 1).to(tl.int32).to(tl.float32)
    line = segments + 2 * ((number.to(tl.int32, bitcast=True) >> table.SEGMENT_SHIFT) - table.FIRST_SEGMENT)
    quantile = tl.load(line) + tl.load(line + 1) * number
    return tl.where((word & table.SIGN) != 0, -quantile, quantile)
