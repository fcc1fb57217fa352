"""Images the tests share: real photos (scikit-image's, in its package) and noise, at ordinary and at awkward sizes."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import skimage.data

Image = npt.NDArray[np.uint8]

PHOTOS = ("astronaut", "coffee", "chelsea", "rocket")
# One pixel, one row, one column, the smallest with an inside, and odd ones of either aspect; heights and widths.
SIZES = ((1, 1), (1, 7), (7, 1), (3, 3), (37, 53), (223, 225))


@cache
def _whole(name: str) -> Image:
    return np.ascontiguousarray(getattr(skimage.data, name)())


def photo(height: int = 64, width: int = 80, name: str = "astronaut") -> Image:
    """The upper middle of a photo: uint8[height, width, 3]."""
    whole = _whole(name)
    top, left = min(40, whole.shape[0] - height), (whole.shape[1] - width) // 2
    return whole[top : top + height, left : left + width].copy()


def gray(height: int = 64, width: int = 80) -> Image:
    """The middle of a photo in gray levels: uint8[height, width, 1]."""
    whole = _whole("camera")
    top, left = (whole.shape[0] - height) // 2, (whole.shape[1] - width) // 2
    return whole[top : top + height, left : left + width, None].copy()


def noise(height: int = 64, width: int = 80, channels: int = 3, seed: int = 0) -> Image:
    """Independent random pixels, where every wrong neighbour shows: uint8[height, width, channels]."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def sized_images() -> dict[str, Image]:
    """By name: a colour and a gray photo of every size in SIZES, noise, and constant images."""
    images: dict[str, Image] = {}
    for height, width in SIZES:
        images[f"rgb-{height}x{width}"] = photo(height, width)
        images[f"gray-{height}x{width}"] = gray(height, width)
    images["noise-31x29"] = noise(31, 29)
    images["black-5x4"] = np.zeros((5, 4, 3), np.uint8)
    images["two-levels-6x6"] = np.where(np.arange(36).reshape(6, 6, 1) < 18, 40, 200).astype(np.uint8).repeat(3, axis=2)
    return images
