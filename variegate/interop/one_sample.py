"""One image, alone or with its targets, in the forms that torchvision's transforms accept and return: a dict, or
several arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any

import numpy as np
from PIL import Image
from torch.utils.data import get_worker_info

from variegate.arrays import ImageArray, UInt64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.data.objects.samples import image_of
from variegate.decode import check_side, read_image
from variegate.errors import short_repr
from variegate.ops.base import Transform, set_field
from variegate.program import rng
from variegate.program.program import is_kernel_image
from variegate.targets.samples import image_like
from variegate.targets.settings import Targets, is_tv_tensor

_ACCEPTED = (
    "beside an image a dict of what belongs to it ('boxes', 'mask', ...), torchvision's BoundingBoxes, Mask or "
    "KeyPoints, or what stays as it is: labels, paths"
)
_MASK64 = (1 << 64) - 1
_ATTRIBUTE = "_alone"  # pickles and descriptions of a transform omit it
_KEYS = {"BoundingBoxes": "boxes", "Mask": "mask", "KeyPoints": "keypoints"}


def is_sample(value: Any) -> bool:
    """True for a dict with an image; Hugging Face's undecoded images are also dicts."""
    return isinstance(value, Mapping) and "image" in value


def is_beside(value: Any) -> bool:
    """True if the argument after an image may be its targets, and is no id."""
    return isinstance(value, (Mapping, list, tuple, Image.Image)) or getattr(value, "ndim", 0) > 0


def is_image(value: Any) -> bool:
    """True if it may be an image of its own."""
    is_target = is_tv_tensor(value) and type(value).__name__ in _KEYS
    return isinstance(value, Image.Image) or (getattr(value, "ndim", 0) > 1 and not is_target)


def to_array(image: Any, where: str) -> ImageArray:
    """[H, W, C] of whatever ``image_of`` takes, of arrays and tensors in their own dtype.

    Raises TypeError or DecodeError naming ``where``.
    """
    pixels = image_of(image, where, keeps_depth=True)
    if isinstance(pixels, bytes):
        pixels = read_image(pixels, where)
        check_side(where, *pixels.shape[:2])
    return pixels


def augment_inputs(augmenter: Augmenter, inputs: tuple[Any, ...], targets: Targets | None, **given: Any) -> Any:
    """Return a dict for a dict with an image; else a tuple of the kinds of the inputs. ``given``: ids, epoch and
    conditions."""
    if len(inputs) == 1:
        if not is_sample(inputs[0]):
            raise TypeError(f"sample: got {short_repr(inputs[0])} with targets=; accepted: a dict with 'image'")
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
    opened = {**sample, "image": image if augmenter.consistent else to_array(image, "sample['image']")}
    boxes: Any = sample.get("boxes")
    if targets is None and is_tv_tensor(boxes):
        targets = Targets().with_format(boxes.format.name.lower())
    result: dict[str, Any] = augmenter(opened, targets=targets, **given)
    return {**result, "image": image_like(result["image"], image, augmenter.layout)}


def _take_in(value: Any, place: int, sample: dict[str, Any]) -> str | None:
    """Add an input to the image's sample -> its key; None for dicts, "" for an unchanged input."""

    def add(entries: Mapping[str, Any]) -> None:
        if twice := [key for key in entries if key in sample]:
            raise ValueError(f"inputs[{place}]: got {twice[0]!r}, which the sample has already; accepted: each once")
        sample.update(entries)

    if isinstance(value, Mapping):
        add(value)
        return None
    if is_tv_tensor(value) and (key := _KEYS.get(type(value).__name__)) is not None:
        key = "masks" if key == "mask" and value.ndim == 3 else key
        add({key: value})
        return key
    # Labels, also several, and paths: values that do not move with the image. Four numbers may be a box.
    shape = tuple(getattr(value, "shape", ()))
    if isinstance(value, (list, tuple, Image.Image)) or len(shape) > 1 or shape == (4,):
        got = short_repr(value) if not hasattr(value, "shape") else f"{type(value).__name__}{list(value.shape)}"
        raise TypeError(f"inputs[{place}]: got {got}; accepted: {_ACCEPTED}")
    # Cond may choose by it.
    if "label" in sample or not isinstance(value, Number):
        return ""
    sample["label"] = value
    return "label"


def form_of(item: Any) -> str:
    """``"a dict"``, ``"a tuple of 4"``."""
    return f"a {type(item).__name__}" + (f" of {len(item)}" if isinstance(item, (tuple, list)) else "")


class RunningIds:
    """Ids for samples that have none: a count, which in a worker begins at a hash of its seed, that of a DataLoader.

    Persistent workers keep their seed and count on.
    """

    def __init__(self) -> None:
        # One count per worker's seed (None: no worker), should several live in one process.
        self._counts: dict[int | None, Iterator[int]] = {}

    def take(self, number: int) -> UInt64Array:
        # One by one: of several threads none gets another's.
        return np.array([self.take_one() for _ in range(number)], np.uint64)

    def take_one(self) -> int:
        worker = get_worker_info()
        seed = None if worker is None else int(worker.seed)
        count = self._counts.get(seed)
        if count is None:
            low, high = (0, 0) if seed is None else rng.stream_key(seed & _MASK64, 0)
            count = self._counts.setdefault(seed, itertools.count(int(low) | int(high) << 32))
        return next(count) & _MASK64

    def __reduce__(self) -> tuple[Any, ...]:
        return RunningIds, ()  # a copy is for a worker, and restarts there


# One for all transforms of a process: two, each with a count of its own, would draw the same numbers for every image.
_ids = RunningIds()


def augment_one(transform: Transform, image: Any, others: tuple[Any, ...] = (), targets: Targets | None = None) -> Any:
    """``Transform.__call__``: a tensor [C, H, W]; of a dict, or with ``others``, what ``augment_inputs`` gives."""
    if is_kernel_image(image) and not others and targets is None:
        return _augmenter_of(transform).of_one(image, [_ids.take_one()])
    if isinstance(image, (list, tuple)) and image and not others and not any(map(is_image, image[1:])):
        first = augment_one(transform, image[0], tuple(image[1:]), targets)
        parts = first if len(image) > 1 else (first,)
        return type(image)(*parts) if hasattr(image, "_fields") else type(image)(parts)
    if others or targets is not None or is_sample(image):
        return augment_inputs(_augmenter_of(transform), (image, *others), targets, ids=_ids.take_one())
    accepted = "one image; vg.Augmenter(t)(images) takes a list or a batch"
    if isinstance(image, (list, tuple)):
        raise TypeError(f"image: got {form_of(image)}; accepted: {accepted}")
    if len(shape := getattr(image, "shape", ())) == 4:
        raise ValueError(f"image: got shape {tuple(shape)}; accepted: {accepted}")
    return _augmenter_of(transform).of_one(to_array(image, "image"), [_ids.take_one()])


def _augmenter_of(transform: Transform) -> Augmenter:
    augmenter: Augmenter | None = transform.__dict__.get(_ATTRIBUTE)
    if augmenter is None:
        augmenter = Augmenter(transform, num_threads=1)
        set_field(transform, _ATTRIBUTE, augmenter)  # no field, so that equality, hash and descriptions ignore it
    return augmenter
