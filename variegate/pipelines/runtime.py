"""Calls in the place of Python's decisions: decided at once if known while tracing, else traced both ways."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from variegate.pipelines.calling import call
from variegate.pipelines.convert import is_users
from variegate.pipelines.draws import entry_of
from variegate.pipelines.graph import current, refuse
from variegate.pipelines.image import Missing, TracedImage, merge, unset
from variegate.pipelines.jumps import DONE, RESULT, is_flag
from variegate.pipelines.reach import Branches
from variegate.pipelines.rewrite import GLOBAL
from variegate.pipelines.scalar import FOLDED, Scalar, are_opposites, is_plain, make, refuse_text, truth

__all__ = [
    "and_",
    "assert_test",
    "call",
    "check_raise",
    "compare",
    "if_expression",
    "if_statement",
    "is_true",
    "item",
    "load",
    "loop_test",
    "not_",
    "or_",
    "unset",
]

Thunk = Callable[[], Any]


def load(value: Any) -> Any:
    """A variable that a branch has assigned."""
    if isinstance(value, Missing):
        value.refused()
    return value


def if_statement(
    test: Any, then: Thunk, otherwise: Thunk, get: Thunk, put: Callable[[tuple[Any, ...]], None], names: tuple[str, ...]
) -> None:
    condition = truth(test) if isinstance(test, Scalar) else test
    if not isinstance(condition, Scalar):
        (then if condition else otherwise)()
        return
    before = get()
    of_module = [n.removeprefix(GLOBAL) for n in names if n.startswith(GLOBAL)]
    branches = Branches(condition.graph, (then, otherwise), put, of_module)
    results = []
    for holds, branch in ((True, then), (False, otherwise)):
        put(_known(names, before, condition, holds))
        branches.run(branch)
        results.append(get())
        if any(n.startswith(GLOBAL) and now is not b for n, now, b in zip(names, results[-1], before, strict=True)):
            put(before)
            refuse("a branch assigns a global, by a condition that differs from sample to sample", "local variables")
    put(tuple(merge(condition, yes, no, n, n == RESULT) for n, yes, no in zip(names, *results, strict=True)))


def _known(names: tuple[str, ...], values: tuple[Any, ...], condition: Scalar, holds: bool) -> tuple[Any, ...]:
    """The variables in a branch. A flag may be what the branch was taken for; and what is not done has no result."""
    known = list(values)
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        if is_flag(name) and isinstance(value, Scalar):
            if value.name == condition.name:
                known[place] = holds
            elif are_opposites(value, condition):
                known[place] = not holds
            if name == DONE and known[place] is False and RESULT in names:
                known[names.index(RESULT)] = unset("result")
    return tuple(known)


def if_expression(test: Any, then: Thunk, otherwise: Thunk) -> Any:
    condition = truth(test) if isinstance(test, Scalar) else test
    if not isinstance(condition, Scalar):
        return then() if condition else otherwise()
    branches = Branches(condition.graph, (then, otherwise))
    yes, no = branches.run(then), branches.run(otherwise)
    return load(merge(condition, yes, no, "the value"))


def _joined(what: str, value: Any, thunks: tuple[Thunk, ...]) -> Any:
    for thunk in thunks:
        if isinstance(value, Scalar):
            value = make(what, truth(value), _truth(Branches(value.graph, (thunk,)).run(thunk)))
        elif bool(value) == (what == "or"):
            return value
        else:
            value = thunk()
    return value


def and_(first: Any, *rest: Thunk) -> Any:
    return _joined("and", first, rest)


def or_(first: Any, *rest: Thunk) -> Any:
    return _joined("or", first, rest)


def _truth(value: Any) -> Any:
    return truth(value) if isinstance(value, Scalar) else bool(value)


def not_(value: Any) -> Any:
    return make("not", truth(value)) if isinstance(value, Scalar) else not value


def compare(symbols: tuple[str, ...], *values: Any) -> Any:
    """``a < b <= c``"""
    refuse_text("a comparison with", *values)
    if len(values) == 2:
        return _COMPARED[symbols[0]](*values)
    result: Any = True
    for symbol, left, right in zip(symbols, values, values[1:], strict=False):
        one = _COMPARED[symbol](left, right)
        if isinstance(one, Scalar) or isinstance(result, Scalar):
            result = make("and", _truth(result), _truth(one))
        elif not one:
            return one
        else:
            result = one
    return result


def _is(left: Any, right: Any) -> Any:
    """A value of each sample is no other object; a truth value is True or False."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Scalar) and is_plain(other):
            if one.is_bool and (isinstance(other, bool) or (isinstance(other, Scalar) and other.is_bool)):
                return make("not", make("xor", left, right))
            refuse(f"`is` of {one!r}, which differs from sample to sample", "`==`")
    return left is right


def _is_in(value: Any, container: Any) -> Any:
    own = getattr(type(container), "__contains__", None)
    if isinstance(own, types.FunctionType) and is_users(own):
        result = call(own, container, value)
        return truth(result)
    if isinstance(value, Scalar) and not isinstance(container, _LISTED):
        refuse(f"`in` of {value!r} and a {type(container).__name__}", "`in` a list, a tuple, a set, a dict or a range")
    if isinstance(value, Scalar) or (
        isinstance(container, (list, tuple)) and any(isinstance(entry, Scalar) for entry in container)
    ):
        result = False
        for entry in container:
            is_it = value == entry
            result = is_it if result is False else make("or", _truth(result), _truth(is_it))
        return result
    return value in container


_LISTED: tuple[type, ...] = (list, tuple, set, frozenset, dict, range, deque, np.ndarray)
_LISTED += (type({}.keys()), type({}.values()))
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    **{symbol: FOLDED[symbol] for symbol in ("<", "<=", ">", ">=", "==", "!=")},
    **{"is": _is, "is not": lambda a, b: not_(_is(a, b))},
    **{"in": _is_in, "not in": lambda a, b: not_(_is_in(a, b))},
}


def loop_test(test: Any) -> Any:
    if isinstance(test, (Scalar, TracedImage)):
        refuse(f"`while` by {test!r}, which differs from sample to sample", "loops whose end is a constant")
    return test


def assert_test(test: Any) -> Any:
    if isinstance(test, Scalar):
        refuse(f"`assert` of {test!r}, which differs from sample to sample", "assertions of constants")
    return test


def check_raise() -> None:
    graph = current()
    if graph is not None and graph.branches:
        refuse("`raise` by a condition that differs from sample to sample", "a branch that gives an image")


def is_true(value: Any, source: Any = None) -> bool:
    """True if a flag is set for all samples. ``source``: the variable that a loop takes from, while some have left."""
    if isinstance(value, Scalar) and hasattr(type(source), "__next__"):
        refuse("a loop that some samples leave takes from an iterator, which all samples share", "loops over a list")
    return value is True


def item(value: Any, index: Any) -> Any:
    refuse_text("an entry by", value, index)
    return entry_of(value, index) if isinstance(index, Scalar) else value[index]
