"""Meaning of recorded pixel functions: the same Python functions on NumPy's float32 arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.draws.instructions import DrawOp
from variegate.program.draws.values import PixelValue
from variegate.program.elementary import LARGEST_ANGLE

Floats = npt.NDArray[np.float32]


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*(operand.astype(np.float64) for operand in operands))


def _of_angle(function: Callable[..., Any]) -> Callable[..., Any]:
    return _in_double(lambda x: np.where(np.abs(x) <= LARGEST_ANGLE, function(x), np.nan))


def _power(base: Any, exponent: Any) -> Any:
    return np.where(exponent == 0, 1.0, np.where(base < 0, np.nan, np.power(np.abs(base), exponent)))


_MEANINGS: dict[DrawOp, Callable[..., Any]] = {
    DrawOp.ADD: np.add,
    DrawOp.SUBTRACT: np.subtract,
    DrawOp.MULTIPLY: np.multiply,
    DrawOp.DIVIDE: np.divide,
    DrawOp.FLOOR_DIVIDE: lambda a, b: np.floor(a / b),
    DrawOp.MODULO: lambda a, b: a - b * np.floor(a / b),
    DrawOp.POWER: _in_double(_power),
    DrawOp.MINIMUM: lambda a, b: np.where(a < b, a, b),
    DrawOp.MAXIMUM: lambda a, b: np.where(a > b, a, b),
    DrawOp.LESS: np.less,
    DrawOp.LESS_EQUAL: np.less_equal,
    DrawOp.EQUAL: np.equal,
    DrawOp.NOT_EQUAL: np.not_equal,
    DrawOp.AND: np.logical_and,
    DrawOp.OR: np.logical_or,
    DrawOp.NOT: np.logical_not,
    DrawOp.NEGATE: np.negative,
    DrawOp.ABSOLUTE: np.abs,
    DrawOp.RINT: np.rint,
    DrawOp.FLOOR: np.floor,
    DrawOp.CEIL: np.ceil,
    DrawOp.TRUNC: np.trunc,
    DrawOp.SQRT: np.sqrt,
    DrawOp.EXP: _in_double(np.exp),
    DrawOp.LOG: _in_double(np.log),
    DrawOp.SIN: _of_angle(np.sin),
    DrawOp.COS: _of_angle(np.cos),
    DrawOp.TAN: _of_angle(np.tan),
    DrawOp.SELECT: lambda a, b, c: np.where(a != 0, b, c),
}


class Eager:
    """Computes at once, where a recorder would append an instruction: ``register`` of a value is its array."""

    def compute(self, op: DrawOp, *operands: Any) -> PixelValue:
        arrays = [np.asarray(_array_of(operand), np.float32) for operand in operands]
        with np.errstate(all="ignore"):
            return PixelValue(self, np.asarray(_MEANINGS[op](*arrays)).astype(np.float32))


def _array_of(value: Any) -> Any:
    return value.register if isinstance(value, PixelValue) else value


def apply(function: Callable[..., Any], channels: Floats, magnitude: np.float32) -> Floats:
    """float32[N, 3] of a function ``(r, g, b, m) -> (r, g, b)`` of ``channels``, float32[3, N]."""
    values = [PixelValue(Eager(), numbers) for numbers in (*channels, magnitude)]
    results = [np.asarray(_array_of(result), np.float32) for result in function(*values)]
    return np.stack([np.broadcast_to(result, channels[0].shape) for result in results], axis=-1)
