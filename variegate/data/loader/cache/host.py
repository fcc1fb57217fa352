"""Pixels in the host's memory."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any

from variegate.data.loader.cache.pictures import Picture
from variegate.threads import at_fork


class HostCache:
    """Holds the first pictures that fit into ``max_bytes``.

    None is thrown out for another: every epoch asks for every sample once, so that whichever are held serve equally.
    """

    holds_device_memory = False

    def __init__(self, max_bytes: int) -> None:
        self._room = max_bytes
        self._held: dict[int, tuple[Picture, Any]] = {}
        self.nbytes = 0
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def get(self, sample_id: int) -> tuple[Picture, Any] | None:
        return self._held.get(sample_id)

    def put(self, sample_id: int, picture: Picture, label: Any) -> Picture:
        with self._lock:
            if sample_id not in self._held and self.nbytes + picture.nbytes <= self._room:
                self._held[sample_id] = picture, label
                self.nbytes += picture.nbytes
        return picture


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
