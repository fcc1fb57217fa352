"""Magnitude spaces of one's own: any operation of the catalogue, custom ones, and crop, flip and cutout around them.

An operation is written ``Name``, ``Name:low..high`` or ``Name:low..high:signed``, a custom one as ``module:Class``. In
files too, which name classes and import nothing: what is not imported yet is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from variegate.checks import meant
from variegate.errors import PolicyError
from variegate.ops.arguments import MAX_ENTRIES, ArgumentError, Colour
from variegate.ops.base import Transform
from variegate.ops.custom import CustomOp
from variegate.ops.magnitude import WithProbability, limits
from variegate.policies.augmentation import Augmentation
from variegate.policies.spaces import SPACES, Rule, Space, space
from variegate.policies.table import EMISSIONS, Emission, emission_of
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

# Around the operations that an image draws: crop and flip first, cutout last. Ranges are shares of the shorter side.
AROUND: dict[str, tuple[float, float] | None] = {"Crop": (0.0, 0.25), "Flip": None, "Cutout": (0.0, 0.75)}
_FORMS = "Name, Name:low..high or Name:low..high:signed; a custom operation is module:Class"
_KEYS = ("base", "operations", "around")


@dataclass(frozen=True)
class Spread:
    """A rule: an argument for each level, by chance negated if ``signed``."""

    low: float
    high: float
    values: tuple[float, ...]
    signed: bool = False

    def parameters(self, level: npt.ArrayLike, negative: npt.ArrayLike = False) -> Floats:
        found = np.array(self.values)[np.asarray(level, np.intp)]
        return np.asarray(np.where(np.logical_and(self.signed, negative), -found, found))


@dataclass(frozen=True)
class OwnSpace:
    """A magnitude space with operations of one's own.

    Args:
        base: the magnitude space whose names mean there what they mean in it, and whose levels are taken.
        operations: as written, or classes; a ``T.CustomOp`` also as an instance, whose range is then taken.
        around: those of Crop, Flip and Cutout that each image may get besides, with a probability and a magnitude of
            their own. The strengths of Crop (padding) and Cutout are shares of the shorter side; Flip mirrors half of
            the images at probability 1.

    Raises PolicyError.
    """

    base: str = "pba-relative"
    operations: tuple[Any, ...] = ()
    around: tuple[str, ...] = ()

    if TYPE_CHECKING:
        _operations: ClassVar[tuple[_Operation, ...]]

    def __post_init__(self) -> None:
        if not isinstance(self.base, str) or self.base not in SPACES:
            raise PolicyError("space", self.base, f"one of {', '.join(SPACES)}{meant(self.base, SPACES)}")
        found: dict[str, _Operation] = {}
        for argument, make in (("operations", _operation), ("around", _step_around)):
            entries = getattr(self, argument)
            if not isinstance(entries, (list, tuple)) or len(entries) > MAX_ENTRIES:
                raise PolicyError(argument, entries, "a list of names")
            before = len(found)
            for i, entry in enumerate(entries):
                one = make(entry, f"{argument}[{i}]", space(self.base))
                if one.name in found:
                    accepted = "each name once (copies says how many tuples an operation gets)"
                    raise PolicyError(f"{argument}[{i}]", one.name, accepted)
                found[one.name] = one
            object.__setattr__(self, argument, tuple(one.text for one in found.values())[before:])
        object.__setattr__(self, "_operations", tuple(found.values()))

    def __reduce__(self) -> Any:
        # The classes go along: unpickled elsewhere, their modules are imported and their names known.
        return _unpickled, (self.base, self.operations, self.around, [one.custom for one in self._operations])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operations that are drawn, as in the tuples of a policy."""
        return tuple(one.name for one in self._operations[: len(self.operations)])

    @property
    def names_around(self) -> tuple[str, ...]:
        return tuple(one.name for one in self._operations[len(self.operations) :])

    @computed_once
    def resolved(self) -> Space:
        """The same as a ``Space``, steps around included."""
        emissions = {one.name: one.emission for one in self._operations}
        rules = {one.name: one.rule for one in self._operations}
        return replace(space(self.base), ops=emissions, rules=rules, default=self.names)

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"base": self.base, "operations": list(self.operations)}
        return {**described, "around": list(self.around)} if self.around else described

    @classmethod
    def from_dict(cls, described: Mapping[str, Any], where: str = "space") -> OwnSpace:
        """Raises PolicyError with the path to the first bad key, also for custom operations that are not imported."""
        if unknown := set(described) - set(_KEYS):
            raise PolicyError(f"{where}.{min(unknown, key=str)}", sorted(map(str, unknown)), ", ".join(_KEYS))
        for name in ("operations", "around"):
            entries = described.get(name, [])
            if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, str) for entry in entries):
                raise PolicyError(f"{where}.{name}", entries, f"a list of operations: {_FORMS}")
        try:
            return cls(described.get("base", cls.base), *(tuple(described.get(name, ())) for name in _KEYS[1:]))
        except PolicyError as error:
            raise PolicyError(f"{where}.{error.where}", error.got, error.accepted) from error


