"""Copies of objects in other processes, and errors for objects that cannot be copied."""

from __future__ import annotations

import io
import pickle
import sys
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

import numpy as np

from variegate.errors import one_line

Self = TypeVar("Self", bound="CopiedByState")


class CopiedByState:
    """A copy, pickled or deep, is made by ``__setstate__`` of ``_portable()``: all that does not belong to this
    process."""

    def _portable(self) -> dict[str, Any]:
        raise NotImplementedError

    def __copy__(self: Self) -> Self:
        again = object.__new__(type(self))
        again.__setstate__(self._portable())  # type: ignore[attr-defined]
        return again

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        return self.__copy__()


class _Nowhere(io.RawIOBase):
    def write(self, data: Any) -> int:
        return len(data)


class _Probe(pickle.Pickler):
    """Takes arrays, tensors and whatever multiprocessing sends in its own way to arrive."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            return int, ()
        if type(thing) in ForkingPickler._extra_reducers or hasattr(thing, "untyped_storage"):  # type: ignore[attr-defined]
            return int, ()
        return NotImplemented


def check_copied(name: str, value: Any, accepted: str) -> None:
    """Raises PicklingError naming the argument, the part that cannot be pickled, and accepted values."""
    try:
        _Probe(_Nowhere(), pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception as error:
        if _is_taken_by_another(value):
            return  # the pickler that asks may be that one
        reason = one_line(error) or type(error).__name__
        kind = type(value).__name__
        raise pickle.PicklingError(f"{name}: got a {kind} that cannot be pickled ({reason}); {accepted}") from error


def _is_taken_by_another(value: Any) -> bool:
    """True if a pickler in use also accepts objects declared in a function or a notebook."""
    for name in ("cloudpickle", "ray.cloudpickle", "joblib.externals.cloudpickle"):
        if name in sys.modules:
            with suppress(Exception):
                sys.modules[name].dumps(value)
                return True
    return False
