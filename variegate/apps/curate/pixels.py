"""Exposure, contrast and sharpness of the pixels of an image, in one pass over them.

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
# So many pixels are added up in 32 bits: 65536 * 255^2 < 2^32.
_PIECE = 1 << 16
_GREEN, _BLUE = np.uint64(1), np.uint64(2)


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
    pixels, factor = height * width, reduction_of(height, width)
    plane = np.empty((height // factor, width // factor), np.uint8)
    sums, counts = np.zeros(6, np.uint64), np.zeros((4, 256), np.int64)
    line, added = np.empty(width, np.uint8), np.empty(plane.shape[1], np.uint32)
    blocks = np.empty((2, 2, -(-plane.shape[0] // BLOCK), -(-plane.shape[1] // BLOCK)), np.float32)
    _measure(np.ascontiguousarray(image).reshape(height, width * 3), factor, line, added, plane, sums, counts)
    _measure_blocks(plane, np.empty((4, plane.shape[1]), np.int32), blocks)

    first, second = [int(one) for one in sums[:3]], [int(one) for one in sums[3:]]
    mean = tuple(one / (255 * pixels) for one in first)
    std = tuple(max(0, pixels * b - a * a) ** 0.5 / (255 * pixels) for a, b in zip(first, second, strict=True))
    brightness = (299 * first[0] + 587 * first[1] + 114 * first[2]) / (255_000 * pixels)
    histogram = counts.sum(0)
    below, levels = np.cumsum(histogram), np.arange(256)
    dark_end, bright_end = (float(np.searchsorted(below * 100, part * pixels)) / 255 for part in (5, 95))
    total, squares = int(histogram @ levels), int(histogram @ levels**2)
    shares = histogram[histogram > 0] / pixels
    return PixelMeasures(
        (mean[0], mean[1], mean[2]),
        (std[0], std[1], std[2]),
        brightness,
        dark_end,
        bright_end,
        max(0, pixels * squares - total * total) ** 0.5 / (255 * pixels),
        max(0.0, float(-(shares * np.log2(shares)).sum())),
        sharpness_of(blocks),
    )


def reduction_of(height: int, width: int) -> int:
    """By how much a picture is reduced in both directions before its sharpness is measured."""
    return max(1, min(height, width) // SHARPNESS_SIDE)


def sharpness_of(blocks: npt.NDArray[np.float32]) -> float | None:
    """``blocks`` [direction, (first, second differences), ...]: mean squares by block. Of the duller direction."""
    found = []
    for first, second in blocks.reshape(2, 2, -1):
        has_edges = first >= LEAST_ENERGY
        if has_edges.any():
            ratios = np.sort(np.maximum(second[has_edges] - np.float32(ROUNDING), 0) / first[has_edges])
            found.append(float(2 * ratios[-1 - int(SHARPEST_PART * len(ratios))]) ** 0.5)
    return min(found) if found else None


@pixel_kernel
def _measure(rows: Any, factor: Any, line: Any, added: Any, plane: Any, sums: Any, counts: Any) -> Any:
    """``rows`` [H, W * 3] -> sums of channels and of their squares, the histogram of luminance in four parts, and
    luminance reduced by ``factor``. ``line`` [W], ``added`` [W // factor]: scratch."""
    height, width = rows.shape[0], rows.shape[1] // 3
    for y in range(height):
        row = rows[y]
        for start in range(0, width, _PIECE):
            _add_piece(row, start, min(width, start + _PIECE), line, sums)
        whole = width // 4 * 4
        for x in range(0, whole, 4):
            counts[0, line[x]] += 1
            counts[1, line[x + 1]] += 1
            counts[2, line[x + 2]] += 1
            counts[3, line[x + 3]] += 1
        for x in range(whole, width):
            counts[0, line[x]] += 1
        if y // factor < plane.shape[0]:
            _reduce(line, y, factor, added, plane)
    return np.int64(0)


@inner_kernel()
def _add_piece(row: Any, start: Any, stop: Any, line: Any, sums: Any) -> None:
    r1, g1, b1 = np.uint32(0), np.uint32(0), np.uint32(0)
    r2, g2, b2 = np.uint32(0), np.uint32(0), np.uint32(0)
    for at in range(start, stop):
        # Without a sign, no index is looked at for being counted from the end, and the loop is vectorised.
        x, i = np.uint64(at), np.uint64(3 * at)
        r, g, b = np.uint32(row[i]), np.uint32(row[i + _GREEN]), np.uint32(row[i + _BLUE])
        r1, g1, b1 = np.uint32(r1 + r), np.uint32(g1 + g), np.uint32(b1 + b)
        r2, g2, b2 = np.uint32(r2 + r * r), np.uint32(g2 + g * g), np.uint32(b2 + b * b)
        luma = r * np.uint32(19595) + g * np.uint32(38470) + b * np.uint32(7471) + np.uint32(0x8000)
        line[x] = np.uint8(np.uint32(luma) >> np.uint32(16))
    sums[0] += np.uint64(r1)
    sums[1] += np.uint64(g1)
    sums[2] += np.uint64(b1)
    sums[3] += np.uint64(r2)
    sums[4] += np.uint64(g2)
    sums[5] += np.uint64(b2)


@inner_kernel()
def _reduce(line: Any, y: Any, factor: Any, added: Any, plane: Any) -> None:
    """Means of ``factor`` x ``factor`` pixels, rounded."""
    out, width = plane[y // factor], plane.shape[1]
    if factor == 1:
        for x in range(width):
            out[x] = line[x]
        return
    if y % factor == 0:
        for x in range(width):
            added[x] = 0
    for x in range(width):
        total = np.uint32(0)
        for i in range(x * factor, x * factor + factor):
            total += np.uint32(line[i])
        added[x] += total
    if y % factor == factor - 1:
        pixels = np.uint32(factor * factor)
        for x in range(width):
            out[x] = (added[x] + pixels // np.uint32(2)) // pixels


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
