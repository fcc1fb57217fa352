"""Random numbers of a pixel: Philox4x32-10 under the stream key, the same words as on the host."""

from __future__ import annotations

import triton
import triton.language as tl

_TWO_PI = tl.constexpr(6.2831854820251465)  # float32(2 pi)
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
def normals(pixel, slot, id_low, id_high, key_low, key_high):
    """Three standard normal float32 of every pixel, by Box and Muller."""
    w0, w1, w2, w3 = words(pixel, slot, id_low, id_high, key_low, key_high)
    radius = tl.sqrt_rn(tl.log(unit(w0) + _UNIT) * -2.0)
    other = tl.sqrt_rn(tl.log(unit(w2) + _UNIT) * -2.0)
    sine, cosine = _sine_and_cosine(unit(w1))
    _, other_cosine = _sine_and_cosine(unit(w3))
    return radius * cosine, radius * sine, other * other_cosine


@triton.jit
def _sine_and_cosine(turn):
    """Of a float32 angle in turns, 0 to 1, to about a unit in the last place.

    The library's functions reduce any angle, in local memory; this one is small. Polynomials of Cephes (sinf.c).
    """
    quarter = tl.floor(turn * 4.0 + 0.5)
    z = (turn - quarter * 0.25) * _TWO_PI
    square = z * z
    sine = ((square * -1.9515295891e-4 + 8.3321608736e-3) * square - 1.6666654611e-1) * square * z + z
    cosine = ((square * 2.443315711809948e-5 - 1.388731625493765e-3) * square + 4.166664568298827e-2) * square * square
    cosine = cosine - square * 0.5 + 1.0
    quarter = quarter.to(tl.int32) & 3
    is_swapped = (quarter & 1) != 0
    s, c = tl.where(is_swapped, cosine, sine), tl.where(is_swapped, sine, cosine)
    return tl.where(quarter >= 2, -s, s), tl.where((quarter == 1) | (quarter == 2), -c, c)
