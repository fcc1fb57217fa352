"""The processes of a training: where they meet, what they tell each other, and what is said when one is missing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from variegate.arrays import Int32Array
from variegate.errors import one_line
from variegate.executors.runners.devices import resolve

# Ranks wait this long for each other.
TIMEOUT_SECONDS = 600.0
# Words in messages of torch.distributed.
_DISTRIBUTED = ("gloo", "NCCL", "Connection")
# Where in torch's C++ a message comes from: "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] ".
_SOURCE = re.compile(r"\[[^\]\s]*\.(cc|cpp|h|hpp):\d+\]\s*")


class RanksError(RuntimeError):
    """Ranks that do not find each other, or one that is gone."""


@dataclass(frozen=True)
class Ranks:
    """This process's rank. ``messages``, ``saving``: groups over CPUs; checkpoints are agreed on while steps go on."""

    rank: int = 0
    ranks: int = 1
    device: str = "cpu"
    messages: Any = None
    saving: Any = None

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum_and_max(self, sums: list[float], most: list[float]) -> tuple[list[float], list[float]]:
        """Over all ranks; every rank calls it."""
        if self.ranks == 1:
            return sums, most
        added = torch.tensor(sums, dtype=torch.float64)
        highest = torch.tensor(most, dtype=torch.float64)
        dist.all_reduce(added, group=self.messages)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.messages)
        return added.tolist(), highest.tolist()

    def highest(self, values: Int32Array) -> Int32Array:
        """Of each place, over all ranks; every rank calls it."""
        if self.ranks > 1:
            dist.all_reduce(torch.from_numpy(values), dist.ReduceOp.MAX, group=self.messages)
        return values

    def gather(self, value: Any, group: Any = None) -> list[Any]:
        """The values of all ranks, by rank; every rank calls it. ``group``: by default ``messages``."""
        found = [value] * self.ranks
        if self.ranks > 1:
            dist.all_gather_object(found, value, group=group or self.messages)
        return found


@contextmanager
def joined(device: str, seconds: float = TIMEOUT_SECONDS) -> Iterator[Ranks]:
    """Join the other processes of ``torchrun``, if any. Raises RanksError."""
    limit = timedelta(seconds=seconds)
    is_ours = os.environ.get("WORLD_SIZE", "1") != "1" and not dist.is_initialized()
    if device == "auto" and "LOCAL_RANK" in os.environ and torch.cuda.is_available():
        device = f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    device = resolve(device)
    is_cuda = device.startswith("cuda")
    if is_cuda:
        torch.cuda.set_device(device)
    has_joined = False
    try:
        if is_ours:
            dist.init_process_group("cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=limit)
        if not dist.is_initialized():
            yield Ranks(device=device)
            return
        groups = [dist.new_group(backend="gloo", timeout=limit) for _ in range(2)]
        has_joined = True
        yield Ranks(dist.get_rank(), dist.get_world_size(), device, *groups)
        for group in groups:
            dist.destroy_process_group(group)
    except (RuntimeError, ValueError) as error:
        # An error in the forward pass of a distributed model is reported as a ModelError, a ValueError.
        cause = error.__cause__ if isinstance(error, ValueError) else error
        message = _message(cause, has_joined, seconds) if isinstance(cause, RuntimeError) else None
        if message is None:
            raise
        raise RanksError(message) from error
    finally:
        if is_ours and dist.is_initialized():
            dist.destroy_process_group()


def _message(error: RuntimeError, has_joined: bool, seconds: float) -> str | None:
    """The message for an error of torch.distributed; None for any other error."""
    text = one_line(error)
    is_distributed = isinstance(error, dist.DistError) or any(word in text for word in _DISTRIBUTED)
    if not is_distributed:
        return None
    reason = _SOURCE.sub("", text)[:200]
    if has_joined:
        return (
            f"another rank is gone, or did not answer for {seconds:g} s ({reason}); its own message says why. To "
            "resume from the last checkpoint, run the same command again"
        )
    address = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
    size = os.environ.get("WORLD_SIZE", "?")
    return (
        f"the {size} ranks did not meet at {address} within {seconds:g} s ({reason}); start all of them, with the same "
        "MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and a port that is free"
    )
