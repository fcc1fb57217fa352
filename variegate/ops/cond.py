"""A choice by a value of each sample: given with the batch, known from the image's shape, or drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import as_number
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform, set_field
from variegate.ops.compose import Compose
from variegate.ops.container import adopt
from variegate.program.sampling import Rows, Sampling

Range = tuple[float | None, float | None, Transform]

KNOWN: dict[str, Callable[..., npt.NDArray[Any]]] = {
    "uniform": lambda sampling, rows, slot, height, width: sampling.uniform(rows, slot)[:, 0],
    "epoch": lambda sampling, rows, slot, height, width: np.full(len(rows), sampling.epoch),
    "height": lambda sampling, rows, slot, height, width: height,
    "width": lambda sampling, rows, slot, height, width: width,
    "channels": lambda sampling, rows, slot, height, width: sampling.channels[rows],
    "area": lambda sampling, rows, slot, height, width: height.astype(np.int64) * width,
    "aspect": lambda sampling, rows, slot, height, width: width / np.maximum(height, 1),
}


@dataclass(frozen=True)
class Cond(Transform):
    """Choose a transform for every image by a value, never by its pixels.

    ``by`` names the value. Known ones: "uniform" (a number drawn from [0, 1)), "epoch", "height", "width", "channels",
    "area" (height times width, at this stage) and "aspect" (width / height). Any other name, such as "label", is looked
    up among the values given with the batch, one per sample.

    ``cases`` is either a dict from value to transform (values may be written as strings, as JSON does), or a list of
    (low, high, transform) for low <= value < high, where None is an open end; of several ranges that hold the value
    the first is taken. ``default`` is done where no case fits; None does nothing. A list of transforms in the place of
    one is done in order.
    """

    by: str
    cases: Mapping[Any, Transform] | Sequence[Range]
    default: Transform | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.by, str) or not self.by:
            raise ArgumentError(self, "by", self.by, "a name: " + ", ".join(KNOWN) + ', or a given one such as "label"')
        if isinstance(self.cases, Mapping) and self.cases:
            cases = {str(k): _transform(self, f"cases[{k!r}]", v) for k, v in self.cases.items()}
            set_field(self, "cases", cases)
            branches = list(cases.values())
        elif isinstance(self.cases, (list, tuple)) and self.cases:
            ranges = tuple(_range(self, f"cases[{i}]", case) for i, case in enumerate(self.cases))
            set_field(self, "cases", ranges)
            branches = [case[2] for case in ranges]
        else:
            accepted = "a dict {value: transform}, or a list of (low, high, transform), with at least one case"
            raise ArgumentError(self, "cases", self.cases, accepted)
        if self.default is not None:
            set_field(self, "default", _transform(self, "default", self.default))
            branches.append(self.default)
        set_field(self, "_branches", tuple(branches))
        # All images of a batch are of one epoch.
        adopt(self, "cases", branches, own=1 if self.by == "uniform" else 0, is_choice=self.by != "epoch")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        values = self._values(sampling, rows, slot)
        is_open = np.ones(len(rows), np.bool_)
        matches = []
        for case in self.cases.items() if isinstance(self.cases, Mapping) else self.cases:
            fits = is_open & (_equals(values, case[0]) if len(case) == 2 else _is_within(values, case[0], case[1]))
            matches.append(fits)
            is_open &= ~fits
        matches.append(is_open)
        for branch, first, fits in zip(self._branches, self._first_slots, matches, strict=False):  # type: ignore[attr-defined]
            if fits.any():
                branch.sample(sampling, rows[fits], slot + first)

    def _values(self, sampling: Sampling, rows: Rows, slot: int) -> npt.NDArray[Any]:
        if self.by in KNOWN:
            return KNOWN[self.by](sampling, rows, slot, *sampling.size[rows].T)
        if self.by not in sampling.given:
            accepted = ", ".join([*KNOWN, *map(repr, sampling.given)])
            raise ArgumentError(self, "by", self.by, f"{accepted}; no value {self.by!r} was given with this batch")
        given = np.asarray(sampling.given[self.by])
        count = int(sampling.source.max(initial=-1)) + 1
        if given.ndim != 1 or len(given) < count:
            raise ArgumentError(self, "by", self.by, f"one value per sample ({count}), but its shape is {given.shape}")
        return np.asarray(given[sampling.source[rows]])


# -- cases -------------------------------------------------------------------------------------------------------


def _transform(owner: Transform, argument: str, value: object) -> Transform:
    if isinstance(value, (list, tuple)) and value:
        try:
            return Compose(value)
        except ArgumentError as error:
            where = argument + error.argument.removeprefix("transforms")
            raise ArgumentError(owner, where, error.got, error.accepted) from error
    if not isinstance(value, Transform):
        raise ArgumentError(owner, argument, value, "a transform, or a list of transforms")
    return value


def _range(owner: Transform, argument: str, case: object) -> Range:
    if not isinstance(case, (list, tuple)) or len(case) != 3:
        raise ArgumentError(owner, argument, case, "(low, high, transform)")
    low, high, transform = case
    ends = tuple(end if end is None else as_number(end) for end in (low, high))
    if ends.count(None) != (low, high).count(None) or not _or(ends[0], -math.inf) < _or(ends[1], math.inf):
        raise ArgumentError(owner, argument, (low, high), "numbers low < high, or None for an open end")
    low, high = ends
    return low, high, _transform(owner, f"{argument}[2]", transform)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _equals(values: npt.NDArray[Any], key: str) -> npt.NDArray[np.bool_]:
    """Which values a case means, read as the values' own type, since keys become strings on their way through JSON."""
    meant: Any = {"true": True, "false": False}.get(key.lower()) if values.dtype.kind == "b" else key
    if values.dtype.kind in "iuf":
        try:
            meant = float(key)
        except ValueError:
            meant = None
    else:
        values = values if values.dtype.kind == "b" else values.astype(str)
    return np.zeros(len(values), np.bool_) if meant is None else np.asarray(values == meant)


def _is_within(values: npt.NDArray[Any], low: float | None, high: float | None) -> npt.NDArray[np.bool_]:
    return np.asarray((values >= _or(low, -math.inf)) & (values < _or(high, math.inf)))
