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


class ListedOrder:
    """``indices``: None for every sample once. One that comes k times is copies 0..k-1, by their place in the list."""

    def __init__(self, indices: Indices | None, length: int, permutation: Permutation | None = None) -> None:
        self.length, self.is_every, self._permutation = length, indices is None, permutation
        self._indices = indices
        self._copies = None if indices is None else _count(indices)

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        indices = positions if self._permutation is None else self._permutation(positions)
        copies = np.zeros(len(indices), np.uint32) if self._copies is None else self._copies[indices]
        return indices if self._indices is None else self._indices[indices], copies

    def permuted(self, permutation: Permutation) -> ListedOrder:
        """The same samples, read in another order."""
        again = object.__new__(ListedOrder)
        again.__dict__.update(self.__dict__, _permutation=permutation)
        return again

    def digest(self) -> str | None:
        return None if self._indices is None else hashlib.sha256(self._indices.tobytes()).hexdigest()[:16]


class SamePicks:
    """One order for all epochs, in a keyed permutation or as it is."""

    is_known = True

    def __init__(self, order: ListedOrder, seed: int, shuffle: bool) -> None:
        self._order, self._seed, self._shuffle = order, seed, shuffle
        self._purpose = OrderPurpose.SAMPLES if order.is_every else OrderPurpose.DRAWS

    def epoch(self, epoch: int) -> EpochOrder:
        if not self._shuffle:
            return self._order
        return self._order.permuted(Permutation(self._order.length, self._seed, epoch, self._purpose))

    def expected_length(self) -> int:
        return self._order.length

    def facts(self) -> dict[str, str]:
        digest = self._order.digest()
        return {} if digest is None else {"sampler": digest}


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
