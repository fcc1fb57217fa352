"""Base classes of operations with one instruction: with a magnitude, by a lookup table, or with a probability."""

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
    """Return (low, high) of a number or a range."""
    return value if isinstance(value, tuple) else (value, value)


def between(value: Number, unit: Any) -> Any:
    """Map ``unit`` in [0, 1), a number or an array, to the range ``value``."""
    low, high = limits(value)
    return low + (high - low) * unit


def integers_between(value: Number, unit: Any) -> Any:
    """Map ``unit`` in [0, 1) to the integers of the range ``value``, including both ends, as float64."""
    low, high = limits(value)
    return low + (high - low + 1) * unit // 1.0


class MagnitudeOp(Transform, abstract=True):
    """Base class of operations with a magnitude: a constant, or a (low, high) range to draw from uniformly.

    The magnitude is the field with a ``MagnitudeRange``. Most operations emit one instruction, ``_op``, whose arguments
    are the magnitude, then ``_constants``: numbers or names of fields.

    Policies call ``emit_at``, which emits the operation at a *given* magnitude, in the unit of the field. It draws only
    further random numbers, such as a position or noise. ``slot`` is the first of the same ``num_slots`` slots as for
    ``draw``.
    """

    _magnitude_name: ClassVar[str]
    _magnitude_range: ClassVar[MagnitudeRange]
    _allows_fractions: ClassVar[bool] = False  # True if only drawn magnitudes are rounded to integers, not constants
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
        """Return the instruction's arguments after the magnitude, from fields of ``owner`` or their defaults."""
        return tuple(getattr(owner or cls, name) if isinstance(name, str) else name for name in cls._constants)

    def draw(self, image: DrawContext, slot: int) -> None:
        value = getattr(self, self._magnitude_name)
        if isinstance(value, tuple):
            value = (integers_between if self._magnitude_range.is_integer else between)(value, image.uniform(slot))
        image.run_at(self, value, slot)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        """Emit the operation at magnitude ``value``.

        A class may define ``emit_magnitude(sampling, rows, values, slot)`` instead, which emits for a batch.
        """
        image.add(self._op, value, *self.constants(self))


class PlainOp(Transform, abstract=True):
    """Base class of operations without a magnitude. Policies may call ``emit_magnitude``, which ignores its values."""

    _op: ClassVar[Op]

    @classmethod
    def constants(cls) -> tuple[float, ...]:
        return ()

    def draw(self, image: DrawContext, slot: int) -> None:
        image.add(self._op)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        self.draw(image, slot)


class TableOp(Transform, abstract=True):
    """Base class of operations that map each of 256 values by a table.

    A subclass defines ``level(x, *arguments)``, a scalar function of a value x from 0 to 255 and of the class's fields,
    in order. Its result is truncated and clipped to 0..255. Options of the class statement:

    Args:
        opcode: the instruction's number, see ``Op`` for free numbers.
        neutral: the value of the first argument at which no pixel changes, or the first and last of a range.
        per_channel: whether red, green and blue have one argument each, in this order.
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
    """Base class of operations that are applied with probability ``p``.

    With option ``of`` of the class statement, it applies that class, whose magnitude is the first field if it has one;
    otherwise the instruction ``_op``.
    """

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
    """Base class of operations that interpolate between pixels, with ``padding_mode`` or ``fill`` outside the image."""

    interpolation: InterpolationName
    fill: Fill
    padding_mode: PaddingMode = "constant"  # for classes without this argument
    _after_device = ("padding_mode",)

    @property
    def _flags(self) -> int:
        return INTERPOLATION_FLAGS[self.interpolation] | BORDER_FLAGS[self.padding_mode]

    def _add_map(self, image: DrawContext, op: Op, *args: Any, size: Any = None) -> None:
        image.add(op, *args, flags=self._flags, fill=self.fill, size=size)  # type: ignore[arg-type]
