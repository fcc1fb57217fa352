// Formulas of DrawOp instructions with one, two or three operands a, b and c: in float64 for draws, in float32 for
// pixels. Conditions are 0 or 1. Counterparts: executors/cuda/pixel_functions.py, tests/oracle/pixel_functions.py.
#pragma once
#include "mathematics.h"

// clang-format off
#define VG_OF_ONE(EACH)           \
  EACH(NOT, a == 0)               \
  EACH(NEGATE, -a)                \
  EACH(ABSOLUTE, abs_of(a))       \
  EACH(RINT, rint_of(a))          \
  EACH(FLOOR, floor_of(a))        \
  EACH(CEIL, ceil_of(a))          \
  EACH(TRUNC, trunc_of(a))        \
  EACH(SQRT, sqrt_of(a))          \
  EACH(FLOAT32, (f32)a)           \
  EACH(EXP, exp_of(a))            \
  EACH(LOG, log_of(a))            \
  EACH(SIN, sin_of(a))            \
  EACH(COS, cos_of(a))            \
  EACH(TAN, sin_of(a) / cos_of(a))

#define VG_OF_TWO(EACH)                       \
  EACH(ADD, a + b)                            \
  EACH(SUBTRACT, a - b)                       \
  EACH(MULTIPLY, a * b)                       \
  EACH(DIVIDE, a / b)                         \
  EACH(FLOOR_DIVIDE, floor_of(a / b))         \
  EACH(MODULO, a - b * floor_of(a / b))       \
  EACH(POWER, power_of(a, b)) \
  EACH(MINIMUM, min_of(a, b))                 \
  EACH(MAXIMUM, max_of(a, b))                 \
  EACH(LESS, a < b)                           \
  EACH(LESS_EQUAL, a <= b)                    \
  EACH(EQUAL, a == b)                         \
  EACH(NOT_EQUAL, a != b)                     \
  EACH(AND, (a != 0) & (b != 0))                 \
  EACH(OR, (a != 0) | (b != 0))

#define VG_OF_THREE(EACH) EACH(SELECT, pick(a != 0, b, c))
// clang-format on
