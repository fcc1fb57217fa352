"""Images on a device, and memory and copies of the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from variegate.arrays import Int32Array, Int64Array
from variegate.errors import DeviceMemoryError
from variegate.executors.cuda import layout as L
from variegate.program.depth import Depth


class Memory:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._is_cuda = device.type == "cuda"
        self._copies = torch.cuda.Stream(device) if self._is_cuda else None
        self._workspaces: dict[int, torch.Tensor] = {}

    def empty(self, shape: int | tuple[int, ...], dtype: torch.dtype = torch.uint8) -> torch.Tensor:
        """Allocate an uninitialized tensor for use on the current stream. Raises DeviceMemoryError."""
        try:
            return torch.empty(shape, dtype=dtype, device=self.device)
        except torch.OutOfMemoryError as error:
            raise self._out_of_memory(int(np.prod(shape)) * dtype.itemsize) from error

    def staging(self, size: int) -> torch.Tensor:
        """Allocate pinned host memory, uint8[size]. Torch does not reuse it before its asynchronous copies ended."""
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=self._is_cuda)

    def upload(self, staging: torch.Tensor, size: int) -> torch.Tensor:
        """Copy ``staging`` to the begin of a new uint8[size] on the device, for use on the current stream."""
        if self._copies is None:
            buffer = self.empty(size)
            buffer[: len(staging)] = staging
            return buffer
        if torch.cuda.is_current_stream_capturing():
            # A replay would copy from host memory that torch has reused by then.
            raise ValueError("Augmenter: called while a CUDA graph is captured; call it before the capture")
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._copies):
            buffer = self.empty(size)
            buffer[: len(staging)].copy_(staging, non_blocking=True)
        current.wait_stream(self._copies)
        # Torch allocated the buffer on the copying stream, and must not reuse it before the kernels have run.
        buffer.record_stream(current)
        return buffer

    def workspace(self, rows: int) -> torch.Tensor:
        """Return the current stream's workspace, int32[>= rows * DEEP_WORKSPACE], all zero.

        Every launch that adds to it clears it, so it is zeroed only once. Each stream needs its own, because launches
        of two streams may run at the same time.
        """
        stream = torch.cuda.current_stream(self.device).cuda_stream if self._is_cuda else 0
        workspace = self._workspaces.get(stream)
        if workspace is None or len(workspace) < rows * L.DEEP_WORKSPACE:
            workspace = self.empty(max(rows, 64) * L.DEEP_WORKSPACE, torch.int32).zero_()
            self._workspaces[stream] = workspace
        return workspace

    def _out_of_memory(self, size: int) -> DeviceMemoryError:
        free: Any = ""
        if self._is_cuda:
            free = f" of which {torch.cuda.mem_get_info(self.device)[0] / 2**30:.2f} GiB are free"
        return DeviceMemoryError(
            f"{self.device}: no room for {size / 2**30:.2f} GiB more{free}; use a smaller batch, or free what other "
            "programs hold there"
        )


# Limit of offsets in an image, in elements: kernels count in 32 bits, less up to 3 bytes before an unaligned start.
_MAX_OFFSET = (1 << 32) - 4


@dataclass
class DeviceImages:
    """Images of one dtype on a device, of any strides.

    ``addresses[N]``; ``strides[N, 3]``: elements along y, x and channels; ``shapes[N, 3]``: height, width, channels.
    ``format``: INTERLEAVED, PLANAR or that of ``depth``, see ``layout``. ``owners`` keep the memory alive until all
    launches that read it are queued.
    """

    addresses: Int64Array
    strides: Int64Array
    shapes: Int32Array
    format: int
    owners: list[Any] = field(default_factory=list)

    @property
    def depth(self) -> Depth:
        return next((depth for depth, format in _DEEP_FORMATS.items() if format == self.format), Depth.UINT8)

    def widened(self, shapes: Int32Array) -> DeviceImages:
        """Repeat gray images to three channels where ``shapes`` has three, by a channel stride of 0."""
        strides = self.strides.copy()
        strides[shapes[:, 2] != self.shapes[:, 2], 2] = 0
        return DeviceImages(self.addresses, strides, shapes, _DEEP_FORMATS.get(self.depth, L.PLANAR), self.owners)

    def of_channels(self, read: list[int]) -> DeviceImages:
        """Select three channels without a copy; copies the images if a channel is selected twice."""
        size = self.depth.dtype.itemsize
        if read[1] == read[2]:
            owners = self.owners * (1 if len(self.owners) == len(self.shapes) else len(self.shapes))
            places = zip(owners, self.shapes.tolist(), self.strides.tolist(), self.addresses.tolist(), strict=True)
            images = [
                owner.as_strided(shape, strides, owner.storage_offset() + (address - owner.data_ptr()) // size)
                for owner, shape, strides, address in places
            ]
            return place_tensors([_copy_channels(image, read) for image in images])
        shapes = self.shapes.copy()
        shapes[:, 2] = len(read)
        addresses = self.addresses + size * read[0] * self.strides[:, 2]
        return DeviceImages(addresses, self.strides, shapes, _DEEP_FORMATS.get(self.depth, L.PLANAR), self.owners)


_DEEP_FORMATS = {Depth.UINT16: L.UINT16, Depth.FLOAT32: L.FLOAT32}
_DEPTHS = {getattr(torch, str(depth)): depth for depth in Depth}


def _copy_channels(image: torch.Tensor, channels: list[int]) -> torch.Tensor:
    if image.dtype != torch.uint16:
        return image[..., channels]
    # PyTorch does not index uint16 on GPUs.
    return image.view(torch.int16)[..., channels].view(torch.uint16)


def place_tensor(tensor: torch.Tensor, is_channels_last: bool) -> DeviceImages:
    """Describe a batch [N, H, W, C] or [N, C, H, W] of any strides, without a copy."""
    tensor = _addressable(tensor, images=1)
    number, *_ = tensor.shape
    batch, *rest = tensor.stride()
    y, x, c = rest if is_channels_last else (rest[1], rest[2], rest[0])
    height, width, channels = tensor.shape[1:] if is_channels_last else (*tensor.shape[2:], tensor.shape[1])
    return DeviceImages(
        addresses=tensor.data_ptr() + tensor.element_size() * batch * np.arange(number, dtype=np.int64),
        strides=np.tile(np.array([y, x, c], np.int64), (number, 1)),
        shapes=np.tile(np.array([height, width, channels], np.int32), (number, 1)),
        format=_format(tensor.dtype, [(x, c, channels)]),
        owners=[tensor],
    )


def place_tensors(tensors: Sequence[torch.Tensor]) -> DeviceImages:
    """Describe images [H, W, C] of one dtype, of any sizes and strides, without a copy. ``tensors``: at least one."""
    tensors = [_addressable(tensor, images=0) for tensor in tensors]
    strides = np.array([tensor.stride() for tensor in tensors], np.int64).reshape(-1, 3)
    shapes = np.array([tensor.shape for tensor in tensors], np.int32).reshape(-1, 3)
    return DeviceImages(
        addresses=np.array([tensor.data_ptr() for tensor in tensors], np.int64),
        strides=strides,
        shapes=shapes,
        format=_format(
            tensors[0].dtype, [(x, c, channels) for (_, x, c), channels in zip(strides, shapes[:, 2], strict=True)]
        ),
        owners=list(tensors),
    )


def place_packed(
    data: torch.Tensor, offsets: Int64Array, shapes: Int32Array, depth: Depth = Depth.UINT8
) -> DeviceImages:
    """Describe contiguous images [H, W, C] at byte ``offsets`` of one buffer."""
    wide = shapes.astype(np.int64)
    strides = np.stack([wide[:, 1] * wide[:, 2], wide[:, 2], np.ones(len(wide), np.int64)], axis=1)
    format = _DEEP_FORMATS.get(depth, L.INTERLEAVED)
    return DeviceImages(data.data_ptr() + offsets, strides, shapes, format, [data])


def join(parts: Sequence[DeviceImages]) -> DeviceImages:
    """Concatenate batches of one dtype. ``parts``: at least one."""
    if len(parts) == 1:
        return parts[0]
    return DeviceImages(
        addresses=np.concatenate([part.addresses for part in parts]),
        strides=np.concatenate([part.strides for part in parts]),
        shapes=np.concatenate([part.shapes for part in parts]),
        format=L.PLANAR if any(part.format == L.PLANAR for part in parts) else parts[0].format,
        owners=[owner for part in parts for owner in part.owners],
    )


def _addressable(tensor: torch.Tensor, images: int) -> torch.Tensor:
    """Return ``tensor``, or a contiguous copy if an image of the view spans more elements than kernels can address.

    ``images``: number of leading batch dimensions.
    """
    sides = tensor.shape[images:]
    strides = tensor.stride()[images:]
    span = sum((side - 1) * stride for side, stride in zip(sides, strides, strict=True))
    return tensor if span < _MAX_OFFSET else tensor.contiguous()


def _format(dtype: torch.dtype, pixels: Sequence[tuple[int, int, int]]) -> int:
    """INTERLEAVED if the channels of a pixel are adjacent in every image of uint8, else PLANAR.

    ``pixels``: strides of x and of channels, and number of channels, per image.
    """
    depth = _DEPTHS[dtype]
    if depth.is_deep:
        return _DEEP_FORMATS[depth]
    together = all(c == 1 or channels == 1 for _, c, channels in pixels)
    return L.INTERLEAVED if together else L.PLANAR
