"""Transforms of transforms: sequences, random choices, random orders, and choices by a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, BoolArray, IndexArray
from variegate.checks import as_integer, as_number, as_numbers
from variegate.ops.arguments import ArgumentError, Probability
from variegate.ops.base import Transform, set_field
from variegate.ops.container import Container, Verbatim, adopt
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, floor, maximum, minimum, select
from variegate.program.sampling import Floats, Sampling

# Any child may be at any position, so that time grows with the square of their number.
_MAX_TO_ORDER = 128


@dataclass(frozen=True)
class Compose(Container):
    """Apply ``transforms`` one after another.

    Args:
        transforms: a list of transforms.
        unlisted: not accepted. Transforms outside of a list raise an error that shows the correct call.
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

    def draw(self, image: DrawContext, slot: int) -> None:
        self._draw_all(image, slot)


@dataclass(frozen=True)
class RandomApply(Container):
    """Apply all ``transforms`` in order with probability ``p``, else none."""

    transforms: Sequence[Transform]
    p: Probability = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._adopt(own=1, is_choice=0 < self.p < 1, in_a_row=True)

    def draw(self, image: DrawContext, slot: int) -> None:
        if chosen := image.by_chance(self.p, slot):
            self._draw_all(chosen, slot)


@dataclass(frozen=True)
class RandomChoice(Container):
    """Apply exactly one of ``transforms``, drawn in proportion to the weights ``p`` (None: uniformly)."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "p"))

    def draw(self, image: DrawContext, slot: int) -> None:
        self._draw_one_of(image, _choose(image, self._cumulative, slot), slot)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class OneOf(Container):
    """Apply one of ``transforms``, drawn in proportion to ``weights`` (None: uniformly), with probability ``p``."""

    transforms: Sequence[Transform]
    p: Probability = 1.0
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._adopt(own=1)
        set_field(self, "_cumulative", _cumulative(self, "weights"))

    def draw(self, image: DrawContext, slot: int) -> None:
        if chosen := image.by_chance(self.p, slot, 1):
            self._draw_one_of(chosen, _choose(chosen, self._cumulative, slot), slot)  # type: ignore[attr-defined]


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

    def draw(self, image: DrawContext, slot: int) -> None:
        low, high = self.n if isinstance(self.n, tuple) else (self.n, self.n)
        count = low + floor((high - low + 1) * image.uniform(slot))
        rank = image.argsort(image.order(slot + 1, len(self.transforms)))
        for i, child in enumerate(self.transforms):
            if chosen := image.where(rank[i] < count):
                chosen.run(child, slot + self._first_slots[i])


@dataclass(frozen=True)
class RandomOrder(Container):
    """Apply all ``transforms`` (at most 128), in random order."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        self._adopt(own=_key_slots(self.transforms))
        if len(self.transforms) > _MAX_TO_ORDER:
            got = Verbatim(f"{len(self.transforms):,} transforms")
            raise ArgumentError(self, "transforms", got, f"at most {_MAX_TO_ORDER}")

    def draw(self, image: DrawContext, slot: int) -> None:
        for number in image.order(slot, len(self.transforms)):
            self._draw_one_of(image, number, slot)


# -- drawing a choice --------------------------------------------------------------------------------------------


def _cumulative(owner: Container, argument: str) -> Floats:
    """Check the children's weights and return cumulative probabilities."""
    count = len(owner.transforms)
    given = getattr(owner, argument)
    weights = (1.0,) * count if given is None else as_numbers(given)
    if weights is None or len(weights) != count or min(weights) < 0 or sum(weights) <= 0:
        raise ArgumentError(owner, argument, given, f"{count} numbers >= 0, one for each transform, not all 0")
    if given is not None:
        set_field(owner, argument, weights)
    return np.cumsum(weights) / sum(weights)


def _choose(image: DrawContext, cumulative: Floats, slot: int) -> Number:
    # Rounding may leave the last sum below 1, and trailing children of weight 0 must never be chosen.
    last = int(np.flatnonzero(np.diff(cumulative, prepend=0.0) > 0)[-1])
    return minimum(image.search(cumulative, image.uniform(slot)), last)


def _key_slots(children: Any) -> int:
    """Return the number of slots for one sort key per child. A slot holds four."""
    return (len(children) + 3) // 4 if isinstance(children, (list, tuple)) else 1


Range = tuple[float | None, float | None, Transform]

IMAGE_VALUES: dict[str, Callable[[Number, Number, Number], Number]] = {
    "height": lambda height, width, channels: height,
    "width": lambda height, width, channels: width,
    "channels": lambda height, width, channels: channels,
    "area": lambda height, width, channels: height * width,
    "aspect": lambda height, width, channels: width / maximum(height, 1),
}
KNOWN = ("uniform", "epoch", *IMAGE_VALUES)


