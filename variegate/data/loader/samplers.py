"""What ``sampler`` may be: indices, a torch ``Sampler`` or its like, or a function of the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from torch.utils.data import BatchSampler
from torch.utils.data.distributed import DistributedSampler

from variegate.checks import integer
from variegate.data.loader.picks import Indices, Listed

_ACCEPTED = (
    "a sequence or array of indices, an object with __iter__ and __len__ such as a torch Sampler, a function epoch -> "
    "indices, or None"
)


def is_listed(sampler: Any) -> bool:
    """Indices that are there already, to be read in any order; else each epoch is asked for its own.

    Raises TypeError or ValueError for what is neither.
    """
    kind = type(sampler).__name__
    if isinstance(sampler, DistributedSampler) or (hasattr(sampler, "num_replicas") and hasattr(sampler, "rank")):
        raise ValueError(
            f"sampler: got {kind}, which takes one rank's share; the Loader does that itself (rank, world_size). "
            "Accepted: the order of all samples, the same on every rank"
        )
    if isinstance(sampler, BatchSampler):
        raise ValueError(f"sampler: got {kind}, which yields batches; accepted: one index after another (batch_size)")
    is_other = isinstance(sampler, (str, bytes, Mapping, set, frozenset))
    if not is_other and (isinstance(sampler, Sequence) or hasattr(sampler, "__array__")):
        return True
    has_order = hasattr(sampler, "__iter__") and hasattr(sampler, "__len__")
    if is_other or not (has_order or callable(sampler)):
        lacks = "" if has_order or not hasattr(sampler, "__iter__") else " (its length is not known)"
        raise TypeError(f"sampler: got {kind}{lacks}; accepted: {_ACCEPTED}")
    return False


class AskedEachEpoch:
    """The order that a sampler, or a function of the epoch, gives when an epoch begins; perhaps never again."""

    is_known = False

    def __init__(self, sampler: Any, samples: int) -> None:
        self._sampler, self._samples = sampler, samples
        self._is_function = not hasattr(sampler, "__iter__")

    def epoch(self, epoch: int) -> Listed:
        """Raises ValueError or TypeError naming the first index that is none."""
        if self._is_function:
            return Listed(check_indices(f"sampler({epoch})", self._sampler(epoch), self._samples))
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)
        return Listed(check_indices("sampler", self._sampler, self._samples))

    def expected_length(self) -> int | None:
        return None if self._is_function else len(self._sampler)

    def facts(self) -> dict[str, str]:
        return {"sampler": "asked in each epoch"}


def check_indices(name: str, given: Any, samples: int) -> Indices:
    """int64[N], N > 0, each from 0 to ``samples`` - 1. Raises TypeError or ValueError naming the first that is not."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: gave {type(given).__name__}; accepted: indices")
    values = np.asarray(given) if hasattr(given, "__array__") else list(given)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # of different kinds, of which some are no numbers
        array = np.empty(len(values), object)
    if array.ndim != 1:
        raise ValueError(f"{name}: got shape {array.shape}; accepted: one index after another, not batches of them")
    if not len(array):
        raise ValueError(f"{name}: gave no index; accepted: at least one")
    if array.dtype.kind == "b":
        raise TypeError(f"{name}: got True and False; accepted: indices, such as np.flatnonzero(mask)")
    if array.dtype.kind not in "iu":
        array = _one_by_one(name, values.tolist() if isinstance(values, np.ndarray) else values, samples)
    outside = (array < 0) | (array >= samples)
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(f"{name}[{first}]: got {array[first]}; accepted: integers from 0 to {samples - 1}")
    return np.array(array, np.int64)


def _one_by_one(name: str, values: Iterable[Any], samples: int) -> Indices:
    """Integers of other kinds, such as tensors of one number."""
    indices = []
    for place, value in enumerate(values):
        accepted = f"integers from 0 to {samples - 1}"
        indices.append(integer(f"{name}[{place}]", value, 0, samples - 1, accepted=accepted))
    return np.array(indices, np.int64)
