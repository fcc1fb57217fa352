"""One image as users' data sets give them, as the array that an ``Augmenter`` takes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

_ACCEPTED = "a PIL image, a uint8 array [H, W, 3], [H, W, 1] or [H, W], or a uint8 tensor [C, H, W]"
_CHANNELS = (1, 3)


def to_array(image: Any, where: str) -> npt.NDArray[np.uint8]:
    """uint8 [H, W, 3] or [H, W, 1]. Arrays and tensors are not copied, only turned.

    ``image``: a PIL image of any mode, an array [H, W, C] or [H, W], a CPU tensor [C, H, W] or [H, W] (one whose first
    dimension cannot be channels and whose last can is taken to be [H, W, C]). Gray stays one channel; palettes are
    looked up, alpha is dropped; the EXIF orientation is left to who opened the file, as torchvision does. Gray of more
    than 8 bits is clipped to 0..255, as Pillow does, with a UserWarning.

    Raises TypeError or ValueError, calling the image ``where``.
    """
    if isinstance(image, Image.Image):
        return _from_pillow(image, where)
    if isinstance(image, torch.Tensor):
        return _from_tensor(image, where)
    if not isinstance(image, np.ndarray):
        raise TypeError(f"{where}: got {type(image).__name__}; accepted: {_ACCEPTED}")
    _check_dtype(image.dtype, "array", where)
    if image.ndim == 2:
        image = image[:, :, None]
    if image.ndim != 3 or image.shape[2] not in _CHANNELS or 0 in image.shape:
        raise ValueError(f"{where}: got an array of shape {image.shape}; accepted: {_ACCEPTED}, no side empty")
    return image


def _from_pillow(image: Image.Image, where: str) -> npt.NDArray[np.uint8]:
    mode = image.mode
    if mode.startswith("I") or mode == "F":
        warnings.warn(
            f"{where}: a PIL image of mode {mode} (16 or 32 bits of gray); values above 255 are clipped, as Pillow "
            "does. Scale such images to 8 bits first.",
            stacklevel=3,
        )
    if mode == "La":  # Pillow unfolds premultiplied alpha to LA and nothing else
        image = image.convert("LA")
    is_gray = mode in ("1", "L", "LA", "La", "F") or mode.startswith("I")
    return to_array(np.array(image.convert("L" if is_gray else "RGB")), where)


def _from_tensor(image: torch.Tensor, where: str) -> npt.NDArray[np.uint8]:
    if image.device.type != "cpu":
        raise ValueError(f"{where}: got a tensor on {image.device}; accepted: CPU tensors")
    _check_dtype(str(image.dtype).removeprefix("torch."), "tensor", where)
    shape = tuple(image.shape)
    array: npt.NDArray[np.uint8] = image.detach().numpy()
    if array.ndim == 2:
        array = array[None]
    if array.ndim == 3 and array.shape[0] in _CHANNELS:
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] not in _CHANNELS or 0 in array.shape:
        raise ValueError(f"{where}: got a tensor of shape {shape}; accepted: {_ACCEPTED}, no side empty")
    return array


def _check_dtype(dtype: Any, kind: str, where: str) -> None:
    if str(dtype) == "uint8":
        return
    hint = ""
    if str(dtype).startswith(("float", "bfloat")):
        hint = (
            ". Leave ToTensor (ToImage with ToDtype) out of the data set's transform: Variegate takes the raw pixels, "
            "and T.Normalize makes the floats"
        )
    raise TypeError(f"{where}: got a {dtype} {kind}; accepted: {_ACCEPTED}{hint}")
