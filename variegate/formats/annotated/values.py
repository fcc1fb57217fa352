"""Checks of options and of values in foreign records, whose numbers may stand in quotes, as some writers have them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from variegate.checks import meant
from variegate.errors import shown
from variegate.formats.base import SourceError, cut_off

# No place in a picture is beyond it, and nothing that is computed from two such numbers and a size is too large for
# float32.
MOST = 1e9
FINITE = "finite numbers, up to 1e9"
# Of a category or a row; those of whole bodies have 133.
MOST_POINTS = 1000
MOST_SIDE = (1 << 31) - 1


_OPTION = re.compile(r"\s*([a-z_]+)\s*=(.*)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False, "yes": True, "no": False}
_SIDES = re.compile(r"(\d+)\s*x\s*(\d+)")


class AnnotationOption(NamedTuple):
    """An option of ``annotations=``: its default, the accepted values in words, and the test for them."""

    default: Any
    accepted: str
    fits: Callable[[Any], bool]

    @classmethod
    def one_of(cls, *choices: Any) -> AnnotationOption:
        """The first is the default."""
        return cls(choices[0], ", ".join(map(repr, choices)), lambda value: value in choices)


class Options:
    """The options of a layout by name, checked when they are read: ``options.of("mask")``."""

    def __init__(self, known: Mapping[str, AnnotationOption], values: Mapping[str, Any]) -> None:
        """Raises SourceError for an option that is not known."""
        if unknown := [name for name in values if name not in known and name != "format"]:
            accepted = f"{', '.join(known)}{meant(unknown[0], known)}"
            raise SourceError(f"annotations: got the option {unknown[0]!r}; accepted: {accepted}")
        self._known = known
        self._values = values

    def of(self, name: str) -> Any:
        """Raises SourceError for a value that is not accepted; a path as text."""
        value = self._values.get(name, self._known[name].default)
        if not self._known[name].fits(value):
            raise SourceError(f"annotations: {name}: got {shown(value)}; accepted: {self._known[name].accepted}")
        return os.fspath(value) if isinstance(value, os.PathLike) else value


class MaskOptions(NamedTuple):
    """The options ``mask`` and ``unoutlined`` of a layout."""

    mask: str | None
    unoutlined: str

    @classmethod
    def of(cls, options: Options) -> MaskOptions:
        """Raises SourceError for values that are not accepted, or not together."""
        mask = options.of("mask")
        unoutlined = options.of("unoutlined")
        if unoutlined == "ignore" and mask != "classes":
            got = f"got 'ignore' with mask={mask!r}"
            raise SourceError(f"annotations: unoutlined: {got}; accepted: 'fill', 'background', or mask='classes'")
        return cls(mask, unoutlined)

    def notes(self, without: int, count: int, num_classes: int) -> list[str]:
        """On ``without`` of ``count`` objects that have no outline. Raises SourceError for more classes than fit below
        the value that is ignored."""
        if self.mask is None or not without:
            return []
        if self.unoutlined == "ignore" and num_classes >= IGNORED_VALUE:
            got = f"got 'ignore' with {num_classes:,} classes"
            raise SourceError(f"annotations: unoutlined: {got}; accepted: up to {IGNORED_VALUE - 1} classes")
        shown = {
            "fill": "their boxes are filled",
            "ignore": f"their boxes have the value {IGNORED_VALUE}",
            "background": "they are background",
        }
        others = ", ".join(repr(one) for one in shown if one != self.unoutlined)
        line = f"{without:,} of {count:,} objects have no outline; in masks {shown[self.unoutlined]}"
        return [f'{line} ("unoutlined": {others} for others)']


def split_typed(text: str) -> tuple[str, dict[str, Any]]:
    """``yolo,split=train,mask=each`` -> the layout or file that comes first, and the options: text, but for ``none``,
    ``true``, ``false`` (``yes``, ``no``), and two numbers ``17x3``, a list. Commas that no option follows belong to
    what stands before them, as names of files may hold some."""
    first, *rest = text.split(",")
    options: dict[str, Any] = {}
    last = None
    for part in rest:
        if found := _OPTION.fullmatch(part):
            last = found[1]
            options[last] = found[2]
        elif last is None:
            first += f",{part}"
        else:
            options[last] += f",{part}"
    for name, value in options.items():
        word = value.strip()
        sides = _SIDES.fullmatch(word)
        options[name] = _WORDS.get(word.lower(), word) if sides is None else [int(sides[1]), int(sides[2])]
    return first, options


def is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and bool(os.fspath(value))


def is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def optional(accepted: str, fits: Callable[[Any], bool]) -> AnnotationOption:
    """None by default."""
    return AnnotationOption(None, accepted, lambda value: value is None or fits(value))


def _is_points(value: Any) -> bool:
    """[number of key points, their columns], as YOLO's ``kpt_shape``."""
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(type(one) is int for one in value)
    return is_pair and 1 <= value[0] <= MOST_POINTS and value[1] in (2, 3)


MASKS = (None, "instances", "classes", "each")
FLAG = AnnotationOption(False, "True, False", lambda value: isinstance(value, bool))
MASK = AnnotationOption(None, "'instances', 'classes', 'each', None for no mask", lambda value: value in MASKS)
# What masks show of objects without an outline: the filled box, the value ``IGNORED_VALUE`` in it, or nothing.
UNOUTLINED = AnnotationOption.one_of("fill", "ignore", "background")
IGNORED_VALUE = 255
SPLIT = optional("a path", is_path)
POINTS = optional(f"[number of points, 2 or 3], up to {MOST_POINTS:,} points", _is_points)


def refusal(name: str, value: Any, accepted: str) -> ValueError:
    return ValueError(f"{name} is {shown_value(value)}; accepted: {accepted}")


def as_list(name: str, value: Any) -> Any:
    value = [] if value is None else value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        raise refusal(name, value, "a list with an entry for each object")
    return value


def numbers_of(name: str, value: Any, count: int | None = None) -> list[float]:
    """``count``: how many there have to be."""
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
    """From 0 to ``high``; 7.0 is such a number, too."""
    try:
        number = value if type(value) is int else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number <= high or number != int(number):
        raise refusal(name, value, f"whole numbers from 0 to {high:,}")
    return int(number)


def flag_of(name: str, value: Any) -> bool:
    """Of 0 or 1, or nothing at all."""
    return bool(value) and whole_of(name, value, 1) == 1


def shown_value(value: Any) -> str:
    return cut_off(shown(value))
