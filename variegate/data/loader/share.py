"""Which samples of an epoch go into which batch of which rank.

An epoch is one order of all samples, the same on every rank. A step takes the next ``world_size * batch_size`` of them,
and each rank every ``world_size``-th of these. So what has been trained on after a step is a prefix of the order, and a
run that goes on from there with other batches or ranks meets exactly the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """A rank's part. ``length``: samples of the epoch; ``start``: how many of them are done."""

    batch_size: int
    rank: int = 0
    world_size: int = 1
    drop_last: bool = False
    length: int = 0
    start: int = 0

    @property
    def taken_at_once(self) -> int:
        """Samples that all ranks together take in a full step."""
        return self.batch_size * self.world_size

    def __len__(self) -> int:
        """Steps that are left; the same on every rank."""
        left = max(self.length - self.start, 0)
        return left // self.taken_at_once if self.drop_last else -(-left // self.taken_at_once)

    def done_after(self, step: int) -> int:
        """Samples of the epoch that are done after ``step``."""
        return min(self.length, self.start + (step + 1) * self.taken_at_once)

    def positions(self, step: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """(positions in the epoch's order, which of them are padding), int64[n] and bool[n].

        In the last step all ranks get the same number, by which one row of some ranks repeats a sample of another.
        """
        first = self.start + step * self.taken_at_once
        positions = first + self.rank + self.world_size * np.arange(self._rows(self.length - first), dtype=np.int64)
        padding = positions >= self.length
        return positions % self.length, padding

    def _rows(self, left: int) -> int:
        return min(self.batch_size, -(-left // self.world_size))

    def steps_of(self, stream: Iterable[T]) -> Iterator[tuple[list[T], npt.NDArray[np.bool_], int]]:
        """The same for a stream whose length nobody knows: (rows of this rank, padding, samples done) of each step.

        ``stream`` begins with the sample at ``start``.
        """
        left, done = iter(stream), self.start
        while together := list(islice(left, self.taken_at_once)):
            if self.drop_last and len(together) < self.taken_at_once:
                return
            places = self.rank + self.world_size * np.arange(self._rows(len(together)))
            done += len(together)
            yield [together[p % len(together)] for p in places.tolist()], places >= len(together), done
