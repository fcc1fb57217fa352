"""Declaration of transform arguments: field annotations define the accepted values.

A field is annotated with a type and an ``Argument``, as in ``p: Annotated[float, Range(0.0, 1.0)]``, or with an alias
(``variegate/ops/arguments.py``). The annotation defines the field's check, its normalized form, and the description of
accepted values in errors. Functions in ``variegate.transforms.functional`` check their arguments by it as well.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from variegate.checks import Refusal, as_integer, as_number, as_numbers, bound_text, one_of, refused

# Bound of otherwise unbounded numbers. Products of two are finite in float32.
LARGEST = 1e9
_UNIONS = (Union, UnionType)


class Argument:
    """Accepted values of an argument: metadata of ``Annotated``."""

    def convert(self, value: Any) -> Any:
        """Return the normalized form of an accepted value; None for any other value."""
        raise NotImplementedError(f"{type(self).__name__} does not define convert()")

    def describe(self) -> str:
        """Return the description of accepted values for errors."""
        raise NotImplementedError(f"{type(self).__name__} does not define describe()")

    def check(self, name: str, value: Any, *, error: Refusal = refused) -> Any:
        """Return the normalized form of ``value``. Raises ``error(name, value, accepted)`` if it is not accepted."""
        converted = self.convert(value)
        if converted is None:
            raise error(name, value, self.describe())
        return converted

    def of_type(self, annotated: Any) -> Argument:
        """Return this argument for a field with type ``annotated``."""
        return self


class Converted(Argument):
    """Values for which ``function`` does not return None. ``accepted``: their description."""

    def __init__(self, function: Callable[[Any], Any], accepted: str) -> None:
        self.function = function
        self.accepted = accepted

    def convert(self, value: Any) -> Any:
        return self.function(value)

    def describe(self) -> str:
        return self.accepted


class OrNone(Argument):
    """None, or the values of ``argument``."""

    def __init__(self, argument: Argument) -> None:
        self.argument = argument

    def check(self, name: str, value: Any, *, error: Refusal = refused) -> Any:
        if value is None:
            return None

        def refuse(part: str, got: Any, accepted: str) -> Exception:
            return error(part, got, f"None, or {accepted}" if part == name else accepted)

        return self.argument.check(name, value, error=refuse)

    def describe(self) -> str:
        return f"None, or {self.argument.describe()}"


class OneOf(Argument):
    """One of ``choices``. ``read`` converts equivalent values, such as enum members, to choices."""

    def __init__(self, choices: Sequence[Any], read: Callable[[Any], Any] | None = None) -> None:
        self.choices = choices
        self.read = read

    def check(self, name: str, value: Any, *, error: Refusal = refused) -> Any:
        if type(value) is str and value in self.choices:
            return value
        return one_of(name, value if self.read is None else self.read(value), self.choices, error=error)

    def describe(self) -> str:
        return "one of " + ", ".join(map(repr, self.choices))


class Exactly(Argument):
    """The single value ``only``, for arguments that exist for compatibility. ``accepted``: the reason, for errors."""

    def __init__(self, only: object, accepted: str) -> None:
        self.only = only
        self.accepted = accepted

    def convert(self, value: Any) -> Any:
        return self.only if type(value) is type(self.only) and value == self.only else None

    def describe(self) -> str:
        return self.accepted


class Range(Argument):
    """Numbers from ``low`` to ``high``, both included, in steps of ``step`` for integers.

    The type of the field determines the form: ``float`` or ``int``; ``Number`` or ``Integers`` for a constant or a pair
    (low, high) to draw from; ``Pair`` for a pair only.
    """

    is_integer = False
    takes_constant = True
    takes_pair = False

    def __init__(self, low: float = -LARGEST, high: float = LARGEST, step: int = 1) -> None:
        self.low, self.high, self.step = low, high, step

    def of_type(self, annotated: Any) -> Range:
        kinds = get_args(annotated) if get_origin(annotated) in _UNIONS else (annotated,)
        typed = copy.copy(self)
        typed.is_integer = not any(kind is float or float in get_args(kind) for kind in kinds)
        typed.takes_constant = int in kinds or float in kinds
        typed.takes_pair = any(get_args(kind) for kind in kinds)
        return typed

    def of_constant(self) -> Range:
        """Return this range for constants only, without pairs to draw from."""
        return self.of_type(int if self.is_integer else float)

    def convert(self, value: Any) -> Any:
        number = as_integer(value) if self.is_integer else as_number(value)
        if number is not None:
            return number if self.takes_constant and self._holds(number) else None
        numbers = as_numbers(value, self.is_integer) if self.takes_pair else None
        if numbers is None or not all(map(self._holds, numbers)):
            return None
        if len(numbers) == 1 and self.takes_constant:
            return numbers[0]
        return numbers if len(numbers) == 2 and numbers[0] <= numbers[1] else None

    def describe(self) -> str:
        kind = "an integer" if self.is_integer else "a number"
        if self.step == 2:
            kind = "an odd integer"
        ends = f" from {bound_text(self.low)} to {bound_text(self.high)}"
        if not self.takes_pair:
            return kind + ends
        return f"{kind}, or a pair (low, high) of them,{ends}" if self.takes_constant else f"a pair (low, high){ends}"

    def _holds(self, number: float) -> bool:
        return self.low <= number <= self.high and (self.step == 1 or (number - self.low) % self.step == 0)


class MagnitudeRange(Range):
    """Range of a ``MagnitudeOp``'s magnitude, which policies set."""


