"""Conversion: places in a pipeline, what is built there, and the report of what is refused or only close."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from variegate.errors import PolicyError, shortened, shown
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform

_LONGEST = 100  # of a value in a report
Made = TypeVar("Made", bound=Transform)


class ConversionError(PolicyError):
    """Raised for a transform that cannot be converted; names it, its argument, the value and what is accepted."""


class ConversionWarning(UserWarning):
    """A transform was converted to an approximation: names the argument, the difference and its size."""


class Counterpart(NamedTuple):
    """An approximate conversion. ``original``: the library's object, or the description by Albumentations' ``to_dict``;
    ``transform``: what stands for it, without the chance that Albumentations' transforms have of doing nothing."""

    original: Any
    transform: Transform


@dataclasses.dataclass(frozen=True)
class ConversionReport:
    """Result of each transform of a conversion, by its place in the pipeline; ``str`` returns the warning's text.

    ``converted``: places of identical transforms. ``approximate``: the differences of approximate ones, and their size.
    ``refused``: for unsupported ones, which are skipped, what to use instead. ``counterparts``: the approximate ones.
    """

    converted: tuple[str, ...]
    approximate: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]
    counterparts: Mapping[str, Counterpart] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"{place}{how}" for place, all_of in self.approximate.items() for how in all_of]
        lines += [f"{place}: skipped; accepted: {instead}" for place, instead in self.refused.items()]
        counts = f"{len(self.converted)} the same, {len(self.approximate)} close, {len(self.refused)} refused"
        return lines[0] if len(lines) == 1 else "\n  ".join([f"{counts}:" if lines else counts, *lines])


class Notes:
    """Gathers what becomes of transforms, in the order in which they were met, and says it when all is converted.

    ``targets``: the kinds of targets that the pipeline describes, "boxes", "keypoints" and, of Albumentations 2.0,
    "keypoints-2.0". ``mask_fills``: values with which transforms fill masks, by path.
    """

    def __init__(self) -> None:
        self.targets: frozenset[str] = frozenset()
        self.mask_fills: dict[str, int] = {}
        self._converted: dict[str, None] = {}
        self._approximate: dict[str, dict[str, None]] = {}
        self._refused: dict[str, ConversionError] = {}
        self._counterparts: dict[str, Counterpart] = {}

    def convert(self, path: str) -> None:
        self._converted[path] = None

    def add(self, path: str, note: str) -> None:
        self._approximate.setdefault(path, {})[note] = None

    def pair(self, path: str, original: Any, transform: Transform | None) -> None:
        """Two that may be compared, if they turn out to differ. None: nothing stands for it."""
        if transform is not None:
            self._counterparts[path] = Counterpart(original, transform)

    def refuse(self, path: str, error: ConversionError) -> None:
        self._refused[path] = error
        self._approximate.pop(path, None)

    def raise_refused(self) -> None:
        """Raises the first refusal, which names the others."""
        if self._refused:
            first, *others = self._refused.values()
            more = f"; refused as well: {', '.join(error.where for error in others)}" if others else ""
            raise ConversionError(first.where, first.got, first.accepted + more) from first

    def made(self) -> ConversionReport:
        refused = {}
        for path, error in self._refused.items():
            got = "" if error.where == path else f"; got {shortened(shown(error.got), _LONGEST)}"
            refused[error.where] = error.accepted + got
        close = {path: tuple(notes) for path, notes in self._approximate.items()}
        converted = tuple(path for path in self._converted if path not in close)
        pairs = {path: pair for path, pair in self._counterparts.items() if path in close}
        return ConversionReport(converted, close, refused, pairs)

    def warn(self) -> None:
        """Warn, once for a pipeline, with the line that called the converter."""
        if self._approximate or self._refused:
            warnings.warn(str(self.made()), ConversionWarning, stacklevel=3)


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
        self.report.add(self.path, f".{argument}={shown(got)}: {how}" if argument else f": {how}")

    def build(self, cls: type[Made], names: Mapping[str, str] | None = None, **arguments: Any) -> Made:
        """``cls`` of ``arguments``. ``names``: what the library calls those whose names differ."""
        try:
            return cls(**arguments)
        except ArgumentError as error:
            name = (names or {}).get(error.argument, error.argument)
            raise ConversionError(self.argument(name), error.got, error.accepted) from error


# Raised for values that are of no kind the library has; a ConversionError is a ValueError.
UNREADABLE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def as_refusal(error: Exception, place: Place, got: object) -> ConversionError:
    if isinstance(error, ConversionError):
        return error
    return ConversionError(place.path, got, f"arguments as the library has them ({error})")


def parameters(cls: type[Transform]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """Enumerations as their values, tensors and arrays as tuples, lists as tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(each) for each in value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    # An enumeration's member, of whatever library.
    return value.value if hasattr(type(value), "__members__") else value
