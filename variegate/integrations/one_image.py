"""One image as users' data sets give it, and through a transform that is called as torch's are: ``t(image)``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter import Augmenter
from variegate.data.decode import check_side, read_image
from variegate.data.sources.objects.sample import image_of
from variegate.integrations.streams import RunningIds
from variegate.transforms import Transform

# One count for all transforms of a process: two that are called one after another, each with a count of its own, would
# draw the same numbers for every image.
_ids = RunningIds()

_ATTRIBUTE = "_alone"  # which a transform leaves out of what it tells of itself


def to_array(image: Any, where: str) -> npt.NDArray[np.uint8]:
    """uint8 [H, W, 3] or [H, W, 1] of whatever ``image_of`` takes; the bytes of files are decoded.

    Raises TypeError, or DecodeError for a damaged image or a shape that is no image's, calling the image ``where``.
    """
    pixels = image_of(image, where)
    if isinstance(pixels, bytes):
        pixels = read_image(pixels, where)
        check_side(where, *pixels.shape[:2])
    return pixels


def augment_one(transform: Transform, image: Any) -> torch.Tensor:
    """``image`` as for ``as_transform``, at the next place of the running count and epoch 0; a tensor [C, H, W]."""
    _check_is_one(image)
    augmenter: Augmenter | None = transform.__dict__.get(_ATTRIBUTE)
    if augmenter is None:
        augmenter = Augmenter(transform, num_threads=1)
        # Beside the fields, so that equality, hash and descriptions know nothing of it.
        object.__setattr__(transform, _ATTRIBUTE, augmenter)
    return augmenter([to_array(image, "image")], ids=_ids.take(1))[0]


def _check_is_one(image: Any) -> None:
    accepted = "one image; vg.Augmenter(t)(images) takes a list or a batch"
    if isinstance(image, (list, tuple)):
        raise TypeError(f"image: got a {type(image).__name__} of {len(image)}; accepted: {accepted}")
    shape = getattr(image, "shape", ())
    if len(shape) == 4:
        raise ValueError(f"image: got shape {tuple(shape)}; accepted: {accepted}")
