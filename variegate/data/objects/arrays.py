"""Images in memory, or in a memory-mapped file: one array, or a list of any sizes."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, ImageArray, Int64Array
from variegate.data.base import SampleRef, SourceError, digest_of
from variegate.data.labels import (
    Labels,
    accepted_classes,
    check_classes,
    check_int64,
    first_outside,
    hash_labels,
)
from variegate.data.objects.samples import check_no_targets
from variegate.data.samples import Samples, Store
from variegate.decode.depth import as_read
from variegate.program.depth import Depth
from variegate.program.program import MAX_CHANNELS, MAX_SIDE

Image = ImageArray

_ACCEPTED = (
    "uint8, uint16 or float32 [N, H, W, C] or [N, H, W] with C = 1 to 32, or a list of images [H, W, C] or [H, W]"
)
# The fingerprint reads this many images, and this many bytes of each: a mebibyte at most.
_IMAGES_LOOKED_AT = 64
_BYTES_LOOKED_AT = 16384


class ArrayStore(Store):
    """Images in memory. Pickled, an array that maps a file is mapped again by the file's name."""

    def __init__(self, images: Image | list[Image]) -> None:
        self._images = images

    def read(self, samples: Samples, row: int) -> Image:
        """The pixels [H, W, C], a view unless they are read in another depth."""
        image = as_read(np.asarray(self._images[row]), str(self.name(row)))
        return image[:, :, None] if image.ndim == 2 else image

    def pixels(self, rows: Int64Array) -> Image:
        assert isinstance(self._images, np.ndarray)
        gathered = as_read(np.asarray(self._images[rows]), "images")
        return gathered[..., None] if gathered.ndim == 3 else gathered

    def name(self, row: int) -> SampleRef:
        return SampleRef("images", f"item {row}")

    def digest(self, samples: Samples) -> str:
        """Digest of the shapes, the labels, and the pixels of up to 64 images, up to 16 KiB of each: other pixels may
        change unnoticed."""
        images = self._images
        assert not callable(samples.label)
        shapes = [images.shape] if isinstance(images, np.ndarray) else [image.shape for image in images]
        parts: list[str | bytes] = ["\0".join(samples.classes), hash_labels(samples.label), repr(shapes)]
        for index in np.unique(np.linspace(0, len(images) - 1, _IMAGES_LOOKED_AT).astype(np.int64)):
            flat = np.asarray(images[index]).reshape(-1)
            parts.append(flat[:: max(1, -(-flat.size // _BYTES_LOOKED_AT))].tobytes())
        return digest_of(*parts)

    def __getstate__(self) -> dict[str, Any]:
        mapped = _as_mapping(self._images)
        return self.__dict__ if mapped is None else {**self.__dict__, "_images": mapped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(state["_images"], dict):
            self._images = np.memmap(mode="r", **state["_images"])


def open_arrays(images: Any, labels: Any = None, classes: Sequence[str] = ()) -> Samples:
    """Open one array or CPU tensor [N, H, W, C] or [N, H, W] (C = 1 to 32) of uint8, uint16 or float32. Or a list of
    images [H, W, C] and [H, W].

    ``labels``: one for each image, as list, array or tensor: ints, floats, or [N, ...] for an array a sample; without
    them every label is -1. Masks and boxes are no labels, as they would not fit the augmented image. ``classes``: names
    of int labels.

    Nothing is copied: a memory-mapped file stays one, and items are views, not to be written to. The depth in which
    they are read is that of ``decode.depth.note_once``.

    Raises TypeError for other kinds and dtypes, SourceError (a ValueError) for shapes, lengths and labels out of range.
    """
    found = _check_images(images)
    names = check_classes(classes)
    label = None if labels is None else _check_labels(labels, len(found), names)
    if label is not None and label.ndim > 1:
        check_no_targets(label[0], "labels[0]", tuple(found[0].shape[:2]))
    return Samples(
        place=str(found.shape) if isinstance(found, np.ndarray) else "a list",
        size=len(found),
        store=ArrayStore(found),
        classes=names,
        label=label,
        is_decoded=True,
        is_stacked=isinstance(found, np.ndarray),
    )


def _as_mapping(images: Any) -> dict[str, Any] | None:
    """Arguments that map the file again; None for memory, for views into a mapping (which do not know where they begin)
    and for copy-on-write, whose changes the file does not have."""
    base: Any = images.base if isinstance(images, np.memmap) else None
    if not isinstance(base, mmap.mmap) or not images.flags.c_contiguous:
        return None
    if images.mode not in ("r", "r+", "w+") or images.filename is None:
        return None
    return {"filename": images.filename, "offset": images.offset, "shape": images.shape, "dtype": images.dtype}


def _check_images(images: Any) -> Image | list[Image]:
    whole = _as_array("images", images)
    if whole is not None and whole.dtype != object:
        return _check_pixels("images", whole, whole.shape[1:], f"{_ACCEPTED}, not empty")
    if not isinstance(images, (list, tuple, np.ndarray)):
        raise TypeError(f"images: got {type(images).__name__}; accepted: {_ACCEPTED}")
    if len(images) == 0:
        raise SourceError(f"images: got an empty list; accepted: {_ACCEPTED}, not empty")
    found = []
    accepted = "uint8, uint16 or float32 [H, W, 3], [H, W, 1] or [H, W]"
    for i, image in enumerate(images):
        array = _as_array(f"images[{i}]", image)
        if array is None:
            got = type(image).__name__
            raise TypeError(f"images[{i}]: got {got}; accepted: {accepted}, as array or CPU tensor")
        found.append(_check_pixels(f"images[{i}]", array, array.shape, f"{accepted}, no side empty"))
    return found


def _check_pixels(where: str, array: AnyArray, image_shape: tuple[int, ...], accepted: str) -> Image:
    """``image_shape``: the shape of the single image, or of each image in the array."""
    if array.dtype.name not in map(str, Depth):
        raise TypeError(f"{where}: got dtype {array.dtype}; accepted: {_ACCEPTED}")
    shape = f"{where}: got shape {array.shape}; accepted:"
    is_several = len(image_shape) == 3 and image_shape[0] not in (1, 3) and image_shape[2] <= MAX_CHANNELS
    if (not is_several and (image_shape[2:] not in ((), (1,), (3,)) or len(image_shape) < 2)) or 0 in array.shape:
        is_channels_first = array.ndim == 4 and array.shape[1] in (1, 3)
        hint = "; the channels come last: transpose(0, 2, 3, 1), or permute for a tensor" if is_channels_first else ""
        raise SourceError(f"{shape} {accepted}{hint}")
    # Here, where the image is called by its own number, and not by its place in some batch.
    if max(image_shape[:2]) > MAX_SIDE:
        raise SourceError(f"{shape} sides of at most {MAX_SIDE:,} pixels")
    return array


def _check_labels(labels: Any, length: int, classes: Sequence[str]) -> Labels:
    accepted = f"{length:,} labels, one for each image: ints, floats, or arrays of one shape"
    array = _as_array("labels", labels)
    try:
        array = np.asarray(labels) if array is None else array
    except ValueError as error:  # NumPy's word for rows of several lengths
        raise SourceError(f"labels: arrays of different shapes; accepted: {accepted}") from error
    # Of a list with one number beyond int64 and others within, NumPy makes floats.
    is_list = isinstance(labels, (list, tuple)) and array.dtype.kind == "f"
    are_ints = is_list and type(next(iter(labels), "")) is int
    check_int64("labels", np.array(labels, object) if are_ints else array)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"labels: got dtype {array.dtype}; accepted: {accepted}")
    if array.ndim == 0 or len(array) != length:
        got = f"{len(array):,} labels" if array.ndim else "a single number"
        raise SourceError(f"labels: got {got}; accepted: {accepted}")
    if array.dtype.kind == "b" and array.ndim == 1:
        array = array.astype(np.int64)
    outside = first_outside(array, classes)
    if outside is not None:
        raise SourceError(f"labels[{outside}]: got {array[outside]}; accepted: {accepted_classes(classes)}")
    return array


def _as_array(where: str, value: Any) -> AnyArray | None:
    """An array unchanged, or a view of a CPU tensor's memory; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    import torch  # takes a second to load, which listing a folder should not

    if not isinstance(value, torch.Tensor):
        return None
    if value.device.type != "cpu":
        raise TypeError(f"{where}: got a tensor on {value.device}; accepted: CPU tensors and arrays")
    return (value.float() if value.dtype == torch.bfloat16 else value).detach().numpy()
