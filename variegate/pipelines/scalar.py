"""A value of each sample while a function is traced: a number, truth value or text that is drawn, given or computed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from variegate.checks import as_number
from variegate.ops.traced.operators import OPERATORS
from variegate.ops.traced.values import expression, is_name
from variegate.pipelines.convert import is_converted
from variegate.pipelines.graph import Graph, current, graph_for, refuse, users_frame

# Operators of Python and NumPy by their names among the values of a pipeline. Of plain values: what comes out at once.
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

_DECIDED = "`if`, `and`, `or`, `not`, comparisons and arithmetic in the traced function and in functions that it calls"


class Scalar:
    """One value for each sample, by its name in the graph."""

    __slots__ = ("count", "graph", "is_bool", "name")

    def __init__(self, graph: Graph, name: str, is_bool: bool = False, count: int | None = None) -> None:
        self.graph, self.name, self.is_bool = graph, name, is_bool
        self.count = count  # of a whole number: below it, and 0 or more, if that is known

    def __repr__(self) -> str:
        text = f"<{expression(self.graph.definitions, self.name)}>"
        self.graph.texts.add(text)
        return text

    def __format__(self, spec: str) -> str:
        return repr(self)

    # -- what cannot be ----------------------------------------------------------------------------------------

    def _refused(self, what: str) -> NoReturn:
        refuse(f"{what} the value {self!r}, which differs from sample to sample", _DECIDED)

    def __bool__(self) -> NoReturn:
        code = users_frame().f_code
        if not is_converted(code):
            refuse(
                f"the source of {code.co_name} is not there, or is not traced, so that Python has to decide here by "
                f"{self!r}, which differs from sample to sample",
                "functions that a file or a notebook declares",
            )
        self._refused("Python has to decide here by")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refused(f"there is no .{name} of")

    # -- what others call --------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        what = UFUNCS.get(ufunc.__name__)
        if what is None or method != "__call__" or options or not all(map(is_plain, operands)):
            self._refused(f"np.{ufunc.__name__} cannot be traced with")
        return make(what, *operands)

    def __round__(self, digits: Any = None) -> Any:
        if digits is None:
            return make("round", self)
        return make("/", make("round", make("*", self, 10**digits)), 10**digits)

    def __invert__(self) -> Any:
        return make("not", self) if self.is_bool else make("-", -1, self)


def _refusing(what: str) -> Any:
    def refused(self: Scalar) -> NoReturn:
        self._refused(what)

    return refused


def _made(what: str, is_reflected: bool = False) -> Any:
    def made(self: Scalar, *others: Any) -> Any:
        if not all(map(is_plain, others)):
            return NotImplemented
        return make(what, *others, self) if is_reflected else make(what, self, *others)

    return made


def _equality(what: str) -> Any:
    def compared(self: Scalar, other: Any) -> Any:
        if other is None or isinstance(other, (list, tuple, dict)):
            return what == "!="
        return make(what, self, other) if is_plain(other) else NotImplemented

    return compared


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
_ARITHMETIC |= {"and": "&", "or": "|", "xor": "^"}
_METHODS: dict[str, Any] = {
    "hash": _refusing("Python would tell it from others by a hash of"),  # of a dict's keys, of what is cached
    **dict.fromkeys(("index", "int"), _refusing("a plain integer is needed here, and not")),
    "float": _refusing("a plain number is needed here, and not"),
    "iter": _refusing("there is nothing to iterate over in"),
    "len": _refusing("there is no length of"),
    **{name: _made(what) for name, what in _ARITHMETIC.items()},
    **{f"r{name}": _made(what, is_reflected=True) for name, what in _ARITHMETIC.items()},
    **{name: _made(what) for name, what in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    **{name: _made(name) for name in ("floor", "ceil", "neg", "abs")},
    **{"trunc": _made("int"), "pos": lambda self: self, "eq": _equality("=="), "ne": _equality("!=")},
}
for _name, _method in _METHODS.items():
    setattr(Scalar, f"__{_name}__", _method)


def refuse_text(what: str, *values: Any) -> None:
    """Raises PipelineError where a value of each sample is told in one of ``values``, as by an f-string."""
    texts = [value for value in values if isinstance(value, str)]
    graph = current() if texts else None
    if graph is not None and any(each in text for text in texts for each in graph.texts):
        refuse(
            f"{what} a text that tells a value of each sample", "the value itself, or the text for print and logging"
        )


def is_plain(value: Any) -> bool:
    """True if it may stand among the operands of a value."""
    return isinstance(value, (Scalar, bool, np.bool_, str)) or as_number(value) is not None


def operand(value: Any) -> Any:
    """A scalar's name, or the plain value."""
    if isinstance(value, Scalar):
        return value.name
    if isinstance(value, str):
        if is_name(value):
            refuse(f"the text {value!r}", 'texts that do not begin with "$"')
        return value
    return bool(value) if isinstance(value, (bool, np.bool_)) else as_number(value)


