"""State that a branch can reach and must leave as it was: variables, globals, and all that these hold."""

from __future__ import annotations

import functools
import gc
import io
import itertools
import operator
import sys
import types
import warnings
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import EnumMeta
from typing import Any

import numpy as np

from variegate.errors import shown
from variegate.ops.traced import TracedPipeline
from variegate.pipelines.convert import is_library
from variegate.pipelines.graph import Graph, refuse, users_frame
from variegate.pipelines.image import same_plain

# Things that are compared, the nearest first, and entries of each; bytes of an array that are read, evenly spread.
LARGEST, LONGEST, BYTES = 10_000, 10_000, 1 << 20
# What an instance of a library's class holds is looked at where it is a plain container, an iterator or an array.
_WITH_ATTRIBUTES = {"collections", "types", "argparse", "queue", "_thread"}
_CONTAINERS = {"builtins", "itertools", "functools", "array", *_WITH_ATTRIBUTES}
_ENTRIES = (list, tuple, set, frozenset, deque)
_LEAVES = (int, float, complex, str, bytes, type(None), range, slice, type(...), types.CodeType, types.FrameType)
_UNSET = object()

State = tuple[Sequence[Any], Any]


class Branches:
    """The branches of one decision. ``roots``: functions and arguments; ``put``, ``own_globals``: variables they may
    assign."""

    def __init__(self, graph: Graph, roots: Sequence[Any], put: Any = None, own_globals: Sequence[str] = ()) -> None:
        self._graph = graph
        self._package = str(users_frame().f_globals.get("__name__", "")).partition(".")[0]
        own = {id(cell) for cell in getattr(put, "__closure__", None) or ()}
        self._noted: list[_Noted] = []
        self._globals: dict[tuple[int, str], _Global] = {}
        self._walk(roots, own, set(own_globals))

    def run(self, branch: Callable[[], Any]) -> Any:
        with self._graph.branch():
            result = branch()
        for noted in self._noted:
            if not noted.is_as_it_was(self._state(noted.thing)):
                kind = "variable" if isinstance(noted.thing, _VARIABLES) else type(noted.thing).__name__
                what = f"a branch changes `{noted.title()}` ({kind}), which all samples share,"
                refuse(f"{what} by a condition that differs from sample to sample", "assignments of variables")
        return result

    def _walk(self, roots: Sequence[Any], own: set[int], own_globals: set[str]) -> None:
        waiting: deque[tuple[Any, _Noted | None]] = deque((root, None) for root in roots)
        seen: set[int] = set()
        while waiting and len(seen) < LARGEST:
            thing, holder = waiting.popleft()
            key = id(thing)
            state = None if isinstance(thing, _LEAVES) and type(thing).__module__ == "builtins" else self._state(thing)
            if key in seen or state is None:
                continue
            seen.add(key)
            noted = _Noted(thing, holder, *state)
            if id(thing) not in own and not (isinstance(thing, _Global) and thing.name in own_globals):
                self._noted.append(noted)
            waiting.extend((held, noted) for held in state[0])

    def _state(self, thing: Any) -> State | None:
        """Contents of ``thing``, and what else tells its state; None for what never changes, or is not looked into."""
        kind = type(thing)
        if kind in _ENTRIES:
            return _some(thing, len(thing)), len(thing)
        if isinstance(thing, _Global):
            return (thing.namespace.get(thing.name, _UNSET),), None
        if isinstance(thing, weakref.ref):
            return (thing(),), None
        if isinstance(thing, ContextVar):
            return (thing.get(_UNSET),), None
        if isinstance(thing, (io.StringIO, io.BytesIO)):
            return (), None if thing.closed else (thing.getvalue(), thing.tell())
        if isinstance(thing, types.CellType):
            try:
                return (thing.cell_contents,), None
            except ValueError:
                return (), None
        if isinstance(thing, types.FunctionType):
            return None if self._is_library(thing.__globals__.get("__name__")) else (self._held_by(thing), None)
        if isinstance(thing, types.ModuleType):
            if self._is_library(thing.__name__):
                return None
            return _without_magic(thing.__dict__, types.ModuleType), None
        if isinstance(thing, type):
            if self._is_library(thing.__module__) or isinstance(thing, EnumMeta):
                return None
            return [*_without_magic(dict(vars(thing)), ()), *thing.__bases__], None
        if isinstance(thing, TracedPipeline):
            traced = thing.__dict__.get("_function")
            return None if traced is None else ((traced.function, traced.constants), None)
        if kind.__module__ == "functools" and hasattr(thing, "__wrapped__"):
            return (thing.__wrapped__,), None  # lru_cache, which keeps what a function gives
        is_library = self._is_library(kind.__module__)
        held: list[Any] = []
        if not is_library or kind.__module__ in _WITH_ATTRIBUTES:
            held += _attributes(thing)
        if not is_library:
            held.append(kind)
        own: Any = _bytes_of(thing)
        if isinstance(thing, dict):
            of = OrderedDict if isinstance(thing, OrderedDict) else dict
            keys = _some(of.keys(thing), len(thing))
            return [*held, *keys, *(dict.get(thing, key) for key in keys)], len(thing)
        entries = next((each for each in _ENTRIES if isinstance(thing, each)), None)
        if entries is not None:
            return [*held, *_some(entries.__iter__(thing), len(thing))], len(thing)
        if isinstance(thing, np.ndarray):
            return held + (_some(thing.flat, thing.size) if thing.dtype.hasobject else []), own
        if own is None and is_library:
            if kind.__module__ not in _CONTAINERS:
                return None
            own = _place_of(thing) if hasattr(kind, "__next__") else None
            held += gc.get_referents(thing)
        return held, own

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


