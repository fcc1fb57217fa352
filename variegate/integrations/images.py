"""One image as users' data sets give them, as the array that an ``Augmenter`` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.decode import check_side, read_image
from variegate.data.sources.objects.sample import image_of


def to_array(image: Any, where: str) -> npt.NDArray[np.uint8]:
    """uint8 [H, W, 3] or [H, W, 1] of whatever ``image_of`` takes; the bytes of files are decoded.

    Raises TypeError, or DecodeError for a damaged image or a shape that is no image's, calling the image ``where``.
    """
    pixels = image_of(image, where)
    if isinstance(pixels, bytes):
        pixels = read_image(pixels, where)
        check_side(where, *pixels.shape[:2])
    return pixels
