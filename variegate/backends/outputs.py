"""What leaves: results as tensors, of the dtype and the channels that are wanted."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch

from variegate.program.program import Output
from variegate.threads import by_openmp

Tensors = torch.Tensor | list[torch.Tensor]


def wants_one_channel(output: Output) -> bool:
    """Whether the transform says that one channel leaves (``T.Grayscale()``)."""
    return getattr(output, "channels", None) == 1


def first_channel(image: torch.Tensor, layout: str) -> torch.Tensor:
    """A view of the first channel of [..., C, H, W] or, with "NHWC", of [..., H, W, C]."""
    return image[..., :1, :, :] if layout == "NCHW" else image[..., :1]


def with_wanted_channels(results: Any, output: Output) -> Tensors:
    """An executor's results, of as many channels as are wanted; one tensor, where that makes the shapes agree."""
    if not wants_one_channel(output):
        return results
    if isinstance(results, torch.Tensor):
        return first_channel(results, output.layout).contiguous()
    images = [first_channel(image, output.layout).contiguous() for image in results]
    return torch.stack(images) if len({image.shape for image in images}) == 1 else images


def to_tensors(stacked: npt.NDArray[Any] | None, results: list[npt.NDArray[Any]], dtype: torch.dtype) -> Any:
    """Results as tensors; floats in ``dtype``."""
    if stacked is not None:
        return _to_tensor(stacked, dtype)
    return [_to_tensor(result, dtype) for result in results]


def _to_tensor(array: npt.NDArray[Any], dtype: torch.dtype) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    return by_openmp(lambda: tensor.to(dtype)) if tensor.is_floating_point() else tensor
