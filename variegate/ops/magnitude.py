"""Bases of operations that are one instruction: of a number or a range, of a table, with a probability."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from variegate.ops.arguments import FILTERS, Fill, InterpolationName, Number, PaddingMode, Pair, Probability
from variegate.ops.base import Transform
from variegate.ops.schema import MagnitudeRange
from variegate.program.draws.recorder import DrawContext
from variegate.program.ops import INTERPOLATION_BITS, Interpolation, Kind, Op, OpSpec, PadMode, declare

INTERPOLATION_FLAGS = {name: int(Interpolation[name.upper()]) for name in FILTERS}
BORDER_FLAGS = {mode.name.lower(): int(mode) << INTERPOLATION_BITS for mode in PadMode}


def limits(value: Number) -> Pair:
    """The (low, high) of a number or a range."""
    return value if isinstance(value, tuple) else (value, value)


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

    The number is the field with a ``MagnitudeRange``. Most operations are one instruction, ``_op``: the number and then
    ``_constants``, which are numbers or names of arguments.

    ``emit_at`` is what policies call: it emits the operation with a *given* number, in the
    unit of the class's own argument, and uses only the chances besides it (such as a place, or noise). It takes the
    first of the same ``num_slots`` slots as ``draw``.
    """

    _magnitude_name: ClassVar[str]
    _magnitude_range: ClassVar[MagnitudeRange]
    _allows_fractions: ClassVar[bool] = False  # where the number is whole only if it is drawn
    _op: ClassVar[Op]
    _constants: ClassVar[tuple[float | str, ...]] = ()
    num_slots = 1

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        for name, argument in cls._arguments.items():
            if isinstance(argument, MagnitudeRange):
                cls._magnitude_name, cls._magnitude_range = name, argument
        if not (abstract or cls.__name__.startswith("_") or hasattr(cls, "_magnitude_name")):
            del Transform.registry[cls.__name__]
            raise TypeError(f"class {cls.__name__}: no field has a MagnitudeRange; accepted: one such field")

    @classmethod
    def constants(cls, owner: MagnitudeOp | None = None) -> tuple[float, ...]:
        """Arguments after the number: of ``owner``, or by default."""
        return tuple(getattr(owner or cls, name) if isinstance(name, str) else name for name in cls._constants)

    def draw(self, image: DrawContext, slot: int) -> None:
        value = getattr(self, self._magnitude_name)
        if isinstance(value, tuple):
            value = (integers_between if self._magnitude_range.is_integer else between)(value, image.uniform(slot))
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
                cls._constants = args[1:]
        super().__init_subclass__(**kwargs)


class WithProbability(Transform, abstract=True):
    """The instruction ``_op`` with probability ``p``, or that of the class ``of``, at the number in the first
    argument."""

    p: Probability
    _op: ClassVar[Op]
    _value_name: ClassVar[str | None] = None
    _constants: ClassVar[tuple[float, ...]] = ()
    num_slots = 1

    def __init_subclass__(cls, of: type[MagnitudeOp | PlainOp] | None = None, **kwargs: Any) -> None:
        if of is not None:
            cls._op, cls._constants = of._op, of.constants()
            if issubclass(of, MagnitudeOp):
                cls._value_name = next(iter(inspect.get_annotations(cls)))
        super().__init_subclass__(**kwargs)

    def draw(self, image: DrawContext, slot: int) -> None:
        if chosen := image.by_chance(self.p, slot):
            self._apply(chosen, slot)

    def _apply(self, image: DrawContext, slot: int) -> None:
        numbers = () if self._value_name is None else (getattr(self, self._value_name),)
        image.add(self._op, *numbers, *self._constants)


class Resampled(Transform, abstract=True):
    """Reads the image between its pixels, and beyond its edges, where it is ``fill`` or what ``padding_mode`` says."""

    interpolation: InterpolationName
    fill: Fill
    padding_mode: PaddingMode = "constant"  # of classes that do not take it
    _after_device = ("padding_mode",)

    @property
    def _flags(self) -> int:
        return INTERPOLATION_FLAGS[self.interpolation] | BORDER_FLAGS[self.padding_mode]

    def _add_map(self, image: DrawContext, op: Op, *args: Any, size: Any = None) -> None:
        image.add(op, *args, flags=self._flags, fill=self.fill, size=size)  # type: ignore[arg-type]
