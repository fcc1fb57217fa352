"""What operations with a number share: ranges, how a number is drawn from one, and how policies set it from outside."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, integer, interval, number, refused
from variegate.ops.arguments import (
    FILTERS,
    LARGEST,
    PROBABILITY,
    Check,
    Fill,
    InterpolationName,
    Number,
    Pair,
    check_colour,
    check_interpolation,
    checks,
)
from variegate.ops.base import Transform
from variegate.program.one_image import OneImage
from variegate.program.ops import Interpolation, Op
from variegate.program.sampling import Floats, Rows, Sampling

INTERPOLATION_FLAGS = {name: int(Interpolation[name.upper()]) for name in FILTERS}


def span(low: float, high: float, whole: bool = False) -> Check:
    """The check of a number, or an ordered pair of them, from low to high: infinity is what pixels can hold."""
    return partial(interval, low=max(low, -LARGEST), high=min(high, LARGEST), whole=whole)


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

    Most are one instruction, ``_op``: the number and then ``_constants``, which are numbers or names of arguments.

    ``emit_magnitude`` is the door for policies: it emits the operation with a number *given* for every row, in the
    unit of the class's own argument, and uses only the chances besides it (such as a place, or noise). It takes the
    first of the same ``num_slots`` slots as ``sample``.
    """

    _number: ClassVar[str]
    _bounds: ClassVar[Pair]
    _integral: ClassVar[bool] = False
    _op: ClassVar[Op]
    _constants: ClassVar[tuple[float | str, ...]] = ()
    num_slots = 1

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        if "_number" in cls.__dict__:
            cls._checks = {**cls._checks, cls._number: span(cls._bounds[0], cls._bounds[1], whole=cls._integral)}

    @classmethod
    def check_number(cls, name: str, value: Any, *, error: Refusal = refused) -> float:
        """Where exactly one number is accepted."""
        low, high = cls._bounds
        if cls._integral:
            return integer(name, value, int(low), int(high), error=error)
        return number(name, value, max(low, -LARGEST), min(high, LARGEST), error=error)

    @classmethod
    def constants(cls, owner: MagnitudeOp | None = None) -> tuple[float, ...]:
        """What follows the number: of ``owner``, or by default."""
        return tuple(getattr(owner or cls, name) if isinstance(name, str) else name for name in cls._constants)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        value = getattr(self, self._number)
        if isinstance(value, tuple):
            draw = integers_between if self._integral else between
            values = draw(value, sampling.uniform(rows, slot)[:, 0])
        else:
            values = np.full(len(rows), value, np.float64)
        self.emit_magnitude(sampling, rows, values, slot)

    def sample_one(self, image: OneImage, slot: int) -> None:
        value = getattr(self, self._number)
        if isinstance(value, tuple):
            low, high = value
            unit = image.unit(slot)
            value = low + math.floor((high - low + 1) * unit) if self._integral else low + (high - low) * unit
        self.emit_one(image, value, slot)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        """Emit with ``values[R]`` as the numbers of ``rows``."""
        sampling.emit(rows, self._op, values, *self.constants(self))

    def emit_one(self, image: OneImage, value: float, slot: int) -> None:
        """The same for a batch of one."""
        image.emit_one(self._op, value, *self.constants(self))


class PlainOp(Transform, abstract=True):
    """An operation without a number; policies may call ``emit_magnitude`` all the same, the values are ignored."""

    _op: ClassVar[Op]

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling.emit(rows, self._op)

    def sample_one(self, image: OneImage, slot: int) -> None:
        image.emit_one(self._op)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        self.sample(sampling, rows, slot)


class WithProbability(Transform, abstract=True):
    """The instruction ``_op`` with probability ``p``, or ``_of`` at the number in the argument ``_at``."""

    p: float
    _op: ClassVar[Op]
    _of: ClassVar[type[MagnitudeOp]]
    _at: ClassVar[str | None] = None
    num_slots = 1
    _checks = checks(p=PROBABILITY)

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        if "_of" in cls.__dict__ and cls._at is not None:
            cls._op, cls._checks = cls._of._op, {cls._at: cls._of.check_number}
        super().__init_subclass__(abstract=abstract, **kwargs)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._apply(sampling, rows[sampling.uniform(rows, slot)[:, 0] < self.p], slot)

    def sample_one(self, image: OneImage, slot: int) -> None:
        if image.unit(slot) < self.p:
            self._apply_one(image, slot)

    def _apply(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        numbers = () if self._at is None else (getattr(self, self._at),)
        sampling.emit(rows, self._op, *numbers)

    def _apply_one(self, image: OneImage, slot: int) -> None:
        numbers = () if self._at is None else (getattr(self, self._at),)
        image.emit_one(self._op, *numbers)


class Resampled(Transform, abstract=True):
    """Reads the image between its pixels, and beyond its edges, where it is ``fill``."""

    interpolation: InterpolationName
    fill: Fill
    _checks = checks(interpolation=check_interpolation, fill=check_colour)

    def _emit_map(
        self, sampling: Sampling, rows: Rows, op: Op, *args: npt.ArrayLike, size: npt.NDArray[np.int32] | None = None
    ) -> None:
        flags = int(Interpolation[self.interpolation.upper()])
        sampling.emit(rows, op, *args, flags=flags, fill=self.fill, size=size)  # type: ignore[arg-type]

    def _emit_map_one(self, image: OneImage, op: Op, *args: float) -> None:
        image.emit_one(op, *args, flags=INTERPOLATION_FLAGS[self.interpolation], fill=self.fill)  # type: ignore[arg-type]
