"""Pixels that later epochs need not decode again: in the host's memory, on the device, or on disk."""

from __future__ import annotations

import os
from typing import Any, Protocol

from variegate.checks import integer
from variegate.data.loader.cache.disk import DiskCache
from variegate.data.loader.cache.memory import DeviceCache, HostCache, available_memory
from variegate.data.loader.cache.pictures import Picture

__all__ = ["PixelCache", "open_cache"]


class PixelCache(Protocol):
    """Pictures by the id of their sample. Any thread may call any method."""

    holds_device_memory: bool

    @property
    def nbytes(self) -> int:
        """Bytes of pixels held."""
        ...

    def get(self, sample_id: int) -> tuple[Any, Any] | None:
        """(pixels, label) of a sample that is held."""
        ...

    def put(self, sample_id: int, picture: Picture, label: Any) -> Any:
        """The pixels as they are to be used from here on; held, where there is still room."""
        ...


def open_cache(
    where: str | os.PathLike[str] | None,
    *,
    max_bytes: int | None,
    side: int | None,
    device: str,
    fingerprint: str,
    processes: int = 1,
) -> PixelCache | None:
    """``where``: None, "host", "device", or a folder. ``processes``: among how many the memory and the disk are shared.

    Raises ValueError for what is none of them, and for a budget or side that is not positive.
    """
    for name, value in (("cache_bytes", max_bytes), ("cache_side", side)):
        if value is not None:
            integer(name, value, 1, accepted="a positive integer, or None")
        if value is not None and where is None:
            raise ValueError(f"{name}: got {value!r} without a cache; accepted with cache='host', 'device' or a folder")
    if where is None:
        return None
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise ValueError(f"cache: got {where!r}; accepted: 'host', 'device', a folder, or None")
    if where == "device" and device.startswith("cuda"):
        return DeviceCache(device, max_bytes)
    if where in ("host", "device"):  # the memory of a CPU is the host's
        return HostCache(available_memory() // (2 * processes) if max_bytes is None else max_bytes)
    return DiskCache(where, f"{fingerprint}-{side or 'whole'}", max_bytes, processes)
