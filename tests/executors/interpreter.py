"""Triton's interpreter, without the work that it does over again at every call of a function by a kernel.

Where Triton is missing, whatever imports this module, or ``poison.py``, is skipped: a file of tests, or the test that
imports it while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

triton = pytest.importorskip("triton", reason="needs Triton")
tl = pytest.importorskip("triton.language")
interpreter = pytest.importorskip("triton.runtime.interpreter")

_make_interpretable = interpreter._patch_lang
_launch = interpreter.GridExecutor.__call__
_launching = threading.Lock()


def be_quick() -> None:
    """Let a launch make Triton's language interpretable, and not each of the functions that its kernel calls too: for
    that, Triton looks at every name of the language, for each ``red(pixel)`` of a tile.

    And let integers not be tested for overflows, by several operations more for each: without ``options.debug``, nobody
    is told what the tests find.
    """
    interpreter._patch_lang = _make_interpretable_once
    interpreter.GridExecutor.__call__ = _launch_alone
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)


def _launch_alone(self: Any, *args: Any, **kwargs: Any) -> Any:
    # A launch makes the language interpretable and plain again under the feet of other threads.
    with _launching:
        return _launch(self, *args, **kwargs)


def _make_interpretable_once(function: Callable[..., Any]) -> Any:
    if all(not tl.core.is_builtin(language.load) for language in _languages_of(function)):
        return interpreter._LangPatchScope()
    return _make_interpretable(function)


@cache
def _languages_of(function: Callable[..., Any]) -> list[Any]:
    """The modules of Triton's language that a function can see: those that Triton looks for."""
    return [module for module in (tl, tl.core) if any(value is module for value in function.__globals__.values())]
