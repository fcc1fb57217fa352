"""JPEG compression of an image's pixels without the file: coding coefficients loses nothing, so it is left out.

To the bit what libjpeg-turbo, and so Pillow and torchvision, make of a file that was written and read: baseline, chroma
in 4:2:0, the accurate integer DCT and fancy upsampling. ``simd_jpeg.py`` has the arithmetic.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import simd_jpeg as J
from variegate.executors.cpu.kernel import bytes_at
from variegate.executors.cpu.memory import RESULTS, place_of
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import join_rgb, split_rgb
from variegate.program.compiled import inner_kernel, pixel_kernel

Image = npt.NDArray[np.uint8]

# Steps of quality 50, of luma and of chroma (ITU-T T.81, annex K).
_LUMA = (
    *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29),
    *(51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121),
    *(120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMA = (
    *(17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66),
    *(99,) * 38,
)


def through_jpeg(img_HWC: Image, quality: int) -> Image:
    """Contiguous uint8[H, W, C] with C = 1 or 3 -> what a JPEG of this quality (1 to 100) keeps of it."""
    height, width, channels = img_HWC.shape
    result = RESULTS.take(img_HWC.size).reshape(img_HWC.shape)
    # Luma and half as much of chroma, each to whole blocks, and nine lines.
    memory = RESULTS.take(_stride(width) * (2 * height + 32))
    tables = _tables(quality)
    code_image(place_of(img_HWC), place_of(result), height, width, channels, place_of(memory), place_of(tables))
    return result


def _stride(width: int) -> int:
    return -(-width // BLOCK) * BLOCK


@lru_cache(maxsize=100)
def _tables(quality: int) -> npt.NDArray[np.int32]:
    """int32[2, 3, 8, TABLE_COLUMNS], for ``code_blocks``, whose coefficients are 8 times as large as T.81 has them.

    A level is their magnitude, divided by a step and rounded half up. Half a unit more in the numerator changes no
    quotient, and keeps it away from whole numbers, so that a product with the reciprocal is cut off to the same.
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps = np.clip((np.array([_LUMA, _CHROMA]).reshape(2, 8, 8) * scale + 50) // 100, 1, 255)
    steps = np.tile(steps, J.TABLE_COLUMNS // 8)
    floats = np.stack([1 / (8 * steps), (4 * steps + 0.5) / (8 * steps)], axis=1).astype(np.float32)
    return np.concatenate([steps[:, None].astype(np.int32), floats.view(np.int32)], axis=1)


@pixel_kernel
def code_image(source: Any, target: Any, height: Any, width: Any, channels: Any, memory: Any, tables: Any) -> None:
    """``source``, ``target``: addresses of contiguous images; ``memory``: of what ``through_jpeg`` takes for it."""
    stride = (width + BLOCK - 1) // BLOCK * BLOCK
    lines = (height + 7) // 8 * 8
    chroma_height = (height + 1) // 2
    chroma_lines = (chroma_height + 7) // 8 * 8
    blue = memory + lines * stride
    red = blue + chroma_lines * (stride // 2)
    rows = red + chroma_lines * (stride // 2)
    if channels == 1:
        for y in range(height):
            _copy(source + y * width, memory + y * stride, width)
            _repeat_last(memory + y * stride, width, stride)
    else:
        for y in range(height):
            _split(source + 3 * y * width, rows, stride, width)
            # Behind the three planes, two lines of each chroma; the last of an odd number of lines is its own pair.
            odd = y % 2
            first_blue, first_red = rows + 3 * stride, rows + 5 * stride
            for x in range(0, stride, J.STEP):
                J.to_ycc(
                    rows + x, stride, memory + y * stride + x,
                    first_blue + odd * stride + x, first_red + odd * stride + x,
                )  # fmt: skip
            if odd or y == height - 1:
                at = y // 2 * (stride // 2)
                for x in range(0, stride // 2, J.STEP):
                    J.halve(first_blue + 2 * x, first_blue + odd * stride + 2 * x, blue + at + x)
                    J.halve(first_red + 2 * x, first_red + odd * stride + 2 * x, red + at + x)
        _code_plane(blue, stride // 2, chroma_height, chroma_lines, tables + 4 * 3 * 8 * J.TABLE_COLUMNS)
        _code_plane(red, stride // 2, chroma_height, chroma_lines, tables + 4 * 3 * 8 * J.TABLE_COLUMNS)
    _code_plane(memory, stride, height, lines, tables)
    for y in range(height):
        if channels == 1:
            _copy(memory + y * stride, target + y * width, width)
            continue
        _upsample(blue, y, chroma_height, stride // 2, (width + 1) // 2, rows + 3 * stride, rows + 5 * stride)
        _upsample(red, y, chroma_height, stride // 2, (width + 1) // 2, rows + 4 * stride, rows + 5 * stride)
        for x in range(0, stride, J.STEP):
            J.to_rgb(memory + y * stride + x, rows + 3 * stride + x, rows + 4 * stride + x, rows + x, stride)
        _join(rows, stride, target + 3 * y * width, width)


@inner_kernel()
def _code_plane(plane: Any, stride: Any, height: Any, lines: Any, table: Any) -> None:
    for y in range(height, lines):
        _copy(plane + (height - 1) * stride, plane + y * stride, stride)
    for y in range(0, lines, 8):
        for x in range(0, stride, J.COLUMNS):
            J.code_blocks(plane + y * stride + x, stride, table)


@inner_kernel()
def _upsample(plane: Any, y: Any, height: Any, stride: Any, width: Any, target: Any, sums: Any) -> None:
    """Line ``y`` of the image, of the chroma line that it is in and the one that it is next to."""
    near = y // 2
    far = min(max(near + (1 if y % 2 else -1), 0), height - 1)
    if width <= 2:  # libjpeg's rule
        line, wide = bytes_at(plane + near * stride, width), bytes_at(target, 2 * width)
        for x in range(2 * width):
            wide[x] = line[x // 2]
        return
    # Room for a sum before the first: those at the ends are repeated.
    sums += 2 * J.STEP
    for x in range(0, stride, J.STEP):
        J.sum_lines(plane + near * stride + x, plane + far * stride + x, sums + 2 * x)
    _copy(sums, sums - 2, 2)
    _copy(sums + 2 * (width - 1), sums + 2 * width, 2)
    for x in range(0, stride, J.STEP):
        J.widen(sums + 2 * x, target + 2 * x)


@inner_kernel()
def _split(source: Any, rows: Any, stride: Any, width: Any) -> None:
    """A line of pixels to three planes, of which the last pixel is repeated to the end."""
    if width < BLOCK:
        pixels, planes = bytes_at(source, 3 * width), bytes_at(rows, 3 * stride)
        for x in range(width):
            for c in range(3):
                planes[c * stride + x] = pixels[3 * x + c]
    else:
        for block in range((width + BLOCK - 1) // BLOCK):
            x = min(block * BLOCK, width - BLOCK)
            split_rgb(source + 3 * x, rows + x, stride)
    for c in range(3):
        _repeat_last(rows + c * stride, width, stride)


@inner_kernel()
def _join(rows: Any, stride: Any, target: Any, width: Any) -> None:
    if width < BLOCK:
        pixels, planes = bytes_at(target, 3 * width), bytes_at(rows, 3 * stride)
        for x in range(width):
            for c in range(3):
                pixels[3 * x + c] = planes[c * stride + x]
    else:
        for block in range((width + BLOCK - 1) // BLOCK):
            x = min(block * BLOCK, width - BLOCK)
            join_rgb(rows + x, stride, target + 3 * x)


@inner_kernel()
def _repeat_last(line: Any, width: Any, stride: Any) -> None:
    levels = bytes_at(line, stride)
    for x in range(width, stride):
        levels[x] = levels[width - 1]


@inner_kernel()
def _copy(source: Any, target: Any, size: Any) -> None:
    levels, copied = bytes_at(source, size), bytes_at(target, size)
    for x in range(size):
        copied[x] = levels[x]
