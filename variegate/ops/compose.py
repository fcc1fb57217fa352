"""Transforms made of transforms: in a row, one or some by chance, or in random order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import as_integer, as_numbers
from variegate.ops.arguments import PROBABILITY, ArgumentError, checks
from variegate.ops.base import Transform, set_field
from variegate.ops.container import Container, Said
from variegate.program.one_image import Images
from variegate.program.sampling import Floats, Rows, Sampling

# Any of them may come at any place, so that the time grows with the square.
_MOST_TO_ORDER = 128


@dataclass(frozen=True)
class Compose(Container):
    """One transform after another."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        self._adopt(own=0, is_choice=False, in_a_row=True)

    def draw(self, images: Images, slot: int) -> None:
        self._draw_all(images, slot)


@dataclass(frozen=True)
class RandomApply(Container):
    """All ``transforms`` in a row with probability ``p``, else none of them."""

    transforms: Sequence[Transform]
    p: float = 0.5
    _checks = checks(p=PROBABILITY)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._adopt(own=1, is_choice=0 < self.p < 1, in_a_row=True)

    def draw(self, images: Images, slot: int) -> None:
        if chosen := images.where(images.unit(slot) < self.p):
            self._draw_all(chosen, slot)


@dataclass(frozen=True)
class RandomChoice(Container):
    """Exactly one of ``transforms``, with probabilities proportional to ``p`` (None: all alike)."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "p"))

    def draw(self, images: Images, slot: int) -> None:
        self._draw_one_of(images, _choose(self._cumulative, images.unit(slot)), slot)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class OneOf(Container):
    """With probability ``p``, one of ``transforms``, chosen with probabilities proportional to ``weights``."""

    transforms: Sequence[Transform]
    p: float = 1.0
    weights: Sequence[float] | None = None
    _checks = checks(p=PROBABILITY)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "weights"))

    def draw(self, images: Images, slot: int) -> None:
        if chosen := images.where(images.unit(slot, 1) < self.p):
            self._draw_one_of(chosen, _choose(self._cumulative, chosen.unit(slot)), slot)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class SomeOf(Container):
    """``n`` different ones of ``transforms`` (a number, or a range with both ends included), in the order listed."""

    transforms: Sequence[Transform]
    n: int | Sequence[int]

    def __post_init__(self) -> None:
        self._adopt(own=1 + _key_slots(self.transforms))
        most = len(self.transforms)
        single = as_integer(self.n)
        pair = as_numbers(self.n, whole=True) if single is None else (single, single)
        if pair is None or len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= most:
            raise ArgumentError(self, "n", self.n, f"an integer, or a pair (low, high) of them, from 0 to {most}")
        set_field(self, "n", pair if single is None else single)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling = sampling.as_batch() if self._forks else sampling
        low, high = self.n if isinstance(self.n, tuple) else (self.n, self.n)
        count = low + np.floor((high - low + 1) * sampling.uniform(rows, slot)[:, 0])
        order = _random_order(sampling, rows, slot + 1, len(self.transforms))
        rank = np.argsort(order, axis=1)
        sources = sampling.source[rows]
        for i in range(len(self.transforms)):
            chosen = rows[rank[:, i] < count]
            if sampling.is_blended:
                is_chosen = np.isin(sampling.source, sources[rank[:, i] < count])
                chosen = np.flatnonzero(is_chosen)
            self._run_child(i, sampling, chosen, slot)


@dataclass(frozen=True)
class RandomOrder(Container):
    """All ``transforms`` (up to 128), in an order drawn for every image."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        self._adopt(own=_key_slots(self.transforms))
        if len(self.transforms) > _MOST_TO_ORDER:
            got = Said(f"{len(self.transforms):,} transforms")
            raise ArgumentError(self, "transforms", got, f"at most {_MOST_TO_ORDER}")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling = sampling.as_batch() if self._forks else sampling
        count = len(self.transforms)
        for position in range(count):
            order = _random_order(sampling, rows, slot, count)[:, position]
            for i in range(count):
                self._run_child(i, sampling, rows[order == i], slot)
            rows = sampling.with_forks(rows)


# -- drawing a choice --------------------------------------------------------------------------------------------


def _cumulative(owner: Container, argument: str) -> Floats:
    """The checked weights of the children as cumulated probabilities."""
    count = len(owner.transforms)
    given = getattr(owner, argument)
    weights = (1.0,) * count if given is None else as_numbers(given)
    if weights is None or len(weights) != count or min(weights) < 0 or sum(weights) <= 0:
        raise ArgumentError(owner, argument, given, f"{count} numbers >= 0, one for each transform, not all 0")
    if given is not None:
        set_field(owner, argument, weights)
    return np.cumsum(weights) / sum(weights)


def _choose(cumulative: Floats, unit: Any) -> Any:
    # The last sum may fall short of 1 by rounding, and trailing weights of 0 must never be hit.
    last = int(np.flatnonzero(np.diff(cumulative, prepend=0.0) > 0)[-1])
    return np.minimum(np.searchsorted(cumulative, unit, side="right"), last)


def _key_slots(children: Any) -> int:
    """Slots for one sorting key per child, four to a slot."""
    return (len(children) + 3) // 4 if isinstance(children, (list, tuple)) else 1


def _random_order(sampling: Sampling, rows: Rows, slot: int, count: int) -> npt.NDArray[np.intp]:
    """intp[R, count]: for every row a permutation of 0 .. count - 1, all equally likely."""
    slots = (count + 3) // 4
    keys = sampling.words(rows, slot, slots).reshape(len(rows), 4 * slots)[:, :count]
    return np.argsort(keys, axis=1, kind="stable")
