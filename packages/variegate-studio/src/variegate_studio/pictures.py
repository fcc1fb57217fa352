"""Encode pictures for a browser, and compute how much an operation changed them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image

from variegate.apps.preview.overlay import draw_overlay
from variegate.apps.preview.sheet import Cell
from variegate.apps.preview.text import colors_of
from variegate.ops.layers import luma

_BINS = 64

Image_HWC = npt.NDArray[np.uint8]


def to_jpeg(img_HWC: Image_HWC, quality: int = 90) -> bytes:
    """Without chroma subsampling, which would hide what colors an operation makes."""
    space = "GRAY" if img_HWC.shape[2] == 1 else "RGB"
    pixels = np.ascontiguousarray(img_HWC)
    return bytes(simplejpeg.encode_jpeg(pixels, quality, space, "444" if space == "RGB" else "Gray"))


def drawn_over(cell: Cell) -> Image_HWC:
    """Picture with its boxes, masks and points."""
    if cell.overlay is None:
        return cell.img_HWC
    pixels = cell.img_HWC if cell.img_HWC.shape[2] == 3 else np.repeat(cell.img_HWC[:, :, :1], 3, axis=2)
    picture = Image.fromarray(pixels)
    draw_overlay(picture, cell.overlay, pixels.shape[:2], colors_of(cell.overlay.classes()))
    return np.asarray(picture)


def difference(made: Image_HWC, original_HWC: Image_HWC) -> float:
    """Mean absolute difference of levels; an image of another size is compared with the original at that size."""
    height, width, channels = made.shape
    if made.shape[:2] != original_HWC.shape[:2]:
        mode = original_HWC if original_HWC.shape[2] == 3 else original_HWC[:, :, 0]
        resized = np.asarray(Image.fromarray(mode).resize((width, height), Image.Resampling.BILINEAR))
        original_HWC = resized.reshape(height, width, -1)
    if channels != original_HWC.shape[2]:
        made, original_HWC = made.mean(axis=2, keepdims=True), original_HWC.mean(axis=2, keepdims=True)
    return float(np.abs(made.astype(np.int16) - original_HWC.astype(np.int16)).mean())


def histograms(images: list[Image_HWC]) -> dict[str, list[int]]:
    """Numbers of pixels in 64 bins of levels, by every fourth line and column."""
    pixels = [np.broadcast_to(each, (*each.shape[:2], 3))[::4, ::4].reshape(-1, 3) for each in images]
    red, green, blue = np.concatenate([np.zeros((0, 3), np.uint8), *pixels]).T.astype(np.int32)
    of: dict[str, Any] = {"red": red, "green": green, "blue": blue, "luma": luma(red, green, blue)}
    return {name: np.bincount(levels >> 2, minlength=_BINS).tolist() for name, levels in of.items()}
