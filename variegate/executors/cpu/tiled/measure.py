"""What is counted of an image tile by tile, and the tables that it leads to."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.simd_statistics import TABLES
from variegate.executors.cpu.statistics import (
    MOST_PIXELS,
    autocontrast_table,
    contrast_table,
    count_bytes,
    equalize_table,
    gray_sum,
)
from variegate.executors.cpu.tiles import fill_table
from variegate.executors.cpu.values import luma
from variegate.program.compiled import pixel_kernel


@pixel_kernel
def count_pixels(levels: Any, room: Any, counts: Any) -> None:
    """Levels uint8[H, W, C] into counts int64[C, 256]. ``room``: int32[3, TABLES, 256]."""
    channels = levels.shape[2]
    room[:] = 0
    count_bytes(address_of(levels), levels.size, room)
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
    step = channels * MOST_PIXELS
    for begin in range(0, size, step):
        total += gray_sum(address_of(levels) + begin, min(step, size - begin), channels)
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
def count_tiles(levels: Any, first: Any, begins_y: Any, of_y: Any, begins_x: Any, of_x: Any, counts: Any) -> None:
    """Lumas of levels uint8[H, W, C], whose first pixel is at ``first`` (line, column), into counts int64[tiles_y,
    tiles_x, 256]. Line y counts for the tiles ``of_y[begins_y[y] : begins_y[y + 1]]``, likewise columns."""
    channels = levels.shape[2]
    for y in range(levels.shape[0]):
        line = first[0] + y
        for x in range(levels.shape[1]):
            column = first[1] + x
            level = np.int64(levels[y, x, 0])
            if channels == 3:
                level = luma(levels[y, x, 0], levels[y, x, 1], levels[y, x, 2])
            for i in range(begins_y[line], begins_y[line + 1]):
                for j in range(begins_x[column], begins_x[column + 1]):
                    counts[of_y[i], of_x[j], level] += 1


@pixel_kernel
def fill_contrast(mean: Any, factor: Any, tables: Any) -> None:
    for c in range(3):
        contrast_table(mean, factor, tables[c])


@pixel_kernel
def fill_autocontrast(counts: Any, tables: Any) -> None:
    for c in range(counts.shape[0]):
        low, high = 255, 0
        for i in range(256):
            if counts[c, i] > 0:
                low, high = min(low, i), max(high, i)
        autocontrast_table(low, high, tables[c])


@pixel_kernel
def fill_equalize(counts: Any, tables: Any) -> None:
    for c in range(counts.shape[0]):
        equalize_table(counts[c], tables[c])


@pixel_kernel
def fill_clahe(counts: Any, limit: Any, total: Any, tables: Any) -> None:
    """Counts int64[T, 256] -> tables uint8[T, 256]."""
    for t in range(counts.shape[0]):
        fill_table(counts[t], limit, total, tables[t])
