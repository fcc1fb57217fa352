"""A function of ``variegate.transforms.functional`` as a transform; arguments may be values of its pipeline.

An operation of one number goes through ``emit_magnitude``, as the magnitudes of policies do; a transform without chance
is that transform. Others are written as instructions (``written.py``), and what is not is asked row by row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from variegate.checks import as_number, meant
from variegate.errors import shown
from variegate.ops.arguments import LARGEST, ArgumentError
from variegate.ops.base import StandIn, Transform, set_field
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.traced.values import is_name
from variegate.ops.traced.written import write
from variegate.program.one_image import OneImage
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling

_HEADER = 8  # of a record: opcode, flags, height, width, label, red, green, blue


def names_in(value: Any) -> set[str]:
    """The values that an argument asks for, lists within it included."""
    if isinstance(value, (list, tuple)):
        return set().union(*map(names_in, value))
    return {value} if is_name(value) else set()


def with_values(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(with_values(entry, known) for entry in value)
    return known[value] if is_name(value) else value


def emit_by_row(
    owner: object,
    function: Callable[..., Any],
    sampling: Sampling,
    rows: Rows,
    arguments: Mapping[str, Any],
    values: Mapping[str, Any],
) -> None:
    """``values``: an array with an entry for each of ``rows``, by name."""
    columns = [np.asarray(values[name], np.float64) for name in values]
    keys = np.column_stack([*columns, sampling.size[rows], sampling.shape[rows, 2]])
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    for number, row in enumerate(first.tolist()):
        known = {name: array[row].item() for name, array in values.items()}
        height, width = sampling.size[rows[row]].tolist()
        stand_in = StandIn((height, width, int(sampling.shape[rows[row], 2])))
        plain = {name: with_values(value, known) for name, value in arguments.items()}
        _emit(sampling, rows[group == number], ask(owner, function, stand_in, plain))


def ask(owner: object, function: Callable[..., Any], stand_in: StandIn, arguments: Mapping[str, Any]) -> OneImage:
    """The instructions of ``function``. Raises ArgumentError for what it does not take, or cannot do here."""
    try:
        function(stand_in, **arguments)
        if stand_in.told is None:
            raise TypeError("it is more than instructions on one uint8 image")
    except ArgumentError as error:
        raise ArgumentError(owner, error.argument, error.got, error.accepted) from error
    except (TypeError, AttributeError, ValueError) as error:
        accepted = f"a function that can be part of a pipeline, at such arguments ({shown(str(error))})"
        raise ArgumentError(owner, "arguments", dict(arguments), accepted) from error
    return stand_in.told


def _emit(sampling: Sampling, rows: Rows, recorded: OneImage) -> None:
    rectangles = sampling.add_rectangles(recorded.rectangles()) if recorded.num_rectangles else 0
    for opcode, flags, height, width, label, *rest in recorded.records:
        op, fill, args = Op(opcode), tuple(rest[:3]), list(rest[3:])
        if op is Op.ERASE:
            args[0] += rectangles
        size = np.array([height, width], np.int32)
        changed = size if (sampling.size[rows] != size).any() else None
        name = recorded._names[label] if label >= 0 else None
        sampling.emit(rows, op, *args, flags=flags, fill=fill, size=changed, name=name)


# Functions are made of transforms, so that they stand above this file, and are looked up when one is asked for.
_FUNCTIONS = "variegate.transforms.functional"
# What a function has beside its image and the operation's arguments, and what a pipeline decides instead.
_OWN = {
    "device": "nothing: the Augmenter has a device",
    "inplace": "nothing: every function gives a new image",
    "seed": "nothing: noise is drawn from the sample's own numbers",
}
_LONGEST = 64


@lru_cache(maxsize=256)
def signature_of(function: str) -> inspect.Signature:
    """Of a function of the functional interface, by its name. Raises KeyError where there is none."""
    module = import_module(_FUNCTIONS)
    if function not in module.__all__ and function not in Transform.functions:
        raise KeyError(function)
    return inspect.signature(getattr(module, function))


@dataclass(frozen=True)
class Function(Transform):
    """Apply one function of ``variegate.transforms.functional``: ``F.function(image, **arguments)``.

    Within a ``TracedPipeline``, an argument, or a number in a list, may be the name of one of its values:
    ``Function("rotate", {"angle": "$uniform1"})`` rotates each image by its own angle.
    """

    function: str
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self._checked()
        set_field(self, "arguments", given or None)
        set_field(self, "_names", frozenset().union(*map(names_in, given.values())))
        known = {
            name: parameter.default
            for name, parameter in list(signature_of(self.function).parameters.items())[1:]
            if name not in _OWN
        }
        known |= given
        changing = frozenset(name for name, value in given.items() if names_in(value))
        set_field(self, "_all", known)
        set_field(self, "_inner", self._form(known, changing))
        if self._inner is not None:  # type: ignore[attr-defined]
            inner: Transform = self._inner  # type: ignore[attr-defined]
            # The first slot draws the number, which is given here.
            drawn = 0 if isinstance(inner, MagnitudeOp) and inner.num_slots == 1 else inner.num_slots
            set_field(self, "num_slots", drawn)
            for name in ("_format_setter", "_changes_bytes", "_finisher"):
                set_field(self, name, getattr(inner, name))

    def _checked(self) -> dict[str, Any]:
        try:
            parameters = signature_of(self.function).parameters
        except (KeyError, TypeError, AttributeError) as error:
            known = sorted(import_module(_FUNCTIONS).__all__)
            accepted = f"one of {', '.join(known)}{meant(self.function, known)}"
            raise ArgumentError(self, "function", self.function, accepted) from error
        given = {} if self.arguments is None else self.arguments
        if not isinstance(given, Mapping):
            raise ArgumentError(self, "arguments", given, f"a dict of the arguments of F.{self.function}")
        names = [name for name in list(parameters)[1:] if name not in _OWN]
        for name, value in given.items():
            if name not in names:
                listed = ", ".join(names) or "none"
                reason = (
                    _OWN[name] if name in _OWN and name in parameters else f"arguments of F.{self.function}: {listed}"
                )
                raise ArgumentError(self, f"arguments[{name!r}]", value, reason)
        for name in names:
            if name not in given and parameters[name].default is inspect.Parameter.empty:
                raise ArgumentError(self, f"arguments[{name!r}]", None, f"a value: F.{self.function} requires it")
        return {name: _plain(self, name, value) for name, value in given.items()}

    def _form(self, known: dict[str, Any], changing: frozenset[str]) -> Transform | None:
        """The transform that it is, with a number to be set or at none; None where it is asked row by row."""
        set_field(self, "_number", "")
        cls = Transform.functions.get(self.function)
        operation = None
        if cls is not None and issubclass(cls, MagnitudeOp):
            operation = self._at_number(cls, known, changing)
        elif cls is not None and not changing:
            names = {argument: name for name, argument in cls._called.items()}
            try:
                return cls(**{names.get(name, name): known[name] for name in self.arguments or ()})
            except ArgumentError as error:
                raise self._refused(error.argument, error.got, error.accepted) from error
        if not changing:
            ask(self, getattr(import_module(_FUNCTIONS), self.function), StandIn((256, 256, 3)), known)
        return operation

    def _at_number(self, cls: type[MagnitudeOp], known: dict[str, Any], changing: frozenset[str]) -> MagnitudeOp | None:
        """The operation at some number; None where it says only a part of what the function does."""
        names = {cls._called.get(field.name, field.name): field.name for field in fields(cls)}  # type: ignore[arg-type]
        number = cls._called.get(cls._number, cls._number)
        parameters = signature_of(self.function).parameters
        has_more = any(known[name] != parameters[name].default for name in known.keys() - names.keys())
        if has_more or changing - {number} or not (number in changing or isinstance(known[number], (int, float))):
            return None
        low, high = cls._bounds
        at: float = min(max(low, 1), high)
        set_field(self, "_number", number)
        same = {names[name]: known[name] for name in known.keys() & names.keys() - {number}}
        return cls(**{cls._number: at}, **same)

    def _refused(self, name: str, got: object, accepted: str) -> ArgumentError:
        return ArgumentError(self, f"arguments[{name!r}]", got, accepted)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if len(rows) == 0:
            return
        try:
            self._emit(sampling, rows, slot)
        except ArgumentError as error:
            place = self.__dict__.get("_where")  # of a function that was traced in this process, or in its parent
            where = f"{place}: F.{self.function}" if place else f"F.{self.function}"
            error.args = (f"{where}: {error.argument}={shown(error.got)}; accepted: {error.accepted}",)
            raise

    def _emit(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        inner: Transform | None = self._inner  # type: ignore[attr-defined]
        known: dict[str, Any] = self._all  # type: ignore[attr-defined]
        values = {name: self._values(name, sampling, rows) for name in sorted(self._names)}  # type: ignore[attr-defined]
        argument: str = self._number  # type: ignore[attr-defined]
        if argument:
            assert isinstance(inner, MagnitudeOp)
            if values:
                numbers = np.asarray(values[known[argument]], np.float64)
                check_numbers(type(inner), argument, numbers, self)
            else:
                numbers = np.full(len(rows), known[argument], np.float64)
            inner.emit_magnitude(sampling, rows, numbers, slot)
        elif inner is not None:
            inner.sample(sampling, rows, slot)
        elif not write(self.function, self, sampling, rows, {k: with_values(v, values) for k, v in known.items()}):
            function = getattr(import_module(_FUNCTIONS), self.function)
            emit_by_row(self, function, sampling, rows, known, values)

    def _values(self, name: str, sampling: Sampling, rows: Rows) -> Any:
        if name not in sampling.given:
            raise ArgumentError(
                self, "arguments", dict(self.arguments or {}), f"a TracedPipeline around it that defines {name}"
            )
        values = np.asarray(sampling.given[name])
        if values.dtype.kind not in "biuf":
            argument = next(one for one, value in (self.arguments or {}).items() if name in names_in(value))
            got = values[sampling.source[rows[:1]]].tolist()[0]
            raise ArgumentError(self, argument, got, "a number, as it differs from sample to sample")
        return values[sampling.source[rows]]


def check_numbers(operation: type[MagnitudeOp], argument: str, values: Floats, owner: object) -> None:
    """Raises ArgumentError for the first that the operation does not take."""
    low, high = max(operation._bounds[0], -LARGEST), min(operation._bounds[1], LARGEST)
    fits = (values >= low) & (values <= high)
    if operation._integral:
        fits &= values == np.floor(values)
    if not fits.all():
        wrong = values[~fits][0].item()

        def refused(name: str, got: object, accepted: str) -> Exception:
            return ArgumentError(owner, name, got, accepted)

        operation.check_number(argument, wrong, error=refused)
        raise refused(argument, wrong, f"numbers from {low:g} to {high:g}")  # what only whole numbers are refused for


def _plain(owner: Transform, name: str, value: Any, level: int = 0) -> Any:
    """As JSON has it: numbers of Python's own, sequences as tuples."""
    value = getattr(value, "value", value) if type(value).__module__ not in ("builtins", "numpy") else value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if len(value) <= _LONGEST and level < 4:
            return tuple(_plain(owner, name, entry, level + 1) for entry in value)
    elif value is None or isinstance(value, (bool, str)):
        return value
    else:
        number = as_number(value)
        if number is not None:
            return number
    accepted = f"numbers, truth values, texts, None, or lists of up to {_LONGEST} of them"
    raise ArgumentError(owner, f"arguments[{name!r}]", value, accepted)
