"""Student's t distribution for whole degrees of freedom: all that an interval of a mean needs."""

from __future__ import annotations

import functools
import math

_HALVINGS = 80


def cumulative(t: float, freedom: int) -> float:
    """The probability of a value up to ``t``. ``freedom``: 1 or more.

    The finite sums of Abramowitz and Stegun (1972), 26.7.3 and 26.7.4.
    """
    return _at(math.atan(t / math.sqrt(freedom)), freedom)


@functools.cache
def quantile(probability: float, freedom: int) -> float:
    """The value that is not exceeded with this ``probability`` (over 0, below 1). Raises ValueError."""
    if freedom < 1 or not 0 < probability < 1:
        raise ValueError(f"quantile: got {probability!r}, {freedom!r}; accepted: over 0 and below 1; 1 or more")
    if probability == 0.5:
        return 0.0
    # By the angle, which is bounded where t is not.
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _at(angle: float, freedom: int) -> float:
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom % 2:
        term, total = sine * cosine, 0.0
        for k in range(1, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        within = 2 / math.pi * (angle + total)
    else:
        term, total = sine, 0.0
        for k in range(0, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        within = total
    return 0.5 + within / 2
