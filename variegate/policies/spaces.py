"""Magnitude spaces: what "Rotate at level 9" means. The numbers are data (``data/magnitude_spaces.json``).

The same published policy means different strengths in torchvision, timm, TensorFlow and PBA, so a policy always names
its space. A rule turns a *level* (a bin number, or a real number where a policy adds noise) into the argument of an
operation: ``magnitude = low + (high - low) * level / full``, rounded, negated by chance if signed, and then
``argument = base + factor * magnitude``, clipped, and multiplied by the image's size where it is a fraction of that.
Torchvision's magnitudes are elements of ``torch.linspace``: see ``linspace``.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.sampling import Floats


def linspace(low: Any, high: Any, full: Any, level: Any) -> Floats:
    """``torch.linspace(low, high, full + 1)[level]``: float32 numbers, as float64. Any of the four may be arrays.

    Torch steps from the nearer end and rounds every element once, since multiplication and addition are one
    instruction: so it is on every x86-64 processor with AVX2. Products and sums of such numbers are exact in float64.
    """
    first, last = np.asarray(low, np.float32), np.asarray(high, np.float32)
    step = ((last - first) / np.asarray(full, np.float32)).astype(np.float64)
    is_below = np.asarray(level) < (np.asarray(full) + 1) // 2
    value = np.where(is_below, first + step * level, last - step * (full - level))
    return np.asarray(value.astype(np.float32), np.float64)


def elements(end: Any, full: Any, fraction: Any, side: Any) -> Floats:
    """Of a linspace from 0 to ``end * side`` pixels the element at ``fraction`` of ``side``; signs are kept."""
    level = np.round(np.abs(fraction) * (full / end), 6)
    return np.asarray(np.copysign(linspace(0.0, end * side, full, level), fraction))


@functools.lru_cache(maxsize=4096)  # single images often have one size, and NumPy is slow with single numbers
def one_element(end: float, full: float, fraction: float, side: int) -> float:
    """``elements`` for one number."""
    return float(elements(end, full, fraction, side))


DATA = Path(__file__).parent / "data"
ROUNDINGS = {None: 0, "trunc": 1, "even": 2}
SIZES = {None: -1, "height": 0, "width": 1, "shorter": 2}


@dataclass(frozen=True)
class Rule:
    """One operation of a space. Every number may also be an array, one element per row (see ``stack``)."""

    low: Any = 0.0
    high: Any = 0.0
    full: Any = 1.0
    signed: Any = False
    rounding: Any = 0
    base: Any = 0.0
    factor: Any = 1.0
    floor: Any = -np.inf
    ceiling: Any = np.inf
    size: Any = -1
    linspace: Any = False

    def parameters(self, level: npt.ArrayLike, negative: npt.ArrayLike = False) -> Floats:
        """The arguments at ``level``, with the sign drawn ``negative``; a fraction of the image's size stays one."""
        level, is_sized = np.asarray(level, np.float64), np.asarray(self.size) >= 0
        magnitude = self.low + (self.high - self.low) * level / self.full
        # A fraction of the size is spaced and rounded as pixels, when the size is known.
        if np.any(spaced := np.logical_and(self.linspace, ~is_sized)):
            magnitude = np.where(spaced, linspace(self.low, self.high, self.full, level), magnitude)
        rounding = np.where(is_sized, 0, self.rounding)
        magnitude = np.where(rounding == 1, np.trunc(magnitude), magnitude)
        magnitude = np.where(rounding == 2, np.rint(magnitude), magnitude)
        magnitude = np.where(np.logical_and(self.signed, negative), -magnitude, magnitude)
        return np.asarray(np.clip(self.base + self.factor * magnitude, self.floor, self.ceiling), np.float64)

    @staticmethod
    def stack(rules: list[Rule]) -> Rule:
        """One rule whose numbers are arrays over ``rules``."""
        names = Rule.__dataclass_fields__
        return Rule(**{name: np.array([getattr(rule, name) for rule in rules]) for name in names})

    def take(self, index: npt.NDArray[np.intp]) -> Rule:
        """Of a stacked rule, the rules at ``index``."""
        return Rule(**{name: getattr(self, name)[index] for name in Rule.__dataclass_fields__})


@dataclass(frozen=True)
class Space:
    """A named set of rules. ``bins`` levels 0 .. bins - 1; ``full`` is the level that means a range's end."""

    name: str
    source: str
    bins: int
    full: int
    fill: tuple[int, int, int]
    ops: dict[str, str] = field(repr=False)
    rules: dict[str, Rule] = field(repr=False)
    default: tuple[str, ...] = field(repr=False)


@functools.cache
def space(name: str) -> Space:
    """The magnitude space ``name``, one of ``SPACES``."""
    described = _all_spaces()[name]
    spacing = described.get("linspace", False)
    ops: dict[str, str] = {}
    rules: dict[str, Rule] = {}
    for operation, entry in _operations(name).items():
        low, high = (float(Fraction(end)) if isinstance(end, str) else float(end) for end in entry.get("range", (0, 0)))
        floor, ceiling = entry.get("limit", (None, None))
        ops[operation] = entry.get("op", operation)
        rules[operation] = Rule(
            low=low,
            high=high,
            full=float(described["full"]),
            signed=entry.get("signed", False),
            rounding=ROUNDINGS[entry.get("rounding")],
            base=float(entry.get("base", 0)),
            factor=-1.0 if entry.get("subtract") else float(entry.get("times", 1)),
            floor=-np.inf if floor is None else float(floor),
            ceiling=np.inf if ceiling is None else float(ceiling),
            size=SIZES[entry.get("of")],
            linspace=entry.get("linspace", spacing),
        )
    fill = described["fill"]
    return Space(
        name=name,
        source=described["source"],
        bins=described["bins"],
        full=described["full"],
        fill=tuple(fill) if isinstance(fill, list) else (fill, fill, fill),
        ops=ops,
        rules=rules,
        default=tuple(described.get("default", rules)),
    )


@functools.cache
def _all_spaces() -> dict[str, Any]:
    return dict(json.loads((DATA / "magnitude_spaces.json").read_text(encoding="utf-8")))


def _operations(name: str) -> dict[str, Any]:
    described = _all_spaces()[name]
    inherited = _operations(described["extends"]) if "extends" in described else {}
    return {**inherited, **described["operations"]}


SPACES = tuple(_all_spaces())
