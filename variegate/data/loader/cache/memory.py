"""Pixels in memory, the host's or a GPU's."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from variegate.data.loader.cache.pictures import Picture
from variegate.threads import at_fork


class HostCache:
    """Holds the first pictures that fit into ``max_bytes``.

    None is thrown out for another: every epoch asks for every sample once, so that whichever are held serve equally.
    """

    holds_device_memory = False

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: dict[int, tuple[Any, Any]] = {}
        self.nbytes = 0
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def get(self, sample_id: int) -> tuple[Any, Any] | None:
        return self._held.get(sample_id)

    def put(self, sample_id: int, picture: Any, label: Any) -> Any:
        with self._lock:
            if sample_id not in self._held and self.nbytes + picture.nbytes <= self._max_bytes:
                self._held[sample_id] = picture, label
                self.nbytes += picture.nbytes
        return picture


class DeviceCache(HostCache):
    """In the memory of a GPU, where the augmentation reads it in place; ``max_bytes`` None: half of what is free of it
    when the cache is made."""

    holds_device_memory = True

    def __init__(self, device: str, max_bytes: int | None = None) -> None:
        self._device = torch.device(device)
        super().__init__(torch.cuda.mem_get_info(self._device)[0] // 2 if max_bytes is None else max_bytes)
        self._copies = torch.cuda.Stream(self._device)

    def put(self, sample_id: int, picture: Picture, label: Any) -> torch.Tensor:
        """Pictures that are not held go to the device as well: a batch lies in one place."""
        # Torch waits for a copy from pageable memory, so that any stream may read the result at once; on a stream of
        # its own it does not wait for the training step as well.
        with torch.cuda.stream(self._copies):
            placed = torch.from_numpy(picture).to(self._device)
        super().put(sample_id, placed, label)
        return placed


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, or of its control group where that is less."""
    free = _machine_memory()
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        return min(free, max(int(limit) - used, 0)) if limit != "max" else free
    except (OSError, ValueError):
        return free


def _machine_memory() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        # Not Linux: what there is in all, of which half may well be taken.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 4 << 30
