"""Transforms made of transforms: in a row, one or some by chance, or in random order.

Every child owns a fixed range of slots, whether or not it is chosen, so that a choice made for one image moves no
number drawn for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import as_integer, as_numbers
from variegate.program.one_image import ROW, OneImage
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.arguments import MAX_DEPTH, MAX_SLOTS, MAX_TRANSFORMS, PROBABILITY, ArgumentError, checks
from variegate.transforms.base import Transform, set_field

# Any of them may come at any place, so that the time grows with the square.
_MOST_TO_ORDER = 128


class _Said(str):
    """Words in the place of a value, for a message."""

    __slots__ = ()
    __repr__ = str.__str__


class _Container(Transform):
    """Holds ``transforms`` and the first slot of each, after ``own`` slots for the container itself."""

    transforms: Sequence[Transform]
    _first_slots: tuple[int, ...]

    def _adopt(self, own: int, is_choice: bool = True) -> None:
        children = self.transforms
        if isinstance(children, Transform):
            children = (children,)
        if not isinstance(children, (list, tuple)) or not children:
            raise ArgumentError(self, "transforms", children, "a list of at least one transform")
        for i, child in enumerate(children):
            if not isinstance(child, Transform):
                raise ArgumentError(self, f"transforms[{i}]", child, "a transform such as RandomHorizontalFlip()")
        set_field(self, "transforms", tuple(children))
        adopt(self, "transforms", children, own, is_choice)

    def _run_child(self, i: int, sampling: Sampling, rows: Rows, slot: int) -> None:
        if len(rows):
            self.transforms[i].sample(sampling, rows, slot + self._first_slots[i])

    def _run_all(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        for i in range(len(self.transforms)):
            self._run_child(i, sampling, rows, slot)
            rows = sampling.with_forks(rows)

    def _run_all_one(self, image: OneImage, slot: int) -> None:
        for child, first in zip(self.transforms, self._first_slots, strict=True):
            if type(image) is OneImage:
                child.sample_one(image, slot + first)
            else:  # a child has made several rows of it
                child.sample(image, image.with_forks(ROW), slot + first)


def adopt(owner: Transform, argument: str, children: Sequence[Transform], own: int, is_choice: bool) -> None:
    """Give every child its slots, after ``own`` slots of the owner's, and note how large the tree has become.

    Raises ArgumentError for a tree that passes the limits of one transform, and for a choice (``is_choice``) that would
    leave the images of a batch in several formats.
    """
    setter = next((child._format_setter for child in children if child._format_setter is not None), None)
    if is_choice and setter is not None:
        raise ArgumentError(
            owner, argument, _Said(f"{type(setter).__name__} inside a choice"),
            f"what leaves all images of a batch in one format; {setter._format_advice}",
        )  # fmt: skip
    set_field(owner, "_format_setter", setter)
    set_field(owner, "_mixers", mixers_of(owner, argument, children))
    ends = np.cumsum([own, *(child.num_slots for child in children)]).tolist()
    size = 1 + sum(child._tree_size for child in children)
    depth = 1 + max(child._tree_depth for child in children)
    for what, number, limit in (
        ("transforms in all", size, MAX_TRANSFORMS),
        ("transforms within one another", depth, MAX_DEPTH),
        ("blocks of random numbers", ends[-1], MAX_SLOTS),
    ):
        if number > limit:
            raise ArgumentError(owner, argument, _Said(f"{number:,} {what}"), f"at most {limit:,}")
    set_field(owner, "_first_slots", tuple(ends[:-1]))
    set_field(owner, "num_slots", ends[-1])
    set_field(owner, "_tree_size", size)
    set_field(owner, "_tree_depth", depth)


def mixers_of(owner: Transform, argument: str, children: Sequence[Transform]) -> tuple[Any, ...]:
    """The transforms among the children's that mix images. Raises ArgumentError where they make different labels."""
    mixers = tuple(mixer for child in children for mixer in child._mixers)
    if len({mixer.num_classes for mixer in mixers}) > 1:
        got = _Said(" and ".join(sorted({f"num_classes={mixer.num_classes}" for mixer in mixers})))
        raise ArgumentError(owner, argument, got, "one num_classes in all transforms that mix images")
    return mixers


