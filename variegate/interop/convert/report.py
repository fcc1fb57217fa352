"""Results of conversions: each transform of a pipeline is the same here, close, or refused."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, TypeVar

from variegate.errors import PolicyError, short_repr, truncate_middle
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform

_MAX_VALUE_LENGTH = 100
# Raised for values of a kind that the library does not have; a ConversionError is a ValueError.
_UNREADABLE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
T = TypeVar("T", bound=Transform)


class ConversionError(PolicyError):
    """Raised for a transform that cannot be converted; names it, its argument, the value and accepted values."""


class ConversionWarning(UserWarning):
    """A transform was converted to an approximation: names the transform, the difference and its size."""


class Counterpart(NamedTuple):
    """An approximate conversion. ``original``: the library's object, or its description by Albumentations' ``to_dict``;
    ``transform``: its replacement, without the chance that Albumentations' transforms have of doing nothing."""

    original: Any
    transform: Transform


@dataclasses.dataclass(frozen=True)
class ConversionReport:
    """Result of each transform of a conversion, by its place in the pipeline; ``str`` returns the warning's text.

    ``converted``: places of identical transforms. ``approximate``: the differences of approximate ones, and their size.
    ``refused``: unsupported transforms, which are skipped, with their replacements. ``counterparts``: the approximate
    ones.
    """

    converted: tuple[str, ...]
    approximate: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]
    counterparts: Mapping[str, Counterpart] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"{path}: close: {'; '.join(how)}" for path, how in self.approximate.items()]
        lines += [f"{path}: refused: use {instead}" for path, instead in self.refused.items()]
        counts = f"{len(self.converted)} the same, {len(self.approximate)} close, {len(self.refused)} refused"
        return lines[0] if len(lines) == 1 else "\n  ".join([f"{counts}:" if lines else counts, *lines])


class ReportBuilder:
    """Collects the results of a conversion, in the order of the pipeline.

    ``targets``: the kinds of targets that the pipeline describes: "boxes", "keypoints" and, for Albumentations 2.0,
    "keypoints-2.0". ``mask_fills``: values with which transforms fill masks, by path.
    """

    def __init__(self) -> None:
        self.targets: frozenset[str] = frozenset()
        self.mask_fills: dict[str, int] = {}
        self.differences: dict[str, list[str]] = {}
        self.errors: dict[str, ConversionError] = {}
        self.counterparts: dict[str, Counterpart] = {}

    def finish(self, skip_refused: bool) -> ConversionReport:
        """The report; warns if it has differences. Raises the first refusal, which names the others, unless refused
        transforms are skipped."""
        if self.errors and not skip_refused:
            first, *others = self.errors.values()
            more = f"; refused as well: {', '.join(error.where for error in others)}" if others else ""
            raise ConversionError(first.where, first.got, first.accepted + more) from first
        close = {path: tuple(how) for path, how in self.differences.items() if how}
        report = ConversionReport(
            tuple(path for path in self.differences if path not in close),
            close,
            dict(_instead(path, error) for path, error in self.errors.items()),
            {path: pair for path, pair in self.counterparts.items() if path in close},
        )
        if close or self.errors:
            warnings.warn(str(report), ConversionWarning, stacklevel=3)  # the line that called the converter
        return report


def _instead(path: str, error: ConversionError) -> tuple[str, str]:
    got = "" if error.where == path else f"; got {truncate_middle(short_repr(error.got), _MAX_VALUE_LENGTH)}"
    return error.where, error.accepted + got


class Node(NamedTuple):
    """A transform of the pipeline: its path, such as ``transforms[2] RandomAffine``, and the report."""

    path: str
    report: ReportBuilder

    def refuse(self, argument: str, got: object, accepted: str) -> NoReturn:
        raise self.error(argument, got, accepted)

    def error(self, argument: str, got: object, accepted: str) -> ConversionError:
        return ConversionError(f"{self.path}.{argument}" if argument else self.path, got, accepted)

    def add_difference(self, difference: str) -> None:
        """Report that the conversion is approximate."""
        differences = self.report.differences.setdefault(self.path, [])
        if difference not in differences:
            differences.append(difference)

    @contextmanager
    def converting(self, original: Any) -> Iterator[None]:
        """Report errors of reading ``original`` as its refusal."""
        try:
            yield
        except _UNREADABLE as error:
            if not isinstance(error, ConversionError):
                error = self.error("", original, f"arguments as the library has them ({error})")
            self.report.errors[self.path] = error
            self.report.differences.pop(self.path, None)

    def add_converted(self, original: Any = None, transform: Transform | None = None) -> None:
        """Report a conversion. ``transform``: the replacement, None if nothing replaces it."""
        self.report.differences.setdefault(self.path, [])
        if transform is not None:
            self.report.counterparts[self.path] = Counterpart(original, transform)

    def build(self, cls: type[T], names: Mapping[str, str] | None = None, **arguments: Any) -> T:
        """``cls`` with these arguments. ``names``: the library's names of arguments whose names differ."""
        try:
            return cls(**arguments)
        except ArgumentError as error:
            name = (names or {}).get(error.argument, error.argument)
            raise self.error(name, error.got, error.accepted) from error


def parameters(cls: type[Transform]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """Enumeration members as their values; tensors, arrays and lists as tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(each) for each in value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value.value if hasattr(type(value), "__members__") else value
