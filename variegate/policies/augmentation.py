"""Operations that a user declares for a policy, and how every entry of a policy's list is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.policies.catalogue import EMISSIONS, Colour, emission_of, takes_magnitude
from variegate.policies.spaces import Space
from variegate.policies.table import Entry, OperationTable
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.base import (
    ArgumentError,
    Transform,
    as_fill,
    as_interpolation,
    check_number,
    set_field,
)

Fill = float | tuple[int, ...] | None
MAPPINGS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda magnitude: magnitude,
    "one_plus": lambda magnitude: 1.0 + magnitude,
    "truncate": np.trunc,
    "round": np.rint,
}
# Operations whose argument has to be a whole number.
_WHOLE = {"Posterize"}
DEFAULT_BINS = 31


@dataclass(frozen=True)
class Augmentation(Transform):
    """An operation with its own magnitude domain, for the ``operations`` of RandAugment and TrivialAugmentWide.

    ``op`` is a name of the catalogue (``"Rotate"``), or a transform or its class that takes a magnitude (any one-number
    transform, any ``T.CustomOp``). A policy with B bins asks for bin b: the magnitude is ``low + (high - low) * b / (B
    - 1)`` for ``magnitude=(low, high)`` in the unit of the operation, snapped to ``bins`` steps where given, negated
    with probability 0.5 if ``signed``. ``mag_to_param`` turns it into the argument: ``"identity"``, ``"one_plus"``
    (enhancement factors), ``"truncate"``, ``"round"``, or a function (which a file cannot hold). ``magnitude=None`` is
    for operations without one. Used alone it applies the operation at a uniformly drawn bin (of 31, or ``bins``).

    >>> Augmentation("gentle turn", "Rotate", magnitude=(0, 10), signed=True)  # doctest: +ELLIPSIS
    Augmentation(name='gentle turn', op='Rotate', magnitude=(0, 10), ...
    """

    name: str
    op: str | Transform
    magnitude: tuple[float, float] | None = None
    bins: int | None = None
    signed: bool = False
    mag_to_param: str | Callable[[float], float] = "identity"
    interpolation: str = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        if isinstance(self.op, type):
            set_field(self, "op", _instance(self, self.op))
        if not (takes_magnitude(self.op) or self.op in EMISSIONS):
            raise ArgumentError(
                self, "op", self.op, "a transform with emit_magnitude(), or one of " + ", ".join(sorted(EMISSIONS))
            )
        if self.magnitude is not None:
            pair = self.magnitude
            if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(_is_number(end) for end in pair):
                raise ArgumentError(self, "magnitude", pair, "a pair (low, high) of numbers, in either order, or None")
            set_field(self, "magnitude", tuple(pair))
        if self.bins is not None and (not _is_number(self.bins) or int(self.bins) != self.bins or self.bins < 2):
            raise ArgumentError(self, "bins", self.bins, "an integer of at least 2, or None for the policy's")
        if not callable(self.mag_to_param) and self.mag_to_param not in MAPPINGS:
            raise ArgumentError(self, "mag_to_param", self.mag_to_param, f"a function, or one of {', '.join(MAPPINGS)}")
        as_interpolation(self)
        if self.fill is not None:
            as_fill(self)
        set_field(self, "num_slots", 1 + self._table.num_slots)

    @cached_property
    def _table(self) -> OperationTable:
        entry = declared_entry(self, (self.bins or DEFAULT_BINS) - 1)
        return OperationTable([entry], self.interpolation, fill_of(self.fill, (0, 0, 0)))

    @cached_property
    def _grid(self) -> Floats:
        return self._table.grid(range(self.bins or DEFAULT_BINS))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        draw = sampling.uniform(rows, slot)
        bins = (draw[:, 0] * self._grid.shape[1]).astype(np.intp)
        negative = (draw[:, 1] * 2).astype(np.intp)
        self._table.emit(sampling, rows, np.zeros(len(rows), np.intp), self._grid[negative, bins], slot + 1)

    def to_dict(self) -> dict[str, Any]:
        """As every transform's. Raises ValueError where ``mag_to_param`` is a function."""
        if callable(self.mag_to_param):
            raise ValueError(
                f"Augmentation {self.name!r}: mag_to_param is a function, which a file cannot hold; name one of "
                + ", ".join(MAPPINGS)
            )
        return super().to_dict()


@dataclass(frozen=True)
class _Declared:
    """The levels 0 .. full of a policy as arguments of an Augmentation."""

    augmentation: Augmentation
    full: float

    def parameters(self, level: npt.ArrayLike, negative: npt.ArrayLike = False) -> Floats:
        low, high = self.augmentation.magnitude or (0.0, 0.0)
        fraction = np.asarray(level, np.float64) / max(self.full, 1)
        if self.augmentation.bins is not None:
            fraction = np.rint(fraction * (self.augmentation.bins - 1)) / (self.augmentation.bins - 1)
        magnitude = low + (high - low) * fraction
        if self.augmentation.signed:
            magnitude = np.where(negative, -magnitude, magnitude)
        chosen = self.augmentation.mag_to_param
        if isinstance(chosen, str):
            argument = MAPPINGS[chosen](magnitude)
        else:
            argument = np.array([chosen(float(m)) for m in np.ravel(magnitude)]).reshape(np.shape(magnitude))
        return np.asarray(np.rint(argument) if self.augmentation.op in _WHOLE else argument, np.float64)


def declared_entry(augmentation: Augmentation, full: float) -> Entry:
    """An Augmentation as a table's entry, in a policy whose highest level is ``full``."""
    return Entry(augmentation.name, emission_of(augmentation.op), _Declared(augmentation, full))


def entries_of(
    owner: object, argument: str, operations: Sequence[str | Augmentation], space: Space, full: float | None = None
) -> list[Entry]:
    """The entries of ``operations``: names of ``space``, or Augmentations. ``full``: the policy's highest level."""
    top = float(space.full if full is None else full)
    entries: list[Entry] = []
    for i, operation in enumerate(operations):
        if isinstance(operation, Augmentation):
            entries.append(declared_entry(operation, top))
        elif operation in space.rules:
            rule = space.rules[operation]
            # A space is stretched to the policy's number of bins: the last bin is the end of the range.
            stretched = rule if full is None else type(rule)(**{**vars(rule), "full": max(top, 1.0)})
            entries.append(Entry(operation, emission_of(space.ops[operation]), stretched))
        else:
            accepted = "an Augmentation, or one of " + ", ".join(space.rules)
            raise ArgumentError(owner, f"{argument}[{i}]" if len(operations) > 1 else argument, operation, accepted)
    return entries


def fill_of(fill: Fill, default: Colour) -> Colour:
    """A checked ``fill`` argument as a colour; None is the magnitude space's own."""
    return default if fill is None else fill  # type: ignore[return-value]


def check_policy_arguments(owner: Any) -> None:
    """The arguments that all policies share: ``interpolation`` and ``fill``."""
    as_interpolation(owner)
    if owner.fill is not None:
        as_fill(owner)


def check_operations(owner: Any) -> None:
    """``operations`` is None or a list of names and Augmentations, stored as a tuple."""
    operations = owner.operations
    if operations is None:
        return
    if not isinstance(operations, (list, tuple)) or not operations:
        raise ArgumentError(owner, "operations", operations, "None, or a list of operation names and Augmentations")
    set_field(owner, "operations", tuple(operations))


def check_count(owner: Any, argument: str, low: int, high: float = np.inf) -> None:
    """The argument is a whole number within [low, high], else ArgumentError."""
    value = getattr(owner, argument)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        upper = "" if high == np.inf else f" to {high:g}"
        raise ArgumentError(owner, argument, value, f"an integer from {low}{upper or ' up'}")
    check_number(owner, argument, low, high)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _instance(owner: object, cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:
        accepted = f"an instance: {cls.__name__} needs arguments ({error})"
        raise ArgumentError(owner, "op", cls.__name__, accepted) from error
