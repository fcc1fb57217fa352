"""Bases of operations that are one instruction: of a number or a range, of a table, with a probability."""

from __future__ import annotations

import inspect
import math
from functools import partial
from typing import Any, ClassVar

from variegate.checks import Refusal, integer, interval, number, refused
from variegate.ops.arguments import (
    FILTERS,
    LARGEST,
    PADDING_MODE,
    PROBABILITY,
    Check,
    Fill,
    InterpolationName,
    Number,
    PaddingMode,
    Pair,
    check_colour,
    check_interpolation,
    checks,
)
from variegate.ops.base import Transform
from variegate.program.draws.recorder import DrawContext
from variegate.program.ops import INTERPOLATION_BITS, Interpolation, Kind, Op, OpSpec, PadMode, declare

INTERPOLATION_FLAGS = {name: int(Interpolation[name.upper()]) for name in FILTERS}
BORDER_FLAGS = {mode.name.lower(): int(mode) << INTERPOLATION_BITS for mode in PadMode}


def span(low: float, high: float, whole: bool = False) -> Check:
    """The check of a number, or an ordered pair of them, from low to high: infinity is what pixels can hold."""
    return partial(interval, low=max(low, -LARGEST), high=min(high, LARGEST), whole=whole)


def limits(value: Number) -> Pair:
    """The (low, high) of a number or a range."""
    return value if isinstance(value, tuple) else (value, value)


def ends(low: float, high: float, whole: bool = False) -> Check:
    """The check of ``span``, for what is kept as a pair."""
    check = span(low, high, whole)
    return lambda name, value, *, error=refused: limits(check(name, value, error=error))


def between(value: Number, unit: Any) -> Any:
    """Numbers from the range ``value`` at ``unit`` in [0, 1), one or an array of them."""
    low, high = limits(value)
    return low + (high - low) * unit


def integers_between(value: Number, unit: Any) -> Any:
    """Whole numbers from the range ``value``, both ends included and all equally likely, as float64."""
    low, high = limits(value)
    return low + (high - low + 1) * unit // 1.0


class MagnitudeOp(Transform, abstract=True):
    """An operation with one number: exactly that value, or a (low, high) range to draw from uniformly.

    Most are one instruction, ``_op``: the number and then ``_constants``, which are numbers or names of arguments.

    ``emit_at`` is what policies call: it emits the operation with a *given* number, in the
    unit of the class's own argument, and uses only the chances besides it (such as a place, or noise). It takes the
    first of the same ``num_slots`` slots as ``draw``.
    """

    _number: ClassVar[str]
    _bounds: ClassVar[Pair] = (-math.inf, math.inf)
    _integral: ClassVar[bool] = False
    _takes_fractions: ClassVar[bool] = False  # where the number is whole only if it is drawn
    _op: ClassVar[Op]
    _constants: ClassVar[tuple[float | str, ...]] = ()
    num_slots = 1

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        if "_number" in cls.__dict__:
            cls._checks = {**cls._checks, cls._number: span(cls._bounds[0], cls._bounds[1], whole=cls._integral)}

    @classmethod
    def check_number(cls, name: str, value: Any, *, error: Refusal = refused) -> float:
        """Check a single number."""
        low, high = cls._bounds
        if cls._integral:
            return integer(name, value, int(low), int(high), error=error)
        return number(name, value, max(low, -LARGEST), min(high, LARGEST), error=error)

    @classmethod
    def constants(cls, owner: MagnitudeOp | None = None) -> tuple[float, ...]:
        """Arguments after the number: of ``owner``, or by default."""
        return tuple(getattr(owner or cls, name) if isinstance(name, str) else name for name in cls._constants)

    def draw(self, image: DrawContext, slot: int) -> None:
        value = getattr(self, self._number)
        if isinstance(value, tuple):
            value = (integers_between if self._integral else between)(value, image.unit(slot))
        image.run_at(self, value, slot)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        """Emit with this number; in its place, ``emit_magnitude(sampling, rows, values, slot)`` emits for a batch."""
        image.add(self._op, value, *self.constants(self))


