"""Checks of values in foreign records; numbers may be quoted, as some programs write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.data.base import truncate
from variegate.errors import short_repr

# No position in a picture is beyond it, and nothing that is computed from two such numbers and a size is too large for
# float32.
MOST = 1e9
FINITE = "finite numbers, up to 1e9"
# Limit of key points of a category or a row; full-body data sets have 133.
MOST_POINTS = 1000
MOST_SIDE = (1 << 31) - 1
# Frames of annotations for photos that EXIF rotates: the stored pixels, or the displayed picture.
STORED = "stored"
DISPLAYED = "pixels"


def refusal(name: str, value: Any, accepted: str) -> ValueError:
    return ValueError(f"{name} is {shown_value(value)}; accepted: {accepted}")


def as_list(name: str, value: Any) -> Any:
    value = [] if value is None else value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        raise refusal(name, value, "a list with an entry for each object")
    return value


def numbers_of(name: str, value: Any, count: int | None = None) -> list[float]:
    """Finite numbers, ``count`` of them. Raises ValueError."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise refusal(name, value, "a list of numbers")
    try:
        numbers = [float(one) for one in value]
    except (TypeError, ValueError):
        raise refusal(name, value, "numbers") from None
    except OverflowError:
        numbers = [MOST * 2]
    if not all(-MOST <= one <= MOST for one in numbers):  # NaN is no such number either
        raise refusal(name, value, FINITE)
    if count is not None and len(numbers) != count:
        raise refusal(name, value, f"{count} numbers")
    return numbers


def whole_of(name: str, value: Any, high: int) -> int:
    """An integer from 0 to ``high``; 7.0 is accepted. Raises ValueError."""
    try:
        number = value if type(value) is int else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number <= high or number != int(number):
        raise refusal(name, value, f"whole numbers from 0 to {high:,}")
    return int(number)


def flag_of(name: str, value: Any) -> bool:
    """A flag 0 or 1, or False if missing."""
    return bool(value) and whole_of(name, value, 1) == 1


def shown_value(value: Any) -> str:
    return truncate(short_repr(value))
