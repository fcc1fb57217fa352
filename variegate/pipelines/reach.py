"""State that a branch can reach and must leave unchanged: variables, globals, and the contents of both."""

from __future__ import annotations

import array
import functools
import gc
import itertools
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import EnumMeta
from typing import Any, NamedTuple

import numpy as np

from variegate.ops.traced import TracedPipeline
from variegate.pipelines.convert import is_library
from variegate.pipelines.graph import Graph, refuse, users_frame
from variegate.pipelines.image import same_plain

# Objects that are compared, the nearest first; and bytes of an array that are read, evenly spread.
MAX_OBJECTS = 10_000
MAX_BYTES = 1 << 20
# Modules of Python's whose objects are containers, iterators or references. Other libraries' objects are not read.
_CONTAINERS = {"builtins", "collections", "itertools", "functools", "types", "queue", "argparse", "array"}
_CONSTANTS = (int, float, complex, str, bytes, type(None), range, slice, type(...), types.CodeType, types.FrameType)
_UNSET = object()


class State(NamedTuple):
    """``held``: the objects that an object refers to; ``content``: its bytes, or the position of an iterator."""

    held: Sequence[Any]
    content: Any = None

    def equals(self, other: State | None) -> bool:
        if other is None or self.content != other.content or len(self.held) != len(other.held):
            return False
        return all(map(operator.is_, self.held, other.held)) or all(map(_is_same, self.held, other.held))


@dataclass(frozen=True, eq=False)
class _Global:
    """A variable of a module that a function names."""

    namespace: dict[str, Any]
    name: str


class _Reached(NamedTuple):
    """An object, the variable through which it was reached, and its state before the branches."""

    thing: Any
    name: str
    state: State


class Branches:
    """The branches of one decision.

    ``roots``: their functions and arguments. They may assign the variables of ``put``, and ``own_globals``.
    """

    def __init__(self, graph: Graph, roots: Sequence[Any], put: Any = None, own_globals: Sequence[str] = ()) -> None:
        self._graph = graph
        self._package = str(users_frame().f_globals.get("__name__", "")).partition(".")[0]
        self._globals: dict[tuple[int, str], _Global] = {}
        assigned = {id(cell) for cell in getattr(put, "__closure__", None) or ()}
        self._reached = list(self._reach(roots, assigned, own_globals))

    def run(self, branch: Callable[[], Any]) -> Any:
        """Result of a branch. Raises PipelineError if it changed what the other branch sees."""
        with self._graph.branch():
            result = branch()
        for thing, name, state in self._reached:
            if not state.equals(self._state(thing)):
                kind = "variable" if isinstance(thing, (_Global, types.CellType)) else type(thing).__name__
                what = f"a branch changes `{name}` ({kind}), which all samples share,"
                refuse(f"{what} by a condition that differs from sample to sample", "assignments of variables")
        return result

    def _reach(self, roots: Sequence[Any], assigned: set[int], own_globals: Sequence[str]) -> Iterator[_Reached]:
        waiting = deque((root, getattr(root, "__name__", type(root).__name__)) for root in roots)
        seen: set[int] = set()
        while waiting and len(seen) < MAX_OBJECTS:
            thing, name = waiting.popleft()
            state = None if id(thing) in seen else self._state(thing)
            if state is None:
                continue
            seen.add(id(thing))
            if isinstance(thing, _Global):
                name = thing.name
                may_change = name in own_globals
            else:
                may_change = id(thing) in assigned
            if not may_change:
                yield _Reached(thing, name, state)
            names = _names_of_cells(thing)
            waiting.extend((held, names.get(id(held), name)) for held in state.held)

    def _state(self, thing: Any) -> State | None:
        """None for objects that never change, and for those of libraries."""
        kind = type(thing)
        if kind in _CONSTANTS:
            return None
        if isinstance(thing, _Global):
            return State((thing.namespace.get(thing.name, _UNSET),))
        if isinstance(thing, types.FunctionType):
            return None if self._is_library(thing.__globals__.get("__name__")) else State(self._held_by(thing))
        if isinstance(thing, types.ModuleType):
            return None if self._is_library(thing.__name__) else State(_values_of(thing))
        if isinstance(thing, type):
            if self._is_library(thing.__module__) or isinstance(thing, EnumMeta):
                return None
            return State([*_values_of(thing), *thing.__bases__])
        if isinstance(thing, TracedPipeline):
            traced = thing.__dict__.get("_function")
            return None if traced is None else State((traced.function, traced.constants))
        if kind.__module__ == "functools" and hasattr(thing, "__wrapped__"):
            return State((thing.__wrapped__,))  # lru_cache, whose results are no change
        content = _content(thing)
        if content is None and kind.__module__ not in _CONTAINERS and self._is_library(kind.__module__):
            return None
        return State(_referents(thing), content)

    def _held_by(self, function: types.FunctionType) -> list[Any]:
        space = function.__globals__
        variables = [
            self._globals.setdefault((id(space), name), _Global(space, name))
            for name in _names_in(function.__code__)
            if name in space
        ]
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return [*(function.__closure__ or ()), *variables, *defaults, *vars(function).values()]

    def _is_library(self, module: Any) -> bool:
        return is_library(str(module), self._package)


