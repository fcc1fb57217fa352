"""A policy as the search sees it: a row of small integers, two for each tuple (arXiv 1905.05393, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from variegate.checks import integer
from variegate.errors import PolicyError
from variegate.ops.arguments import Fill, InterpolationName
from variegate.policies import PBA, Schedule, Segment
from variegate.policies.custom_space import CustomSpace, describe_operation, magnitudes, operations_from
from variegate.policies.schedule import COPIES, Tuple3, fill_from, policy_from_numbers
from variegate.policies.spaces import space

Numbers: TypeAlias = tuple[int, ...]
MOST_PROBABLE = 10  # A probability is an integer from 0 to this, in tenths.


@dataclass(frozen=True)
class SearchSpace:
    """The space that is searched: for every operation, ``copies`` times, a probability 0..10 and a magnitude 0..9.

    ``operations``, in the order of the numbers: names of the magnitude space, Augmentations, and what ``CustomSpace``
    makes into such; empty: all that the space has by default, for "pba" the paper's 15 in the reference's order.
    ``space``: "pba" for images of 32 pixels, "pba-relative" for others; any other magnitude space will do, and then the
    magnitudes are its bins. ``fill``: the color of emptied pixels, red, green and blue from 0 to 255; None: for a
    ``SearchRun`` the mean of its training images, else the magnitude space's own. ``crop``, ``flip``, ``cutout``: if
    they are searched too, see ``CustomSpace``. Raises PolicyError.
    """

    operations: tuple[Any, ...] = ()
    copies: int = COPIES
    space: str = "pba"
    fill: tuple[int, int, int] | None = None
    crop: float = 0.0
    flip: bool = False
    cutout: float = 0.0

    if TYPE_CHECKING:
        # The operation of every tuple: each operation once, then again, then the remaining ones.
        tuples: ClassVar[tuple[str, ...]]
        # The magnitude space of schedules: its name, or one of chosen operations.
        magnitudes: ClassVar[str | CustomSpace]

    def __post_init__(self) -> None:
        around = CustomSpace(self.space, (), self.crop, self.flip, self.cutout)
        names = self.operations or tuple(op for op in space(self.space).default if op not in around.base_augment_names)
        custom = replace(around, operations=names)
        # For names alone, the name of their space says all.
        is_custom = bool(custom.base_augment_names) or custom.operations != custom.names
        copies = integer("copies", self.copies, 1, accepted="a positive integer", error=PolicyError)
        object.__setattr__(self, "copies", copies)
        object.__setattr__(self, "operations", custom.operations)
        object.__setattr__(self, "magnitudes", custom if is_custom else self.space)
        object.__setattr__(self, "tuples", custom.names * copies + custom.base_augment_names)
        object.__setattr__(self, "fill", fill_from(self.fill))

    @property
    def limits(self) -> Numbers:
        """The largest value of every number; the smallest is 0."""
        return (MOST_PROBABLE, magnitudes(self.magnitudes).bins - 1) * len(self.tuples)

    def zeros(self) -> Numbers:
        """The policy that changes no image, from which a search starts."""
        return (0,) * len(self.limits)

    def check(self, numbers: Sequence[int], where: str = "policy") -> Numbers:
        """``numbers`` as a tuple of plain integers. Raises PolicyError where they are no policy of this space."""
        limits = self.limits
        if not isinstance(numbers, (list, tuple)) or len(numbers) != len(limits):
            got = f"{len(numbers)} numbers" if hasattr(numbers, "__len__") else numbers
            per = f"{len(self.operations)} operations, {self.copies} each, of a probability and a magnitude"
            around = self.tuples[len(self.operations) * self.copies :]
            per += f", and {', '.join(around)}" if around else ""
            raise PolicyError(where, got, f"{len(limits)} integers: {per}")
        pairs = zip(numbers, limits, strict=True)
        return tuple(integer(f"{where}[{i}]", n, 0, limit, error=PolicyError) for i, (n, limit) in enumerate(pairs))

    def from_numbers(self, numbers: Sequence[int]) -> tuple[Tuple3, ...]:
        """-> tuples of (operation, probability 0..1, magnitude)."""
        return policy_from_numbers(self.check(numbers), self.tuples)

    def schedule(self, numbers: Sequence[int], epochs: int = 1) -> Schedule:
        """A schedule of one segment with this policy, also for later epochs."""
        return Schedule((Segment(epochs, self.from_numbers(numbers)),), space=self.magnitudes, fill=self.fill)

    def transform(self, numbers: Sequence[int], interpolation: InterpolationName = "nearest", fill: Fill = None) -> PBA:
        """The transform that a member trains with, at any epoch. All policies of a space draw the same slots."""
        return PBA(self.schedule(numbers), interpolation=interpolation, fill=fill)

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {
            "space": self.space,
            "operations": list(map(describe_operation, self.operations)),
            "copies": self.copies,
        }
        around = {"crop": self.crop, "flip": self.flip, "cutout": self.cutout}
        described |= {name: value for name, value in around.items() if value}
        return described if self.fill is None else {**described, "fill": list(self.fill)}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> SearchSpace:
        """Raises PolicyError, also where something is missing."""
        operations, copies, name = values_of(described, "space", ("operations", "copies", "space"))
        around = {name: described[name] for name in ("crop", "flip", "cutout") if name in described}
        fill = fill_from(described.get("fill"), "space.fill")
        return cls(operations_from(operations, "space.operations"), copies, name, fill, **around)


def values_of(described: Any, what: str, names: Sequence[str]) -> list[Any]:
    """The values under these names. Raises PolicyError if ``described`` is not a mapping, or lacks a name."""
    accepted = f"{what} with {', '.join(names)}"
    if not isinstance(described, Mapping):
        raise PolicyError(what, described, accepted)
    for name in names:
        if name not in described:
            raise PolicyError(f"{what}: {name}", "nothing", accepted)
    return [described[name] for name in names]
