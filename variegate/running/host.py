"""Batches in the host's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.inputs import check_images, shapes_of
from variegate.ragged import RaggedBatch
from variegate.threads import by_openmp

Image = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class HostBatch:
    """Contiguous uint8 arrays [H, W, C], or one [N, H, W, C]."""

    images: list[Image] | Image
    shapes: npt.NDArray[np.int32]


def take_host_batch(images: Any) -> HostBatch:
    """Raises TypeError or ValueError naming the image and what is accepted."""
    if isinstance(images, RaggedBatch):
        images = [images[i] for i in range(len(images))]
    arrays = check_images(images)
    return HostBatch(arrays, shapes_of(arrays))


def to_tensors(stacked: npt.NDArray[Any] | None, results: list[npt.NDArray[Any]], dtype: torch.dtype) -> Any:
    """Results as tensors; floats in ``dtype``."""
    if stacked is not None:
        return _to_tensor(stacked, dtype)
    return [_to_tensor(result, dtype) for result in results]


def _to_tensor(array: npt.NDArray[Any], dtype: torch.dtype) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    return by_openmp(lambda: tensor.to(dtype)) if tensor.is_floating_point() else tensor
