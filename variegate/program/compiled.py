"""``@kernel`` and ``@pixel_kernel``: functions that Numba compiles, without the GIL, and caches on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
from numba.core import types
from numba.core.types.misc import unliteral


def kernel(function: Callable[..., Any] | None = None, *, counted: bool = True, **options: Any) -> Any:
    """Decorate a function to be compiled on first use, or loaded from the cache. ``options``: those of ``numba.njit``.
    ``counted=False`` leaves reference counts alone: for kernels that allocate nothing and are called many times a row.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if not counted:
            # Division by zero gives infinity or NaN, as in C and on a GPU, and no test before every division.
            options.update(_nrt=False, error_model="numpy")
        return nb.njit(function, nogil=True, cache=True, **options)

    return decorate if function is None else decorate(function)


pixel_kernel = partial(kernel, counted=False)


def inner_kernel(**options: Any) -> Any:
    """A kernel that kernels alone call: compiled once, without wrappers for Python, for integers of any width."""

    def decorate(function: Any) -> Any:
        dispatcher = pixel_kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        dispatcher.get_call_template = partial(_call_template, dispatcher)
        return dispatcher

    return decorate


def _call_template(dispatcher: Any, args: Any, kwargs: Any) -> Any:
    args = tuple(_widened(arg) for arg in args)
    return type(dispatcher).get_call_template(dispatcher, args, kwargs)


def _widened(kind: Any) -> Any:
    kind = unliteral(kind)
    return types.int64 if kind in types.signed_domain else kind