class PlainOp(Transform, abstract=True):
    """An operation without a number; policies may call ``emit_magnitude`` all the same, the values are ignored."""

    _op: ClassVar[Op]

    @classmethod
    def constants(cls) -> tuple[float, ...]:
        return ()

    def draw(self, image: DrawContext, slot: int) -> None:
        image.add(self._op)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        self.draw(image, slot)


class TableOp(Transform, abstract=True):
    """An operation that replaces each of 256 levels by another: declared here once, for whatever runs or draws it.

    A subclass states ``level(x, *arguments)``, one scalar function of a level from 0 to 255 and of the class's
    arguments, in their order: a number, of which what comes out is the whole
    part, cut off to 0..255. The class's options:

    Args:
        opcode: the number of its instruction in programs.
        neutral: the value of the first argument at which no pixel changes, or the first and the last of them.
        per_channel: red, green and blue have an argument each, in this order.
    """

    _op: ClassVar[Op]
    level: ClassVar[Any] = None

    def __init_subclass__(
        cls,
        opcode: int | None = None,
        neutral: float | tuple[float, float] | None = None,
        per_channel: bool = False,
        **kwargs: Any,
    ) -> None:
        if opcode is not None:
            args = tuple(inspect.get_annotations(cls))
            spec = OpSpec(cls.__name__, Kind.VALUE, args, Op.LUT, neutral, level=cls.level, per_channel=per_channel)
            cls._op = declare(opcode, spec)
            if issubclass(cls, MagnitudeOp):
                cls._number, cls._constants = args[0], args[1:]
                any_number = partial(number, low=-LARGEST, high=LARGEST)
                cls._checks = dict.fromkeys(args[1:], any_number) | dict(cls.__dict__.get("_checks", {}))
        super().__init_subclass__(**kwargs)


class WithProbability(Transform, abstract=True):
    """The instruction ``_op`` with probability ``p``, or that of the class ``of``, at the number in the first
    argument."""

    p: float
    _op: ClassVar[Op]
    _at: ClassVar[str | None] = None
    _constants: ClassVar[tuple[float, ...]] = ()
    num_slots = 1
    _checks = checks(p=PROBABILITY)

    def __init_subclass__(cls, of: type[MagnitudeOp | PlainOp] | None = None, **kwargs: Any) -> None:
        if of is not None:
            cls._op, cls._constants = of._op, of.constants()
            if issubclass(of, MagnitudeOp):
                cls._at = next(iter(inspect.get_annotations(cls)))
                cls._checks = {cls._at: of.check_number}
        super().__init_subclass__(**kwargs)

    def draw(self, image: DrawContext, slot: int) -> None:
        if chosen := image.by_chance(self.p, slot):
            self._apply(chosen, slot)

    def _apply(self, image: DrawContext, slot: int) -> None:
        numbers = () if self._at is None else (getattr(self, self._at),)
        image.add(self._op, *numbers, *self._constants)


class Resampled(Transform, abstract=True):
    """Reads the image between its pixels, and beyond its edges, where it is ``fill`` or what ``padding_mode`` says."""

    interpolation: InterpolationName
    fill: Fill
    padding_mode: PaddingMode = "constant"  # of classes that do not take it
    _checks = checks(interpolation=check_interpolation, fill=check_colour, padding_mode=PADDING_MODE)

    @property
    def _flags(self) -> int:
        return INTERPOLATION_FLAGS[self.interpolation] | BORDER_FLAGS[self.padding_mode]

    def _add_map(self, image: DrawContext, op: Op, *args: Any, size: Any = None) -> None:
        image.add(op, *args, flags=self._flags, fill=self.fill, size=size)  # type: ignore[arg-type]
