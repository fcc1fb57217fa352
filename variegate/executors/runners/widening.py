"""Gray images that a program reads as three equal channels, since ``Grayscale(3)`` makes these of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.one_image import OneImage
from variegate.program.program import Program


def widened(batch: Any, program: Program) -> Any:
    """A runner's batch, or an ``EncodedBatch``, with the channels that its program was sampled for."""
    shapes = batch.shapes
    is_known = program.source < len(shapes)
    source = program.source[is_known]
    is_wide = (shapes[source, 2] == 1) & (program.in_shape[is_known, 2] == 3)
    if not is_wide.any():
        return batch
    shapes = shapes.copy()
    shapes[source[is_wide], 2] = 3
    return batch.widened(shapes)


def as_read(image: OneImage, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The same of an image alone."""
    return pixels if pixels.shape[2] == 3 or image.channels[0] == 1 else np.repeat(pixels, 3, axis=2)