def magnitudes(named: str | OwnSpace) -> Space:
    """The magnitude space of a name, or of one's own."""
    return space(named) if isinstance(named, str) else named.resolved


def _unpickled(base: str, operations: tuple[str, ...], around: tuple[str, ...], _: Sequence[Any]) -> OwnSpace:
    return OwnSpace(base, operations, around)


@dataclass(frozen=True)
class _Operation:
    """``name`` in policies' tuples, ``text`` with its range; ``custom``: the class of one's own."""

    name: str
    text: str
    emission: Emission | str
    rule: Rule | Spread
    custom: type[CustomOp] | None = None


@dataclass(frozen=True)
class _Typed:
    """An operation as it was typed; ``ends`` None: without a range."""

    name: str
    ends: tuple[float, float] | None
    signed: bool = False

    @classmethod
    def of(cls, text: Any, where: str) -> _Typed:
        parts = text.split(":") if isinstance(text, str) else [""]
        signed = len(parts) > 2 and parts[-1] == "signed"
        parts, ends = parts[: len(parts) - signed], None
        if len(parts) > 1 and (match := re.fullmatch(r"(.+?)\.\.(.+)", parts[-1])):
            try:
                ends = float(match[1]), float(match[2])
            except ValueError:
                ends = math.nan, math.nan
            parts.pop()
        is_name = len(parts) < 3 and all(name.isidentifier() for part in parts for name in part.split("."))
        if not is_name or (signed and ends is None) or not all(map(math.isfinite, ends or ())):
            raise PolicyError(where, text, _FORMS)
        return cls(":".join(parts), ends, signed)

    @property
    def text(self) -> str:
        if self.ends is None:
            return self.name
        low, high = (repr(int(end) if end == int(end) else float(end)) for end in self.ends)
        return f"{self.name}:{low}..{high}" + ":signed" * self.signed


def _operation(entry: Any, where: str, base: Space) -> _Operation:
    """Raises PolicyError."""
    typed = _Typed.of(entry, where) if isinstance(entry, str) else _of_class(entry, where)
    known = {name.casefold(): name for name in (*_catalogue(), *base.rules)}
    name = typed.name if ":" in typed.name else known.get(typed.name.casefold())
    if name is None:
        names = sorted(known.values())
        accepted = f"{_FORMS}; names: {', '.join(names)}{meant(typed.name, names)}"
        raise PolicyError(where, entry, accepted)
    typed = replace(typed, name=name)
    try:
        if ":" in name:
            return _custom(typed, where, base.bins)
        return _of_base(typed, base) if name in base.rules else _of_catalogue(typed, base.bins)
    except ArgumentError as error:
        raise PolicyError(where, entry, error.accepted) from error


def _of_class(entry: Any, where: str) -> _Typed:
    """A class, or an instance of a custom one, as it would be typed."""
    cls: Any = entry if isinstance(entry, type) else type(entry)
    is_custom = issubclass(cls, CustomOp)
    if not issubclass(cls, Transform) or not (is_custom or isinstance(entry, type)):
        raise PolicyError(where, entry, "a name, the class of an operation, or an instance of a custom one")
    name = f"{cls.__module__}:{cls.__name__}" if is_custom else cls.__name__
    if isinstance(entry, type) or entry.magnitude is None:
        return _Typed(name, None)
    if entry != cls(entry.magnitude):
        raise PolicyError(where, entry, "an instance whose only argument is its magnitude")
    low, high = limits(entry.magnitude)
    return _Typed(name, (low, high), cls._domain is not None and cls._domain.signed)


def _custom(typed: _Typed, where: str, bins: int) -> _Operation:
    module, _, name = typed.name.partition(":")
    cls = Transform.registry.get(name)
    if cls is None or not issubclass(cls, CustomOp) or cls.__module__ != module:
        accepted = f"custom operations (T.CustomOp) of imported modules; import {module} first (commands: --import)"
        raise PolicyError(where, typed.name, accepted)
    if typed.ends is None and (domain := cls._domain) is not None:
        typed = _Typed(typed.name, (domain.low, domain.high), domain.signed)
    if typed.ends is not None:
        cls((min(typed.ends), max(typed.ends)))  # refuses what is outside of the domain
    return _Operation(typed.name, typed.text, emission_of(cls()), _spread(typed, bins), cls)


