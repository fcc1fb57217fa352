"""Operations that a user declares for a policy, and the entries of a policy's list."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from variegate.checks import Refusal, did_you_mean, refused
from variegate.ops import arguments
from variegate.ops.arguments import MAX_BINS, MAX_ENTRIES, ArgumentError, Fill, InterpolationName, RgbColor, two_numbers
from variegate.ops.base import Transform, set_field
from variegate.ops.magnitude import WithProbability
from variegate.ops.schema import LARGEST, Argument, Converted, Range
from variegate.policies import table
from variegate.policies.spaces import Space, space
from variegate.policies.table import EMISSIONS, Emission, Entry, Policy, emission_of
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, floor, rint, select, trunc
from variegate.program.ops import Op
from variegate.program.sampling import Floats
from variegate.threads import computed_once

Mapping = Literal["identity", "one_plus", "truncate", "round"]
MAPPINGS: dict[Mapping, Callable[[Any], Any]] = {
    "identity": lambda magnitude: magnitude,
    "one_plus": lambda magnitude: 1.0 + magnitude,
    "truncate": trunc,
    "round": rint,
}
# Required arguments of a class besides its number, if the catalog decides them (the kernel follows sigma there).
_DECIDED: dict[str, dict[str, Any]] = {"GaussianBlur": {"kernel_size": 1}}
DEFAULT_BINS = 31


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class Augmentation(Policy):
    """Give an operation its own magnitude domain, for ``operations`` of RandAugment and TrivialAugmentWide.

    Args:
        name: name of the operation in descriptions.
        op: a name ("Rotate", "GaussianNoise", "MotionBlur", ...), or a transform or its class that takes a magnitude
            (any one-number transform, any ``T.CustomOp``). A transform with a probability is applied unchanged.
        magnitude: (low, high) in the operation's unit; None for the range that the transform holds, if any. A policy
            with B bins that asks for bin b gets ``low + (high - low) * b / (B - 1)``.
        bins: number of steps that the magnitude is rounded to; None for no rounding.
        signed: negate the magnitude with probability 0.5.
        mag_to_param: maps the magnitude to the argument: "identity", "one_plus" (enhancement factors), "truncate",
            "round", or a function (not in files).
        interpolation, fill: used only outside of policies, where a bin is drawn uniformly (of 31, or ``bins``).
            Policies use their own.

    Raises:
        ArgumentError: for arguments out of range, including the operation's own range.

    >>> Augmentation("gentle turn", "Rotate", magnitude=(0, 10), signed=True).magnitude
    (0, 10)
    """

    name: Annotated[str, Converted(_text, "a name, such as 'turn'")]
    op: str | Transform
    magnitude: (
        Annotated[Sequence[float], Converted(two_numbers, "a pair (low, high) of numbers, in either order")] | None
    ) = None
    bins: Annotated[int, Range(2, MAX_BINS)] | None = None
    signed: bool = False
    mag_to_param: Mapping | Callable[[float], float] = "identity"
    interpolation: InterpolationName = "nearest"
    fill: Fill | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.op, type):
            set_field(self, "op", _instance(self, self.op))
        is_known = isinstance(self.op, str) and (self.op in EMISSIONS or has_magnitude(self.op))
        takes_magnitude = isinstance(self.op, Transform) and table.takes_magnitude(self.op)
        if not (is_known or takes_magnitude or isinstance(self.op, WithProbability)):
            names = ", ".join(sorted({*EMISSIONS, *filter(has_magnitude, Transform.registry)}))
            raise ArgumentError(self, "op", self.op, f"a transform with emit_at(), or one of {names}")
        if self.magnitude is None and not isinstance(self.op, str):
            self._take_domain(self.op)
        is_function = callable(self.mag_to_param) and not isinstance(self.mag_to_param, Transform)
        if not is_function and not (isinstance(self.mag_to_param, str) and self.mag_to_param in MAPPINGS):
            accepted = f"a function, or one of {', '.join(MAPPINGS)}{did_you_mean(self.mag_to_param, MAPPINGS)}"
            raise ArgumentError(self, "mag_to_param", self.mag_to_param, accepted)
        set_field(self, "num_slots", 1 + self._table.num_slots)

    def _take_domain(self, op: Transform) -> None:
        """Take the transform's own range."""
        held = getattr(op, getattr(op, "_magnitude_name", "magnitude"), None)
        if held is not None:
            set_field(self, "magnitude", held if isinstance(held, tuple) else (held, held))
            if getattr(getattr(op, "_domain", None), "signed", False):
                set_field(self, "signed", True)

    @computed_once
    def needs_integer(self) -> bool:
        """True if the operation's argument has to be a whole number."""
        cls: Any = Transform.registry.get(self.op) if isinstance(self.op, str) else None
        return (
            hasattr(cls, "_op")
            and hasattr(cls, "_magnitude_range")
            and cls._magnitude_range.is_integer
            and not cls._allows_fractions
        )

    @computed_once
    def emission(self) -> Emission:
        """Emission of the operation; its arguments are within its class's bounds."""
        cls = Transform.registry.get(self.op) if isinstance(self.op, str) and self.op != "Cutout" else None
        number = getattr(cls, "_magnitude_name", None)
        driven = None
        if cls is not None and number is not None and self.magnitude is not None:
            ends = [float(_Declared(self, 1).argument(i, negative)) for i in (0.0, 1.0) for negative in (False, True)]
            if cls._magnitude_range.is_integer:  # type: ignore[attr-defined]
                ends = [int(end) for end in ends]
            try:
                driven = cls(**{number: (min(ends), max(ends))}, **_DECIDED.get(str(self.op), {}))
                if self.op == "GaussianBlur":
                    replace(driven, kernel_size=table.kernel_for(max(ends)))  # type: ignore[type-var]
            except ArgumentError as error:
                raise ArgumentError(self, "magnitude", self.magnitude, f"{self.op}: {error.accepted}") from error
            except TypeError as error:
                raise ArgumentError(self, "op", self.op, f"an instance: {self.op} needs arguments ({error})") from error
        if not isinstance(self.op, str) or self.op in EMISSIONS:
            return emission_of(self.op)
        if self.magnitude is None:
            raise ArgumentError(self, "magnitude", self.magnitude, f"a pair (low, high): {self.op} needs it")
        return self._made_by_strength if driven is None else emission_of(driven)

    @property
    def _made_by_strength(self) -> Emission:
        """Emission of a class whose strength is no single argument: see ``TypicalRange.build``."""
        cls: Any = Transform.registry[str(self.op)]
        rule = _Declared(self, DEFAULT_BINS - 1)
        signs = (False, True)
        strengths = sorted({float(rule.argument(float(n), sign)) for n in range(DEFAULT_BINS) for sign in signs})
        try:
            num_slots = max(cls._typical_range.build(strength).num_slots for strength in strengths)
        except ArgumentError as error:
            raise ArgumentError(self, "magnitude", self.magnitude, f"{self.op}: {error.accepted}") from error
        return Emission(Op.NOP, (), partial(_add_each, cls, strengths), num_slots)

    @computed_once
    def _table(self) -> table.OperationTable:
        rule = _Declared(self, (self.bins or DEFAULT_BINS) - 1)
        return self._table_of([Entry(self.name, self.emission, rule)], arguments.BLACK)

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.bins or DEFAULT_BINS))

    def draw(self, image: DrawContext, slot: int) -> None:
        columns = self._grid.shape[1]
        column = floor(image.uniform(slot) * columns)
        negative = floor(image.uniform(slot, 1) * 2)
        self._table.add(image, 0, image.lookup(self._grid, negative * columns + column), slot + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return a description, as for every transform; raises ValueError if ``mag_to_param`` is a function."""
        if callable(self.mag_to_param):
            got = f"Augmentation {self.name!r}: mag_to_param is a function, which a file cannot hold"
            raise ValueError(f"{got}; name one of {', '.join(MAPPINGS)}")
        return super().to_dict()


@dataclass(frozen=True)
class _Declared:
    """An Augmentation's rule: levels 0 .. ``full`` of a policy to arguments."""

    augmentation: Augmentation
    full: float

    def argument(self, level: Number, negative: Number = False) -> Number:
        of = self.augmentation
        low, high = of.magnitude or (0.0, 0.0)
        fraction = level / max(self.full, 1)
        if of.bins is not None:
            fraction = rint(fraction * (of.bins - 1)) / (of.bins - 1)
        magnitude = low + (high - low) * fraction
        if of.signed:
            magnitude = select(negative, -magnitude, magnitude)
        if isinstance(of.mag_to_param, str):
            argument = MAPPINGS[of.mag_to_param](magnitude)
        else:
            argument = of.mag_to_param(float(magnitude))  # which is not recorded: a function may do anything
        return rint(argument) if of.needs_integer else argument


def entry_of(owner: object, where: str, operation: Any, source: Space, full: float | None = None) -> Entry:
    """The entry of an Augmentation, or of a name of the space ``source``.

    ``full``: the highest level, if it is not the space's.
    """
    top = float(source.full if full is None else max(full, 1.0))
    if isinstance(operation, Augmentation):
        return Entry(operation.name, operation.emission, _Declared(operation, top))
    if not isinstance(operation, str) or operation not in source.rules:
        accepted = f"an Augmentation, or one of {', '.join(source.rules)}{did_you_mean(operation, source.rules)}"
        raise ArgumentError(owner, where, operation, accepted)
    if not isinstance(emission := source.ops[operation], str):
        return Entry(operation, emission, source.rules[operation])
    return _named_entry(source.name, operation, top)


@functools.cache
def _named_entry(space_name: str, operation: str, full: float) -> Entry:
    named = space(space_name)
    # Where a policy has its own number of bins, its last bin is the end of the space's range.
    return Entry(operation, emission_of(named.ops[operation]), replace(named.rules[operation], full=full))


def entries_of(
    owner: object, argument: str, operations: Sequence[Any], source: Space, full: float | None = None
) -> list[Entry]:
    """``entry_of`` every one of a list."""
    return [entry_of(owner, f"{argument}[{i}]", op, source, full) for i, op in enumerate(operations)]


def with_defaults(operations: Sequence[Any], source: Space) -> list[Any]:
    """The same operations, where names that ``source`` lacks are Augmentations of the typical range of their class."""
    return [_default_for(operation, source) or operation for operation in operations]


def _default_for(operation: Any, source: Space) -> Augmentation | None:
    is_other = isinstance(operation, str) and operation not in source.rules and operation in Transform.registry
    return default_augmentation(operation) if is_other else None


class OperationList(Argument):
    """A list of names and Augmentations; bare transforms become such."""

    def check(self, name: str, operations: Any, *, error: Refusal = refused) -> tuple[str | Augmentation, ...]:
        if not isinstance(operations, (list, tuple)) or not 0 < len(operations) <= MAX_ENTRIES:
            raise error(name, operations, self.describe())
        found = []
        for i, op in enumerate(operations):
            try:
                is_ready = isinstance(op, (str, Augmentation))
                found.append(op if is_ready else Augmentation(getattr(op, "__name__", type(op).__name__), op))
            except ArgumentError as refusal:
                raise error(f"{name}[{i}]", op, refusal.accepted) from refusal
        return tuple(found)

    def describe(self) -> str:
        return f"a list of 1 to {MAX_ENTRIES:,} operation names and Augmentations"


def has_magnitude(name: str) -> bool:
    """True for the name of a class that a magnitude can set: by its one number, or as its useful range says."""
    cls = Transform.registry.get(name)
    typical = None if cls is None else cls._typical_range
    return hasattr(cls, "_magnitude_name") or (typical is not None and typical.build is not None)


def default_augmentation(name: str) -> Augmentation | None:
    """An operation with the typical range of its class, or its bounds; None if it has neither.

    A class that has a probability and no magnitude is applied with probability 1.
    """
    cls: Any = Transform.registry.get(name)
    typical = None if cls is None else cls._typical_range
    if typical is not None:
        low, high = (typical.high, typical.low) if typical.identity == typical.high else (typical.low, typical.high)
        is_symmetric = low == -high
        return Augmentation(name, name, (0.0 if is_symmetric else low, high), signed=is_symmetric)
    if name in EMISSIONS:
        return Augmentation(name, name)
    if hasattr(cls, "_magnitude_range"):
        bounds = cls._magnitude_range
        has_bounds = max(-bounds.low, bounds.high) < LARGEST
        return Augmentation(name, name, (bounds.low, bounds.high)) if has_bounds else None
    return Augmentation(name, cls(p=1.0)) if issubclass(cls, WithProbability) and cls._value_name is None else None


def _add_each(
    cls: Any, strengths: Sequence[float], image: DrawContext, strength: Number, slot: int, fill: RgbColor
) -> None:
    """A transform for each strength that there may be."""
    with image.alternatives() as alternative:
        for each in strengths:
            if chosen := image.where(strength == each):
                with alternative():
                    chosen.run(cls._typical_range.build(each), slot)


def _instance(owner: object, cls: type) -> Any:
    if not table.takes_magnitude(cls):
        accepted = "a transform that takes a magnitude: a class with emit_at()"
        raise ArgumentError(owner, "op", cls.__name__, accepted)
    try:
        return cls()
    except TypeError as error:
        accepted = f"an instance: {cls.__name__} needs arguments ({error})"
        raise ArgumentError(owner, "op", cls.__name__, accepted) from error
