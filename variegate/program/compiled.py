"""``@kernel`` and ``@pixel_kernel``: Numba compilation without the GIL, cached on disk, and cached *correctly*.

Numba keeps a compiled function until the file that defines it changes. But a kernel contains the code of the kernels it
calls, which live in other files: after an upgrade it would go on running their old code. So the stamp here covers every
source file of the packages that hold kernels.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock

_ROOT = Path(__file__).resolve().parent.parent

if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would find Numba's lock taken for ever, and LLVM half way. So a fork
    # waits for that thread.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


@cache
def _sources_digest(folder: Path) -> str:
    """Of what a kernel in ``folder`` may contain: the code beside it, and that of the programs."""
    digest = hashlib.sha256()
    for path in sorted({*_ROOT.glob("program/**/*.py"), *folder.glob("*.py")}):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _StampedLocator:
    """A cache locator whose stamp also covers the other files."""

    def __init__(self, locator: Any, folder: Path) -> None:
        self._locator, self._folder = locator, folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._locator, name)

    def get_source_stamp(self) -> tuple[Any, str]:
        return self._locator.get_source_stamp(), _sources_digest(self._folder)


class _StampedImpl(CompileResultCacheImpl):
    _locator: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._locator = _StampedLocator(self._locator, Path(function.__code__.co_filename).resolve().parent)


class _StampedCache(FunctionCache):
    _impl_class = _StampedImpl


def kernel(function: Callable[..., Any] | None = None, *, counted: bool = True, **options: Any) -> Any:
    """Decorate a function to be compiled on first use, or loaded from the cache. ``options``: those of ``numba.njit``.

    ``counted=False`` leaves reference counts of arrays alone: for pixel kernels, which allocate nothing, whose callers
    keep their arrays alive, and of which many a row costs less than the counting.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if not counted:
            # Division by zero gives infinity or NaN, as in C and on a GPU, and no test before every division.
            options.update(_nrt=False, error_model="numpy")
        dispatcher = nb.njit(function, nogil=True, **options)
        # A RuntimeError: nowhere to keep a cache (a read-only zip), so every process compiles.
        with suppress(RuntimeError):
            dispatcher._cache = _StampedCache(function)
        return dispatcher

    return decorate if function is None else decorate(function)


pixel_kernel = partial(kernel, counted=False)
