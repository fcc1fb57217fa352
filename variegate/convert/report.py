"""What a conversion has to say: a refusal where the meaning would be lost, a warning where it is close."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from variegate.errors import PolicyError, shown
from variegate.transforms.arguments import ArgumentError
from variegate.transforms.base import Transform

Made = TypeVar("Made", bound=Transform)


class ConversionError(PolicyError):
    """What cannot be converted: ``where`` names the transform and its argument, then what it held, what is accepted."""


class ConversionWarning(UserWarning):
    """A transform was converted to one that is close: which argument, what differs, and by how much."""


class Notes:
    """Gathers what is close, in the order in which it was met and each once, and says it when all is converted."""

    def __init__(self) -> None:
        self._notes: dict[str, None] = {}

    def add(self, note: str) -> None:
        self._notes[note] = None

    def warn(self) -> None:
        """Warn where the user called the converter, whose own frame is next to this one, with ``spelt`` around it."""
        for note in self._notes:
            warnings.warn(note, ConversionWarning, stacklevel=4)


class Place(NamedTuple):
    """A transform of the pipeline that is read: its path, such as ``transforms[2] RandomAffine``, and the report."""

    path: str
    report: Notes

    def argument(self, name: str) -> str:
        return f"{self.path}.{name}" if name else self.path

    def refuse(self, argument: str, got: object, accepted: str) -> NoReturn:
        raise ConversionError(self.argument(argument), got, accepted)

    def differs(self, argument: str, got: object, how: str) -> None:
        """``argument`` (or "", for the transform as a whole) is converted to something close."""
        self.report.add(f"{self.argument(argument)}{'=' + shown(got) if argument else ''}: {how}")

    def build(self, cls: type[Made], arguments: Mapping[str, Any], names: Mapping[str, str] | None = None) -> Made:
        """``cls`` of ``arguments``. ``names``: what the library calls those whose names differ."""
        try:
            return cls(**arguments)
        except ArgumentError as error:
            name = (names or {}).get(error.argument, error.argument)
            raise ConversionError(self.argument(name), error.got, error.accepted) from error


def argument_names(cls: type[Transform]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """Enumerations as their values, tensors and arrays as tuples, lists as tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(each) for each in value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    # An enumeration's member, of whatever library.
    return value.value if hasattr(type(value), "__members__") else value
