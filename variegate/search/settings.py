"""What a search is: everything that decides, together with the scores, which policies it tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from variegate.checks import integer, number, refused
from variegate.options.search import SearchOptions
from variegate.search.evolution import FRACTION
from variegate.search.policy import SearchSpace, fields

_FRACTIONS = "a number over 0, up to 0.5"


@dataclass(frozen=True)
class Settings:
    """``size`` members train for ``epochs`` epochs; after every ``interval`` of them the worst copy the best.

    The defaults are the paper's for CIFAR-10. Raises ValueError.
    """

    size: int = SearchOptions.population
    space: SearchSpace = field(default_factory=SearchSpace)
    seed: int = 0
    interval: int = SearchOptions.interval
    epochs: int = 200
    fraction: float = FRACTION

    def __post_init__(self) -> None:
        for name, least in (("size", 2), ("interval", 1), ("epochs", 1)):
            object.__setattr__(self, name, integer(name, getattr(self, name), least))
        object.__setattr__(self, "seed", integer("seed", self.seed, 0, 2**64 - 1))
        if not number("fraction", self.fraction, 0, 0.5, accepted=_FRACTIONS):
            raise refused("fraction", self.fraction, _FRACTIONS)

    @property
    def steps(self) -> int:
        return -(-self.epochs // self.interval)

    def end_of(self, step: int) -> int:
        """How many epochs are over when ``step`` (from 1; 0: the beginning) is. The last may be a shorter one."""
        return min(step * self.interval, self.epochs)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "space": self.space.to_dict()}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Settings:
        """Raises ValueError (PolicyError among them), also where something is missing."""
        names = ("size", "seed", "interval", "epochs", "fraction")
        space, *numbers = fields(described, "settings", ("space", *names))
        return cls(space=SearchSpace.from_dict(space), **dict(zip(names, numbers, strict=True)))
