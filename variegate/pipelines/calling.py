"""Calls within a traced function: users' functions are traced too; decisions by values become values."""

from __future__ import annotations

import datetime
import functools
import math
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from variegate.pipelines.convert import convert, is_converted, is_users
from variegate.pipelines.graph import PipelineError, refuse
from variegate.pipelines.image import TracedImage
from variegate.pipelines.scalar import Scalar, is_plain, make, refuse_text, truth

_DRAWS = "vg.coin, vg.uniform, vg.randint, vg.normal and vg.choice, which draw for every sample"
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
# Functions of ``os`` that draw; and those of ``secrets`` and ``uuid`` that do not. Generators of Python, NumPy and
# torch are compared before and after a call (``call_untraced``).
_OF_SYSTEM = {"urandom", "getrandom"}
_CERTAIN = {"uuid3", "uuid5", "UUID", "compare_digest"}
_CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
# Functions of ``time`` that take the current time if they get fewer arguments.
_OF_NOW = {"localtime": 1, "gmtime": 1, "ctime": 1, "asctime": 1, "strftime": 2}
_NOW = {"now", "utcnow", "today"}


def refuse_chance(function: Any, args: tuple[Any, ...]) -> None:
    """Raises PipelineError where ``function`` draws a number, or reads the clock."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    module = getattr(function, "__module__", None)
    if module == "time":
        is_clock = name.removesuffix("_ns") in _CLOCKS or len(args) < _OF_NOW.get(name, 0)
    else:
        is_clock = name in _NOW and isinstance(owner, type) and issubclass(owner, datetime.date)
    if is_clock:
        refuse(
            "this reads the clock once, while the function is traced, for all samples", "a value given with the batch"
        )
    is_of_system = module in ("posix", "nt") and name in _OF_SYSTEM
    is_source = is_of_system or (module in ("secrets", "uuid") and name not in _CERTAIN)
    if is_source or isinstance(owner, _GENERATORS):
        refuse("this draws one number, while the function is traced, for all samples", _DRAWS)


def call_untraced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)``. Raises PipelineError where it draws from a generator that all code shares."""
    for value in args:
        if callable(value):
            refuse_chance(value, ())
    before = _states()
    result = function(*args, **kwargs)
    if _states() != before:
        refuse("this draws numbers, while the function is traced, for all samples", _DRAWS)
    return result


def _states() -> tuple[Any, ...]:
    of_numpy: Any = np.random.get_state(legacy=False)
    torch = sys.modules.get("torch")
    of_torch = b"" if torch is None else torch.random.default_generator.get_state().numpy().tobytes()
    return random.getstate(), of_numpy["state"]["key"].tobytes(), of_numpy["state"]["pos"], of_torch


_RUNTIME = "variegate.pipelines.runtime"
_BY_VALUE: dict[Any, str] = {
    **{int: "int", float: "float", math.sqrt: "sqrt", math.exp: "exp", math.log: "log", math.sin: "sin"},
    **{math.cos: "cos", math.tan: "tan", math.fabs: "abs"},
}
_ANGLES: dict[Any, float] = {math.radians: math.pi / 180, math.degrees: 180 / math.pi, np.radians: math.pi / 180}
_ANGLES |= {np.degrees: 180 / math.pi, np.deg2rad: math.pi / 180, np.rad2deg: 180 / math.pi}

_LRU_CACHE = type(functools.lru_cache(len))
# What they give of a text depends on its letters.
_DECIDING: tuple[Any, ...] = (float, int, complex, bool, len, hash, ord)


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``"""
    if isinstance(function, functools.partial):
        return call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
    refuse_chance(function, args)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        return call(function.__func__, function.__self__, *args, **kwargs)
    if isinstance(function, types.FunctionType) and (is_converted(function.__code__) or is_users(function)):
        return (convert(function, sys.modules[_RUNTIME]) or function)(*args, **kwargs)
    own = getattr(type(function), "__call__", None)  # noqa: B004
    if isinstance(own, types.FunctionType) and is_users(own):
        return call(own, function, *args, **kwargs)
    if any(isinstance(value, (Scalar, TracedImage)) for value in (*args, *kwargs.values())):
        if isinstance(function, _LRU_CACHE):
            return call(function.__wrapped__, *args, **kwargs)
        return _call_with_values(function, args, kwargs)
    if _is_built_in(function):
        return _BUILT_IN[function](*args, **kwargs)
    if str(getattr(function, "__module__", "")).partition(".")[0] == "variegate":
        return function(*args, **kwargs)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (dict, set, frozenset)) or (_is_hashable(function) and function in _DECIDING):
        refuse_text(f"{function.__name__}() of", *args)
    result = call_untraced(function, args, kwargs)
    if isinstance(owner, str) and not isinstance(result, str):
        refuse_text(f".{function.__name__}() of", owner)
    return result


def _call_with_values(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _is_hashable(function) and not kwargs and len(args) == 1 and isinstance(args[0], Scalar):
        if function in _BY_VALUE:
            return make(_BY_VALUE[function], args[0])
        if function in _ANGLES:
            return make("*", args[0], _ANGLES[function])
        if function is bool:
            return truth(args[0])
        if function in (id, type, hash, len):
            refuse(f"{function.__name__}() of {args[0]!r}, which differs from sample to sample", "arithmetic")
    if function is isinstance and isinstance(args[0], Scalar):
        return _is_instance(*args)
    if _is_built_in(function):
        return _BUILT_IN[function](*args, **kwargs)
    if _is_hashable(function) and function in _OF_NUMPY and len(args) == 3 and all(map(is_plain, args)):
        return _OF_NUMPY[function](*args)
    try:
        return function(*args, **kwargs)
    except PipelineError:
        raise
    except (TypeError, AttributeError) as error:
        called = getattr(function, "__name__", type(function).__name__)
        refuse(f"{called}() does not take what has no value yet ({error})", "functions of F, T and vg, and of your own")


def _is_instance(value: Scalar, kinds: Any) -> bool:
    kind_of = {issubclass(kind, kinds) for kind in ((bool,) if value.is_bool else (bool, int, float, str))}
    if len(kind_of) > 1:
        refuse(f"isinstance() of {value!r}, which may be a number, a truth value or a text", "arithmetic")
    return kind_of.pop()


def _is_hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _is_built_in(function: Any) -> bool:
    return isinstance(function, types.BuiltinFunctionType) and function in _BUILT_IN


def _folded(what: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def folded(*args: Any, **kwargs: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and not isinstance(args[0], Scalar) else list(args)
        if kwargs or not any(isinstance(value, Scalar) for value in values):
            return otherwise(*([values] if len(args) == 1 else args), **kwargs)
        result = values[0]
        for value in values[1:]:
            result = make(what, result, value)
        return result

    return folded


def _joined(what: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def joined(values: Any) -> Any:
        listed = list(values)
        if not any(isinstance(value, Scalar) for value in listed):
            return otherwise(listed)
        result: Any = what == "and"
        for value in listed:
            result = make(what, result, truth(value))
        return result

    return joined


def _clip(value: Any, low: Any, high: Any) -> Any:
    return make("min", make("max", value, low), high)


_OF_NUMPY: dict[Any, Callable[..., Any]] = {
    np.clip: _clip,
    np.where: lambda c, yes, no: make("where", truth(c), yes, no),
}
_BUILT_IN: dict[Any, Callable[..., Any]] = {
    min: _folded("min", min),
    max: _folded("max", max),
    all: _joined("and", all),
    any: _joined("or", any),
}
