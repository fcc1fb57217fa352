"""Graph of a traced function: definitions of the values that it draws and computes, each written down once."""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from variegate.ops.traced.operators import OPERATORS
from variegate.ops.traced.values import Definition, is_name

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NOT_USERS = (_PACKAGE, f"{os.sep}numpy{os.sep}")


_refusals: ContextVar[ValueError | None] = ContextVar("refusals", default=None)


class PipelineError(ValueError):
    """Raised for a function that cannot be traced, or for code that only a traced function may run."""


def place() -> str:
    """``file:line`` of the innermost code that is neither Variegate's nor NumPy's, and that line."""
    frame = users_frame()
    return shown_place(frame.f_code.co_filename, frame.f_lineno)


def users_frame() -> types.FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and any(part in frame.f_code.co_filename for part in _NOT_USERS):
        frame = frame.f_back
    return frame


def shown_place(file: str, line: int) -> str:
    code = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": `{code}`" if code else "")


def refuse(what: str, accepted: str = "", where: str | None = None) -> NoReturn:
    """Raises PipelineError: ``what`` cannot be, at the user's line, and what can."""
    error = PipelineError(f"{where or place()}: {what}" + (f"; accepted: {accepted}" if accepted else ""))
    _refusals.set(_refusals.get() or error)
    raise error


@contextmanager
def none_swallowed() -> Iterator[None]:
    """A refusal within stands, also if a ``try`` of the traced function has caught it."""
    token = _refusals.set(None)
    try:
        yield
        error = _refusals.get()
        if error is not None:
            raise error
    finally:
        _refusals.reset(token)


# Of values, and of steps of images: a loop whose end is drawn has none while it is traced.
LARGEST = 10_000
_NAMES = {
    **{"+": "sum", "-": "difference", "*": "product", "/": "quotient", "//": "quotient", "%": "rest", "**": "power"},
    **{"<": "below", "<=": "most", ">": "above", ">=": "least", "==": "equal", "!=": "different"},
}

_current: ContextVar[Graph | None] = ContextVar("graph", default=None)


class Graph:
    """Definitions by name. The same operator of the same operands is one value; every draw is a value of its own."""

    def __init__(self) -> None:
        self.definitions: dict[str, Definition] = {}
        self.steps = 0
        # Conditions that are drawn or given, and decided while the code within is traced.
        self.branches = 0
        # Sizes of images that somebody asked for, and where.
        self.measured: dict[str, str] = {}
        # Texts that values were shown by.
        self.texts: set[str] = set()
        self._known: dict[Any, str] = {}
        self._counts: dict[str, int] = {}

    def define(self, what: str, *operands: Any) -> str:
        """The name of ``what`` of ``operands``, which are names or plain values."""
        draws = what in OPERATORS and OPERATORS[what].draws
        key = (what, *((type(operand), operand) for operand in operands))
        if not draws and key in self._known:
            return self._known[key]
        if len(self.definitions) >= LARGEST:
            refuse(f"more than {LARGEST:,} values", "loops whose end is a constant")
        name = f"${operands[0]}" if what == "given" else self.new_name(_NAMES.get(what, what))
        self.definitions[name] = (what, *operands)
        if not draws:
            self._known[key] = name
        return name

    def new_name(self, stem: str) -> str:
        self._counts[stem] = self._counts.get(stem, 0) + 1
        return f"${stem}{self._counts[stem]}"

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > LARGEST:
            refuse(f"more than {LARGEST:,} operations", "loops whose end is a constant")

    @contextmanager
    def branch(self) -> Iterator[None]:
        self.branches += 1
        try:
            yield
        finally:
            self.branches -= 1

    def needed(self, names: set[str]) -> dict[str, Definition]:
        """The definitions that ``names`` depend on, in their order."""
        waiting, found = list(names), set()
        while waiting:
            name = waiting.pop()
            if name in self.definitions and name not in found:
                found.add(name)
                waiting += [o for o in self.definitions[name][1:] if is_name(o)]
        return {name: definition for name, definition in self.definitions.items() if name in found}

    def sizes_of(self, names: set[str]) -> set[str]:
        """The measured sizes that ``names`` depend on."""
        operands = {o for _, *rest in self.needed(names).values() for o in rest if is_name(o)} | names
        return {o.rpartition(".")[0] for o in operands if "." in o}


@contextmanager
def tracing(graph: Graph) -> Iterator[Graph]:
    token = _current.set(graph)
    try:
        yield graph
    finally:
        _current.reset(token)


def current() -> Graph | None:
    return _current.get()


def graph_for(what: str) -> Graph:
    """Raises PipelineError where no function is traced."""
    graph = _current.get()
    if graph is None:
        refuse(f"{what} outside of a pipeline", "it in a function under @vg.pipeline, while that is traced")
    return graph
