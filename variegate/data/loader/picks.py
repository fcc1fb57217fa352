"""What stands where in the order of an epoch: a sample, and which of its copies where it comes more than once."""

from __future__ import annotations

import hashlib
from typing import Protocol

import numpy as np
import numpy.typing as npt

from variegate.data.shuffle import OrderPurpose, Permutation

Indices = npt.NDArray[np.int64]
Copies = npt.NDArray[np.uint32]


class EpochOrder(Protocol):
    """The order of one epoch. ``is_every``: it has every sample of the source once."""

    length: int
    is_every: bool

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        """Positions 0..length-1 -> (index of the sample, number of its copy), int64[N] and uint32[N]."""
        ...


class Picks(Protocol):
    """The orders of all epochs.

    ``is_known``: an epoch's order can be asked for before it begins, and again, and is always the same.
    """

    is_known: bool

    def epoch(self, epoch: int) -> EpochOrder: ...

    def expected_length(self) -> int | None:
        """Of an epoch; None where that is known by its order alone."""
        ...

    def facts(self) -> dict[str, str]:
        """What tells these orders from others, fit for JSON."""
        ...


class _Whole:
    """Every sample once."""

    is_every = True

    def __init__(self, length: int, permutation: Permutation | None) -> None:
        self.length, self._permutation = length, permutation

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        indices = positions if self._permutation is None else self._permutation(positions)
        return indices, np.zeros(len(positions), np.uint32)


class EverySample:
    """Each of ``length`` samples once, in a keyed permutation or in the source's order."""

    is_known = True

    def __init__(self, length: int, seed: int, shuffle: bool) -> None:
        self._length, self._seed, self._shuffle = length, seed, shuffle

    def epoch(self, epoch: int) -> EpochOrder:
        return _Whole(self._length, Permutation(self._length, self._seed, epoch) if self._shuffle else None)

    def expected_length(self) -> int:
        return self._length

    def facts(self) -> dict[str, str]:
        return {}


class Listed:
    """Samples by a list of their indices. Those that come k times are copies 0..k-1, by their place in the list."""

    is_every = False

    def __init__(self, indices: Indices, permutation: Permutation | None = None) -> None:
        self.length, self._indices, self._permutation = len(indices), indices, permutation
        self._copies = _count(indices)

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        places = positions if self._permutation is None else self._permutation(positions)
        copies = np.zeros(len(places), np.uint32) if self._copies is None else self._copies[places]
        return self._indices[places], copies

    def permuted(self, permutation: Permutation) -> Listed:
        """The same list, read in another order."""
        again = object.__new__(Listed)
        again.__dict__.update(self.__dict__, _permutation=permutation)
        return again

    def digest(self) -> str:
        return hashlib.sha256(self._indices.tobytes()).hexdigest()[:16]


class ListedSamples:
    """One list for all epochs, in a keyed permutation or as it is."""

    is_known = True

    def __init__(self, indices: Indices, seed: int, shuffle: bool) -> None:
        self._list, self._seed, self._shuffle = Listed(indices), seed, shuffle

    def epoch(self, epoch: int) -> EpochOrder:
        if not self._shuffle:
            return self._list
        return self._list.permuted(Permutation(self._list.length, self._seed, epoch, OrderPurpose.DRAWS))

    def expected_length(self) -> int:
        return self._list.length

    def facts(self) -> dict[str, str]:
        return {"sampler": self._list.digest()}


def _count(indices: Indices) -> Copies | None:
    """How often each index came before in the list; None where none comes twice."""
    order = np.argsort(indices, kind="stable")
    in_order = indices[order]
    is_first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    if is_first.all():
        return None
    places = np.arange(len(indices))
    begins = np.maximum.accumulate(np.where(is_first, places, 0))
    copies = np.empty(len(indices), np.uint32)
    copies[order] = places - begins
    return copies