def _is_same(now: Any, before: Any) -> bool:
    return now is before or (type(now) in (int, float, str, bool) and same_plain(now, before))


def _names_of_cells(thing: Any) -> dict[int, str]:
    """Names of a function's variables that belong to functions around it, by the identity of their cells."""
    if not isinstance(thing, types.FunctionType):
        return {}
    return dict(zip(map(id, thing.__closure__ or ()), thing.__code__.co_freevars, strict=True))


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    """Names of globals and attributes in code and in the functions within it."""
    inner = (name for each in code.co_consts if isinstance(each, types.CodeType) for name in _names_in(each))
    return tuple(dict.fromkeys((*code.co_names, *inner)))


def _values_of(owner: types.ModuleType | type) -> list[Any]:
    """Values of a module or class, without imported modules and what Python itself keeps there."""
    return [
        value
        for name, value in list(vars(owner).items())
        if not isinstance(value, types.ModuleType)
        and (not name.startswith("__") or isinstance(value, types.FunctionType))
    ]


def _referents(thing: Any) -> list[Any]:
    """Entries and attributes of an object, without the results of its cached properties."""
    if isinstance(thing, np.ndarray):
        return list(thing.flat) if thing.dtype.hasobject else []
    attributes = getattr(thing, "__dict__", None)
    referents = gc.get_referents(thing)
    if not isinstance(attributes, dict):
        return referents
    values = [
        value
        for name, value in attributes.items()
        if not isinstance(getattr(type(thing), name, None), functools.cached_property)
    ]
    # Depending on its version, Python lists the dict, or its values, or both.
    listed = {id(attributes), *map(id, attributes.values())}
    return [*values, *(each for each in referents if id(each) not in listed)]


def _content(thing: Any) -> Any:
    """A hash of the bytes of an array, or the position of an iterator; None for other objects."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.Tensor):
        version = None if thing.is_inference() else thing._version
        where = (tuple(thing.shape), thing.data_ptr(), version)
        if thing.device.type != "cpu":
            return where
        flat = thing.detach().reshape(-1)
        step = 1 + flat.numel() * flat.element_size() // MAX_BYTES
        return where, hash(flat[::step].contiguous().view(torch.uint8).numpy().tobytes())
    if isinstance(thing, np.ndarray):
        flat = thing.reshape(-1)[:: 1 + thing.nbytes // MAX_BYTES]
        return thing.shape, thing.dtype.str, hash(flat.tobytes())
    if isinstance(thing, (bytearray, array.array)):
        return hash(bytes(thing))
    if isinstance(thing, types.GeneratorType):
        return -1 if thing.gi_frame is None else thing.gi_frame.f_lasti
    if isinstance(thing, (itertools.count, itertools.repeat)):
        return repr(thing)
    return operator.length_hint(thing, -1) if hasattr(type(thing), "__next__") else None
