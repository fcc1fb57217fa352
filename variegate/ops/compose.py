"""Transforms made of transforms: in a row, one or some by chance, or in random order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import as_integer, as_number, as_numbers
from variegate.ops.arguments import PROBABILITY, ArgumentError, checks
from variegate.ops.base import Transform, set_field
from variegate.ops.container import Container, Verbatim, adopt
from variegate.program.one_image import Images
from variegate.program.sampling import Floats, Rows, Sampling

# Any of them may come at any place, so that the time grows with the square.
_MOST_TO_ORDER = 128


@dataclass(frozen=True)
class Compose(Container):
    """Apply ``transforms`` one after another.

    Args:
        transforms: a list of transforms.
        unlisted: none; transforms outside of a list are refused with how to write them.
    """

    transforms: Sequence[Transform]

    def __init__(self, transforms: Sequence[Transform], *unlisted: Transform) -> None:
        if unlisted:
            raise TypeError(
                f"Compose: got {1 + len(unlisted)} positional arguments; accepted: transforms; put all transforms in "
                "one list: Compose([first, second])"
            )
        set_field(self, "transforms", transforms)
        self.__post_init__()

    def __post_init__(self) -> None:
        self._adopt(own=0, is_choice=False, in_a_row=True)

    def draw(self, images: Images, slot: int) -> None:
        self._draw_all(images, slot)


@dataclass(frozen=True)
class RandomApply(Container):
    """Apply all ``transforms`` in order with probability ``p``, else none of them."""

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
    """Apply exactly one of ``transforms``, drawn in proportion to the weights ``p`` (None: uniformly)."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "p"))

    def draw(self, images: Images, slot: int) -> None:
        self._draw_one_of(images, _choose(self._cumulative, images.unit(slot)), slot)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class OneOf(Container):
    """With probability ``p``, apply one of ``transforms``, drawn in proportion to ``weights`` (None: uniformly)."""

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
    """Apply ``n`` different ones of ``transforms`` (a number, or a range including both ends), in the order listed."""

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
    """Apply all ``transforms`` (at most 128), in random order."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        self._adopt(own=_key_slots(self.transforms))
        if len(self.transforms) > _MOST_TO_ORDER:
            got = Verbatim(f"{len(self.transforms):,} transforms")
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


Range = tuple[float | None, float | None, Transform]

# Of images, by their sizes [R, 2] and numbers of channels [R].
IMAGE_VALUES: dict[str, Callable[[Any, Any], npt.NDArray[Any]]] = {
    "height": lambda size, channels: size[:, 0].astype(np.int64),
    "width": lambda size, channels: size[:, 1].astype(np.int64),
    "channels": lambda size, channels: channels.astype(np.int64),
    "area": lambda size, channels: size[:, 0].astype(np.int64) * size[:, 1],
    "aspect": lambda size, channels: size[:, 1] / np.maximum(size[:, 0], 1),
}
KNOWN = ("uniform", "epoch", *IMAGE_VALUES)


_OBJECTS, _OF_OBJECTS = "objects", ("any_of", "all_of", "none_of")


@dataclass(frozen=True)
class Cond(Transform):
    """Choose a transform for each image by a value, never by its pixels.

    Args:
        by: name of the value: "uniform" (a number drawn from [0, 1)), "epoch", "height", "width", "channels", "area"
            (height times width, at this stage), "aspect" (width / height) or "objects" (the labels of samples with
            targets). Any other name, such as "label", refers to values given with the batch, one per sample.
        cases: a dict from value to transform (values may be strings, as in JSON); or a list of (low, high, transform)
            for low <= value < high, where None is an open end and the first match counts. A list of transforms is
            applied in order.
        default: transform if no case matches; None does nothing.
        any_of, all_of, none_of: with "objects", classes: numbers, or names if labels are names or the source has some.
            Images that show any of these, all of these and none of these (of those given) get ``then``.
        then: transform for them, with "objects".

    Raises TypeError while sampling by "objects" if images have no labels of objects.
    """

    by: str
    cases: Mapping[Any, Transform] | Sequence[Range] | None = None
    default: Transform | None = None
    any_of: Sequence[int | str] | None = None
    all_of: Sequence[int | str] | None = None
    none_of: Sequence[int | str] | None = None
    then: Transform | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.by, str) or not self.by:
            names = ", ".join([*KNOWN, _OBJECTS])
            raise ArgumentError(self, "by", self.by, f'a name: {names}, or a given one such as "label"')
        labels = _labels_of(self)
        if self.by == _OBJECTS:
            branches = [_transform(self, "then", self.then)]
            set_field(self, "then", branches[0])
        elif isinstance(self.cases, Mapping) and self.cases:
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
        set_field(self, "_object_labels", (*labels, *self._object_labels))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        values = self._values(sampling, rows, slot)
        is_open = np.ones(len(rows), np.bool_)
        matches = []
        cases: Any = {"True": self.then} if self.cases is None else self.cases
        for case in cases.items() if isinstance(cases, Mapping) else cases:
            fits = is_open & (_equals(values, case[0]) if len(case) == 2 else _is_within(values, case[0], case[1]))
            matches.append(fits)
            is_open &= ~fits
        matches.append(is_open)
        for branch, first, fits in zip(self._branches, self._first_slots, matches, strict=False):  # type: ignore[attr-defined]
            if fits.any():
                branch.sample(sampling, rows[fits], slot + first)

    def _values(self, sampling: Sampling, rows: Rows, slot: int) -> npt.NDArray[Any]:
        if self.by in IMAGE_VALUES:
            return IMAGE_VALUES[self.by](sampling.size[rows], sampling.channels[rows])
        if self.by in KNOWN:
            return sampling.uniform(rows, slot)[:, 0] if self.by == "uniform" else np.full(len(rows), sampling.epoch)
        if self.by not in sampling.given:
            if self.by == _OBJECTS:
                accepted = "samples that are dicts with 'labels', or a source with annotations"
                raise TypeError(f"Cond: got images without objects, by which it chooses; accepted: {accepted}")
            accepted = ", ".join([*KNOWN, *map(repr, sampling.given)])
            raise ArgumentError(self, "by", self.by, f"{accepted}; no value {self.by!r} was given with this batch")
        given = np.asarray(sampling.given[self.by])
        count = int(sampling.source.max(initial=-1)) + 1
        if given.ndim != 1 or len(given) < count:
            raise ArgumentError(self, "by", self.by, f"one value per sample ({count}), but its shape is {given.shape}")
        found = np.asarray(given[sampling.source[rows]])
        return np.array([self._is_met(set(labels)) for labels in found], np.bool_) if self.by == _OBJECTS else found

    def _is_met(self, labels: set[Any]) -> bool:
        """True for an image of objects with these labels."""
        is_any = self.any_of is None or not labels.isdisjoint(self.any_of)
        return is_any and labels.issuperset(self.all_of or ()) and labels.isdisjoint(self.none_of or ())


# -- cases -------------------------------------------------------------------------------------------------------


def _labels_of(owner: Cond) -> list[int | str]:
    """Classes of objects that a ``Cond`` asks for, as its arguments."""
    found: list[int | str] = []
    for argument in (*_OF_OBJECTS, "then", "cases"):
        value, is_of_objects = getattr(owner, argument), argument != "cases"
        if value is not None and is_of_objects != (owner.by == _OBJECTS):
            accepted = "None" if is_of_objects else "any_of, all_of, none_of and then"
            raise ArgumentError(owner, argument, value, f"{accepted} with by={owner.by!r}")
        if argument not in _OF_OBJECTS or value is None:
            continue
        numbers = [each if isinstance(each, str) else as_integer(each) for each in value] if _is_list(value) else []
        labels = tuple(label for label in numbers if label is not None)
        if not labels or len(labels) < len(numbers):
            raise ArgumentError(owner, argument, value, "a list of classes, names or numbers")
        set_field(owner, argument, labels)
        found += labels
    if owner.by == _OBJECTS and not found:
        raise ArgumentError(owner, "any_of", None, "a list of classes, here or in all_of or none_of")
    return found


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


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
    """Values of a case, read as the values' own type, since keys become strings on their way through JSON."""
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
