"""Masks, boxes, key points and further images beside an image: augmenting it alone would leave them behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

Size = tuple[int, int]

# Words of a key which say that its value lies in the image's own coordinates ...
_PLACES = frozenset(
    (
        *("mask", "segmentation", "segm", "box", "bbox", "boundingbox"),
        *("polygon", "contour", "keypoint", "landmark", "heatmap", "trimap"),
    )
)
# ... and those that say so only where they are the whole key: "flow_rate" and "instance_id" are harmless.
_ALONE = frozenset(
    (
        *("seg", "semantic", "panoptic", "instance", "depth", "disparity"),
        *("flow", "normal", "point", "joint", "matte", "saliency"),
    )
)
_ACCEPTED = (
    "labels, ids, names and numbers beside an image; masks, boxes, key points and further images would not be "
    "augmented along with it, but by vg.Loader, vg.Collate or vg.as_transform with targets=vg.Targets(...)"
)
# How far a sample is looked through.
_DEEPEST, _LONGEST = 6, 64
# Sides from which on a plane of bytes is taken for a picture, and not for a table.
_PICTURE_SIDE = 8
_FILE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*")


def check_beside(value: Any, where: str, size: Size | None, depth: int = 0) -> None:
    """Refuse what would have to be moved along with an image of ``size`` (height, width; None: not known).

    ``value`` is what came with the image, such as its label, and is looked through. Raises TypeError naming the place
    (``items[3][1]['boxes']``), what it holds and what is accepted.
    """
    if value is None or isinstance(value, (str, int, float, np.generic)) or depth > _DEEPEST:
        return
    if found := _found(value, size):
        raise TypeError(f"{where}: got {found}; accepted: {_ACCEPTED}")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_entry(key, inner, where, size, depth)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value[:_LONGEST]):
            check_beside(inner, f"{where}[{i}]", size, depth + 1)


def check_entries(entries: Mapping[Any, Any], image_key: Any, where: str, size: Size | None) -> None:
    """``check_beside`` for all entries of a sample but its image; their names may tell as well."""
    for key, value in entries.items():
        if key != image_key:
            _check_entry(key, value, where, size, 0)


def check_is_image(image: Any, where: str) -> None:
    """Refuse torchvision's masks, boxes and key points in the place of an image, for all that they are tensors."""
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
        raise TypeError(f"{place}: got {_found(value, size) or other}; accepted: {_ACCEPTED}")
    check_beside(value, place, size, depth + 1)


def _names_a_place(key: Any, value: Any) -> bool:
    """True if an entry is a mask, boxes and the like by its name. Flags and counts are not, nor are paths of masks."""
    if not isinstance(key, str) or value is None or isinstance(value, (bool, int, float, np.generic)):
        return False
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", key).lower())
    words = [word.removesuffix("es") if word.endswith("xes") else word.removesuffix("s") for word in words]
    whole = "".join(words)
    if whole in _PLACES:
        return True
    return not isinstance(value, str) and (whole in _ALONE or not _PLACES.isdisjoint(words))


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
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", "")).removeprefix("torch.")
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
    """The name of torchvision's tensor class, by which it says what it holds; "" for anything else."""
    cls = type(value)
    return cls.__name__ if cls.__module__.startswith(("torchvision.tv_tensors", "torchvision.datapoints")) else ""