def _of_base(typed: _Typed, base: Space) -> _Operation:
    """Without a range, exactly what it is in the base; with one, its arguments, or shares of the image's side."""
    emission, rule = base.ops[typed.name], base.rules[typed.name]
    if typed.ends is None:
        return _Operation(typed.name, typed.text, emission, rule)
    if rule.low == rule.high:
        raise _without_magnitude(typed)
    if rule.size < 0:
        return _of_catalogue(typed, base.bins)
    if max(map(abs, typed.ends)) > 1:
        raise ArgumentError(None, typed.name, typed.ends, "a range of shares of the image's side, up to 1")
    low, high = typed.ends
    shares = Rule(low, high, base.bins - 1, typed.signed, rounding=rule.rounding, size=rule.size)
    return _Operation(typed.name, typed.text, emission, shares)


def _of_catalogue(typed: _Typed, bins: int) -> _Operation:
    """Raises ArgumentError for a range that the class does not take."""
    name, cls = typed.name, Transform.registry.get(typed.name)
    useful = getattr(cls, "_useful", None)
    if typed.ends is None and useful is not None:
        low, high = (useful.high, useful.low) if useful.identity == useful.high else useful[:2]
        is_symmetric = low == -high
        typed = _Typed(name, (0.0 if is_symmetric else low, high), is_symmetric)
    if typed.ends is None:
        if name in EMISSIONS:
            return _Operation(name, name, EMISSIONS[name], Rule())
        plain: Any = cls
        always = plain(p=1.0)
        return _Operation(name, name, Emission(Op.NOP, (), partial(_emit_plain, always), always.num_slots), Rule())
    if useful is None and not hasattr(cls, "_number"):
        raise _without_magnitude(typed)
    rule = _spread(typed, bins, getattr(useful, "spread", np.linspace))
    if useful is not None and useful.make is not None:
        most = [useful.make(value) for value in {*rule.values, *(-rule.values[i] for i in range(bins * rule.signed))}]
        emitter = partial(_emit_each, cls)
        return _Operation(name, typed.text, Emission(Op.NOP, (), emitter, max(one.num_slots for one in most)), rule)
    declared = Augmentation(name, name, typed.ends, signed=typed.signed)
    if declared.takes_whole:
        rule = replace(rule, values=tuple(np.rint(rule.values).tolist()))
    return _Operation(name, typed.text, declared.emission, rule)


def _step_around(entry: Any, where: str, base: Space) -> _Operation:
    typed = _Typed.of(entry, where)
    name = {name.casefold(): name for name in AROUND}.get(typed.name.casefold())
    ends = typed.ends or AROUND.get(str(name))
    is_range = ends is None or all(0 <= end <= 1 for end in ends)
    if name is None or not is_range or typed.signed or (ends is not None and AROUND[name] is None):
        accepted = f"{', '.join(AROUND)}; Crop and Cutout with a range of shares of the side, such as Crop:0..0.25"
        raise PolicyError(where, entry, accepted + meant(typed.name, AROUND))
    typed = _Typed(name, ends)
    return _Operation(name, typed.text, Emission(Op.NOP), _spread(typed, base.bins))


def _spread(typed: _Typed, bins: int, spread: Callable[[float, float, int], Any] = np.linspace) -> Spread:
    low, high = typed.ends or (0.0, 0.0)
    return Spread(low, high, tuple(np.asarray(spread(low, high, bins), np.float64).tolist()), typed.signed)


def _without_magnitude(typed: _Typed) -> ArgumentError:
    return ArgumentError(None, typed.name, typed.ends, f"{typed.name} without a range, as it has no magnitude")


def _catalogue() -> list[str]:
    """Names that are accepted besides those of the base; of classes with a probability alone, applied at 1."""
    classes = Transform.registry.items()
    useful = [name for name, cls in classes if cls._useful is not None]
    plain = [name for name, cls in classes if issubclass(cls, WithProbability) and cls._at is None]
    return list(dict.fromkeys([*EMISSIONS, *useful, *plain]))


def _emit_plain(transform: Transform, sampling: Sampling, rows: Rows, _: Floats, slot: int, fill: Colour) -> None:
    transform.sample(sampling, rows, slot)


def _emit_each(cls: Any, sampling: Sampling, rows: Rows, values: Floats, slot: int, fill: Colour) -> None:
    """A transform for each value, of a class whose strength is no number of the instruction's."""
    for value in np.unique(values).tolist():
        cls._useful.make(value).sample(sampling, rows[values == value], slot)
