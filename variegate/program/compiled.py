"""``@kernel`` and ``@pixel_kernel``: Numba compilation without the GIL, cached on disk (``kernel_cache.py``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
from numba.core import types
from numba.core.types.misc import unliteral

from variegate.compiling.helper import Helper, HelperLink
from variegate.compiling.pipeline import KernelCompiler
from variegate.compiling.team import Greeting
from variegate.program.kernel_cache import (
    KERNELS,
    TURN,
    KernelCache,
    cache_folder,
    common_folder,
    do_without_helpers,
    what_is_made,
)

__all__ = [
    "KERNELS",
    "TURN",
    "cache_folder",
    "common_folder",
    "do_without_helpers",
    "help_another",
    "inner_kernel",
    "kernel",
    "pixel_kernel",
]

_helper: Helper | None = None  # in a process that helps another


def kernel(function: Callable[..., Any] | None = None, *, counted: bool = True, **options: Any) -> Any:
    """Decorate a function to be compiled on first use, or loaded from the cache. ``options``: those of ``numba.njit``.

    ``counted=False`` leaves reference counts of arrays alone: for pixel kernels, which allocate nothing, whose callers
    keep their arrays alive, and of which many a row costs less than the counting.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if not counted:
            # Division by zero gives infinity or NaN, as in C and on a GPU, and no test before every division.
            options.update(_nrt=False, error_model="numpy")
        dispatcher = nb.njit(function, nogil=True, pipeline_class=KernelCompiler, **options)
        dispatcher._cache = KernelCache(function)
        dispatcher.compile = partial(_compile, dispatcher)
        KERNELS.append(dispatcher)
        return dispatcher

    return decorate if function is None else decorate(function)


def _compile(dispatcher: Any, sig: Any) -> Any:
    with TURN:
        if _helper is not None:
            return _helper.compile(dispatcher, sig)
        return type(dispatcher).compile(dispatcher, sig)


pixel_kernel = partial(kernel, counted=False)


def inner_kernel(**options: Any) -> Any:
    """A kernel that kernels alone call, never Python: it is compiled without what a call from Python needs, and once,
    where Numba would compile it anew for every constant and width of an integer. ``forceinline=True`` lets LLVM put its
    code in place of every call: for what takes a whole ``Scratch`` once per row, which costs more than many a row."""

    def decorate(function: Any) -> Any:
        dispatcher = pixel_kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        dispatcher.get_call_template = partial(_call_template, dispatcher)
        return dispatcher

    return decorate


def _call_template(dispatcher: Any, args: Any, kwargs: Any) -> Any:
    args = tuple(_widened(arg) for arg in args)
    call = _helper.call_template(dispatcher, args, kwargs) if _helper is not None else None
    return call or type(dispatcher).get_call_template(dispatcher, args, kwargs)


def _widened(kind: Any) -> Any:
    kind = unliteral(kind)
    return types.int64 if kind in types.signed_domain else kind


def help_another(tasks: Callable[[], dict[str, Callable[[], object]]]) -> None:
    """Be a helper, from now to the end of this process. ``tasks`` imports what they need."""
    global _helper
    link = HelperLink()
    _helper = Helper(link, KERNELS, lambda: TURN.failure)
    TURN.be_helped()
    todo = tasks()
    link.say(Greeting(what_is_made(), todo))
    _helper.serve(todo)
