"""Chance that is not the sample's own, and the clock: refused where a pipeline's function names them.

It inspects names that the function, its inner functions and the user's functions load: a module's function, or a method
of a generator. Returned values are not inspected.
"""

from __future__ import annotations

import datetime
import dis
import inspect
import os
import random
import secrets
import sys
import time
import types
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from variegate.pipelines.image import refuse
from variegate.pipelines.run import shown_place
from variegate.pipelines.sites import is_users

_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
_CHANCE = [random.SystemRandom, os.urandom, uuid.uuid1, uuid.uuid4, np.random.default_rng]
_CHANCE += [getattr(secrets, name) for name in ("randbelow", "token_bytes", "token_hex", "token_urlsafe")]
_OF_TORCH = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")
_CLOCKS: list[Any] = [
    getattr(time, name + unit) for name in ("time", "monotonic", "perf_counter", "process_time") for unit in ("", "_ns")
]
_OF_DATES = ("now", "utcnow", "today")
# Instructions between a name and its attribute.
_IGNORED = ("PUSH_NULL", "CACHE", "EXTENDED_ARG", "NOP")


def refuse_chance(function: types.FunctionType) -> None:
    """Raise PipelineError at the line that draws other numbers than the sample's, or reads the clock."""
    waiting = [function]
    known = {id(function)}
    while waiting:
        for file, line, value in _loaded(waiting.pop()):
            reason = _reason(value)
            if reason:
                name = getattr(value, "__qualname__", str(value))
                accepted = "vg.coin, vg.uniform, vg.normal, vg.randint and vg.choice, or a value given with the batch"
                refuse(f"{shown_place(file, line)}: {name} {reason}", accepted)
            if isinstance(value, types.FunctionType) and is_users(value.__code__) and id(value) not in known:
                known.add(id(value))
                waiting.append(value)


def _reason(value: Any) -> str:
    owner = getattr(value, "__self__", None)
    if isinstance(owner, _GENERATORS) or any(value is each for each in _CHANCE):
        return "draws numbers that do not follow from the sample"
    torch = sys.modules.get("torch")
    if torch is not None and any(value is getattr(torch, name) for name in _OF_TORCH):
        return "draws numbers that do not follow from the sample"
    is_of_dates = isinstance(owner, type) and issubclass(owner, datetime.date) and value.__name__ in _OF_DATES
    return "reads the clock" if is_of_dates or any(value is each for each in _CLOCKS) else ""


def _loaded(function: types.FunctionType) -> Iterator[tuple[str, int, Any]]:
    """Values that a function loads by name: file, line, value."""
    variables = inspect.getclosurevars(function)
    yield from _loaded_by(function.__code__, {**variables.builtins, **function.__globals__, **variables.nonlocals})


def _loaded_by(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
    line = code.co_firstlineno
    value = None
    starts = dict(dis.findlinestarts(code))
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        kind = instruction.opname
        if kind in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            value = names.get(instruction.argval)
        elif kind in ("LOAD_ATTR", "LOAD_METHOD"):
            is_known = isinstance(value, (types.ModuleType, type, *_GENERATORS))
            value = getattr(value, instruction.argval, None) if is_known else None
        elif kind not in _IGNORED:
            value = None
        if value is not None:
            yield code.co_filename, line, value
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _loaded_by(constant, names)
