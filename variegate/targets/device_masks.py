"""Masks of a batch made on a CUDA device, all of them by one launch, and left there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from variegate.arrays import Int64Array
from variegate.executors.cuda import mask_layout as M
from variegate.executors.cuda.executor import CudaExecutor, upload_images
from variegate.executors.cuda.kernels.masks import read_masks
from variegate.executors.cuda.launch import Launch, heavy_height
from variegate.native.library import data_ptr
from variegate.program.stages import Stages
from variegate.targets.masks import Shaped
from variegate.targets.samples import NUMPY_TYPES, Mask

_TORCH_TYPES = {dtype: torch_dtype for torch_dtype, dtype in NUMPY_TYPES.items()}
_ALIGNMENT = 16
# As the images' launches; products and sums are rounded one by one.
_OPTIONS = {"num_warps": 4, "enable_fp_fusion": False}


class DeviceMasks:
    """Masks made on the device of ``executor``, queued on the current stream. See ``masks.HostMasks``."""

    def __init__(self, executor: CudaExecutor) -> None:
        self._executor = executor

    def empty(self, wanted: Sequence[Shaped]) -> list[torch.Tensor]:
        """Memory for results, uninitialized: in one tensor if all are alike, as images are."""
        memory = self._executor.memory
        with self._executor.current():
            if len(set(wanted)) == 1:
                shape, dtype = wanted[0]
                return list(memory.empty((len(wanted), *shape), _TORCH_TYPES[dtype]))
            return [memory.empty(shape, _TORCH_TYPES[dtype]) for shape, dtype in wanted]

    def cast(self, name: str, mask: Mask, dtype: np.dtype[Any]) -> Mask:
        """A mask of the sample ``name`` as contiguous numbers of ``dtype``; a tensor's stay on the device."""
        if not isinstance(mask, torch.Tensor):
            return np.ascontiguousarray(mask, dtype)
        device = self._executor.device
        if mask.device != device:
            raise ValueError(f"{name}: got a mask on {mask.device}; accepted: masks on {device} or on the host")
        return mask.to(_TORCH_TYPES[dtype])

    def read(
        self,
        stages: Stages,
        sizes: Int64Array,
        begin: Int64Array,
        regions: Int64Array,
        layers: Int64Array,
        masks: Sequence[Mask],
    ) -> None:
        """Queue the launch. Masks that are read must stay until it is queued."""
        with self._executor.current():
            addresses, owners = self._send(masks)
            layers[:, 0] = addresses[layers[:, 0]]
            arrays = (sizes, begin, regions, layers, *(getattr(stages, name) for name in M.STAGE_ARRAYS))
            self._executor.queue(self._launch(sizes, self._upload(arrays)))
            del owners  # they had to stay until here

    def _send(self, masks: Sequence[Mask]) -> tuple[Int64Array, list[torch.Tensor]]:
        """Send masks of the host, each once -> addresses of all, int64[len(masks)], and the memory of what was sent."""
        on_host = np.array([not isinstance(mask, torch.Tensor) for mask in masks])
        addresses = np.array([m.data_ptr() if isinstance(m, torch.Tensor) else data_ptr(m) for m in masks], np.int64)
        numbers = np.flatnonzero(on_host)
        if not len(numbers):
            return addresses, []
        _, first, again = np.unique(addresses[numbers], return_index=True, return_inverse=True)
        sent: list[Any] = [masks[n] for n in numbers[first].tolist()]
        images = upload_images(self._executor, [mask.view(np.uint8)[..., None] for mask in sent])
        addresses[numbers] = images.addresses[again]
        return addresses, images.owners

    def _upload(self, arrays: Sequence[Any]) -> torch.Tensor:
        """The buffer of a launch: offsets of the arrays, and these."""
        starts = np.empty(len(arrays), np.int64)
        sections = [starts, *arrays]
        ends = np.cumsum([-(-section.nbytes // _ALIGNMENT) * _ALIGNMENT for section in sections])
        starts[:] = ends[:-1]
        staging = self._executor.memory.staging(int(ends[-1]))
        memory = staging.numpy()
        for start, section in zip([0, *starts.tolist()], sections, strict=True):
            memory[start : start + section.nbytes] = section.reshape(-1).view(np.uint8)
        return self._executor.memory.upload(staging, len(staging))

    def _launch(self, sizes: Int64Array, buffer: torch.Tensor) -> Launch:
        block_y, block_x = self._executor.block
        block_y = heavy_height(block_y)
        tiles = int((-(-sizes // [block_y, block_x])).prod(axis=1).max())
        constants = {"BLOCK_Y": block_y, "BLOCK_X": block_x, "VERSION": M.VERSION}
        return Launch(read_masks, len(sizes), tiles, (buffer, len(sizes)), constants, _OPTIONS)
