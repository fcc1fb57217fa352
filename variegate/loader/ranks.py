"""Ranks: this process among all, and the samples of an epoch that go into each batch of each rank.

An epoch is one order of all samples, identical on every rank. A step takes the next ``world_size * batch_size`` of
them, and each rank every ``world_size``-th of these. The samples trained on after a step are therefore a prefix of the
order. A resumed run with other batches or ranks reads exactly the remaining samples.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed

from variegate.arrays import BoolArray, Int64Array
from variegate.checks import integer


def find_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """(rank, world size): as given, else of torch.distributed, else of the environment (torchrun's), else (0, 1)."""
    if (rank is None) != (world_size is None):
        raise ValueError(f"rank, world_size: got {rank!r}, {world_size!r}; accepted: both, or neither")
    if rank is None or world_size is None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return 0, 1
        rank = _from_environment("RANK")
        world_size = _from_environment("WORLD_SIZE")
    rank = integer("rank", rank)
    world_size = integer("world_size", world_size)
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"rank: got {rank} of world_size {world_size}; accepted: 0 to world_size - 1")
    return rank, world_size


def check_alike(state_fields: str, device: str) -> None:
    """Collective. Raises ValueError where a rank sees another data set: they would wait for ever."""
    is_cuda = device.startswith("cuda")
    if torch.distributed.get_backend() == "nccl" and not is_cuda:
        return  # nothing of the CPU can be exchanged
    found: list[Any] = [None] * torch.distributed.get_world_size()
    with torch.cuda.device(device) if is_cuda else nullcontext():
        torch.distributed.all_gather_object(found, state_fields)
    for rank, other in enumerate(found):
        if other != found[0]:
            raise ValueError(
                f"source: rank {rank} has {other}, rank 0 has {found[0]}; accepted: the same samples on every rank. "
                "Are files missing on a machine, or was a shard unreadable there?"
            )


def processes_here() -> int:
    """Processes of this training run that share this machine's cores (torchrun says so), 1 where that is not known."""
    return max(1, _from_environment("LOCAL_WORLD_SIZE")) if "LOCAL_WORLD_SIZE" in os.environ else 1


def _from_environment(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise ValueError(f"{name} (environment): got {os.environ[name]!r}; accepted: an integer") from None


@dataclass(frozen=True)
class Share:
    """A rank's part. ``length``: samples of the epoch; ``start``: number of finished samples. ``padding_start``: the
    position of the first sample that is repeated, where padding is needed."""

    batch_size: int
    rank: int = 0
    world_size: int = 1
    drop_last: bool = False
    length: int = 0
    start: int = 0
    padding_start: int = 0

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

    def positions(self, step: int) -> tuple[Int64Array, BoolArray]:
        """Positions in the epoch's order and which are padding, int64[n] and bool[n], n alike on all ranks."""
        first = self.start + step * self.taken_at_once
        positions = first + self.rank + self.world_size * np.arange(self._rows(self.length - first), dtype=np.int64)
        padding = positions >= self.length
        repeated = self.padding_start + (positions - self.length) % (self.length - self.padding_start)
        return np.where(padding, repeated, positions), padding

    def _rows(self, left: int) -> int:
        return min(self.batch_size, -(-left // self.world_size))


@dataclass(frozen=True)
class BatchShare:
    """A rank's part of an epoch that has batches of its own: every ``world_size``-th of them.

    ``bounds``: positions at which batches begin, and the end, int64[B + 1]. ``start``: samples that are done, a bound.
    """

    bounds: Int64Array
    rank: int = 0
    world_size: int = 1
    drop_last: bool = False
    start: int = 0

    @property
    def _first(self) -> int:
        """The first batch that is not done."""
        return int(np.searchsorted(self.bounds, self.start))

    @property
    def _count(self) -> int:
        return len(self.bounds) - 1

    def __len__(self) -> int:
        """Steps that are left; the same on every rank."""
        left = self._count - self._first
        return left // self.world_size if self.drop_last else -(-left // self.world_size)

    def done_after(self, step: int) -> int:
        """Samples of the epoch that are done after ``step``."""
        return int(self.bounds[min(self._first + (step + 1) * self.world_size, self._count)])

    def positions(self, step: int) -> tuple[Int64Array, BoolArray]:
        """Positions in the epoch's order and which are padding, int64[n] and bool[n]. A rank for which no batch is left
        repeats one from the beginning of the epoch."""
        batch = self._first + step * self.world_size + self.rank
        first, end = self.bounds[batch % self._count :][:2]
        return np.arange(first, end, dtype=np.int64), np.full(end - first, batch >= self._count)
