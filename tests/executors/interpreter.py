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
core = pytest.importorskip("triton.language.core")
interpreter = pytest.importorskip("triton.runtime.interpreter")

_make_interpretable = interpreter._patch_lang
_launch = interpreter.GridExecutor.__call__
_numpy_type = interpreter._get_np_dtype
_block_type, _tensor = core.block_type.__init__, core.tensor.__init__
_launching = threading.Lock()


def be_quick() -> None:
    """Let a launch make Triton's language interpretable, and not each of the functions that its kernel calls too: for
    that, Triton looks at every name of the language, for each ``red(pixel)`` of a tile.

    Types of blocks and of tensors are made once each, and not with every value: that is half of the time.

    And let integers not be tested for overflows, by several operations more for each: without ``options.debug``, nobody
    is told what the tests find.
    """
    interpreter._patch_lang = _make_interpretable_once
    interpreter.GridExecutor.__call__ = _launch_alone
    interpreter._get_np_dtype = _numpy_type_once
    core.block_type.__init__ = _block_type_once
    core.tensor.__init__ = _tensor_of_known_type
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)


def _launch_alone(self: Any, *args: Any, **kwargs: Any) -> Any:
    # A launch makes the language interpretable and plain again under the feet of other threads.
    with _launching:
        return _launch(self, *args, **kwargs)


_numpy_types: dict[str, Any] = {}
_block_types: dict[tuple[Any, ...], dict[str, Any]] = {}


def _numpy_type_once(of: Any) -> Any:
    name = of.scalar.name
    if name not in _numpy_types:
        _numpy_types[name] = _numpy_type(of)
    return _numpy_types[name]


def _block_type_once(self: Any, element_ty: Any, shape: Any) -> None:
    key = (element_ty.name, *(side.value if isinstance(side, tl.constexpr) else side for side in shape))
    if key in _block_types:
        self.__dict__ = _block_types[key]
    else:
        _block_type(self, element_ty, shape)
        _block_types[key] = self.__dict__


def _tensor_of_known_type(self: Any, handle: Any, type: Any) -> None:
    known = type.__dict__.get("of_tensors")
    if known is None:
        _tensor(self, handle, type)
        type.__dict__["of_tensors"] = {name: vars(self)[name] for name in ("shape", "numel", "type", "dtype")}
    else:
        self.__dict__.update(known, handle=handle)


def _make_interpretable_once(function: Callable[..., Any]) -> Any:
    if all(not tl.core.is_builtin(language.load) for language in _languages_of(function)):
        return interpreter._LangPatchScope()
    return _make_interpretable(function)


@cache
def _languages_of(function: Callable[..., Any]) -> list[Any]:
    """The modules of Triton's language that a function can see: those that Triton looks for."""
    return [module for module in (tl, tl.core) if any(value is module for value in function.__globals__.values())]
