"""Operators of values for a batch, in NumPy, with Python's meaning: truth values are 0 and 1, integers do not wrap."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.rng import to_normal, to_unit

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Operator:
    """``function`` of ``least`` to ``most`` operands (None: without end). What draws gets words uint32[N, 4] first."""

    function: Callable[..., Any]
    least: int
    most: int | None
    draws: bool = False
    is_bool: bool = False


def as_numbers(value: Any) -> Any:
    """Truth values as integers, of 64 bits as all integers, and floats as float64."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, np.ndarray):
        return value.astype(np.int64) if value.dtype.kind in "biu" else value.astype(np.float64, copy=False)
    return value


def as_truth(value: Any) -> Any:
    return value != 0 if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" else np.asarray(value, np.bool_)


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*map(as_numbers, operands))


def _in_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*(np.asarray(as_numbers(value), np.float64) for value in operands))


def _divided(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of whole numbers a whole one; by 0 infinite or nothing, never NumPy's 0."""

    def divided(left: Any, right: Any) -> Any:
        left, right = as_numbers(left), as_numbers(right)
        return function(np.float64(left) if np.any(np.equal(right, 0)) else left, right)

    return divided


def _power(base: Any, exponent: Any) -> Any:
    base, exponent = as_numbers(base), as_numbers(exponent)
    is_whole = isinstance(exponent, int) and 0 <= exponent < 8
    return np.power(base if is_whole else np.float64(base), exponent)


def _compared(function: Callable[..., Any], of_different: bool | None = None) -> Callable[..., Any]:
    def compared(left: Any, right: Any) -> Any:
        kinds = [np.asarray(value).dtype.kind for value in (left, right)]
        if (kinds[0] in "biuf") == (kinds[1] in "biuf"):
            return np.asarray(function(left, right), np.bool_)
        if of_different is None:
            raise TypeError("texts and numbers have no order")
        return np.full(np.broadcast_shapes(np.shape(left), np.shape(right)), of_different)

    return compared


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers where they are; a float that is too large, or none, stays one, and is refused where it is used."""

    def whole(value: Any) -> Any:
        value = as_numbers(value)
        if np.asarray(value).dtype.kind != "f":
            return value
        rounded = np.asarray(function(value))
        return rounded.astype(np.int64) if (np.abs(rounded) < 2.0**62).all() else rounded

    return whole


def _where(condition: Any, yes: Any, no: Any) -> Array:
    return np.asarray(np.where(as_truth(condition), yes, no))


def _take(index: Any, *entries: Any) -> Array:
    """Entry ``index``; negative ones count from the end, as in a list, and those beyond it are the last."""
    at = as_numbers(index)
    at = np.asarray(np.where(np.asarray(at) < 0, at + np.int64(len(entries)), at))
    at = np.clip(at, 0, len(entries) - 1).astype(np.int64)
    if not any(isinstance(entry, np.ndarray) for entry in entries):
        return np.asarray(np.asarray(entries)[at])
    columns = [np.broadcast_to(np.asarray(entry), at.shape) for entry in entries]
    return np.asarray(np.take_along_axis(np.stack(columns), at[None], axis=0)[0])


def _first(*conditions: Any) -> Array:
    """The number of the first that is true; of none, how many there are."""
    columns = np.broadcast_arrays(*map(as_truth, conditions))
    is_true = np.stack([*columns, np.ones_like(columns[0])])
    return np.asarray(np.argmax(is_true, axis=0))


# -- draws -------------------------------------------------------------------------------------------------------


def _uniform(words: Any, low: Any, high: Any) -> Array:
    low, high = as_numbers(low), as_numbers(high)
    return np.asarray(low + (high - low) * to_unit(words[:, 0]))


def _coin(words: Any, probability: Any) -> Array:
    return np.asarray(to_unit(words[:, 0]) < as_numbers(probability))


def _randint(words: Any, low: Any, high: Any) -> Array:
    low, high = as_numbers(low), as_numbers(high)
    return np.asarray(low + np.floor((high - low) * to_unit(words[:, 0]))).astype(np.int64)


def _normal(words: Any, mean: Any, deviation: Any) -> Array:
    return np.asarray(as_numbers(mean) + as_numbers(deviation) * to_normal(words)[:, 0])


def _pick(words: Any, *weights: Any) -> Array:
    """An index, with probabilities proportional to ``weights``."""
    cumulative = np.cumsum(np.stack([np.broadcast_to(as_numbers(w), len(words)) for w in weights]), axis=0)
    index = (cumulative <= to_unit(words[:, 0]) * cumulative[-1]).sum(axis=0)
    last = np.argmax(cumulative == cumulative[-1], axis=0)  # of those with a weight, should rounding pass the end
    return np.asarray(np.minimum(index, last))


# What values are made of, by the words that descriptions have for it.
OPERATORS: dict[str, Operator] = {
    "uniform": Operator(_uniform, 2, 2, draws=True),
    "coin": Operator(_coin, 1, 1, draws=True, is_bool=True),
    "randint": Operator(_randint, 2, 2, draws=True),
    "normal": Operator(_normal, 2, 2, draws=True),
    "pick": Operator(_pick, 1, None, draws=True),
    "+": Operator(_arithmetic(operator.add), 2, 2),
    "-": Operator(_arithmetic(operator.sub), 2, 2),
    "*": Operator(_arithmetic(operator.mul), 2, 2),
    "/": Operator(_in_floats(np.divide), 2, 2),
    "//": Operator(_divided(np.floor_divide), 2, 2),
    "%": Operator(_divided(np.mod), 2, 2),
    "**": Operator(_power, 2, 2),
    "neg": Operator(_arithmetic(operator.neg), 1, 1),
    "abs": Operator(_arithmetic(np.abs), 1, 1),
    "min": Operator(_arithmetic(np.minimum), 2, 2),
    "max": Operator(_arithmetic(np.maximum), 2, 2),
    "floor": Operator(_whole(np.floor), 1, 1),
    "ceil": Operator(_whole(np.ceil), 1, 1),
    "round": Operator(_whole(np.rint), 1, 1),
    "int": Operator(_whole(np.trunc), 1, 1),
    "float": Operator(_in_floats(np.positive), 1, 1),
    "sqrt": Operator(_in_floats(np.sqrt), 1, 1),
    "exp": Operator(_in_floats(np.exp), 1, 1),
    "log": Operator(_in_floats(np.log), 1, 1),
    "sin": Operator(_in_floats(np.sin), 1, 1),
    "cos": Operator(_in_floats(np.cos), 1, 1),
    "tan": Operator(_in_floats(np.tan), 1, 1),
    "<": Operator(_compared(np.less), 2, 2, is_bool=True),
    "<=": Operator(_compared(np.less_equal), 2, 2, is_bool=True),
    ">": Operator(_compared(np.greater), 2, 2, is_bool=True),
    ">=": Operator(_compared(np.greater_equal), 2, 2, is_bool=True),
    "==": Operator(_compared(np.equal, False), 2, 2, is_bool=True),
    "!=": Operator(_compared(np.not_equal, True), 2, 2, is_bool=True),
    "and": Operator(lambda a, b: as_truth(a) & as_truth(b), 2, 2, is_bool=True),
    "or": Operator(lambda a, b: as_truth(a) | as_truth(b), 2, 2, is_bool=True),
    "xor": Operator(lambda a, b: as_truth(a) ^ as_truth(b), 2, 2, is_bool=True),
    "not": Operator(lambda a: ~as_truth(a), 1, 1, is_bool=True),
    "&": Operator(_arithmetic(operator.and_), 2, 2),
    "|": Operator(_arithmetic(operator.or_), 2, 2),
    "^": Operator(_arithmetic(operator.xor), 2, 2),
    "where": Operator(_where, 3, 3),
    "take": Operator(_take, 2, None),
    "first": Operator(_first, 1, None),
}
