"""Magnitude spaces: the argument that "Rotate at level 9" stands for; their numbers are data/magnitude_spaces.json.

A rule turns a *level* (a bin, or a real number where a policy adds noise) into the argument of an operation:
``magnitude = low + (high - low) * level / full``, rounded, negated by chance if signed, and then
``argument = base + factor * magnitude``, clipped, and multiplied by the image's size where it is a fraction of that.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from variegate.ops.schema import Range
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, clip, float32, maximum, rint, select, trunc


def linspace(low: Number, high: Number, full: Number, level: Number) -> Number:
    """``torch.linspace(low, high, full + 1)[level]``, a float32 number."""
    # Torch steps from the nearer end and rounds once (FMA, as on every x86-64 with AVX2); float64 holds such exactly.
    first, last = float32(low), float32(high)
    step = float32(float32(last - first) / full)
    return float32(select(level < (full + 1) // 2, first + step * level, last - step * (full - level)))


def element(end: Number, full: Number, fraction: Number, side: Number) -> Number:
    """Element of a linspace from 0 to ``end * side`` pixels at ``fraction`` of ``side``, with the fraction's sign."""
    # Operations without such a range have an end of 0, and no use for the result.
    level = rint(abs(fraction) * (full / maximum(end, 1e-9)) * 1e6) / 1e6
    value = linspace(0.0, end * side, full, level)
    return select(fraction < 0, -value, value)


DATA = Path(__file__).parent / "data"
SIZES = {None: -1, "height": 0, "width": 1, "shorter": 2}


@dataclass(frozen=True)
class Rule:
    """Levels to arguments of one operation. Every field may also be an array, one element per row (``stack``).

    A fraction of the image's size (``size``, an index of ``SIZES``) becomes pixels when the size is known.
    """

    low: Any = 0.0
    high: Any = 0.0
    full: Any = 1.0
    signed: Any = False
    is_truncated: Any = False
    is_rounded: Any = False
    base: Any = 0.0
    factor: Any = 1.0
    floor: Any = -np.inf
    ceiling: Any = np.inf
    is_linspace: Any = False
    size: Any = -1
    are_pixels_truncated: Any = False
    are_pixels_linspace: Any = False

    def argument(self, level: Number, negative: Number = False) -> Number:
        """The argument at ``level``, with the sign drawn ``negative``; a fraction of the image's size stays one."""
        magnitude = self.low + (self.high - self.low) * level / self.full
        if self.is_linspace is not False:
            magnitude = select(self.is_linspace, linspace(self.low, self.high, self.full, level), magnitude)
        if self.is_truncated is not False:
            magnitude = select(self.is_truncated, trunc(magnitude), magnitude)
        if self.is_rounded is not False:
            magnitude = select(self.is_rounded, rint(magnitude), magnitude)
        magnitude = select(self.signed * negative, -magnitude, magnitude)
        return clip(self.base + self.factor * magnitude, self.floor, self.ceiling)

    @staticmethod
    def stack(rules: list[Rule]) -> Rule:
        """Stack ``rules`` to a rule whose fields are arrays; a field that is off in all rules becomes False."""
        columns = {name: np.array([getattr(rule, name) for rule in rules]) for name in Rule.__dataclass_fields__}
        return Rule(**{name: column if column.any() else False for name, column in columns.items()})


@dataclass(frozen=True)
class Space:
    """A named set of rules. ``bins`` levels 0 .. bins - 1; ``full`` is the level that means a range's end. ``ops``:
    emissions, or their names."""

    name: str
    source: str
    bins: int
    full: int
    fill: tuple[int, int, int]
    ops: dict[str, Any] = field(repr=False)
    rules: dict[str, Any] = field(repr=False)
    default: tuple[str, ...] = field(repr=False)


_DESCRIBED: dict[str, Any] = json.loads((DATA / "magnitude_spaces.json").read_text(encoding="utf-8"))
SPACES = tuple(_DESCRIBED)


@functools.cache
def space(name: str) -> Space:
    """The magnitude space ``name``, one of ``SPACES``."""
    described = _DESCRIBED[name]
    operations, fill = _operations(name), described["fill"]
    rules = {operation: _rule(entry, described) for operation, entry in operations.items()}
    return Space(
        name=name,
        source=described["source"],
        bins=described["bins"],
        full=described["full"],
        fill=tuple(fill) if isinstance(fill, list) else (fill, fill, fill),
        ops={operation: entry.get("op", operation) for operation, entry in operations.items()},
        rules=rules,
        default=tuple(described.get("default", rules)),
    )


def space_of(name: str, ranges: str) -> Space:
    """The space of a library's policy by its short name: "dali-relative" stands for "dali-<ranges>-relative"."""
    library, *others = name.split("-")
    whole = "-".join((library, ranges, *others))
    return space(whole if whole in SPACES else name)


def _operations(name: str) -> dict[str, Any]:
    described = _DESCRIBED[name]
    inherited = _operations(described["extends"]) if "extends" in described else {}
    return {**inherited, **described["operations"]}


def _rule(entry: Any, described: Any) -> Rule:
    low, high = (float(Fraction(end)) for end in entry.get("range", (0, 0)))
    floor, ceiling = entry.get("limit", (-np.inf, np.inf))
    is_sized = "of" in entry
    is_linspace = entry.get("linspace", described.get("linspace", False))
    is_truncated = entry.get("rounding") == "trunc"
    return Rule(
        low=low,
        high=high,
        full=float(described["full"]),
        signed=entry.get("signed", False),
        is_truncated=is_truncated and not is_sized,
        is_rounded=entry.get("rounding") == "even" and not is_sized,
        base=float(entry.get("base", 0)),
        factor=-1.0 if entry.get("subtract") else float(entry.get("times", 1)),
        floor=float(floor),
        ceiling=np.inf if ceiling is None else float(ceiling),
        is_linspace=is_linspace and not is_sized,
        size=SIZES[entry.get("of")],
        are_pixels_truncated=is_truncated and is_sized,
        are_pixels_linspace=is_linspace and is_sized,
    )


class DeviationRange(Range):
    """A standard deviation, or infinity for "uniform", as timm writes it."""

    def convert(self, value: Any) -> Any:
        return value if isinstance(value, float) and value == np.inf else super().convert(value)


Deviation = Annotated[float, DeviationRange(0.0, 1e6)]


def noisy(image: DrawContext, level: Number, deviation: float, slot: int, most: float) -> Number:
    """``level`` with Gaussian noise of ``slot``, within 0 .. ``most``; infinite: uniform from 0 to ``level``."""
    if np.isinf(deviation):
        level = level * image.uniform(slot)
    elif deviation > 0:
        level = level + deviation * image.normal(slot)
    return clip(level, 0.0, most)
