"""Memory of one device, and how it meets streams.

Kernels run on the caller's current stream. What goes to the device goes on a stream of its own, so that the copy runs
while the current stream is still busy with what was queued before; the current stream then waits for the copy, and
nobody waits on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from variegate.errors import DeviceMemoryError
from variegate.executors.cuda import layout as L


class Memory:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._is_cuda = device.type == "cuda"
        self._copies = torch.cuda.Stream(device) if self._is_cuda else None
        self._workspaces: dict[int, torch.Tensor] = {}
        self._captured: list[torch.Tensor] = []  # host memory that graphs copy from

    def empty(self, shape: int | tuple[int, ...], dtype: torch.dtype = torch.uint8) -> torch.Tensor:
        """Uninitialised, for use on the current stream."""
        try:
            return torch.empty(shape, dtype=dtype, device=self.device)
        except torch.OutOfMemoryError as error:
            raise self._no_room(int(np.prod(shape)) * dtype.itemsize) from error

    def staging(self, size: int) -> torch.Tensor:
        """uint8[size] of the host, from where copies run by themselves. Torch keeps it until they have run."""
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=self._is_cuda)

    def upload(self, staging: torch.Tensor, size: int) -> torch.Tensor:
        """uint8[size] on the device that begins with the bytes of ``staging``, for use on the current stream."""
        if self._copies is None:
            buffer = self.empty(size)
            buffer[: len(staging)] = staging
            return buffer
        if torch.cuda.is_current_stream_capturing():
            # A graph takes one stream; its copy runs again from the same host memory at every replay, so that memory is
            # held for good. Augmenter.capture is the way that can run new programs, and holds nothing but its own.
            buffer = self.empty(size)
            buffer[: len(staging)].copy_(staging, non_blocking=True)
            self._captured.append(staging)
            return buffer
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._copies):
            buffer = self.empty(size)
            buffer[: len(staging)].copy_(staging, non_blocking=True)
        current.wait_stream(self._copies)
        # The memory belongs to the copying stream; it must not be handed out again before the kernels have run.
        buffer.record_stream(current)
        return buffer

    def workspace(self, rows: int) -> torch.Tensor:
        """int32[>= rows * WORKSPACE], all zero. Every launch that adds to it clears it, so it is zeroed only once.

        One for each stream: launches of two streams may run at the same time.
        """
        stream, capturing = 0, False
        if self._is_cuda:
            stream = torch.cuda.current_stream(self.device).cuda_stream
            capturing = torch.cuda.is_current_stream_capturing()
        workspace = self._workspaces.get(stream)
        if workspace is None or len(workspace) < rows * L.WORKSPACE or capturing:
            workspace = self.empty(max(rows, 64) * L.WORKSPACE, torch.int32).zero_()
            if not capturing:
                self._workspaces[stream] = workspace
        return workspace

    def _no_room(self, size: int) -> DeviceMemoryError:
        free: Any = ""
        if self._is_cuda:
            free = f" of which {torch.cuda.mem_get_info(self.device)[0] / 2**30:.2f} GiB are free"
        return DeviceMemoryError(
            f"{self.device}: no room for {size / 2**30:.2f} GiB more{free}; use a smaller batch, or free what other "
            "programs hold there"
        )
