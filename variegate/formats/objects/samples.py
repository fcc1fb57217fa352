"""Samples of data sets as pixels or bytes, a label and targets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.decode import check_side, pixels_of_pil, read_bytes
from variegate.errors import DecodeError
from variegate.formats.annotated.records import ObjectFields
from variegate.formats.base import SourceError
from variegate.formats.labels import IMAGE_NAMES, LABEL_NAMES, NO_LABEL, check_int64
from variegate.formats.objects.targets import check_beside, check_entries, check_is_image

_ACCEPTED_SAMPLES = '(image, label, ...), {"image": ..., "label": ...} or an image'
_ACCEPTED_IMAGES = (
    "a PIL image, a uint8 array [H, W, C] or [H, W], a uint8 tensor [C, H, W] or [H, W] (C = 1 or 3), or the bytes of "
    "an image file"
)
_ACCEPTED_LABELS = "an int, a float, an array or list of numbers, or the name of a class"


def split_sample(sample: Any, name: str) -> tuple[Any, Any]:
    """(image, label) of a sample; the label is None where there is none. Raises TypeError naming what it held."""
    if isinstance(sample, Mapping):
        key = next((key for key in IMAGE_NAMES if key in sample), None)
        if key is None:
            if "bytes" in sample:  # an undecoded image of Hugging Face's on its own
                return sample, None
            keys = ", ".join(map(repr, sample)) or "nothing"
            raise TypeError(f"{name}: got a dict with {keys}; accepted: {_ACCEPTED_SAMPLES}")
        return sample[key], next((sample[key] for key in LABEL_NAMES if key in sample), None)
    if isinstance(sample, (tuple, list)):
        if not sample:
            raise TypeError(f"{name}: got an empty {type(sample).__name__}; accepted: {_ACCEPTED_SAMPLES}")
        return sample[0], sample[1] if len(sample) > 1 else None
    return sample, None


def check_rest(sample: Any, image: bytes | npt.NDArray[np.uint8], name: str) -> None:
    """Refuse masks, boxes and the like beside the image that ``image_of`` made of the sample's. Raises TypeError."""
    size = None if isinstance(image, bytes) else (image.shape[0], image.shape[1])
    if isinstance(sample, Mapping):
        key = next((key for key in IMAGE_NAMES if key in sample), None)
        if key is not None:
            check_entries(sample, key, name, size)
    elif isinstance(sample, (tuple, list)):
        for i, value in enumerate(sample[1:], 1):
            check_beside(value, f"{name}[{i}]", size)


def image_of(image: Any, name: str, reads_files: bool = True) -> bytes | npt.NDArray[np.uint8]:
    """Bytes as they are; anything else as uint8 [H, W, 3] or [H, W, 1].

    PIL images: gray ones (modes 1, L, LA) keep one channel, all others become RGB as ``read_image`` makes it: palettes
    looked up, alpha dropped. Their EXIF orientation is left alone, as torchvision does: whoever opened the image has
    turned it already if it was to be turned. Arrays have their channels last. Tensors have them first, as torch has it:
    [3, H, 3] has them first; only where they cannot be, as in [224, 224, 3], are they taken to be last.

    ``reads_files``: {"bytes": None, "path": ...}, as Hugging Face's data sets give an image that they left undecoded,
    is read from its file. False where such rows come from a table, which anybody may have written.

    An image that was opened and not yet loaded is decoded here; one object of that kind must not be given to two
    threads at once.

    Raises TypeError for other kinds and dtypes, DecodeError for a damaged image or a shape that is no image's.
    """
    check_is_image(image, name)
    if isinstance(image, Image.Image):
        return pixels_of_pil(image, name)
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, Mapping) and "bytes" in image:
        return _of_undecoded(image, name, reads_files)
    if isinstance(image, np.ndarray):
        _check_dtype(image.dtype, image.dtype == np.uint8, name)
        return _of_array(image, image.shape, name)
    import torch  # takes a second to load, which listing a folder should not

    if not isinstance(image, torch.Tensor):
        raise TypeError(f"{name}: got {type(image).__name__} for an image; accepted: {_ACCEPTED_IMAGES}")
    _check_dtype(image.dtype, image.dtype == torch.uint8, name)
    if image.device.type != "cpu":
        raise TypeError(f"{name}: got a tensor on {image.device}; accepted: {_ACCEPTED_IMAGES}, on the CPU")
    array = image.detach().numpy()
    channels_first = array.ndim == 3 and array.shape[0] in (1, 3)
    return _of_array(array.transpose(1, 2, 0) if channels_first else array, tuple(image.shape), name)


