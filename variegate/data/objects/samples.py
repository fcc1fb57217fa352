"""Split samples of data sets into pixels or bytes, a label and targets; refuse other content."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from variegate.arrays import ImageArray
from variegate.data.annotated.records import ObjectFields
from variegate.data.base import SourceError
from variegate.data.labels import IMAGE_NAMES, LABEL_NAMES, NO_LABEL, check_int64
from variegate.decode import check_side, pixels_of_pil, read_bytes
from variegate.decode.depth import ADVICE, as_read, readable_dtypes
from variegate.errors import DecodeError
from variegate.program.depth import Depth, in_native_order
from variegate.program.program import MAX_CHANNELS

Size = tuple[int, int]

_ACCEPTED_SAMPLES = '(image, label, ...), {"image": ..., "label": ...} or an image'
_ACCEPTED_IMAGES = (
    "a PIL image, a uint8 or uint16 array [H, W, C] or [H, W], a uint8 or uint16 tensor [C, H, W] or [H, W] (C = 1 to "
    "32), or the bytes of an image file"
)
_ACCEPTED_LABELS = "an int, a float, an array or list of numbers, or the name of a class"
_ACCEPTED_TARGETS = "a dict, an image and a dict, or an image and a list of dicts of objects"
_ACCEPTED_BESIDE = (
    "labels, ids, names and numbers beside an image; masks, boxes, key points and further images would not be "
    "augmented along with it, but by vg.Loader, vg.Collate or vg.as_transform with targets=vg.Targets(...)"
)
# Words in keys of values that are in the image's own coordinates ...
_PLACES = {"mask", "segmentation", "segm", "box", "bbox", "boundingbox", "polygon", "contour", "keypoint", "landmark"}
_PLACES |= {"heatmap", "trimap"}
# ... and words that say so only as the complete key: "flow_rate" and "instance_id" are harmless.
_ALONE = {"seg", "semantic", "panoptic", "instance", "depth", "disparity", "flow", "normal", "point", "joint", "matte"}
_ALONE |= {"saliency"}
# How far a sample is looked through.
_DEEPEST = 6
_LONGEST = 64
# Sides from which on a plane of bytes is taken for a picture, and not for a table.
_PICTURE_SIDE = 8
_FILE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*")


def split_sample(sample: Any, name: str) -> tuple[Any, Any]:
    """Split a sample into (image, label); the label is None if missing. Raises TypeError naming the sample's
    content."""
    if isinstance(sample, Mapping):
        if (key := _first(IMAGE_NAMES, sample)) is not None:
            return sample[key], next((sample[key] for key in LABEL_NAMES if key in sample), None)
        if "bytes" in sample:  # an undecoded image of Hugging Face's on its own
            return sample, None
        keys = ", ".join(map(repr, sample)) or "nothing"
        raise TypeError(f"{name}: got a dict with {keys}; accepted: {_ACCEPTED_SAMPLES}")
    if isinstance(sample, (tuple, list)):
        if not sample:
            raise TypeError(f"{name}: got an empty {type(sample).__name__}; accepted: {_ACCEPTED_SAMPLES}")
        return sample[0], sample[1] if len(sample) > 1 else None
    return sample, None


def _first(names: Sequence[str], sample: Mapping[Any, Any]) -> str | None:
    return next((name for name in names if name in sample), None)


def check_rest(sample: Any, image: bytes | ImageArray, name: str) -> None:
    """Refuse masks, boxes and similar entries next to the image that ``image_of`` returned. Raises TypeError."""
    size = None if isinstance(image, bytes) else (image.shape[0], image.shape[1])
    if isinstance(sample, Mapping):
        if (key := _first(IMAGE_NAMES, sample)) is not None:
            check_entries(sample, key, name, size)
    elif isinstance(sample, (tuple, list)):
        for i, value in enumerate(sample[1:], 1):
            check_no_targets(value, f"{name}[{i}]", size)


def image_of(image: Any, name: str, reads_files: bool = True, keeps_depth: bool = False) -> bytes | ImageArray:
    """Return bytes unchanged, and anything else as [H, W, C] in the depth that this thread reads, or with
    ``keeps_depth`` in its own.

    Arrays have their channels last, tensors first if possible. The EXIF orientation of PIL images is not applied, as in
    torchvision (that of files and their bytes is). A PIL image that was opened and not yet loaded is decoded here, and
    must not be given to two threads at once. ``reads_files``: read {"bytes": None, "path": ...}, Hugging Face's form;
    False if such rows come from a table, which anybody may have written. Raises TypeError for other kinds and dtypes,
    DecodeError for a damaged image or a shape that is no image's.
    """
    check_is_image(image, name)
    if isinstance(image, Image.Image):
        return pixels_of_pil(image, name, keeps_depth)
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, Mapping) and "bytes" in image:
        data = image["bytes"]
        path = image.get("path")
        if data is None and path is not None and reads_files:
            return read_bytes(path, f"{name}: {os.fspath(path)}")
        if data is None:
            other = "the file that it names is not read here, but by vg.open_source"
            what = "its bytes and its path are None" if path is None else f"its bytes are null; {other}"
            raise DecodeError(name, f"no image: {what}")
        return bytes(data)
    is_array = isinstance(image, np.ndarray)
    if not is_array:
        import torch  # takes a second to load, which listing a folder should not

        if not isinstance(image, torch.Tensor):
            raise TypeError(f"{name}: got {type(image).__name__} for an image; accepted: {_ACCEPTED_IMAGES}")
    dtype = image.dtype.name if is_array else str(image.dtype).removeprefix("torch.")
    accepted = tuple(map(str, Depth)) if keeps_depth else readable_dtypes()
    if dtype not in accepted:
        raise TypeError(
            f"{name}: got an image of dtype {image.dtype}; accepted: {' or '.join(accepted)}. Leave ToTensor, ToDtype "
            "and Normalize out of the data set's own transform: they belong to the transform given to Variegate, or "
            f"{ADVICE}"
        )
    array = image
    shape = tuple(image.shape)
    if not is_array:
        if image.requires_grad:
            raise TypeError(f"{name}: got a tensor that requires a gradient; accepted: tensor.detach()")
        if image.device.type != "cpu":
            raise TypeError(f"{name}: got a tensor on {image.device}; accepted: {_ACCEPTED_IMAGES}, on the CPU")
        # A dimension of one or three is channels, the smaller one if both qualify.
        least = [(side not in (1, 3), side) for side in shape]
        channels_first = image.ndim == 3 and (shape[0] in (1, 3) or least[0] < least[2]) and shape[0] <= MAX_CHANNELS
        array = (image.permute(1, 2, 0) if channels_first else image).detach().numpy()
    array = array[:, :, None] if array.ndim == 2 else array
    is_several = array.ndim == 3 and array.shape[0] not in (1, 3) and array.shape[2] <= MAX_CHANNELS
    if (not is_several and (array.ndim != 3 or array.shape[2] not in (1, 3))) or 0 in shape:
        raise DecodeError(name, f"got shape {shape}; accepted: {_ACCEPTED_IMAGES}")
    check_side(name, array.shape[0], array.shape[1])
    return np.ascontiguousarray(in_native_order(array) if keeps_depth else as_read(array, name))


def label_of(label: Any, name: str, classes: Sequence[str]) -> Any:
    """An int, a float or an array; None is -1. A str is looked up in ``classes``."""
    if label is None:
        return NO_LABEL
    if isinstance(label, str):
        if label in classes:
            return classes.index(label)
        known = f"one of the classes {', '.join(classes)}" if classes else _ACCEPTED_LABELS.rpartition(", or")[0]
        raise TypeError(f"{name}: got the label {label!r}; accepted: {known}")
    kind = f"{name}: got {type(label).__name__} for a label"
    try:
        array = np.asarray(label)
        check_int64("label", array)
    except SourceError as error:
        raise DecodeError(name, str(error)) from None
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{kind} ({error}); accepted: {_ACCEPTED_LABELS}") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{kind}; accepted: {_ACCEPTED_LABELS}")
    if array.ndim:
        return array
    return float(array) if array.dtype.kind == "f" else int(array)


def other_targets(
    sample: Any, size: Size, name: str, classes: tuple[str, ...], box_format: str, normalized: bool
) -> dict[str, Any]:
    """Targets: all other entries of a sample, under their own names, except the image's own label. Objects in COCO's
    form (a list of dicts) or Hugging Face's (``objects``) become labels, and boxes as edges in pixels, or in the format
    ``box_format``. ``size``: height and width. Raises TypeError for a sample of another form, DecodeError for wrong
    objects, and for another ``box_format`` or ``normalized`` boxes."""
    entries = _entries(sample)
    if entries is None:
        kinds = ", ".join(type(one).__name__ for one in sample) if isinstance(sample, (list, tuple)) else ""
        got = f"a {type(sample).__name__}{f' of {kinds}' if kinds else ''}"
        raise TypeError(f"{name}: got {got}; accepted with targets=: {_ACCEPTED_TARGETS}")
    found = {key: value for key, value in entries.items() if key not in ("label", "objects")}
    if "objects" not in entries:
        return found
    try:
        made = ObjectFields(classes=classes).read(entries["objects"], size)
        if made.errors.invalid:
            raise ValueError(made.errors.first)
    except (TypeError, ValueError, OverflowError) as error:
        raise DecodeError(name, f"its objects: {error}") from None
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


def own_label(sample: Any) -> Any:
    """The image's own label; None without."""
    return (_entries(sample) or {}).get("label")


