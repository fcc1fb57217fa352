"""Checks of users' arguments, all with the same form of error.

A check takes the argument's name and its value, and returns the value in one form: numbers of other libraries as plain
Python ones, sequences as tuples. Otherwise it raises ``error(name, value, accepted)``: a ``ValueError`` unless the
caller passes another error.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar

from variegate.errors import short_repr
from variegate.removed import removal_message

Choice = TypeVar("Choice")
Number = int | float
Refusal = Callable[[str, Any, str], Exception]

_LARGEST_IN_DIGITS = 1 << 31
# Raised when any (seed, epoch, sample id, copy) gives other bytes than before: docs/stability.md.
PIXEL_VERSION = 2


def check_pixel_version(
    place: str, found: Any, error: Callable[[str], Exception], instead: str = "start over in another folder"
) -> None:
    """Raise ``error`` where ``place`` was written with other pixels. None stands for 1, as in older files."""
    found = 1 if found is None else found
    if found != PIXEL_VERSION:
        raise error(
            f"{place}: written with pixel version {short_repr(found)}, and this version of Variegate makes pixel "
            f"version {PIXEL_VERSION}; install the version that wrote it, or {instead}"
        )


def refused(name: str, got: object, accepted: str) -> ValueError:
    return ValueError(f"{name}: got {short_repr(got)}; accepted: {accepted}")


def as_integer(value: Any) -> int | None:
    """An integer of any library, a tensor's too, as an ``int``; None for anything else. Bools are refused."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
        return None
    try:
        return operator.index(value)
    except (TypeError, ValueError):
        return None


def as_number(value: Any) -> Number | None:
    """A finite number of any library as an ``int`` or ``float``; None for anything else. Bools are refused."""
    # As nearly all are; to ask for the kinds of others takes longer.
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is int and -_LARGEST_IN_DIGITS < value < _LARGEST_IN_DIGITS:
        return value
    if type(value) is tuple or type(value) is list:
        return None
    if not isinstance(value, Real) and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return as_number(value.item())  # a tensor's element
    elif isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an int that no float can hold
        return None
    return (int(value) if isinstance(value, Integral) else float(value)) if finite else None


def as_numbers(value: Any, whole: bool = False) -> tuple[Any, ...] | None:
    """A list, a tuple or an array of numbers as a tuple; None for anything else."""
    if type(value) is not tuple and type(value) is not list:
        is_text = isinstance(value, (str, bytes, Mapping))
        if is_text or isinstance(value, type) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
            return None
    try:
        numbers = tuple(map(as_integer if whole else as_number, value))
    except TypeError:  # an array without an axis
        return None
    return None if None in numbers else numbers


def integer(
    name: str,
    value: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    accepted: str | None = None,
    error: Refusal = refused,
) -> int:
    """An integer within [low, high]. ``accepted``: replaces the default description of accepted values."""
    number = as_integer(value)
    if number is None or (low is not None and number < low) or (high is not None and number > high):
        raise error(name, value, accepted or "an integer" + _between(low, high, f" from {low} on"))
    return number


def number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    accepted: str | None = None,
    error: Refusal = refused,
) -> Number:
    """A finite number within [low, high]."""
    plain = as_number(value)
    if plain is None or not low <= plain <= high:
        kind = "a number" if math.isfinite(high) else "a finite number"
        first, last = (end if math.isfinite(end) else None for end in (low, high))
        raise error(name, value, accepted or kind + _between(first, last, f" of {low:g} or more"))
    return plain


def one_of(name: str, value: Any, choices: Sequence[Choice], *, error: Refusal = refused) -> Choice:
    """Return the choice that equals ``value`` and has its type: 1 is not True."""
    for choice in choices:
        if value is choice or (isinstance(value, type(choice)) and value == choice):
            return choice
    raise error(name, value, "one of " + ", ".join(map(repr, choices)) + did_you_mean(value, choices))


def did_you_mean(value: object, words: Iterable[object], cutoff: float = 0.6) -> str:
    """A question at the end of a refusal, about the word that is near: "; did you mean 'host'?"; else nothing."""
    known = {word.lower(): word for word in words if isinstance(word, str)}
    near = get_close_matches(value.lower(), known, 1, cutoff) if isinstance(value, str) else ()
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def missing_name(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error of a module's ``__getattr__``, with the nearest of its public ``names``."""
    package = module.removeprefix("variegate").removeprefix(".")
    removal = removal_message(f"{package}.{name}" if package else name)
    if removal is not None:
        return AttributeError(removal, name=name)
    near = "" if name.startswith("_") else did_you_mean(name, names, cutoff=0.7)
    # With a name, so that Python's own traceback adds no second suggestion.
    return AttributeError(f"module {module!r} has no attribute {name!r}{near}", name=name)


def a_path(name: str, value: str, words: Sequence[str], accepted: str) -> str:
    """Text that stands for a file or a folder where ``words`` have meanings of their own: with a separator or a dot, or
    from "~" on. Otherwise it may be a misspelled word."""
    if os.sep in value or "." in value or value.startswith("~"):
        return value
    raise refused(name, value, f"{accepted}, such as './{value}'{did_you_mean(value, words)}")


def _between(low: float | None, high: float | None, upwards: str) -> str:
    if low is None:
        return "" if high is None else f" up to {bound_text(high)}"
    return upwards if high is None else f" from {bound_text(low)} to {bound_text(high)}"


def bound_text(value: float) -> str:
    """A bound of a number as messages write it."""
    if isinstance(value, int) and value >= _LARGEST_IN_DIGITS and (value + 1).bit_count() == 1:
        return f"2**{value.bit_length()} - 1"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else f"{value:g}"
