"""``@kernel`` and ``@pixel_kernel``: Numba compilation without the GIL, cached on disk *correctly*, each by itself.

Numba keeps a compiled function until the file that defines it changes. But a kernel contains the code of the kernels it
calls, which live in other files: after an upgrade it would go on running their old code. So the stamp here covers every
source file of the packages that hold kernels, and what decides for which processors there are branches.

Code that was installed with the package ``variegate_kernels`` comes first (``variegate/compiling/stored.py``). One
process compiles at a time, and the others load what it has compiled (``variegate/compiling/turn.py``).
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba as nb
from numba.core import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator, UserProvidedCacheLocator
from numba.core.types.misc import unliteral

from variegate.compiling.stored import CheckedFile, Shipped, shipped
from variegate.compiling.turn import Turn
from variegate.io.lock import FileLock

_ROOT = Path(__file__).resolve().parent.parent

KERNELS: list[Any] = []
"""Every kernel of the modules imported so far, as Numba's dispatchers."""


@cache
def _sources_digest(folder: Path) -> str:
    """Of what a kernel in ``folder`` may contain: the code beside it and above it, and that of the programs."""
    digest = hashlib.sha256()
    levels = _ROOT / "compiling" / "levels.py"
    for path in sorted({*_ROOT.glob("program/**/*.py"), *folder.glob("*.py"), *folder.parent.glob("*.py"), levels}):
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


class _NowhereLocator(InTreeCacheLocator):
    """Locator where no folder can be written: what lies beside the source may still be read."""

    def ensure_cache_path(self) -> None:
        return


class _StampedImpl(CompileResultCacheImpl):
    _locator_classes = (*CompileResultCacheImpl._locator_classes, _NowhereLocator)
    _locator: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.can_write = not isinstance(self._locator, _NowhereLocator)
        self._locator = _StampedLocator(self._locator, Path(function.__code__.co_filename).resolve().parent)


class KernelCache(FunctionCache):
    """Of one kernel. Nothing that is wrong with a disk ends a call: at worst, it compiles."""

    _impl_class = _StampedImpl
    _impl: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.can_write: bool = self._impl.can_write
        file = Path(function.__code__.co_filename).resolve()
        self.name = f"{function.__module__.removeprefix('variegate.')}.{function.__name__}"
        self.digest = _sources_digest(file.parent)
        self.is_ours = file.is_relative_to(_ROOT)
        stamp = self._impl.locator.get_source_stamp()
        folders = [self._cache_path, *_refused(function, self._cache_path)]
        self._files = [CheckedFile(folder, self._impl.filename_base, stamp) for folder in folders]
        self._cache_file = self._files[0]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._look(sig, target_context)
        if found is None and TURN.take():
            found = self._look(sig, target_context)
        if found is None:
            TURN.compiling()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self.can_write:
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            TURN.not_kept(error)

    def found_in(self, target_context: Any) -> str | None:
        """The folder that has code for this processor, if any. Asks the index alone, in a fraction of a millisecond."""
        if (installed := self._installed()) is not None:
            return installed.folder
        magic = target_context.codegen().magic_tuple()
        return next((file.folder for file in self._files if magic in file.processors()), None)

    def num_bytes(self) -> int:
        """Of this kernel's files, those of other processors and older sources included."""
        if (installed := self._installed()) is not None:
            return installed.num_bytes(self.name)
        return sum(file.num_bytes() for file in self._files)

    def _installed(self) -> Shipped | None:
        code = shipped() if self.is_ours else None
        return code if code is not None and code.has(self.name, self.digest) else None

    def _look(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()  # as Numba does before it loads
        # Callers are compiled with the bitcode of what they call, which is not installed.
        if not TURN.is_nested and (installed := self._installed()) is not None:
            found = installed.load(self.name, self.digest, sig, target_context)
            if found is not None:
                return found
        key = self._index_key(sig, target_context.codegen())
        for file in self._files if self._enabled else ():
            # Code of a sound file that cannot be loaded all the same is as good as none.
            with suppress(Exception):
                if (data := file.load(key)) is not None:
                    return self._impl.rebuild(target_context, data)
        return None


def _refused(function: Callable[..., Any], chosen: str) -> list[str]:
    """Folders that Numba prefers to ``chosen``, but cannot write; they may hold code of a container's image."""
    file = inspect.getfile(function)
    locators = (UserProvidedCacheLocator, InTreeCacheLocator) if config.CACHE_DIR else (InTreeCacheLocator,)
    preferred = [locator(function, file).get_cache_path() for locator in locators]
    return preferred[: preferred.index(chosen)] if chosen in preferred else preferred


def cache_folder() -> str | None:
    """The folder that holds all folders in which kernels are kept; None where they can be kept nowhere."""
    return common_folder({kernel._cache.cache_path for kernel in KERNELS if kernel._cache.can_write})


def common_folder(folders: set[str]) -> str | None:
    """The folder that holds them all."""
    try:
        return os.path.commonpath(folders) if folders else None
    except ValueError:  # on several drives
        return min(folders)


def _lock() -> FileLock | None:
    impl = _StampedImpl(_lock)
    folder = impl.locator.get_cache_path()
    return FileLock(os.path.join(folder, "variegate-compiling.lock")) if impl.can_write else None


TURN = Turn(_lock(), cache_folder)
TURN.survive_forks()


def kernel(function: Callable[..., Any] | None = None, *, counted: bool = True, **options: Any) -> Any:
    """Decorate a function to be compiled on first use, or loaded from the cache. ``options``: those of ``numba.njit``.
    ``counted=False`` leaves reference counts alone: for kernels that allocate nothing and are called many times a row.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if not counted:
            # Division by zero gives infinity or NaN, as in C and on a GPU, and no test before every division.
            options.update(_nrt=False, error_model="numpy")
        dispatcher = nb.njit(function, nogil=True, **options)
        dispatcher._cache = KernelCache(function)
        dispatcher.compile = partial(_compile, dispatcher)
        KERNELS.append(dispatcher)
        return dispatcher

    return decorate if function is None else decorate(function)


def _compile(dispatcher: Any, sig: Any) -> Any:
    with TURN:
        return type(dispatcher).compile(dispatcher, sig)


pixel_kernel = partial(kernel, counted=False)


def inner_kernel(**options: Any) -> Any:
    """A kernel that kernels alone call: compiled once, without wrappers for Python, for integers of any width.
    ``forceinline=True`` has LLVM inline it: for what takes a whole ``Scratch`` once per row."""

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
