"""Numbers in ``draw`` methods: Python numbers, and symbols for numbers that differ between images.

Operators and the functions of this module accept both. Python numbers are computed immediately, with the same
elementary functions as in the draw machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import c_double, c_float, c_int64
from functools import partial, reduce
from typing import Any, NoReturn, Protocol

from variegate.native.library import entry
from variegate.program.draws.instructions import DrawOp

Number = Any
"""A Python number, or a ``Value``."""

_evaluate = entry("vg_evaluate", c_int64, c_double, result=c_double)


class NotRecordable(Exception):
    """A draw needs a concrete number, such as for an ``if``. It then runs once per image instead of being recorded."""


class Computer(Protocol):
    """Protocol of objects that compute or record an instruction on up to three numbers."""

    def compute(self, op: DrawOp, *operands: Number) -> Any: ...


def _binary(op: DrawOp, is_swapped: bool = False) -> Callable[[Value, Number], Any]:
    def operator(self: Value, other: Number) -> Any:
        if not isinstance(other, (Value, int, float)):
            return NotImplemented
        pair = (other, self) if is_swapped else (self, other)
        return self.recorder.compute(op, *pair)

    return operator


def _refuse(self: Value) -> NoReturn:
    raise NotRecordable("the number of an image is not known while its draw is recorded")


class Value:
    """Symbol of a number per image, in a register of the draw machine."""

    __slots__ = ("recorder", "register")
    # NumPy defers operators to this class and rejects it in ufuncs.
    __array_ufunc__ = None

    def __init__(self, recorder: Computer, register: Any) -> None:
        self.recorder, self.register = recorder, register

    __add__, __radd__ = _binary(DrawOp.ADD), _binary(DrawOp.ADD, True)
    __sub__, __rsub__ = _binary(DrawOp.SUBTRACT), _binary(DrawOp.SUBTRACT, True)
    __mul__, __rmul__ = _binary(DrawOp.MULTIPLY), _binary(DrawOp.MULTIPLY, True)
    __truediv__, __rtruediv__ = _binary(DrawOp.DIVIDE), _binary(DrawOp.DIVIDE, True)
    __floordiv__, __rfloordiv__ = _binary(DrawOp.FLOOR_DIVIDE), _binary(DrawOp.FLOOR_DIVIDE, True)
    __mod__, __rmod__ = _binary(DrawOp.MODULO), _binary(DrawOp.MODULO, True)
    __lt__, __gt__ = _binary(DrawOp.LESS), _binary(DrawOp.LESS, True)
    __le__, __ge__ = _binary(DrawOp.LESS_EQUAL), _binary(DrawOp.LESS_EQUAL, True)
    __eq__, __ne__ = _binary(DrawOp.EQUAL), _binary(DrawOp.NOT_EQUAL)
    __and__, __rand__ = _binary(DrawOp.AND), _binary(DrawOp.AND, True)
    __or__, __ror__ = _binary(DrawOp.OR), _binary(DrawOp.OR, True)
    __hash__ = None  # type: ignore[assignment]

    def __invert__(self) -> Value:
        return self.recorder.compute(DrawOp.NOT, self)

    def __neg__(self) -> Value:
        return self.recorder.compute(DrawOp.NEGATE, self)

    def __abs__(self) -> Value:
        return self.recorder.compute(DrawOp.ABSOLUTE, self)

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __array__ = _refuse


class PixelValue(Value):
    """Symbol of a number per pixel, or of an operation's magnitude, while a pixel function is recorded."""

    __slots__ = ()
    __rpow__ = _binary(DrawOp.POWER, True)

    def __pow__(self, exponent: Number) -> Any:
        """Return the power. Integer exponents are computed by repeated squaring."""
        if isinstance(exponent, Value) or exponent != int(exponent) or abs(exponent) > _LARGEST_PRODUCT:
            return self.recorder.compute(DrawOp.POWER, self, exponent)
        rest = abs(int(exponent))
        square: Any = self
        product: Any = 1.0
        while rest:
            if rest % 2:
                product = square if isinstance(product, float) else product * square
            rest //= 2
            square = square * square if rest else square
        return 1.0 / product if exponent < 0 else product


_LARGEST_PRODUCT = 64


def _of_one(op: DrawOp, known: Callable[[float], float], x: Number) -> Any:
    return x.recorder.compute(op, x) if isinstance(x, Value) else known(x)


def _elementary(op: DrawOp, x: Number) -> Any:
    return x.recorder.compute(op, x) if isinstance(x, Value) else _evaluate(op, x)


def rint(x: Number) -> Any:
    """Round to the nearest integer, halves to even."""
    return _of_one(DrawOp.RINT, round, x)


def floor(x: Number) -> Any:
    """Round down."""
    return _of_one(DrawOp.FLOOR, math.floor, x)


def ceil(x: Number) -> Any:
    """Round up."""
    return _of_one(DrawOp.CEIL, math.ceil, x)


def trunc(x: Number) -> Any:
    """Round toward zero."""
    return _of_one(DrawOp.TRUNC, math.trunc, x)


def sqrt(x: Number) -> Any:
    """Square root."""
    return _of_one(DrawOp.SQRT, math.sqrt, x)


def exp(x: Number) -> Any:
    """e to the power of ``x``."""
    return _elementary(DrawOp.EXP, x)


def log(x: Number) -> Any:
    """Natural logarithm."""
    return _elementary(DrawOp.LOG, x)


def sin(x: Number) -> Any:
    """Sine of ``x`` in radians. In pixel functions, NaN if abs(x) exceeds 8192."""
    return _elementary(DrawOp.SIN, x)


def cos(x: Number) -> Any:
    """Cosine of ``x`` in radians, with the limit of ``sin``."""
    return _elementary(DrawOp.COS, x)


def tan(x: Number) -> Any:
    """Tangent of ``x`` in radians, with the limit of ``sin``."""
    return _elementary(DrawOp.TAN, x)


def float32(x: Number) -> Any:
    """Round to the nearest float32."""
    return x.recorder.compute(DrawOp.FLOAT32, x) if isinstance(x, Value) else c_float(x).value


def radians(degrees: Number) -> Any:
    return degrees * (math.pi / 180.0)


def minimum(*numbers: Number) -> Any:
    """The least of two or more numbers."""
    return reduce(partial(_of_two, DrawOp.MINIMUM, min), numbers)


def maximum(*numbers: Number) -> Any:
    """The greatest of two or more numbers."""
    return reduce(partial(_of_two, DrawOp.MAXIMUM, max), numbers)


def clip(x: Number, low: Number, high: Number) -> Any:
    """Clip ``x`` to the range from ``low`` to ``high``."""
    return minimum(maximum(x, low), high)


def select(condition: Number, x: Number, y: Number) -> Any:
    """Return ``x`` if ``condition`` holds, else ``y``."""
    if isinstance(condition, Value):
        return condition.recorder.compute(DrawOp.SELECT, condition, x, y)
    return x if condition else y


def logical_not(condition: Number) -> Any:
    return ~condition if isinstance(condition, Value) else not condition


def _of_two(op: DrawOp, known: Callable[[float, float], float], x: Number, y: Number) -> Any:
    value = x if isinstance(x, Value) else y
    return value.recorder.compute(op, x, y) if isinstance(value, Value) else known(x, y)
