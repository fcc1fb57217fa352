"""Exposure, contrast and sharpness of the pixels of an image, by Pillow's histograms and differences of luminance.

Sharpness is the inverse of how wide edges are. Across an edge that a Gaussian of ``s`` pixels blurs, the energy of
second differences is 1 / (2 s^2) of the energy of first ones, whatever its contrast: so their ratio tells ``s``. It is
taken by blocks and for both directions: a sky has no edges and does not count, and a picture is as sharp as its
sharpest blocks are, which a blurred background does not change. Motion blurs edges of one direction, hence the duller
direction of the two is what counts. Large pictures are reduced first, as they will be for training.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.program.compiled import inner_kernel, pixel_kernel

# Pictures whose shorter side has twice as many pixels are reduced by 2 before sharpness is measured, and so on.
SHARPNESS_SIDE = 384
BLOCK = 16
# A block has edges where the mean square of first differences is at least this many squared levels.
LEAST_ENERGY = 6.0
# Rounding to whole levels adds 6 / 12 of a squared level to second differences.
ROUNDING = 0.5
# The part of the blocks with edges that is at least as sharp as the picture.
SHARPEST_PART = 0.1
_LEVELS = np.arange(256)


class PixelMeasures(NamedTuple):
    """``mean``, ``std``: by channel of RGB, 0 to 1. ``brightness``: mean luminance. ``dark_end``, ``bright_end``: the
    luminance that 5 % and 95 % of the pixels do not exceed. ``contrast``: standard deviation of luminance. ``entropy``:
    of its histogram of 256 levels, 0 to 8 bits. ``sharpness``: 1 / s for edges blurred by a Gaussian of s pixels, about
    2 at most; None where there is no edge to judge by.

    ``brightness`` is exact; the others go by luminance in whole levels, as Pillow's mode L has it.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    brightness: float
    dark_end: float
    bright_end: float
    contrast: float
    entropy: float
    sharpness: float | None


def measure_pixels(image: npt.NDArray[np.uint8]) -> PixelMeasures:
    """Of an image uint8 [H, W, 3], RGB, upright, at least one pixel. Releases the GIL for most of its time."""
    height, width = image.shape[:2]
    pixels = height * width
    picture = Image.fromarray(image)
    luma = picture.convert("L")
    channels = np.array(picture.histogram()).reshape(3, 256)
    histogram = np.array(luma.histogram())

    # In Python's whole numbers, which do not overflow.
    sums, squares = (channels @ _LEVELS).tolist(), (channels @ _LEVELS**2).tolist()
    total, total_square = int(histogram @ _LEVELS), int(histogram @ _LEVELS**2)
    mean = tuple(one / (255 * pixels) for one in sums)
    std = tuple(_deviation(pixels, one, square) for one, square in zip(sums, squares, strict=True))
    brightness = (299 * sums[0] + 587 * sums[1] + 114 * sums[2]) / (255_000 * pixels)
    below = np.cumsum(histogram)
    dark_end, bright_end = (float(np.searchsorted(below * 100, part * pixels)) / 255 for part in (5, 95))
    shares = histogram[histogram > 0] / pixels
    return PixelMeasures(
        (mean[0], mean[1], mean[2]),
        (std[0], std[1], std[2]),
        brightness,
        dark_end,
        bright_end,
        _deviation(pixels, total, total_square),
        max(0.0, float(-(shares * np.log2(shares)).sum())),
        sharpness_of(luma),
    )


def _deviation(count: int, total: int, total_square: int) -> float:
    """Standard deviation of ``count`` levels, on the scale 0 to 1, from their sum and the sum of their squares."""
    return float(max(0, count * total_square - total * total) ** 0.5 / (255 * count))


def reduction_of(height: int, width: int) -> int:
    """By how much a picture is reduced in both directions before its sharpness is measured."""
    return max(1, min(height, width) // SHARPNESS_SIDE)


def sharpness_of(luma: Image.Image) -> float | None:
    """Sharpness of luminance, in the duller of the two directions; None without edges."""
    factor = reduction_of(luma.height, luma.width)
    width, height = luma.width // factor, luma.height // factor
    plane = np.array(luma.reduce(factor, box=(0, 0, width * factor, height * factor)))
    # [direction, (first, second differences), rows, columns]: mean squares by block.
    blocks = np.empty((2, 2, -(-height // BLOCK), -(-width // BLOCK)), np.float32)
    _measure_blocks(plane, np.empty((4, width), np.int32), blocks)
    found = []
    for first, second in blocks.reshape(2, 2, -1):
        has_edges = first >= LEAST_ENERGY
        if has_edges.any():
            ratios = np.sort(np.maximum(second[has_edges] - np.float32(ROUNDING), 0) / first[has_edges])
            found.append(float(2 * ratios[-1 - int(SHARPEST_PART * len(ratios))]) ** 0.5)
    return min(found) if found else None


@pixel_kernel
def _measure_blocks(plane: Any, columns: Any, blocks: Any) -> Any:
    """``blocks`` [across, down; first, second differences; rows, columns of blocks] of ``plane``: mean squares. Of
    pixels at a border, second differences are not known and first ones left out too. ``columns`` int32 [4, W]:
    scratch."""
    height, width = plane.shape
    for v in range(blocks.shape[2]):
        top, bottom = v * BLOCK, min(height, v * BLOCK + BLOCK)
        columns[:] = 0
        for y in range(top, bottom):
            _add_across(plane[y], columns)
            if 0 < y < height - 1:
                _add_down(plane[y - 1], plane[y], plane[y + 1], columns)
        rows = min(bottom, height - 1) - max(top, 1)
        for u in range(blocks.shape[3]):
            left, right = u * BLOCK, min(width, u * BLOCK + BLOCK)
            across, down = (min(right, width - 1) - max(left, 1)) * (bottom - top), rows * (right - left)
            for i in range(4):
                total, pixels = np.int64(0), across if i < 2 else down
                for x in range(left, right):
                    total += columns[i, x]
                blocks[i // 2, i % 2, v, u] = np.float32(total) / np.float32(max(1, pixels))
    return np.int64(0)


@inner_kernel()
def _add_across(here: Any, columns: Any) -> None:
    for x in range(1, here.shape[0] - 1):
        a, b, c = np.int32(here[x - 1]), np.int32(here[x]), np.int32(here[x + 1])
        columns[0, x] += np.int32((c - b) * (c - b))
        columns[1, x] += np.int32((a - 2 * b + c) * (a - 2 * b + c))


@inner_kernel()
def _add_down(above: Any, here: Any, below: Any, columns: Any) -> None:
    for x in range(here.shape[0]):
        a, b, c = np.int32(above[x]), np.int32(here[x]), np.int32(below[x])
        columns[2, x] += np.int32((c - b) * (c - b))
        columns[3, x] += np.int32((a - 2 * b + c) * (a - 2 * b + c))
