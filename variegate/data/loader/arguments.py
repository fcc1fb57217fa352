"""Checks of numbers that users give."""

from __future__ import annotations

import operator
from typing import Any


def check_integer(name: str, value: Any, least: int) -> int:
    """``value`` as an int, NumPy's and others' integers too. Raises ValueError for what is none, or less than that."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name}: got {value!r}; accepted: an integer from {least} on")
    return number