def _entries(sample: Any) -> dict[Any, Any] | None:
    """All but the image, by name; None for a sample of another form."""
    if isinstance(sample, Mapping):
        image = _first(IMAGE_NAMES, sample)
        return {key: value for key, value in sample.items() if key != image}
    if not isinstance(sample, (list, tuple)) or len(sample) != 2:
        return None
    second = sample[1]
    if isinstance(second, list) and all(isinstance(one, Mapping) for one in second):
        return {"objects": second}
    return dict(second) if isinstance(second, Mapping) else None


def check_no_targets(value: Any, where: str, size: Size | None, depth: int = 0) -> None:
    """Refuse entries of a sample that would have to be transformed with its image of ``size`` (height, width; None:
    unknown). Raises TypeError naming the entry (``items[3][1]['boxes']``), its content and accepted values."""
    if value is None or isinstance(value, (str, int, float, np.generic)) or depth > _DEEPEST:
        return
    if found := _found(value, size):
        raise TypeError(f"{where}: got {found}; accepted: {_ACCEPTED_BESIDE}")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_entry(key, inner, where, size, depth)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value[:_LONGEST]):
            check_no_targets(inner, f"{where}[{i}]", size, depth + 1)


def check_entries(entries: Mapping[Any, Any], image_key: Any, where: str, size: Size | None) -> None:
    """``check_no_targets`` for all entries of a sample but its image; their names may tell as well."""
    for key, value in entries.items():
        if key != image_key:
            _check_entry(key, value, where, size, 0)