_OBJECTS, _OF_OBJECTS = "objects", ("any_of", "all_of", "none_of")


@dataclass(frozen=True)
class Cond(Transform):
    """Choose a transform for each image by a value, never by its pixels.

    Args:
        by: name of the value. "uniform" is a number drawn from [0, 1). "epoch", "height", "width", "channels", "area"
            (height times width) and "aspect" (width / height) are the current values at this stage. "objects" are the
            labels of samples with targets. Any other name, such as "label", refers to values that are passed with the
            batch, one per sample.
        cases: a dict from value to transform (values may be strings, as in JSON); or a list of (low, high, transform)
            for low <= value < high, where None is an open end and the first match counts. A list of transforms is
            applied in order.
        default: transform if no case matches; None does nothing.
        any_of, all_of, none_of: with "objects", classes: numbers, or names if labels are names or the source has some.
            An image gets ``then`` if it shows at least one class of ``any_of``, every class of ``all_of``, and no class
            of ``none_of``. Conditions that are None are ignored.
        then: transform for these images, with "objects".

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
        # All images of a batch have the same epoch, so the choice does not differ between them.
        adopt(self, "cases", branches, own=1 if self.by == "uniform" else 0, is_choice=self.by != "epoch")
        set_field(self, "_object_labels", (*labels, *self._object_labels))

    def draw(self, image: DrawContext, slot: int) -> None:
        number = self._number(image, slot)
        children = [(branch, slot + first) for branch, first in zip(self._branches, self._first_slots, strict=True)]  # type: ignore[attr-defined]
        image.run_one_of(number, children)

    def _number(self, image: DrawContext, slot: int) -> Number:
        """Return the index of the first case that matches, or of the default if no case does."""
        if self.by not in KNOWN:
            return image.column(self._numbers_of_given)
        value = image.uniform(slot) if self.by == "uniform" else image.epoch
        if self.by in IMAGE_VALUES:
            value = IMAGE_VALUES[self.by](image.height, image.width, image.channels)
        number: Number = len(self._cases)
        for i, case in reversed(list(enumerate(self._cases))):
            fits = _equals(value, case[0]) if len(case) == 2 else _is_within(value, case[0], case[1])
            number = select(fits, i, number)
        return number

    @property
    def _cases(self) -> list[Any]:
        cases: Any = {"True": self.then} if self.cases is None else self.cases
        return list(cases.items() if isinstance(cases, Mapping) else cases)

    def _numbers_of_given(self, sampling: Sampling) -> IndexArray:
        values = self._given(sampling)
        number = np.full(len(values), len(self._cases))
        for i, case in reversed(list(enumerate(self._cases))):
            fits = _are_equal(values, case[0]) if len(case) == 2 else _are_within(values, case[0], case[1])
            number[fits] = i
        return number

    def _given(self, sampling: Sampling) -> AnyArray:
        """Return the values that were passed with the batch, per row.

        Raises TypeError if labels of objects are missing, ArgumentError if other values are.
        """
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
        found = np.asarray(given[sampling.source])
        return np.array([self._is_met(set(labels)) for labels in found], np.bool_) if self.by == _OBJECTS else found

    def _is_met(self, labels: set[Any]) -> bool:
        """Return whether an image with objects of these labels meets the conditions."""
        is_any = self.any_of is None or not labels.isdisjoint(self.any_of)
        return is_any and labels.issuperset(self.all_of or ()) and labels.isdisjoint(self.none_of or ())


# -- cases -------------------------------------------------------------------------------------------------------


def _labels_of(owner: Cond) -> list[int | str]:
    """Return the classes in a ``Cond``'s arguments ``any_of``, ``all_of`` and ``none_of``."""
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


def _equals(value: Number, key: str) -> Number:
    number = as_number(_number_or_text(key))
    return False if number is None else value == number


def _number_or_text(key: str) -> float | str:
    try:
        return float(key)
    except ValueError:
        return key


def _is_within(value: Number, low: float | None, high: float | None) -> Number:
    return (value >= _or(low, -math.inf)) & (value < _or(high, math.inf))


def _are_equal(values: AnyArray, key: str) -> BoolArray:
    """Compare values with a case's key, parsed as the values' type, because JSON converts keys to strings."""
    meant: Any = {"true": True, "false": False}.get(key.lower()) if values.dtype.kind == "b" else key
    if values.dtype.kind in "iuf":
        try:
            meant = float(key)
        except ValueError:
            meant = None
    else:
        values = values if values.dtype.kind == "b" else values.astype(str)
    return np.zeros(len(values), np.bool_) if meant is None else np.asarray(values == meant)


def _are_within(values: AnyArray, low: float | None, high: float | None) -> BoolArray:
    return np.asarray((values >= _or(low, -math.inf)) & (values < _or(high, math.inf)))
