"""Masks through rows of a program (``native/kernels/masks.cpp``): pixels are followed back as real places, to the pixel
that the last one lies in.

Places are rounded on the way only where the image takes the nearest pixel. What falls outside has the mask's fill."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np
import torch

from variegate.arrays import AnyArray, Int64Array
from variegate.executors.batches import share_out
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.program.stages import Stages
from variegate.targets.samples import Mask

_native_read = entry("vg_read_masks", c_void_p, c_void_p, c_int64, c_void_p)

# Results that a thread is handed at a time.
_AT_A_TIME = 2
# Bytes from which on memory is asked for page by page.
_LARGE = 1 << 16

Shaped = tuple[tuple[int, ...], np.dtype[Any]]


def read_masks(
    stages: Stages,
    begin: Int64Array,
    regions: Int64Array,
    layers: Int64Array,
    num_threads: int | None,
) -> None:
    """Read ``regions``, of result n ``begin[n]:begin[n + 1]``, later ones on top.

    ``regions``: int64[G, 8], MASK_REGION of ``native/structs.py``; ``layers``: int64[L, 5], MASK_LAYER, whose memory is
    the caller's.
    """
    regions = as_c_contiguous(regions)
    layers = as_c_contiguous(layers)

    def work(results: Int64Array) -> None:
        some = regions[begin[results[0]] : begin[results[-1] + 1]]
        if len(some):
            check_status(_native_read(data_ptr(stages.packed), data_ptr(some), len(some), data_ptr(layers)))

    share_out(work, len(begin) - 1, num_threads, _AT_A_TIME)


def on_host(mask: Mask) -> AnyArray:
    return mask.cpu().numpy() if isinstance(mask, torch.Tensor) else mask


class HostMasks:
    """Masks made by the CPU. ``device_masks.DeviceMasks`` has the same methods."""

    def __init__(self, num_threads: int | None) -> None:
        self._num_threads = num_threads

    def empty(self, wanted: Sequence[Shaped]) -> list[torch.Tensor]:
        """Memory for results, uninitialized."""
        return [torch.from_numpy(_empty(shape, dtype)) for shape, dtype in wanted]

    def cast(self, name: str, mask: Mask, dtype: np.dtype[Any]) -> AnyArray:
        """A mask of the sample ``name`` as contiguous numbers of ``dtype``."""
        return np.ascontiguousarray(on_host(mask), dtype)

    def read(
        self,
        stages: Stages,
        sizes: Int64Array,
        begin: Int64Array,
        regions: Int64Array,
        layers: Int64Array,
        masks: Sequence[Any],
    ) -> None:
        """As ``read_masks``, with the number of a mask as a layer's source. ``sizes``: int64[N, 2] of the results."""
        addresses = np.array([data_ptr(mask) for mask in masks], np.int64)
        layers[:, 0] = addresses[layers[:, 0]]
        read_masks(stages, begin, regions, layers, self._num_threads)


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """Of memory that is used again, where that costs less than fresh memory."""
    num_bytes = math.prod(shape) * dtype.itemsize
    if num_bytes < _LARGE:
        return np.empty(shape, dtype)
    return RESULTS.take(num_bytes).view(dtype).reshape(shape)