def check_is_image(image: Any, where: str) -> None:
    """Refuse torchvision's masks, boxes and key points instead of an image, although they are tensors."""
    name = _tv_tensor(image)
    if name not in ("", "Image"):
        raise TypeError(f"{where}: got a tv_tensors.{name}; accepted: an image")


def _check_entry(key: Any, value: Any, where: str, size: Size | None, depth: int) -> None:
    place = f"{where}[{key!r}]"
    if _names_a_place(key, value):
        shape = getattr(value, "shape", None)
        other = f"a {type(value).__name__}"
        if isinstance(shape, tuple):
            other = f"an array {str(value.dtype).removeprefix('torch.')}{list(shape)}"
        raise TypeError(f"{place}: got {_found(value, size) or other}; accepted: {_ACCEPTED_BESIDE}")
    check_no_targets(value, place, size, depth + 1)


def _names_a_place(key: Any, value: Any) -> bool:
    """True if the entry's name says that it is a mask, boxes or similar. Flags and counts are not, nor are paths of
    masks."""
    if not isinstance(key, str) or value is None or isinstance(value, (bool, int, float, np.generic)):
        return False
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", key).lower())
    words = [word.removesuffix("es") if word.endswith("xes") else word.removesuffix("s") for word in words]
    whole = "".join(words)
    return whole in _PLACES or (not isinstance(value, str) and (whole in _ALONE or not _PLACES.isdisjoint(words)))


def _found(value: Any, size: Size | None) -> str:
    """A value in words, if it is a picture or boxes by its kind or shape; else ""."""
    if isinstance(value, Image.Image):
        return f"a PIL image of {value.height} x {value.width}"
    if _tv_tensor(value):
        return f"a tv_tensors.{_tv_tensor(value)}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "an image file" if bytes(value[:4]).startswith(_FILE_STARTS) else ""
    if isinstance(value, Mapping):
        return "an image file" if isinstance(value.get("bytes"), bytes) else ""
    if isinstance(value, (list, tuple)):
        return f"{len(value)} boxes" if value and all(map(_is_box, value)) else ""
    shape = getattr(value, "shape", None)
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if not isinstance(shape, tuple) or len(shape) < 2:
        return ""
    if len(shape) == 2 and shape[1] == 4:
        return f"boxes {dtype}{list(shape)}"
    if size is not None and min(size) > 1 and size in (shape[-2:], shape[-3:-1], shape[:2]):
        return f"an array {dtype}{list(shape)} of the image's height and width"
    sides = shape
    if len(shape) > 2:
        sides = shape[-3:-1] if shape[-1] in (1, 3, 4) else shape[-2:]
    are_bytes = dtype in ("uint8", "bool") or (size is None and "int" in dtype)
    return f"a picture {dtype}{list(shape)}" if are_bytes and min(sides) >= _PICTURE_SIDE else ""


def _is_box(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 4 and all(isinstance(v, (int, float)) for v in value)


def _tv_tensor(value: Any) -> str:
    """The name of torchvision's tensor class, which identifies its content; "" for anything else."""
    cls = type(value)
    return cls.__name__ if cls.__module__.startswith(("torchvision.tv_tensors", "torchvision.datapoints")) else ""