def label_of(label: Any, name: str, classes: Sequence[str]) -> Any:
    """An int, a float or an array; None is -1. A str is looked up in ``classes``."""
    if label is None:
        return NO_LABEL
    if isinstance(label, str):
        if label in classes:
            return classes.index(label)
        known = f"one of the classes {', '.join(classes)}" if classes else _ACCEPTED_LABELS.rpartition(", or")[0]
        raise TypeError(f"{name}: got the label {label!r}; accepted: {known}")
    try:
        array = np.asarray(label)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name}: got {type(label).__name__} for a label ({error}); accepted: {_ACCEPTED_LABELS}"
        ) from error
    try:
        check_int64("label", array)
    except SourceError as error:
        raise DecodeError(name, str(error)) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: got {type(label).__name__} for a label; accepted: {_ACCEPTED_LABELS}")
    if array.ndim:
        return array
    return float(array) if array.dtype.kind == "f" else int(array)


def _of_undecoded(image: Mapping[str, Any], name: str, reads_files: bool) -> bytes:
    """Hugging Face's {"bytes": ..., "path": ...}."""
    data, path = image["bytes"], image.get("path")
    if data is not None:
        return bytes(data)
    if path is None:
        raise DecodeError(name, "no image: its bytes and its path are None")
    if not reads_files:
        raise DecodeError(
            name, "no image: its bytes are null; the file that it names is not read here, but by vg.open_source"
        )
    return read_bytes(path, f"{name}: {os.fspath(path)}")


def _of_array(array: npt.NDArray[Any], shape: tuple[int, ...], name: str) -> npt.NDArray[np.uint8]:
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] not in (1, 3) or 0 in array.shape:
        raise DecodeError(name, f"got shape {shape}; accepted: {_ACCEPTED_IMAGES}")
    check_side(name, array.shape[0], array.shape[1])
    return np.ascontiguousarray(array)


def _check_dtype(dtype: Any, is_uint8: bool, name: str) -> None:
    if not is_uint8:
        raise TypeError(
            f"{name}: got an image of dtype {dtype}; accepted: uint8. Leave ToTensor, ToDtype and Normalize out of the "
            "data set's own transform: they belong to the transform given to Variegate"
        )


_LABEL, _OBJECTS = "label", "objects"
_ACCEPTED = "a dict, an image and a dict, or an image and a list of dicts of objects"


def targets_beside(
    sample: Any, size: tuple[int, int], name: str, classes: tuple[str, ...], box_format: str, normalized: bool
) -> dict[str, Any]:
    """All that stands beside the image, under its own names and as it is, but for the image's own label.

    Objects as COCO's API gives them, ``(image, [{"bbox": ..., "category_id": ...}, ...])``, or as Hugging Face's data
    sets have them, ``{"image": ..., "objects": {"bbox": ..., "category": ...}}``, become labels, and boxes as edges in
    pixels, or in the format that they are written in, where ``box_format`` says so. ``size``: the image's height and
    width. Raises TypeError for a sample of another form, DecodeError for wrong objects, and for another ``box_format``
    or ``normalized`` boxes, as which they were never written.
    """
    beside = _beside(sample)
    if beside is None:
        kinds = ", ".join(type(one).__name__ for one in sample) if isinstance(sample, (list, tuple)) else ""
        got = f"a {type(sample).__name__}{f' of {kinds}' if kinds else ''}"
        raise TypeError(f"{name}: got {got}; accepted with targets=: {_ACCEPTED}")
    found = {key: value for key, value in beside.items() if key not in (_LABEL, _OBJECTS)}
    if _OBJECTS not in beside:
        return found
    try:
        made = ObjectFields(classes=classes).read(beside[_OBJECTS], size)
    except (TypeError, ValueError, OverflowError) as error:
        raise DecodeError(name, f"its objects: {error}") from None
    if made.wrong:
        raise DecodeError(name, f"its objects: {made.wrong[0]}")
    boxes = made.targets.get("boxes")
    if boxes is not None and len(boxes) and (normalized or box_format != "xyxy"):
        if normalized or box_format != made.box_format:
            own = f", or box_format={made.box_format!r}" if made.box_format != "xyxy" else ""
            asked = f"vg.Targets(box_format={box_format!r}, normalized={normalized})"
            accepted = f"vg.Targets(box_format='xyxy'), for edges{own}, in pixels"
            raise DecodeError(
                name, f"its objects: read as {made.box_format} in pixels, got {asked}; accepted: {accepted}"
            )
        boxes[:, 2:] -= boxes[:, :2]  # "xywh", the only other format that objects are read in
    return found | made.targets


def label_beside(sample: Any) -> Any:
    """The image's own label; None without."""
    beside = _beside(sample)
    return None if beside is None else beside.get(_LABEL)


def _beside(sample: Any) -> dict[str, Any] | None:
    if isinstance(sample, Mapping):
        image = next((key for key in IMAGE_NAMES if key in sample), None)
        return {key: value for key, value in sample.items() if key != image}
    if not isinstance(sample, (list, tuple)) or len(sample) != 2:
        return None
    second = sample[1]
    if isinstance(second, list) and all(isinstance(one, Mapping) for one in second):
        return {_OBJECTS: second}
    return dict(second) if isinstance(second, Mapping) else None
