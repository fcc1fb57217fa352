"""Checks of what users hand over: images and sizes, each error naming the image, what it was and what is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.utils.dlpack

from variegate.program.program import MAX_SIDE

Image = npt.NDArray[np.uint8]

_ACCEPTED = "uint8 [H, W, 3], [H, W, 1] or [H, W]"


def check_images(images: Any) -> list[Image] | Image:
    """A batch as contiguous uint8 [H, W, C] arrays: a list, or one [N, H, W, C]. Contiguous ones are not copied."""
    whole = _as_array(images)
    if whole is not None:
        if whole.dtype != np.uint8:
            raise TypeError(f"images: got dtype {whole.dtype}; accepted: uint8 [N, H, W, C]")
        if whole.ndim != 4 or whole.shape[3] not in (1, 3) or 0 in whole.shape[1:]:
            raise ValueError(
                f"images: got shape {whole.shape}; accepted: one uint8 array [N, H, W, C] with C = 1 or 3, or a list "
                f"of images {_ACCEPTED}"
            )
        _check_sides("images", whole.shape, whole.shape[1:3])
        return np.ascontiguousarray(whole)
    if not isinstance(images, (list, tuple)):
        raise TypeError(f"images: got {type(images).__name__}; accepted: a list of images or one array [N, H, W, C]")
    return [check_image(image, i) for i, image in enumerate(images)]


def check_image(image: Any, place: int | str) -> Image:
    """An image as a contiguous uint8 [H, W, C] array, not copied if it is one. ``place``: its number, or its name."""
    where = place if isinstance(place, str) else f"images[{place}]"
    array = _as_array(image)
    if array is None:
        raise TypeError(f"{where}: got {type(image).__name__}; accepted: {_ACCEPTED}, as array or CPU tensor")
    if array.dtype != np.uint8:
        raise TypeError(f"{where}: got dtype {array.dtype}; accepted: {_ACCEPTED}")
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3) or 0 in array.shape:
        raise ValueError(f"{where}: got shape {array.shape}; accepted: {_ACCEPTED}, no side empty")
    _check_sides(where, array.shape, array.shape[:2])
    return np.ascontiguousarray(array)


def _check_sides(where: str, shape: tuple[int, ...], sides: tuple[int, ...]) -> None:
    if max(sides) > MAX_SIDE:
        raise ValueError(f"{where}: got shape {shape}; accepted: sides of at most {MAX_SIDE:,} pixels")


def _as_array(value: Any) -> npt.NDArray[Any] | None:
    """An array, or a CPU tensor as one; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    tensor = as_tensor(value)
    if tensor is None:
        return None
    if tensor.device.type != "cpu":
        raise ValueError(f"images: got a tensor on {tensor.device}; accepted on this device: CPU tensors")
    return tensor.numpy()


def as_tensor(value: Any) -> torch.Tensor | None:
    """A torch tensor, or another library's (CuPy, JAX, ...) by DLPack, without a copy; None for anything else."""
    if isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return torch.utils.dlpack.from_dlpack(value)  # type: ignore[attr-defined, unused-ignore]
    return None


def check_tensor(tensor: torch.Tensor) -> bool:
    """A batch [N, H, W, C] or [N, C, H, W] on a device -> whether channels come last; they do where both could be."""
    if tensor.dtype != torch.uint8:
        raise TypeError(f"images: got dtype {tensor.dtype}; accepted: uint8 [N, H, W, C] or [N, C, H, W]")
    shape = tuple(tensor.shape)
    is_last = len(shape) == 4 and shape[3] in (1, 3)
    if len(shape) != 4 or not (is_last or shape[1] in (1, 3)) or 0 in shape[1:]:
        raise ValueError(
            f"images: got shape {shape}; accepted: uint8 [N, H, W, C] or [N, C, H, W] with C = 1 or 3, or a list of "
            f"images {_ACCEPTED}"
        )
    _check_sides("images", shape, shape[1:3] if is_last else shape[2:])
    return is_last


def check_tensors(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Images on a device as [H, W, C], wherever their pixels lie."""
    checked = []
    for i, tensor in enumerate(tensors):
        if tensor.dtype != torch.uint8:
            raise TypeError(f"images[{i}]: got dtype {tensor.dtype}; accepted: {_ACCEPTED}")
        image = tensor[:, :, None] if tensor.ndim == 2 else tensor
        if image.ndim != 3 or image.shape[2] not in (1, 3) or 0 in image.shape:
            raise ValueError(f"images[{i}]: got shape {tuple(tensor.shape)}; accepted: {_ACCEPTED}, no side empty")
        _check_sides(f"images[{i}]", tuple(tensor.shape), tuple(image.shape[:2]))
        checked.append(image)
    return checked


def shapes_of(images: list[Image] | Image) -> npt.NDArray[np.int32]:
    """int32[N, 3]: height, width, channels of checked images."""
    if isinstance(images, np.ndarray):
        return np.tile(np.array(images.shape[1:], np.int32), (len(images), 1))
    return np.array([image.shape for image in images], np.int32).reshape(-1, 3)


def looks_like_sizes(value: Any) -> bool:
    """Whether ``value`` lists (height, width[, channels]) instead of images."""
    if isinstance(value, np.ndarray):
        return value.ndim == 2 and value.dtype.kind in "iu" and value.shape[1] in (2, 3) and value.dtype != np.uint8
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(isinstance(v, (list, tuple)) and all(isinstance(n, (int, np.integer)) for n in v) for v in value)


def check_sizes(sizes: Any) -> npt.NDArray[np.int32]:
    """int32[N, 3]: height, width, channels (3 where not given)."""
    shapes = []
    for i, size in enumerate(sizes):
        shape = (*(int(n) for n in size), 3)[:3]
        if len(size) not in (2, 3) or min(shape) < 1 or shape[2] not in (1, 3):
            accepted = "(height, width) or (height, width, channels), channels 1 or 3"
            raise ValueError(f"sizes[{i}]: got {tuple(size)}; accepted: {accepted}")
        _check_sides(f"sizes[{i}]", shape, shape[:2])
        shapes.append(shape)
    return np.array(shapes, np.int32).reshape(-1, 3)