def make(what: str, *values: Any) -> Any:
    """``what`` of scalars and plain values: a scalar, or a plain value where all are plain or one decides."""
    if not any(isinstance(value, Scalar) for value in values):
        if what in FOLDED:
            return FOLDED[what](*values)
        if what in ("and", "or", "not", "xor"):
            return _decided(what, *map(bool, values))
    if what in OF_BITS and all(map(_is_truth, values)):
        what = OF_BITS[what]
    if what in ("and", "or", "xor", "not", "where"):
        simple = simplified(what, *values)
        if simple is not None:
            return simple
    graph = graph_for("a value of each sample")
    for value in values:
        if isinstance(value, Scalar) and value.graph is not graph:
            refuse(f"{value!r} is a value of another pipeline", "values of the function that is traced")
    name = graph.define(what, *map(operand, values))
    of_truth = what == "where" and all(isinstance(v, bool) or (isinstance(v, Scalar) and v.is_bool) for v in values[1:])
    return Scalar(graph, name, of_truth or (what in OPERATORS and OPERATORS[what].is_bool))


def _decided(what: str, *values: bool) -> bool:
    if what == "not":
        return not values[0]
    return {"and": all(values), "or": any(values), "xor": values[0] != values[-1]}[what]


def same(left: Any, right: Any) -> bool:
    """True if two values are one and the same."""
    if isinstance(left, Scalar) or isinstance(right, Scalar):
        return isinstance(left, Scalar) and isinstance(right, Scalar) and left.name == right.name
    return type(left) is type(right) and bool(left == right)


def negated(value: Scalar) -> Scalar | None:
    """The value that ``value`` negates."""
    what, *operands = value.graph.definitions.get(value.name, ("",))
    return Scalar(value.graph, operands[0], True) if what == "not" else None


def are_opposites(left: Scalar, right: Scalar) -> bool:
    """True if one is the negation of the other."""
    return any(
        inner is not None and inner.name == other.name
        for inner, other in ((negated(left), right), (negated(right), left))
    )


def simplified(what: str, *values: Any) -> Any:
    """A value that needs no definition of its own, or None."""
    if what == "not":
        return negated(values[0])
    if what == "where":
        condition, yes, no = values
        if isinstance(condition, bool):
            return yes if condition else no
        if same(yes, no):
            return yes
        if isinstance(yes, bool):
            if not _is_truth(no):
                return None
            return make("or", condition, no) if yes else make("and", make("not", condition), no)
        if isinstance(no, bool) and _is_truth(yes):
            return make("or", make("not", condition), yes) if no else make("and", condition, yes)
        return None
    left, right = values
    for one, other in ((left, right), (right, left)):
        if isinstance(one, bool):
            if what == "xor":
                return make("not", other) if one else other
            return (other if one else False) if what == "and" else (True if one else other)
    return left if what != "xor" and same(left, right) else None


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Scalar) and value.is_bool)


def truth(value: Any) -> Any:
    """As an ``if`` takes it: a bool, or a scalar that is one."""
    if not isinstance(value, Scalar):
        return bool(value)
    return value if value.is_bool else make("!=", value, 0)
