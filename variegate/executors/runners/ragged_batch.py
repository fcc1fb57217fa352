"""``RaggedBatch``: images of several sizes in one buffer, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.executors.images import layout, shapes_of, write_images
from variegate.executors.runners.devices import resolve
from variegate.executors.runners.images import check_images
from variegate.program.program import MAX_SIDE


class RaggedBatch:
    """Contiguous uint8 images [H, W, C] of any sizes in one buffer.

    Args:
        data: uint8[bytes], on the CPU or a CUDA device. It is not copied.
        shapes: int[N, 3]: height, width and channels (1 or 3) of every image.
        offsets: int[N], the byte of ``data`` at which every image begins; None: one right after another.

    Raises TypeError or ValueError naming the argument, its value and what is accepted.
    """

    def __init__(self, data: torch.Tensor, shapes: npt.ArrayLike, offsets: npt.ArrayLike | None = None) -> None:
        if not isinstance(data, torch.Tensor) or data.dtype != torch.uint8 or data.ndim != 1:
            got = f"{data.dtype}{list(data.shape)}" if isinstance(data, torch.Tensor) else type(data).__name__
            raise TypeError(f"data: got {got}; accepted: a torch.uint8 tensor of one dimension")
        if not data.is_contiguous():
            raise ValueError("data: got a tensor with gaps; accepted: a contiguous one")
        self.data = data
        self.shapes = _check_shapes(shapes)
        sizes = self.shapes.astype(np.int64).prod(axis=1)
        if offsets is None:
            offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), sizes]))[:-1]
        self.offsets = np.asarray(offsets, np.int64)
        if self.offsets.shape != (len(self.shapes),):
            raise ValueError(
                f"offsets: got shape {self.offsets.shape}; accepted: one per image, {len(self.shapes)} here"
            )
        outside = np.flatnonzero((self.offsets < 0) | (self.offsets + sizes > len(data)))
        if len(outside):
            i = int(outside[0])
            raise ValueError(
                f"offsets[{i}]: image {self.shapes[i].tolist()} from byte {self.offsets[i]} on; accepted: images "
                f"within the {len(data)} bytes of data"
            )

    @classmethod
    def pack(cls, images: Any, device: str | torch.device = "cpu") -> RaggedBatch:
        """Images of the host, given as for an ``Augmenter``, laid side by side and moved to ``device``.

        Raises TypeError or ValueError naming the image, or a device that is not there.
        """
        is_cuda = resolve(device).startswith("cuda")
        arrays = check_images(images)
        shapes = shapes_of(arrays)
        offsets, total = layout(shapes)
        data = torch.empty(total, dtype=torch.uint8, device="cpu", pin_memory=is_cuda)
        write_images(data.numpy(), arrays, offsets)
        return cls(data.to(resolve(device)) if is_cuda else data, shapes, offsets)

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, i: int) -> torch.Tensor:
        """Image ``i`` as a view, uint8 [H, W, C]."""
        shape = self.shapes[i].tolist()
        start = int(self.offsets[i])
        return self.data[start : start + int(np.prod(shape))].view(shape)


def _check_shapes(shapes: npt.ArrayLike) -> npt.NDArray[np.int32]:
    array = np.asarray(shapes)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        raise ValueError(f"shapes: got {array.dtype}{list(array.shape)}; accepted: int[N, 3]: height, width, channels")
    sides, channels = array[:, :2], array[:, 2]
    wrong = np.flatnonzero((sides < 1).any(axis=1) | (sides > MAX_SIDE).any(axis=1) | ~np.isin(channels, (1, 3)))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"shapes[{i}]: got {array[i].tolist()}; accepted: sides of 1 to {MAX_SIDE:,} pixels, 1 or 3 channels"
        )
    return array.astype(np.int32)
