"""What operations with a number share: ranges, how a number is drawn from one, and how policies set it from outside."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.base import ArgumentError, Transform, check_probability, is_number, set_field, within
from variegate.transforms.limits import LARGEST

Pair = tuple[float, float]
Number = float | Pair
Fill = float | tuple[int, ...] | None

BLACK = (0, 0, 0)


def check_range(owner: object, argument: str, low: float, high: float, integral: bool = False) -> None:
    """The argument is a number or an ordered pair within [low, high]; a list becomes a tuple, a number stays one."""
    value = getattr(owner, argument)
    low, high = within(low, high)
    pair = tuple(value) if isinstance(value, (list, tuple)) else (value, value)
    if not (len(pair) == 2 and all(is_number(v, integral) for v in pair) and low <= pair[0] <= pair[1] <= high):
        kind = "an integer" if integral else "a number"
        raise ArgumentError(owner, argument, value, f"{kind}, or a pair (low, high) of them, from {low:g} to {high:g}")
    if isinstance(value, list):
        set_field(owner, argument, pair)


def check_positive_pair(owner: Transform, argument: str) -> None:
    """The argument is an ordered pair of numbers above 0."""
    value = getattr(owner, argument)
    pair = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(pair) != 2 or not all(map(is_number, pair)) or not 1 / LARGEST <= pair[0] <= pair[1] <= LARGEST:
        raise ArgumentError(owner, argument, value, f"a pair (low, high) of numbers above 0, up to {LARGEST:g}")
    set_field(owner, argument, pair)


def limits(value: Number) -> Pair:
    """The (low, high) of a number or a range."""
    return value if isinstance(value, tuple) else (value, value)


def between(value: Number, unit: Floats) -> Floats:
    """Numbers from the range ``value`` at ``unit`` in [0, 1)."""
    low, high = limits(value)
    return low + (high - low) * unit


def integers_between(value: Number, unit: Floats) -> Floats:
    """Whole numbers from the range ``value``, both ends included and all equally likely, as float64."""
    low, high = limits(value)
    return low + np.floor((high - low + 1) * unit)


class MagnitudeOp(Transform, abstract=True):
    """An operation with one number: exactly that value, or a (low, high) range to draw from uniformly.

    ``emit_magnitude`` is the door for policies: it emits the operation with a number *given* for every row, in the
    unit of the class's own argument, and uses only the chances besides it (such as a place, or noise). It takes the
    first of the same ``num_slots`` slots as ``sample``.
    """

    _number: ClassVar[str]
    _bounds: ClassVar[Pair]
    _integral: ClassVar[bool] = False
    num_slots = 1

    def __post_init__(self) -> None:
        check_range(self, self._number, *self._bounds, integral=self._integral)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        value = getattr(self, self._number)
        if isinstance(value, tuple):
            draw = integers_between if self._integral else between
            values = draw(value, sampling.uniform(rows, slot)[:, 0])
        else:
            values = np.full(len(rows), value, np.float64)
        self.emit_magnitude(sampling, rows, values, slot)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        """Emit with ``values[R]`` as the numbers of ``rows``."""
        raise NotImplementedError(f"{type(self).__name__} does not define emit_magnitude()")


class PlainOp(Transform, abstract=True):
    """An operation without a number; policies may call ``emit_magnitude`` all the same, the values are ignored."""

    _op: ClassVar[Op]

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling.emit(rows, self._op)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        self.sample(sampling, rows, slot)


class WithProbability(Transform, abstract=True):
    """Applied to a row with probability ``p``: subclasses say what to do to the chosen rows."""

    p: float
    num_slots = 1

    def __post_init__(self) -> None:
        check_probability(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._apply(sampling, rows[sampling.uniform(rows, slot)[:, 0] < self.p], slot)

    def _apply(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        raise NotImplementedError