@dataclass(eq=False)
class _Noted:
    thing: Any
    holder: _Noted | None
    held: Sequence[Any]
    own: Any

    def is_as_it_was(self, state: State | None) -> bool:
        if state is None or self.own != state[1] or len(self.held) != len(state[0]):
            return False
        return all(map(operator.is_, self.held, state[0])) or all(map(_is_one, self.held, state[0]))

    def title(self) -> str:
        """As code would say it, from the variable on."""
        if isinstance(self.thing, _Global):
            return self.thing.name
        if self.holder is None:
            return getattr(self.thing, "__name__", type(self.thing).__name__)
        if isinstance(self.holder.thing, _Global):
            return self.holder.thing.name
        return self.holder.name_of(self.thing)

    def name_of(self, held: Any) -> str:
        if isinstance(self.thing, types.FunctionType):
            cells = zip(self.thing.__code__.co_freevars, self.thing.__closure__ or (), strict=True)
            return next((name for name, cell in cells if cell is held), self.thing.__name__)
        if isinstance(self.thing, types.CellType):
            return self.title()
        if isinstance(self.thing, dict):
            key = next((key for key, value in dict.items(self.thing) if value is held), ...)
            return f"{self.title()}[{'...' if key is ... else shown(key)}]"
        names = getattr(self.thing, "__dict__", {})
        name = next((name for name, value in names.items() if value is held), None)
        return f"{self.title()}[...]" if name is None else f"{self.title()}.{name}"


@dataclass(frozen=True, eq=False)
class _Global:
    """A variable of a module that a function names."""

    namespace: dict[str, Any]
    name: str


_VARIABLES = (_Global, types.CellType)


def _is_one(now: Any, before: Any) -> bool:
    return now is before or (type(now) in (int, float, str, bool) and same_plain(now, before))


def _some(entries: Any, length: int) -> list[Any]:
    """All, or those at both ends where they are too many."""
    if length <= LONGEST:
        return list(entries)
    listed = list(entries)
    return listed[: LONGEST // 2] + listed[-LONGEST // 2 :]


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    """Of globals, and attributes, that code and the functions within it name."""
    inner = (name for each in code.co_consts if isinstance(each, types.CodeType) for name in _names_in(each))
    return tuple(dict.fromkeys((*code.co_names, *inner)))


def _without_magic(names: dict[str, Any], kind: Any) -> list[Any]:
    """Values by name, without those that Python itself keeps there, as it imports and annotates."""
    return [
        value
        for name, value in names.items()
        if not isinstance(value, kind) and (not name.startswith("__") or isinstance(value, types.FunctionType))
    ]


def _attributes(thing: Any) -> Iterator[Any]:
    kept = type(thing).__mro__
    for name, value in list(getattr(thing, "__dict__", {}).items()):
        if not any(isinstance(vars(owner).get(name), functools.cached_property) for owner in kept):
            yield value
    for owner in kept:
        for member in vars(owner).values():
            if isinstance(member, types.MemberDescriptorType):
                try:
                    yield member.__get__(thing)
                except AttributeError:
                    yield _UNSET


def _bytes_of(thing: Any) -> Any:
    """Of an array, tensor or buffer; None for what is none."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.Tensor):
        where = tuple(thing.shape), thing.data_ptr(), None if thing.is_inference() else thing._version
        if thing.device.type != "cpu":
            return where
        flat = thing.detach().reshape(-1)
        step = 1 + flat.numel() * flat.element_size() // BYTES
        return where, hash(flat[::step].contiguous().view(torch.uint8).numpy().tobytes())
    if not isinstance(thing, np.ndarray):
        try:
            thing = np.frombuffer(thing, np.uint8)
        except (TypeError, ValueError, BufferError, AttributeError):
            return None
    flat = thing.reshape(-1)[:: 1 + thing.nbytes // BYTES]
    return thing.shape, thing.dtype.str, hash(flat.tobytes())


def _place_of(iterator: Any) -> Any:
    """Place of an iterator, as far as it says."""
    if isinstance(iterator, types.GeneratorType):
        return None if iterator.gi_frame is None else iterator.gi_frame.f_lasti
    if isinstance(iterator, itertools.cycle):  # whose place only its copy tells, up to Python 3.13
        with warnings.catch_warnings(), suppress(TypeError):
            warnings.simplefilter("ignore", DeprecationWarning)
            iterator = iterator.__reduce__()[1][0]
    is_counter = isinstance(iterator, (itertools.count, itertools.repeat))
    return operator.length_hint(iterator, -1), repr(iterator) if is_counter else None
