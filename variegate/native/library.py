"""The compiled library: functions over pixels and bytes, in C++ (``native/``), called through ctypes.

Kernels exist once for each level of x86-64. The best one that this processor has is used; ``VARIEGATE_LEVEL`` limits
it: ``x86-64``, ``x86-64-v2``, ``x86-64-v3``, ``x86-64-v4`` or ``x86-64-v4-vbmi``. All give the same pixels.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from variegate.arrays import AnyArray

LEVELS = {
    "x86-64": "base",
    "x86-64-v2": "v2",
    "x86-64-v3": "v3",
    "x86-64-v4": "v4",
    "x86-64-v4-vbmi": "vbmi",
}
"""Names that ``VARIEGATE_LEVEL`` takes, from the oldest level to the best, and how symbols of the library end."""

# Developers test a library that was compiled with sanitizers by naming its file.
_PATH = Path(os.environ.get("VARIEGATE_LIBRARY") or Path(__file__).parent.parent / "_native.so")
_OUT_OF_MEMORY = 1


@cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(_PATH))
    except OSError as error:
        raise ImportError(
            f"{_PATH}: cannot be loaded ({error}); accepted: an installed wheel, or a checkout in which "
            "`python native/build.py` has compiled the library"
        ) from None


@cache
def level() -> str:
    """The level of x86-64 that kernels run at; of other processors, the first name stands for the only one."""
    names = list(LEVELS)
    host = names.index(host_level())
    wanted = os.environ.get("VARIEGATE_LEVEL", names[host])
    if wanted not in LEVELS:
        raise ImportError(f"VARIEGATE_LEVEL: got {wanted!r}; accepted: {', '.join(names)}")
    allowed = names[: min(host, names.index(wanted)) + 1]
    compiled = compiled_levels()
    if usable := [name for name in compiled if name in allowed]:
        return usable[-1]
    accepted = f"{', '.join(compiled)}, or all after `python native/build.py --levels all`"
    raise ImportError(f"VARIEGATE_LEVEL: got {wanted!r}; accepted: {accepted}")


def host_level() -> str:
    """The best level that this processor has."""
    return list(LEVELS)[_library().vg_host_level()]


def compiled_levels() -> list[str]:
    """Levels of the library: all of them in a wheel, and in a checkout the best level of the developer's processor."""
    return [name for name, suffix in LEVELS.items() if hasattr(_library(), f"vg_run_{suffix}")]


def entry(name: str, *arguments: Any, result: Any = ctypes.c_int64) -> Callable[..., Any]:
    """A function of the library by its name, of arguments of these ctypes (addresses: ``c_void_p``).

    Kernels are found by their name without the level. Calls release the GIL. Where the library is older than the
    sources, or missing, the first call raises ImportError: ``native/constants.py`` needs the modules before.
    """
    try:
        function = _find(name)
    except (ImportError, AttributeError) as error:
        return _missing(name, error)
    function.argtypes = arguments
    function.restype = result
    found: Callable[..., Any] = function
    return found


def _find(name: str) -> Any:
    """The function without a level, or that of the best level up to the current one: some have few levels."""
    suffixes = list(LEVELS.values())
    allowed = suffixes[: suffixes.index(LEVELS[level()]) + 1]
    for symbol in (name, *(f"{name}_{suffix}" for suffix in reversed(allowed))):
        if hasattr(_library(), symbol):
            return getattr(_library(), symbol)
    raise AttributeError(f"{_PATH} has no such function")


def _missing(name: str, error: Exception) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        raise ImportError(f"{name}: {error}; accepted: a library of these sources: python native/build.py") from error

    return call


# An array object begins with its head, as every object does, and then has the address of its elements; NumPy promises
# that to all compiled extensions. Asked for by ``array.ctypes.data`` it takes five times longer.
_HEAD = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def data_ptr(array: AnyArray) -> int:
    """The address of an array's first element."""
    return _word_at(id(array) + _HEAD).value


def as_c_contiguous(array: AnyArray) -> AnyArray:
    """The array, or a copy of one that is read-only or not contiguous."""
    return array if array.flags.carray else np.array(array, order="C")


def check_status(status: int) -> None:
    """Raises MemoryError where a call of the library found no memory."""
    if status == _OUT_OF_MEMORY:
        raise MemoryError("the native library found no memory for its scratch")
