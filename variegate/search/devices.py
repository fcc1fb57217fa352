"""The devices that members, or trainings, are dealt out to, and the threads that each has on a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from variegate.engine.device_names import choose_devices, cores_each, kind_of
from variegate.threads import default_threads


def search_devices(devices: str | Sequence[str] = "auto", members: int = 1) -> list[str]:
    """Full names, no more than ``members``: of "auto" all GPUs, without one a CPU for each core.

    Raises ValueError for a list that is not accepted.
    """
    if devices != "auto":
        names = choose_devices(devices)
        if kind_of(names[0]) not in ("cpu", "cuda"):
            raise ValueError(f"devices: got {names[0]!r}, which trains nothing; accepted: CPUs and GPUs")
    elif torch.cuda.is_available():
        names = choose_devices([f"cuda:{number}" for number in range(torch.cuda.device_count())])
    else:
        names = tuple(f"cpu:{number}" for number in range(default_threads()))
    return list(names[:members])


def threads_each(devices: Sequence[str]) -> int | None:
    """That augment for each of so many trainings at a time; None: all cores, for a single one."""
    return None if len(devices) == 1 else cores_each(len(devices))


@contextmanager
def one_thread_each(*devices: str) -> Iterator[None]:
    """On a CPU a training uses one thread: sums come out the same whatever the machine, and small models faster."""
    before = torch.get_num_threads()
    if "cpu" in devices:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
