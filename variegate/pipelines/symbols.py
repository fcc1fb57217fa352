"""Names of Python's and NumPy's operators among the values of a pipeline."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

# Of plain values: what comes out at once.
FOLDED: dict[str, Callable[..., Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv},
    **{"%": operator.mod, "**": operator.pow, "neg": operator.neg, "abs": abs, "min": min, "max": max},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne},
}
UFUNCS = {
    **{"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"},
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "floor_divide": "//"},
    **{"remainder": "%", "power": "**", "negative": "neg", "absolute": "abs", "minimum": "min", "maximum": "max"},
    **{"floor": "floor", "ceil": "ceil", "rint": "round", "trunc": "int", "sqrt": "sqrt", "exp": "exp", "log": "log"},
    **{"sin": "sin", "cos": "cos", "tan": "tan", "less": "<", "less_equal": "<=", "greater": ">"},
    **{"greater_equal": ">=", "equal": "==", "not_equal": "!=", "logical_and": "and", "logical_or": "or"},
    **{"logical_not": "not", "logical_xor": "xor"},
}
# Of two truth values they are another one; of integers, their bits.
OF_BITS = {"&": "and", "|": "or", "^": "xor"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
COMPARISONS |= {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