@dataclass(frozen=True)
class Compose(_Container):
    """One transform after another."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        self._adopt(own=0, is_choice=False)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._run_all(sampling, rows, slot)

    def sample_one(self, image: OneImage, slot: int) -> None:
        self._run_all_one(image, slot)


@dataclass(frozen=True)
class RandomApply(_Container):
    """All ``transforms`` in a row with probability ``p``, else none of them."""

    transforms: Sequence[Transform]
    p: float = 0.5
    _checks = checks(p=PROBABILITY)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._adopt(own=1, is_choice=0 < self.p < 1)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        chosen = rows[sampling.uniform(rows, slot)[:, 0] < self.p]
        self._run_all(sampling, chosen, slot)

    def sample_one(self, image: OneImage, slot: int) -> None:
        if image.unit(slot) < self.p:
            self._run_all_one(image, slot)


@dataclass(frozen=True)
class RandomChoice(_Container):
    """Exactly one of ``transforms``, with probabilities proportional to ``p`` (None: all alike)."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "p"))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        choice = _choose(self._cumulative, sampling.uniform(rows, slot)[:, 0])  # type: ignore[attr-defined]
        for i in range(len(self.transforms)):
            self._run_child(i, sampling, rows[choice == i], slot)

    def sample_one(self, image: OneImage, slot: int) -> None:
        i = int(_choose(self._cumulative, np.array([image.unit(slot)]))[0])  # type: ignore[attr-defined]
        self.transforms[i].sample_one(image, slot + self._first_slots[i])


@dataclass(frozen=True)
class OneOf(_Container):
    """With probability ``p``, one of ``transforms``, chosen with probabilities proportional to ``weights``."""

    transforms: Sequence[Transform]
    p: float = 1.0
    weights: Sequence[float] | None = None
    _checks = checks(p=PROBABILITY)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "weights"))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        choice = _choose(self._cumulative, unit[:, 0])  # type: ignore[attr-defined]
        choice[unit[:, 1] >= self.p] = -1
        for i in range(len(self.transforms)):
            self._run_child(i, sampling, rows[choice == i], slot)

    def sample_one(self, image: OneImage, slot: int) -> None:
        if image.unit(slot, 1) < self.p:
            i = int(_choose(self._cumulative, np.array([image.unit(slot)]))[0])  # type: ignore[attr-defined]
            self.transforms[i].sample_one(image, slot + self._first_slots[i])


@dataclass(frozen=True)
class SomeOf(_Container):
    """``n`` different ones of ``transforms`` (a number, or a range with both ends included), in the order listed."""

    transforms: Sequence[Transform]
    n: int | tuple[int, int]

    def __post_init__(self) -> None:
        self._adopt(own=1 + _key_slots(self.transforms))
        most = len(self.transforms)
        single = as_integer(self.n)
        pair = as_numbers(self.n, whole=True) if single is None else (single, single)
        if pair is None or len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= most:
            raise ArgumentError(self, "n", self.n, f"an integer, or a pair (low, high) of them, from 0 to {most}")
        set_field(self, "n", pair if single is None else single)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
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
class RandomOrder(_Container):
    """All ``transforms`` (up to 128), in an order drawn for every image."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        self._adopt(own=_key_slots(self.transforms))
        if len(self.transforms) > _MOST_TO_ORDER:
            got = _Said(f"{len(self.transforms):,} transforms")
            raise ArgumentError(self, "transforms", got, f"at most {_MOST_TO_ORDER}")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        count = len(self.transforms)
        for position in range(count):
            order = _random_order(sampling, rows, slot, count)[:, position]
            for i in range(count):
                self._run_child(i, sampling, rows[order == i], slot)
            rows = sampling.with_forks(rows)


# -- drawing a choice --------------------------------------------------------------------------------------------


def _cumulative(owner: _Container, argument: str) -> Floats:
    """The checked weights of the children as cumulated probabilities."""
    count = len(owner.transforms)
    given = getattr(owner, argument)
    weights = (1.0,) * count if given is None else as_numbers(given)
    if weights is None or len(weights) != count or min(weights) < 0 or sum(weights) <= 0:
        raise ArgumentError(owner, argument, given, f"{count} numbers >= 0, one for each transform, not all 0")
    if given is not None:
        set_field(owner, argument, weights)
    return np.cumsum(weights) / sum(weights)


def _choose(cumulative: Floats, unit: Floats) -> npt.NDArray[np.intp]:
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
