"""Values in records that somebody else wrote: taken for what they should be, or refused by name."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np


def as_list(name: str, value: Any) -> Any:
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} is {shown_value(value)}; accepted: a list with an entry for each object")
    return value


def numbers_of(name: str, value: Any) -> list[float]:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise ValueError(f"{name} is {shown_value(value)}; accepted: a list of numbers")
    try:
        numbers = [float(one) for one in value]
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {shown_value(value)}; accepted: numbers") from None
    if not all(map(isfinite, numbers)):
        raise ValueError(f"{name} is {shown_value(value)}; accepted: finite numbers")
    return numbers


def shown_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
