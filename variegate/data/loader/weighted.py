"""Samples drawn in proportion to weights, the same by any number of ranks, and with no list of what was drawn.

Samples of one class (or of one weight) form a group. How many of an epoch's draws fall to each group is decided by
systematic sampling of the groups in a random order (Madow 1949, doi:10.1214/aoms/1177729988; random orders: Hartley and
Rao 1962, doi:10.1214/aoms/1177704564): their expected numbers are laid end to end, and every whole number from a random
start on is a draw. Draw j of a group of n goes to place ``j % n`` of a random permutation of its samples, as copy
``j // n``. So a group gets its expected number of draws rounded up or down, and so does every sample of it, without
bias: the mean over epochs is exact. Independent draws would have the same mean, but leave out a third of the samples in
an epoch even where all weights are equal.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from variegate.data.loader.picks import Copies, EpochOrder, Indices
from variegate.data.shuffle import OrderPurpose, Permutation, permute_within, random_words


class Groups:
    """Which group each sample is in, int[N] from 0 on, and how likely each group is, float64[G]: 0 or more, any sum."""

    def __init__(self, group_of: npt.NDArray[np.int64], mass: npt.NDArray[np.float64]) -> None:
        self.mass = mass
        self.members = np.argsort(group_of, kind="stable")
        self.sizes = np.bincount(group_of, minlength=len(mass)).astype(np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def digest(self) -> str:
        digest = hashlib.sha256(self.members.tobytes())
        digest.update(self.sizes.tobytes())
        digest.update(self.mass.tobytes())
        return digest.hexdigest()[:16]


class _Drawn:
    """``ends``: of the draws 0..length-1, where those of each group end, in the order of ``groups``."""

    is_every = False

    def __init__(self, groups: Groups, length: int, seed: int, epoch: int) -> None:
        self.length, self._groups = length, groups
        self._seed, self._epoch = seed, epoch
        number = len(groups.mass)
        self._order = Permutation(number, seed, epoch, OrderPurpose.GROUPS)(np.arange(number))
        reached = np.cumsum(groups.mass[self._order])
        # Multiplied before it is divided: with whole numbers for weights both are exact.
        expected = reached * length / reached[-1]
        word = int(random_words(0, 1, seed, epoch, OrderPurpose.START)[0, 0])
        self._ends = np.ceil(expected - (word + 0.5) * 2.0**-32).astype(np.int64).clip(0, length)
        self._shuffled = Permutation(length, seed, epoch, OrderPurpose.DRAWS)

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        draws = self._shuffled(positions)
        places = np.searchsorted(self._ends, draws, "right")
        begins = np.where(places > 0, self._ends[places - 1], 0)
        groups = self._order[places]
        sizes = self._groups.sizes[groups]
        rounds, within = np.divmod(draws - begins, sizes)
        members = permute_within(within, sizes, groups, self._seed, self._epoch)
        return self._groups.members[self._groups.starts[groups] + members], rounds.astype(np.uint32)


class WeightedSamples:
    """``length`` draws in an epoch."""

    is_known = True

    def __init__(self, groups: Groups, length: int, seed: int) -> None:
        self._groups, self._length, self._seed = groups, length, seed

    def epoch(self, epoch: int) -> EpochOrder:
        return _Drawn(self._groups, self._length, self._seed, epoch)

    def expected_length(self) -> int:
        return self._length

    def facts(self) -> dict[str, str]:
        return {"weights": f"{self._groups.digest()}-{self._length}"}
