"""Which of how many processes this is."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed

from variegate.checks import integer


def find_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """(rank, world size): as given, else of torch.distributed, else of the environment (torchrun's), else (0, 1).

    Raises ValueError for one without the other, for a rank outside of the world, and for an environment that does not
    hold numbers.
    """
    if (rank is None) != (world_size is None):
        raise ValueError(f"rank, world_size: got {rank!r}, {world_size!r}; accepted: both, or neither")
    if rank is None or world_size is None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return 0, 1
        rank, world_size = _from_environment("RANK"), _from_environment("WORLD_SIZE")
    rank, world_size = integer("rank", rank), integer("world_size", world_size)
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"rank: got {rank} of world_size {world_size}; accepted: 0 to world_size - 1")
    return rank, world_size


def check_alike(facts: str, device: str) -> None:
    """Compare what the ranks of torch.distributed see of a data set. Collective: every rank calls it, or none.

    Raises ValueError on all of them where one differs: they would yield different numbers of batches, and wait for each
    other for ever.
    """
    is_cuda = device.startswith("cuda")
    if torch.distributed.get_backend() == "nccl" and not is_cuda:
        return  # nothing of the CPU can be exchanged
    found: list[Any] = [None] * torch.distributed.get_world_size()
    with torch.cuda.device(device) if is_cuda else nullcontext():
        torch.distributed.all_gather_object(found, facts)
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
