"""Rectangles in the memory of this process, worked on by compiled kernels. ``executors/cuda/regions.py``: on a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import statistics as S
from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.resizing import PRECISION
from variegate.executors.cpu.simd_pixels import TABLES
from variegate.executors.cpu.tiled.areas import MOST_SIDE, Image, Stage
from variegate.executors.cpu.tiled.workspace import PassWorkspace, TileWorkspace
from variegate.executors.cpu.values import luma
from variegate.program.compiled import pixel_kernel


@pixel_kernel
def count_pixels(levels: Any, room: Any, counts: Any) -> None:
    """Levels uint8[H, W, C] into counts int64[C, 256]. ``room``: int32[3, TABLES, 256]."""
    channels = levels.shape[2]
    room[:] = 0
    S.count_bytes(address_of(levels), levels.size, room)
    for c in range(channels):
        # Of gray images all three "channels" are one.
        for d in range(c, c + 1 if channels == 3 else 3):
            for t in range(TABLES):
                for i in range(256):
                    counts[c, i] += room[d, t, i]


@pixel_kernel
def add_lumas(levels: Any) -> int:
    """The sum of the lumas of levels uint8[H, W, C]."""
    total, size, channels = np.int64(0), levels.size, levels.shape[2]
    step = channels * S.MOST_PIXELS
    for begin in range(0, size, step):
        total += S.gray_sum(address_of(levels) + begin, min(step, size - begin), channels)
    return total  # type: ignore[return-value]


@pixel_kernel
def add_lumas_through(levels: Any, tables: Any) -> int:
    """The same of levels sent through tables uint8[3, 256]."""
    total = np.int64(0)
    for y in range(levels.shape[0]):
        for x in range(levels.shape[1]):
            if levels.shape[2] == 1:
                total += tables[0, levels[y, x, 0]]
            else:
                r, g, b = levels[y, x, 0], levels[y, x, 1], levels[y, x, 2]
                total += luma(tables[0, r], tables[1, g], tables[2, b])
    return total  # type: ignore[return-value]


@pixel_kernel
def resize_columns(levels: Any, bounds: Any, weights: Any, left: Any, out: Any) -> None:
    """Levels uint8[H, W, C], which begin at column ``left``, into out uint8[H, N, C]."""
    channels = levels.shape[2]
    for y in range(levels.shape[0]):
        for x in range(out.shape[1]):
            first, count = bounds[x, 0] - left, bounds[x, 1]
            for c in range(channels):
                total: Any = np.int32(1 << (PRECISION - 1))
                for j in range(count):
                    total += np.int32(levels[y, first + j, c]) * weights[x, j]
                out[y, x, c] = np.uint8(min(max(total >> PRECISION, 0), 255))


@pixel_kernel
def resize_lines(levels: Any, bounds: Any, weights: Any, top: Any, totals: Any, out: Any) -> None:
    """Levels uint8[H, W C], which begin at line ``top``, into out uint8[N, W C]. ``totals``: room, int32[W C]."""
    for y in range(out.shape[0]):
        first, count = bounds[y, 0] - top, bounds[y, 1]
        totals[:] = np.int32(1 << (PRECISION - 1))
        for j in range(count):
            weight, line = weights[y, j], levels[first + j]
            for x in range(totals.shape[0]):
                totals[x] += np.int32(line[x]) * weight
        for x in range(totals.shape[0]):
            out[y, x] = np.uint8(min(max(totals[x] >> PRECISION, 0), 255))


class HostPixels:
    """Everything that stages do with pixels. ``most_read``: a side of the rectangle that a pass reads."""

    most_read = MOST_SIDE

    def source(self, stage: Stage) -> Stage:
        """A stage of the host, as the first of the others."""
        return stage

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Image:
        return np.empty(shape, dtype)

    def packed(self, pixels: Image) -> Image:
        return np.ascontiguousarray(pixels)

    def fetched(self, pixels: Image) -> Image:
        """On the host."""
        return pixels

    def workspace(self, *of: Any) -> PassWorkspace:
        return TileWorkspace(*of)

    def resize(self, levels: Image, axis: int, bounds: Any, weights: Any, first: int) -> Image:
        """Along y (axis 0) or x, as ``axis_weights`` says, of levels that begin at line or column ``first``."""
        height, width, channels = levels.shape
        if axis == 1:
            made = np.empty((height, len(bounds), channels), np.uint8)
            resize_columns(levels, bounds, weights, first, made)
            return made
        made, length = np.empty((len(bounds), width, channels), np.uint8), width * channels
        totals = np.empty(length, np.int32)
        resize_lines(levels.reshape(-1, length), bounds, weights, first, totals, made.reshape(-1, length))
        return made

    def blend(self, total: Image, weights: Any, rows: Iterable[Image]) -> Image:
        """Levels of the weighted sum of ``rows`` and ``total``, float32."""
        for row, weight in zip(rows, weights, strict=True):
            total += weight * row.astype(np.float32)
        return np.clip(total, 0.0, 255.0, out=total).astype(np.uint8)

    def count(self, levels: Image) -> npt.NDArray[np.int64]:
        """Occurrences of each level, [C, 256]."""
        counts = np.zeros((levels.shape[2], 256), np.int64)
        count_pixels(levels, np.empty((3, TABLES, 256), np.int32), counts)
        return counts

    def add_lumas(self, levels: Image, tables: npt.NDArray[np.uint8]) -> int:
        """The sum of the lumas of levels sent through tables [3, 256]."""
        is_plain = (tables == np.arange(256)).all()
        return add_lumas(levels) if is_plain else add_lumas_through(levels, tables)
