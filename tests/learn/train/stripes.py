"""Labelled images that a small model learns within seconds."""

from __future__ import annotations

import numpy as np

from variegate import transforms as T
from variegate.learn.images import LabelledImages, load_images

NORMALIZE = T.Normalize(0.5, 0.25)


def stripes(number: int = 240) -> LabelledImages:
    """Three classes: stripes across, stripes down, none; in noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(number) % 3
    pixels = rng.integers(60, 120, (number, 8, 8, 3)).astype(np.uint8)
    pixels[labels == 0, ::2] += 90
    pixels[labels == 1, :, ::2] += 90
    return load_images((pixels, labels.tolist()), device="cpu")
