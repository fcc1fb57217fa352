"""One image with what belongs to it, as torchvision's transforms take and give it: a dict, or several arguments."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.augmenter.augmenter import Augmenter
from variegate.decode import check_side, read_image
from variegate.errors import shown
from variegate.formats.objects.samples import image_of
from variegate.targets.reading import is_tv_tensor
from variegate.targets.samples import image_like
from variegate.targets.settings import Targets

_ACCEPTED = (
    "beside an image a dict of what belongs to it ('boxes', 'mask', ...), torchvision's BoundingBoxes, Mask or "
    "KeyPoints, or what stays as it is: labels, paths"
)
_KEYS = {"BoundingBoxes": "boxes", "Mask": "mask", "KeyPoints": "keypoints"}


def is_sample(value: Any) -> bool:
    """Whether it is a dict with an image; an image that Hugging Face left undecoded is a dict, too."""
    return isinstance(value, Mapping) and "image" in value


def is_beside(value: Any) -> bool:
    """Whether what stands after an image may be meant to belong to it, and is no id."""
    return isinstance(value, (Mapping, list, tuple, Image.Image)) or getattr(value, "ndim", 0) > 0


def is_image(value: Any) -> bool:
    """Whether it may be an image of its own: a picture of Pillow's, or pixels that torchvision calls nothing else."""
    is_target = is_tv_tensor(value) and type(value).__name__ in _KEYS
    return isinstance(value, Image.Image) or (getattr(value, "ndim", 0) > 1 and not is_target)


def to_array(image: Any, where: str) -> npt.NDArray[np.uint8]:
    """uint8 [H, W, 3] or [H, W, 1] of whatever ``image_of`` takes; the bytes of files are decoded.

    Raises TypeError, or DecodeError for a damaged image or a shape that is no image's, calling the image ``where``.
    """
    pixels = image_of(image, where)
    if isinstance(pixels, bytes):
        pixels = read_image(pixels, where)
        check_side(where, *pixels.shape[:2])
    return pixels


def augment_inputs(augmenter: Augmenter, inputs: tuple[Any, ...], targets: Targets | None, **given: Any) -> Any:
    """What torchvision's transforms make of such inputs: of a dict with an image a dict; else a tuple, whose parts are
    of the kinds of the inputs.

    ``given``: id, epoch and conditions, as of a call. Raises TypeError or ValueError naming the input, or the entry of
    the sample, and what is accepted.
    """
    if len(inputs) == 1:
        if not is_sample(inputs[0]):
            raise TypeError(f"sample: got {shown(inputs[0])} with targets=; accepted: a dict with 'image'")
        return _augmented(augmenter, inputs[0], targets, given)
    sample: dict[str, Any] = {"image": inputs[0]}
    keys = [_take_in(value, n, sample) for n, value in enumerate(inputs[1:], 1)]
    result = _augmented(augmenter, sample, targets, given)
    parts = [result["image"]]
    for value, key in zip(inputs[1:], keys, strict=True):
        parts.append({name: result[name] for name in value} if key is None else result.get(key, value))
    return tuple(parts)


def _augmented(
    augmenter: Augmenter, sample: Mapping[str, Any], targets: Targets | None, given: dict[str, Any]
) -> dict[str, Any]:
    image = sample["image"]
    opened = {**sample, "image": to_array(image, "sample['image']")}
    boxes: Any = sample.get("boxes")
    if targets is None and is_tv_tensor(boxes):
        targets = Targets().with_format(boxes.format.name.lower())
    result: dict[str, Any] = augmenter(opened, targets=targets, **given)
    return {**result, "image": image_like(result["image"], image, augmenter.layout)}


def _take_in(value: Any, place: int, sample: dict[str, Any]) -> str | None:
    """Put an input among what belongs to the image -> its key; None for the keys of a dict, "" for what stays."""
    if isinstance(value, Mapping):
        _add(value, place, sample)
        return None
    if is_tv_tensor(value) and (key := _KEYS.get(type(value).__name__)) is not None:
        key = "masks" if key == "mask" and value.ndim == 3 else key
        _add({key: value}, place, sample)
        return key
    # Labels, also several of them, paths and the like: what no image moves. Four numbers may be a box.
    shape = tuple(getattr(value, "shape", ()))
    if isinstance(value, (list, tuple, Image.Image)) or len(shape) > 1 or shape == (4,):
        got = shown(value) if not hasattr(value, "shape") else f"{type(value).__name__}{list(value.shape)}"
        raise TypeError(f"inputs[{place}]: got {got}; accepted: {_ACCEPTED}")
    # Cond may choose by it.
    if "label" in sample or not isinstance(value, Number):
        return ""
    sample["label"] = value
    return "label"


def _add(entries: Mapping[str, Any], place: int, sample: dict[str, Any]) -> None:
    for key, value in entries.items():
        if key in sample:
            raise ValueError(f"inputs[{place}]: got {key!r}, which the sample has already; accepted: each once")
        sample[key] = value
