"""Pixels in the memory of a GPU, where the augmentation reads them in place."""

from __future__ import annotations

from threading import Lock
from typing import Any

import torch

from variegate.data.loader.cache.pictures import Picture


class DeviceCache:
    """As ``HostCache``; ``max_bytes`` None: half of the device's memory that is free when it is made."""

    holds_device_memory = True

    def __init__(self, device: str, max_bytes: int | None = None) -> None:
        self._device = torch.device(device)
        self._room = torch.cuda.mem_get_info(self._device)[0] // 2 if max_bytes is None else max_bytes
        self._copies = torch.cuda.Stream(self._device)
        self._held: dict[int, tuple[torch.Tensor, Any]] = {}
        self._lock = Lock()
        self.nbytes = 0

    def get(self, sample_id: int) -> tuple[torch.Tensor, Any] | None:
        return self._held.get(sample_id)

    def put(self, sample_id: int, picture: Picture, label: Any) -> torch.Tensor:
        """Pictures that are not held go to the device as well: a batch lies in one place."""
        # Torch waits for a copy from pageable memory, so that any stream may read the result at once; on a stream of
        # its own it does not wait for the training step as well.
        with torch.cuda.stream(self._copies):
            placed = torch.from_numpy(picture).to(self._device)
        with self._lock:
            if sample_id not in self._held and self.nbytes + placed.nbytes <= self._room:
                self._held[sample_id] = placed, label
                self.nbytes += placed.nbytes
        return placed
