"""Coefficients of elementary functions in float32, shared by C++ and Triton, so that results are bitwise equal.

``native/kernels/mathematics.h`` and ``executors/cuda/kernels/elementary.py`` evaluate the polynomials. Coefficients are
float32 numbers, in ascending order of powers.
"""

from __future__ import annotations

import numpy as np


def _float32(*values: float) -> tuple[float, ...]:
    return tuple(float(np.float32(value)) for value in values)


# e ** x = 2 ** k * e ** rest, |rest| <= ln 2 / 2 (Cephes, expf).
EXP_TERMS = _float32(
    1.0, 1.0, 5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4
)
(LOG2_E,) = _float32(1.44269504088896341)
# Above EXP_HIGH, e ** x is infinite. Below EXP_LOW it would be subnormal, and is 0.
EXP_HIGH, EXP_LOW = _float32(88.72283, -87.33654)

# Series of ``log m = 2 artanh((m - 1) / (m + 1))``, where ``log x = k * ln 2 + log m`` and m is from SQRT_2 / 2 to
# SQRT_2.
(SQRT_2,) = _float32(1.41421356237309505)
LOG_TERMS = _float32(2 / 3, 2 / 5, 2 / 7, 2 / 9)
# ln 2 as the sum of two numbers. The product of the first and an exponent is exact.
LN_2_PARTS = _float32(0.693359375, -2.12194440e-4)

# Polynomials in x - k * pi / 2, whose absolute value is at most pi / 4 (Cephes, sinf and cosf).
SIN_TERMS = _float32(-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
COS_TERMS = _float32(1.0, -0.5, 4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
(TWO_OVER_PI,) = _float32(0.63661977236758134)
# pi / 2 as the sum of three numbers. Products of the first two and k are exact up to LARGEST_ANGLE radians.
PI_HALVES_PARTS = _float32(1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8)
LARGEST_ANGLE = 8192.0

# (x + ROUNDER) - ROUNDER rounds |x| < 2 ** 22 to the nearest integer, halves to even.
ROUNDER = 12582912.0
