"""Measure exposure, contrast and sharpness of an image while reading its pixels once.

Sharpness is the inverse of the width of edges. Across an edge blurred by a Gaussian of ``s`` pixels, second differences
have 1 / (2 s^2) of the energy of first differences. Their ratio yields ``s`` for any contrast. It is measured per block
and direction. Blocks without edges, such as sky, do not count; a picture is as sharp as its sharpest blocks, which a
blurred background does not change. Motion blurs edges of one direction, hence the duller direction counts. Large
pictures are reduced first, as for training.
"""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from typing import NamedTuple

import numpy as np

from variegate.arrays import Float32Array, UInt8Array
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry

# Pictures whose shorter side has twice as many pixels are reduced by 2 before sharpness is measured, four times as many
# by 4.
SHARPNESS_SIDE = 384
BLOCK = 16
# A block has edges where the mean square of first differences is at least this many squared levels.
LEAST_ENERGY = 6.0
# Rounding to whole levels adds 6 / 12 of a squared level to second differences.
ROUNDING = 0.5
# The part of the blocks with edges that is at least as sharp as the picture.
SHARPEST_PART = 0.1

_measure = entry("vg_measure_pixels", c_void_p, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p)


class PixelMeasures(NamedTuple):
    """``mean``, ``std``: by channel of RGB, 0 to 1. ``brightness``: mean luminance. ``dark_end``, ``bright_end``: the
    luminance that 5 % and 95 % of the pixels do not exceed. ``contrast``: standard deviation of luminance. ``entropy``:
    of its histogram of 256 levels, 0 to 8 bits. ``sharpness``: 1 / s for edges blurred by a Gaussian of s pixels, about
    2 at most; None where there is no edge to judge by. ``least``, ``greatest``: levels of any channel.
    ``clipped_low``, ``clipped_high``: shares of the pixels that have the least and the greatest luminance of the image.

    ``brightness`` is exact; the others go by luminance in whole levels, as Pillow's mode L has it.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    brightness: float
    dark_end: float
    bright_end: float
    contrast: float
    entropy: float
    sharpness: float | None
    least: float
    greatest: float
    clipped_low: float
    clipped_high: float


def measure_pixels(image: UInt8Array) -> PixelMeasures:
    """Measure an image uint8 [H, W, 3], RGB, upright, at least one pixel. Releases the GIL for most of its time."""
    height, width = image.shape[:2]
    pixels = height * width
    factor = reduction_of(height, width)
    sums = np.empty(6, np.uint64)
    histogram = np.empty(256, np.int64)
    rows, columns = (-(-(side // factor) // BLOCK) for side in (height, width))
    blocks = np.empty((2, 2, rows, columns), np.float32)
    read = as_c_contiguous(image)
    check_status(_measure(data_ptr(read), height, width, factor, *map(data_ptr, (sums, histogram, blocks))))

    first = [int(one) for one in sums[:3]]
    second = [int(one) for one in sums[3:]]
    mean = tuple(one / (255 * pixels) for one in first)
    std = tuple(max(0, pixels * b - a * a) ** 0.5 / (255 * pixels) for a, b in zip(first, second, strict=True))
    brightness = (299 * first[0] + 587 * first[1] + 114 * first[2]) / (255_000 * pixels)
    below = np.cumsum(histogram)
    levels = np.arange(256)
    dark_end, bright_end = (float(np.searchsorted(below * 100, part * pixels)) / 255 for part in (5, 95))
    total = int(histogram @ levels)
    squares = int(histogram @ levels**2)
    shares = histogram[histogram > 0] / pixels
    # Only black has luminance 0, and luminance 255 needs white: most pictures are not read again.
    least = 0 if histogram[0] else image.min()
    greatest = 255 if histogram[-1] else image.max()
    return PixelMeasures(
        mean,
        std,
        brightness,
        dark_end,
        bright_end,
        max(0, pixels * squares - total * total) ** 0.5 / (255 * pixels),
        max(0.0, float(-(shares * np.log2(shares)).sum())),
        sharpness_of(blocks),
        float(least),
        float(greatest),
        float(shares[0]),
        float(shares[-1]),
    )


def reduction_of(height: int, width: int) -> int:
    """Factor by which a picture is reduced before its sharpness is measured."""
    return max(1, min(height, width) // SHARPNESS_SIDE)


def sharpness_of(blocks: Float32Array) -> float | None:
    """``blocks`` [direction, (first, second differences), ...]: mean squares by block. Of the duller direction."""
    found = []
    for first, second in blocks.reshape(2, 2, -1):
        has_edges = first >= LEAST_ENERGY
        if has_edges.any():
            ratios = np.sort(np.maximum(second[has_edges] - np.float32(ROUNDING), 0) / first[has_edges])
            found.append(float(2 * ratios[-1 - int(SHARPEST_PART * len(ratios))]) ** 0.5)
    return min(found) if found else None
