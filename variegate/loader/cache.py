"""Pixels that later epochs need not decode again: in the host's memory, on the device, or on disk."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from variegate.checks import a_path, integer
from variegate.io.addresses import is_url, shown
from variegate.loader.disk_cache import DiskCache, Picture
from variegate.loader.targets import targets_nbytes
from variegate.threads import at_fork


class HostCache:
    """Pictures by the id of their sample: the first that fit into ``max_bytes``. Any thread may call any method.

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
        """(pixels, label) of a sample that is held."""
        return self._held.get(sample_id)

    def put(self, sample_id: int, picture: Any, label: Any) -> Any:
        """The pixels as they are to be used from here on; held, where there is still room."""
        with self._lock:
            if sample_id not in self._held and self.nbytes + picture.nbytes + targets_nbytes(label) <= self._max_bytes:
                self._held[sample_id] = picture, label
                self.nbytes += picture.nbytes + targets_nbytes(label)
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


PixelCache = HostCache | DiskCache
_MEMORIES = ("host", "device")
_ACCEPTED = "'host', 'device', None, or a folder to keep pixels on disk"


def open_cache(
    where: str | os.PathLike[str] | None,
    *,
    max_bytes: int | None,
    side: int | None,
    device: str,
    fingerprint: str,
    processes: int = 1,
) -> PixelCache | None:
    """``where``: None, "host", "device", or a folder: a ``Path``, or text that ``a_path`` takes for one. ``processes``:
    among how many the memory and the disk are shared.

    Raises ValueError for what is none of them, such as a misspelt word, and for a budget or side that is not positive.
    """
    for name, value in (("cache_bytes", max_bytes), ("cache_side", side)):
        if value is not None:
            integer(name, value, 1, accepted="a positive integer, or None")
        if value is not None and where is None:
            raise ValueError(f"{name}: got {value!r} without a cache; accepted with cache='host', 'device' or a folder")
    if where is None:
        return None
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise ValueError(f"cache: got {where!r}; accepted: {_ACCEPTED}")
    if where == "device" and device.startswith("cuda"):
        return DeviceCache(device, max_bytes)
    if where in _MEMORIES:  # the memory of a CPU is the host's
        return HostCache(available_memory() // (2 * processes) if max_bytes is None else max_bytes)
    if isinstance(where, str):
        if is_url(where):
            raise ValueError(f"cache: got {shown(where)!r}; accepted: {_ACCEPTED}, of this machine")
        a_path("cache", where, _MEMORIES, _ACCEPTED)
    return DiskCache(Path(where).expanduser(), f"{fingerprint}-{side or 'whole'}", max_bytes, processes)


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
