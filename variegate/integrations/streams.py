"""Which random numbers a sample gets inside a torch ``DataLoader``, where objects are copied into worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import get_worker_info

from variegate.checks import integer
from variegate.program import rng

_MASK64 = (1 << 64) - 1


class SharedEpoch:
    """The epoch, in memory that an object and its copies in worker processes look at together.

    Workers that live for several epochs (``persistent_workers=True``) hold the copy they were started with, and
    nothing that is set in the main process later would reach them otherwise. Copies made by torch's multiprocessing
    share the memory, whether workers are forked or spawned; a plain ``pickle`` gives a separate one.
    """

    def __init__(self, epoch: int = 0) -> None:
        self._cell = torch.zeros(1, dtype=torch.int64).share_memory_()
        self.set(epoch)

    def get(self) -> int:
        return int(self._cell.item())

    def set(self, epoch: int) -> None:
        """Raises ValueError for anything but an integer from 0 to 2**63 - 1."""
        self._cell.fill_(integer("epoch", epoch, 0, 2**63 - 1))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._cell = state["_cell"]
        if not self._cell.is_shared():  # copied by value
            self._cell = self._cell.clone().share_memory_()


class RunningIds:
    """Ids for samples that have none: a count, which in a worker begins at a place of that worker's own.

    The place is a 64-bit hash of the worker's seed. The DataLoader makes that of a number drawn from torch's generator
    whenever it starts workers, and of the worker's place: so workers do not repeat one another, nor what they did in an
    earlier epoch, and ``torch.manual_seed`` makes a run repeat. Persistent workers keep their seed and count on.

    The seed goes into the ids and not into the epoch, whose value schedules and ``Cond(by="epoch")`` read.
    """

    def __init__(self) -> None:
        # One count per worker's seed (None: no worker), should several live in one process.
        self._counts: dict[int | None, Iterator[int]] = {}

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        """The next ``number`` ids."""
        worker = get_worker_info()
        seed = None if worker is None else int(worker.seed)
        count = self._counts.get(seed)
        if count is None:
            count = self._counts.setdefault(seed, itertools.count(0 if seed is None else _place(seed)))
        # Taken one by one: of several threads none gets what another got.
        return np.array([next(count) & _MASK64 for _ in range(number)], np.uint64)

    def __reduce__(self) -> tuple[Any, ...]:
        return RunningIds, ()  # a copy is for a worker, and begins anew there


def _place(seed: int) -> int:
    low, high = rng.stream_key(seed & _MASK64, 0)
    return int(low) | int(high) << 32
