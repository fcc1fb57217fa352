// Elementary functions of draws and pixels with equal bits on every platform; C libraries and NumPy differ in
// the last place. They use only + - * / and sqrt, for which IEEE 754 defines the result exactly. Errors are below 2
// units in the last place (tangents: 3) for the arguments of draws: angles up to 1e5, exponents up to 700. GPU
// counterparts of the float32 functions: executors/cuda/kernels/elementary.py.
#pragma once
#include "../constants.h"

namespace vg::VG_LEVEL {

VG_INLINE f64 abs_of(f64 x) { return fabs(x); }
VG_INLINE f64 rint_of(f64 x) { return nearbyint(x); }
VG_INLINE f64 floor_of(f64 x) { return floor(x); }
VG_INLINE f64 ceil_of(f64 x) { return ceil(x); }
VG_INLINE f64 trunc_of(f64 x) { return trunc(x); }
VG_INLINE f64 sqrt_of(f64 x) { return sqrt(x); }
VG_INLINE f32 abs_of(f32 x) { return fabsf(x); }
VG_INLINE f32 rint_of(f32 x) { return nearbyintf(x); }
VG_INLINE f32 floor_of(f32 x) { return floorf(x); }
VG_INLINE f32 ceil_of(f32 x) { return ceilf(x); }
VG_INLINE f32 trunc_of(f32 x) { return truncf(x); }
VG_INLINE f32 sqrt_of(f32 x) { return sqrtf(x); }

constexpr f64 LN_2_HIGH = 0x1.62e42fee00000p-1, LN_2_LOW = 0x1.a39ef35793c76p-33;
constexpr f64 PI_HALVES_HIGH = 0x1.921fb54400000p+0, PI_HALVES_MIDDLE = 0x1.0b4611a600000p-34;
constexpr f64 PI_HALVES_LOW = 0x1.3198a2e037073p-69;

// x[count - 1] * v^(count - 1) + ... + x[0], by Horner's rule. `v`: a number or a vector.
template <class T, class V, int COUNT> VG_INLINE V polynomial(const T (&x)[COUNT], V v) {
  V sum = x[COUNT - 1] * v + x[COUNT - 2];
  for (int i = COUNT - 3; i >= 0; i--) sum = sum * v + x[i];
  return sum;
}

// 2 ** k for -1022 <= k <= 1023.
VG_INLINE f64 power_of_two(i64 k) {
  const u64 bits = (u64)(k + 1023) << 52;
  return load<f64>(&bits);
}

// e ** x: x = k * ln 2 + r, and the Taylor series of e ** r for |r| <= ln 2 / 2.
VG_INLINE f64 exp_of(f64 x) {
  if (!(x < 709.0)) return x != x ? x : HUGE_VAL;
  if (x < -708.0) return 0.0;
  constexpr f64 TERMS[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  const f64 k = nearbyint(x * 0x1.71547652b82fep+0);
  const f64 r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
  return polynomial(TERMS, r) * power_of_two((i64)k);
}

// Natural logarithm: `x = m * 2 ** k` with m near 1, and `log m = 2 artanh((m - 1) / (m + 1))` by its series.
VG_INLINE f64 log_of(f64 x) {
  if (!(x > 0.0)) return x == 0.0 ? -HUGE_VAL : NAN;
  if (x == HUGE_VAL) return x;
  constexpr f64 TERMS[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                           2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  i64 k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  const u64 bits = load<u64>(&x);
  k += (i64)(bits >> 52) - 1023;
  const u64 one = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
  f64 m = load<f64>(&one);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    k++;
  }
  const f64 f = m - 1.0, s = f / (2.0 + f), square = s * s;
  const f64 high = (f64)k * LN_2_HIGH, low = (f64)k * LN_2_LOW;
  // 2 s = f - s f, where f is exact.
  return high + (f - (s * (f - square * polynomial(TERMS, square)) - low));
}

struct Angle {
  f64 rest;  // in [-pi / 4, pi / 4]
  i64 quarter;
};

// x = quarter * pi / 2 + rest.
VG_INLINE Angle reduce_angle(f64 x) {
  const f64 k = nearbyint(x * 0x1.45f306dc9c883p-1);
  const f64 rest = ((x - k * PI_HALVES_HIGH) - k * PI_HALVES_MIDDLE) - k * PI_HALVES_LOW;
  return {rest, (i64)k & 3};
}

VG_INLINE f64 sin_of_rest(f64 x) {
  constexpr f64 TERMS[] = {-1.0 / 6,
                           1.0 / 120,
                           -1.0 / 5040,
                           1.0 / 362880,
                           -1.0 / 39916800,
                           1.0 / 6227020800.0,
                           -1.0 / 1307674368000.0,
                           1.0 / 355687428096000.0};
  const f64 square = x * x;
  return x + x * square * polynomial(TERMS, square);
}

VG_INLINE f64 cos_of_rest(f64 x) {
  constexpr f64 TERMS[] = {1.0,
                           -1.0 / 2,
                           1.0 / 24,
                           -1.0 / 720,
                           1.0 / 40320,
                           -1.0 / 3628800,
                           1.0 / 479001600,
                           -1.0 / 87178291200.0,
                           1.0 / 20922789888000.0};
  return polynomial(TERMS, x * x);
}

// NaN for infinities and for |x| > 1e9, where the reduction would have lost the angle.
VG_INLINE f64 sin_of(f64 x) {
  if (!(fabs(x) <= 1e9)) return NAN;
  const Angle angle = reduce_angle(x);
  const f64 value = angle.quarter & 1 ? cos_of_rest(angle.rest) : sin_of_rest(angle.rest);
  return angle.quarter & 2 ? -value : value;
}

VG_INLINE f64 cos_of(f64 x) {
  if (!(fabs(x) <= 1e9)) return NAN;
  const Angle angle = reduce_angle(x);
  const f64 value = angle.quarter & 1 ? sin_of_rest(angle.rest) : cos_of_rest(angle.rest);
  return (angle.quarter + 1) & 2 ? -value : value;
}

VG_INLINE f64 power_of(f64 x, f64 exponent) { return exponent == 0.0 ? 1.0 : exp_of(exponent * log_of(x)); }

VG_INLINE f64 pick(bool condition, f64 x, f64 y) { return condition ? x : y; }

// -- in float32 ------------------------------------------------------------------------------------------------------
//
// Without branches, so that compilers vectorize loops over pixels. See variegate/program/elementary.py.

// `x` if the condition is true, else `y`. Selects bits, because compilers would make a conditional load of `?:`, which
// the older levels cannot vectorize.
VG_INLINE f32 pick(bool condition, f32 x, f32 y) {
  const u32 mask = 0u - (u32)condition;
  const u32 bits = (load<u32>(&x) & mask) | (load<u32>(&y) & ~mask);
  return load<f32>(&bits);
}

// Rounds to the nearest integer, for |x| < 2 ** 22.
VG_INLINE f32 round_small(f32 x) { return (x + ROUNDER) - ROUNDER; }

// 2 ** k for -126 <= k <= 127.
VG_INLINE f32 power_of_two(i32 k) {
  const i32 bits = (k + 127) << 23;
  return load<f32>(&bits);
}

VG_INLINE f32 exp_of(f32 x) {
  const f32 inside = clamp(x, EXP_LOW, EXP_HIGH);
  const f32 whole = round_small(inside * LOG2_E);
  const f32 rest = (inside - whole * LN_2_PARTS[0]) - whole * LN_2_PARTS[1];
  // A product of two powers, because a float32 cannot represent 2 ** 128.
  const i32 k = (i32)whole, half = k >> 1;
  const f32 value = polynomial(EXP_TERMS, rest) * power_of_two(half) * power_of_two(k - half);
  const f32 limited = pick(x > EXP_HIGH, HUGE_VALF, pick(x < EXP_LOW, 0.0f, value));
  return pick(x != x, x, limited);
}

VG_INLINE f32 log_of(f32 x) {
  const bool is_subnormal = x < 0x1p-126f;
  const f32 normal = pick(is_subnormal, x * 0x1p23f, x);
  const i32 bits = load<i32>(&normal), one = (bits & 0x7FFFFF) | 0x3F800000;
  const f32 above_one = load<f32>(&one);
  const bool is_large = above_one > SQRT_2;
  const f32 m = pick(is_large, above_one * 0.5f, above_one);
  const f32 k = (f32)((bits >> 23) - 127 - 23 * is_subnormal + is_large);
  const f32 f = m - 1.0f, s = f / (2.0f + f), square = s * s;
  const f32 high = k * LN_2_PARTS[0], low = k * LN_2_PARTS[1];
  const f32 value = high + (f - (s * (f - square * polynomial(LOG_TERMS, square)) - low));
  const f32 limited = pick(x == HUGE_VALF, x, pick(x == 0.0f, -HUGE_VALF, value));
  return pick(x >= 0.0f, limited, NAN);
}

// The sine of x + quarters * pi / 2. NaN for |x| > LARGEST_ANGLE, where the reduction would have lost the angle.
VG_INLINE f32 sin_of(f32 x, i32 quarters) {
  const f32 inside = clamp(x, -LARGEST_ANGLE, LARGEST_ANGLE);
  const f32 whole = round_small(inside * TWO_OVER_PI);
  const f32 rest = ((inside - whole * PI_HALVES_PARTS[0]) - whole * PI_HALVES_PARTS[1]) - whole * PI_HALVES_PARTS[2];
  const i32 quarter = (i32)whole + quarters;
  const f32 square = rest * rest;
  const f32 sine = rest + rest * square * polynomial(SIN_TERMS, square), cosine = polynomial(COS_TERMS, square);
  const f32 value = pick((quarter & 1) != 0, cosine, sine);
  const f32 turned = pick((quarter & 2) != 0, -value, value);
  return pick(abs_of(x) <= LARGEST_ANGLE, turned, NAN);
}
VG_INLINE f32 sin_of(f32 x) { return sin_of(x, 0); }
VG_INLINE f32 cos_of(f32 x) { return sin_of(x, 1); }

VG_INLINE f32 power_of(f32 x, f32 exponent) { return pick(exponent == 0.0f, 1.0f, exp_of(exponent * log_of(x))); }

}  // namespace vg::VG_LEVEL
