"""What is said of objects that cannot be copied to another process, before a pickler says it in its own words."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

import numpy as np

C = TypeVar("C", bound="CopiedAnew")


class _Nowhere(io.RawIOBase):
    def write(self, data: Any) -> int:
        return len(data)


class _Probe(pickle.Pickler):
    """Arrays, tensors and whatever multiprocessing sends in its own way are taken to arrive: they may be large, or may
    only be sent once."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            return int, ()
        if type(thing) in ForkingPickler._extra_reducers or hasattr(thing, "untyped_storage"):  # type: ignore[attr-defined]
            return int, ()
        return NotImplemented


def check_copied(name: str, value: Any, accepted: str) -> None:
    """Raises PicklingError naming the argument, what of it cannot be pickled, and what is accepted."""
    try:
        _Probe(_Nowhere(), pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception as error:
        if any(_can(dumps, value) for dumps in _others()):
            return  # the pickler that asks may be that one
        reason = " ".join(str(error).split()) or type(error).__name__
        kind = type(value).__name__
        raise pickle.PicklingError(f"{name}: got a {kind} that cannot be pickled ({reason}); {accepted}") from error


def _others() -> list[Callable[[Any], bytes]]:
    """Picklers that also take what was declared in a function or a notebook, where they are in use."""
    modules = (sys.modules.get(name) for name in ("cloudpickle", "ray.cloudpickle", "joblib.externals.cloudpickle"))
    return [module.dumps for module in modules if module is not None]


def _can(dumps: Callable[[Any], bytes], value: Any) -> bool:
    with suppress(Exception):
        dumps(value)
        return True
    return False


class CopiedAnew:
    """Copied as what it was made of (``_portable``), of which ``__setstate__`` makes it anew."""

    def _portable(self) -> dict[str, Any]:
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise NotImplementedError

    def __copy__(self: C) -> C:
        again = object.__new__(type(self))
        again.__setstate__(self._portable())
        return again

    def __deepcopy__(self: C, memo: dict[int, Any]) -> C:
        return self.__copy__()  # what it is made of does not change by its use