class Around(Argument):
    """A pair (low, high) within ``low`` and ``high``, or a list of up to ``pairs`` pairs.

    A number d means (center - d, center + d).
    """

    def __init__(self, center: float, low: float = -LARGEST, high: float = LARGEST, pairs: int = 1) -> None:
        self.center, self.low, self.high, self.pairs = center, low, high, pairs

    def convert(self, value: Any) -> Any:
        distance = as_number(value)
        if distance is None:
            ends = as_numbers(value)
        else:
            ends = max(self.center - distance, self.low), self.center + distance
        if ends is None or len(ends) not in (2, 2 * self.pairs):
            return None
        in_order = all(self.low <= low <= high <= self.high for low, high in zip(ends[::2], ends[1::2], strict=True))
        return ends if in_order else None

    def describe(self) -> str:
        low, high, most = map(bound_text, (self.low, self.high, self.high - self.center))
        more = ", or two such pairs" if self.pairs > 1 else ""
        return f"a number from 0 to {most}, or a pair (low, high) from {low} to {high}{more}"


def read_arguments(annotations: Mapping[str, Any], *namespaces: Any) -> dict[str, Argument]:
    """Return {name: argument} for ``annotations`` that define accepted values.

    These are ``Annotated`` with an ``Argument``, ``Literal``, ``bool``, and their unions with None. Other types, and
    annotations that cannot be evaluated at run time, are ignored. Names in annotations are looked up in ``namespaces``.
    """
    read = {}
    for name, annotation in annotations.items():
        try:
            annotated = eval(annotation, *namespaces) if isinstance(annotation, str) else annotation
        except (AttributeError, NameError, TypeError):
            continue
        if (argument := _argument_of(annotated)) is not None:
            read[name] = argument
    return read


def arguments_of_class(cls: type) -> dict[str, Argument]:
    """Return the arguments that ``cls`` declares in its annotations, without its bases."""
    return read_arguments(inspect.get_annotations(cls), vars(sys.modules[cls.__module__]), vars(cls))


def _argument_of(annotated: Any) -> Argument | None:
    if get_origin(annotated) is Annotated:
        kind, *others = get_args(annotated)
        return next((each.of_type(kind) for each in others if isinstance(each, Argument)), None)
    if get_origin(annotated) is Literal:
        return OneOf(get_args(annotated))
    if annotated is bool:
        return OneOf((True, False))
    if get_origin(annotated) in _UNIONS:
        kinds = [kind for kind in get_args(annotated) if kind is not type(None)]
        argument = _argument_of(kinds[0]) if len(kinds) == 1 else None
        return None if argument is None else OrNone(argument)
    return None
