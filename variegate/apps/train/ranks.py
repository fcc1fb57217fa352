"""The processes of a training: where they meet, what they tell each other, and what is said when one is missing."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from variegate.executors.runners.devices import resolve

_TORCHRUN = "torchrun sets it"
_PAUSE = 0.2
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
        added, highest = torch.tensor(sums, dtype=torch.float64), torch.tensor(most, dtype=torch.float64)
        dist.all_reduce(added, group=self.messages)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.messages)
        return added.tolist(), highest.tolist()

    def highest(self, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Of each place, over all ranks; every rank calls it."""
        if self.ranks > 1:
            dist.all_reduce(torch.from_numpy(values), dist.ReduceOp.MAX, group=self.messages)
        return values

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, by rank; every rank calls it."""
        found = [value] * self.ranks
        if self.ranks > 1:
            dist.all_gather_object(found, value, group=self.messages)
        return found


@contextmanager
def joined(device: str, seconds: float) -> Iterator[Ranks]:
    """Meet the other processes of ``torchrun``, if any. Raises RanksError, ValueError for a wrong environment."""
    size, limit, has_met = _from_environment("WORLD_SIZE", 1, default="1"), timedelta(seconds=seconds), False
    is_ours = size > 1 and not dist.is_initialized()
    if is_ours:
        _from_environment("RANK", 0, size - 1)
        _from_environment("MASTER_PORT", 0, 65535)
        if not os.environ.get("MASTER_ADDR"):
            raise ValueError(
                f"MASTER_ADDR: is not set, with WORLD_SIZE {size}; accepted: rank 0's machine ({_TORCHRUN})"
            )
    if device == "auto" and "LOCAL_RANK" in os.environ and torch.cuda.is_available():
        device = f"cuda:{_from_environment('LOCAL_RANK', 0) % torch.cuda.device_count()}"
    device = resolve(device)
    is_cuda = device.startswith("cuda")
    if is_cuda:
        torch.cuda.set_device(device)
    try:
        if is_ours:
            _find_store(seconds, size)
            dist.init_process_group("cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=limit)
        if not dist.is_initialized():
            yield Ranks(device=device)
            return
        groups = [dist.new_group(backend="gloo", timeout=limit) for _ in range(2)]
        has_met = True
        yield Ranks(dist.get_rank(), dist.get_world_size(), device, *groups)
        for group in groups:
            dist.destroy_process_group(group)
    except (RuntimeError, ValueError) as error:
        # Those of torch.distributed are RuntimeErrors; one from within a model comes as a failure of the model.
        first = error.__cause__ if isinstance(error, ValueError) else error
        said = _explained(first, has_met, size, seconds) if isinstance(first, RuntimeError) else None
        if said is None:
            raise
        raise RanksError(said) from error
    finally:
        if is_ours and dist.is_initialized():
            dist.destroy_process_group()


def _find_store(seconds: float, size: int) -> None:
    """Wait for the meeting place, if another process makes it: torch would wait longer. Raises RanksError."""
    if os.environ["RANK"] == "0" and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return
    place, end = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            socket.create_connection(place, left).close()
            return
        except OSError:
            time.sleep(min(_PAUSE, left))
    raise RanksError(_missing(size, seconds))


def _missing(size: int, seconds: float) -> str:
    return (
        f"rank {os.environ.get('RANK', '?')} waited {seconds:g} s for all {size} ranks at {_meeting()}; start the "
        "missing ones there, with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, or give them longer (--timeout)"
    )


def _meeting() -> str:
    return f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"


def _from_environment(name: str, low: int, high: int | None = None, default: str | None = None) -> int:
    """The integer in a variable of the environment. Raises ValueError."""
    found = os.environ.get(name, default)
    if found is not None and found.isdecimal() and low <= int(found) <= (int(found) if high is None else high):
        return int(found)
    got = "is not set" if found is None else f"got {found!r}"
    accepted = f"from {low} on" if high is None else f"from {low} to {high}"
    raise ValueError(f"{name}: {got}; accepted: an integer {accepted} ({_TORCHRUN})")


def _explained(error: RuntimeError, has_met: bool, size: int, seconds: float) -> str | None:
    """The error in a user's words; None for what has nothing to do with ranks."""
    text = " ".join(str(error).split())
    is_torchs = isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "NCCL", "Connection"))
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return f"{_meeting()}: the port is in use; choose another (torchrun --master-port, or MASTER_PORT)"
    if is_torchs and not has_met:
        return _missing(size, seconds)
    if is_torchs:
        said = _SOURCE.sub("", text)[:120]
        return (
            f"another rank is gone, or did not answer for {seconds:g} s ({said}); its own message says why. To resume "
            "from the last checkpoint, run the same command again"
        )
    return None
