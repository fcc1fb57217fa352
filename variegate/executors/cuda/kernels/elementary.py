"""Elementary functions of pixels in float32, bit for bit equal to ``native/kernels/mathematics.h``."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.program import elementary as E


@triton.jit
def round_small(x):
    """Round to the nearest integer, for |x| < 2 ** 22."""
    return (x + E.ROUNDER) - E.ROUNDER


@triton.jit
def rint(x):
    """Round to the nearest integer, halves to even; numbers of 2 ** 23 or more are integers already."""
    magnitude = tl.abs(x)
    rounded = (magnitude + 8388608.0) - 8388608.0
    rounded = tl.where(x < 0.0, -rounded, rounded)
    return tl.where(magnitude < 8388608.0, rounded, x)


@triton.jit
def trunc(x):
    return tl.where(x < 0.0, tl.ceil(x), tl.floor(x))


@triton.jit
def floor_divide(x, y):
    return tl.floor(tl.div_rn(x, y))


@triton.jit
def modulo(x, y):
    return x - y * tl.floor(tl.div_rn(x, y))


@triton.jit
def minimum(x, y):
    """The smaller number; ``y`` if either is NaN."""
    return tl.where(x < y, x, y)


@triton.jit
def maximum(x, y):
    return tl.where(x > y, x, y)


@triton.jit
def _power_of_two(k):
    """2 ** k for -126 <= k <= 127."""
    return ((k + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def exp(x):
    inside = minimum(maximum(x, E.EXP_LOW), E.EXP_HIGH)
    whole = round_small(inside * E.LOG2_E)
    rest = (inside - whole * E.LN_2_PARTS[0]) - whole * E.LN_2_PARTS[1]
    value = rest * E.EXP_TERMS[7] + E.EXP_TERMS[6]
    value = value * rest + E.EXP_TERMS[5]
    value = value * rest + E.EXP_TERMS[4]
    value = value * rest + E.EXP_TERMS[3]
    value = value * rest + E.EXP_TERMS[2]
    value = value * rest + E.EXP_TERMS[1]
    value = value * rest + E.EXP_TERMS[0]
    k = whole.to(tl.int32)
    half = k >> 1
    value = value * _power_of_two(half) * _power_of_two(k - half)
    value = tl.where(x < E.EXP_LOW, 0.0, value)
    value = tl.where(x > E.EXP_HIGH, float("inf"), value)
    return tl.where(x == x, value, x)


@triton.jit
def log(x):
    is_subnormal = x < 1.1754943508222875e-38
    bits = tl.where(is_subnormal, x * 8388608.0, x).to(tl.int32, bitcast=True)
    m = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    is_large = m > E.SQRT_2
    m = tl.where(is_large, m * 0.5, m)
    k = ((bits >> 23) - 127 - tl.where(is_subnormal, 23, 0) + tl.where(is_large, 1, 0)).to(tl.float32)
    f = m - 1.0
    s = tl.div_rn(f, 2.0 + f)
    square = s * s
    terms = square * E.LOG_TERMS[3] + E.LOG_TERMS[2]
    terms = terms * square + E.LOG_TERMS[1]
    terms = terms * square + E.LOG_TERMS[0]
    high = k * E.LN_2_PARTS[0]
    low = k * E.LN_2_PARTS[1]
    value = high + (f - (s * (f - square * terms) - low))
    value = tl.where(x == 0.0, float("-inf"), value)
    value = tl.where(x == float("inf"), x, value)
    return tl.where(x >= 0.0, value, float("nan"))


@triton.jit
def _sin(x, quarters):
    """The sine of x + quarters * pi / 2."""
    inside = minimum(maximum(x, -E.LARGEST_ANGLE), E.LARGEST_ANGLE)
    whole = round_small(inside * E.TWO_OVER_PI)
    rest = inside - whole * E.PI_HALVES_PARTS[0]
    rest = rest - whole * E.PI_HALVES_PARTS[1]
    rest = rest - whole * E.PI_HALVES_PARTS[2]
    square = rest * rest
    sine = square * E.SIN_TERMS[2] + E.SIN_TERMS[1]
    sine = sine * square + E.SIN_TERMS[0]
    sine = rest + rest * square * sine
    cosine = square * E.COS_TERMS[4] + E.COS_TERMS[3]
    cosine = cosine * square + E.COS_TERMS[2]
    cosine = cosine * square + E.COS_TERMS[1]
    cosine = cosine * square + E.COS_TERMS[0]
    quarter = whole.to(tl.int32) + quarters
    value = tl.where((quarter & 1) != 0, cosine, sine)
    value = tl.where((quarter & 2) != 0, -value, value)
    return tl.where(tl.abs(x) <= E.LARGEST_ANGLE, value, float("nan"))


@triton.jit
def sin(x):
    return _sin(x, 0)


@triton.jit
def cos(x):
    return _sin(x, 1)


@triton.jit
def tan(x):
    return tl.div_rn(_sin(x, 0), _sin(x, 1))


@triton.jit
def power(x, exponent):
    return tl.where(exponent == 0.0, 1.0, exp(exponent * log(x)))
