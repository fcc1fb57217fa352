"""Argument checks of the functional interface: each returns the value in one form, or names what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from variegate.errors import shown
from variegate.program.ops import Interpolation
from variegate.transforms.limits import MAX_LENGTH

Fill = int | float | Sequence[float] | None
Size = int | Sequence[int]


def refused(argument: str, got: object, accepted: str) -> ValueError:
    """The error of every function here: the argument, the value it got and what is accepted."""
    return ValueError(f"{argument}={shown(got)}; accepted: {accepted}")


def number(argument: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number within [low, high]."""
    if not is_number(value) or not low <= value <= high:
        if math.isinf(low) and math.isinf(high):
            raise refused(argument, value, "a finite number")
        if math.isinf(high):
            raise refused(argument, value, f"a finite number of {low:g} or more")
        raise refused(argument, value, f"a number from {low:g} to {high:g}")
    return float(value)


def integer(argument: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """An integer within [low, high]."""
    if not _is_integer(value) or (low is not None and value < low) or (high is not None and value > high):
        wanted = "an integer"
        if low is not None:
            wanted += f" from {low} to {high}" if high is not None and high != MAX_LENGTH else f" of {low} or more"
            wanted += f", up to {high:,}" if high == MAX_LENGTH else ""
        raise refused(argument, value, wanted)
    return int(value)


def pair(argument: str, value: Any, wanted: str) -> tuple[float, float]:
    """Two finite numbers."""
    if not _is_sequence(value) or len(value) != 2 or not all(is_number(v) for v in value):
        raise refused(argument, value, wanted)
    return float(value[0]), float(value[1])


def interpolation(value: Any) -> Interpolation:
    """A name, an ``Interpolation``, or torchvision's InterpolationMode (by its value)."""
    if isinstance(value, Interpolation):
        return value
    name = getattr(value, "value", value)
    if not isinstance(name, str) or name.upper() not in Interpolation.__members__ or name != name.lower():
        raise refused("interpolation", value, ", ".join(repr(i.name.lower()) for i in Interpolation))
    return Interpolation[name.upper()]


def colour(argument: str, value: Any) -> tuple[int, int, int]:
    """A level 0..255 for all channels, three of them, or None for 0. Fractions are dropped, as torchvision does."""
    given: Any = (0,) if value is None else value
    levels = tuple(given) if _is_sequence(given) else (given,)
    if len(levels) not in (1, 3) or not all(is_number(v) and 0 <= v <= 255 for v in levels):
        raise refused(argument, value, "a level 0..255 or three of them (red, green, blue)")
    whole = tuple(int(v) for v in levels)
    return (whole[0], whole[0], whole[0]) if len(whole) == 1 else (whole[0], whole[1], whole[2])


def size(argument: str, value: Any) -> tuple[int, int]:
    """Height and width, both positive; one number stands for both."""
    both = tuple(value) if _is_sequence(value) else (value,)
    if len(both) not in (1, 2) or not all(_is_integer(v) and 0 < v <= MAX_LENGTH for v in both):
        raise refused(argument, value, f"a positive integer or a (height, width) pair of them, up to {MAX_LENGTH:,}")
    return int(both[0]), int(both[-1])


def is_number(value: object) -> bool:
    """A finite number, of whatever library; bools are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float can hold
        return False


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_sequence(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(value, "__len__") and hasattr(value, "__getitem__")
