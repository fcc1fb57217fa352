"""Statistics of the image at a stage, read through the LUTs before it, and the tables they lead to."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.rows import copy_pixels
from variegate.executors.cpu.simd import address_of
from variegate.executors.cpu.simd_colour import LANES, luma_sum_block
from variegate.executors.cpu.values import apply_values, luma
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import Op

_CONTRAST, _AUTOCONTRAST, _EQUALIZE = int(Op.CONTRAST), int(Op.AUTOCONTRAST), int(Op.EQUALIZE)


@pixel_kernel
def build_table(
    k: Any,
    op: Any,
    factor: Any,
    image: Any,
    width: Any,
    channels: Any,
    rectangle: Any,
    outside: Any,
    fill: Any,
    opcode: Any,
    args: Any,
    begin: Any,
    side: Any,
    scratch: Any,
) -> None:
    """Measure the image at slot ``k`` and write ``scratch.stat_luts[k]``.

    ``rectangle`` of the source is what the stage shows; besides, it has ``outside`` pixels of colour ``fill``.
    """
    top, left, bottom, right = rectangle
    n = max(0, right - left)
    planes = scratch.planes
    total = max(0, bottom - top) * n + outside
    gray = 0
    low, high, counts = scratch.extremes[0], scratch.extremes[1], scratch.counts
    for c in range(3):
        low[c], high[c] = 255, 0
    if op == _EQUALIZE:
        counts[:] = 0
    for v in range(top, bottom):
        copy_pixels(image, v * width + left, n, False, channels, planes, 0)
        apply_values(
            opcode, args, begin, k, channels, side.luts, scratch.stat_luts, side.matrices, side.points, planes, 0, n
        )
        if op == _CONTRAST:
            gray += _gray_sum(planes, channels, n)
        elif op == _AUTOCONTRAST:
            for c in range(channels):
                row_low, row_high = _extremes(planes[c], n)
                low[c], high[c] = min(low[c], row_low), max(high[c], row_high)
        else:
            for c in range(channels):
                _count(planes[c], n, counts[c])
    if outside:
        gray += outside * (luma(fill[0], fill[1], fill[2]) if channels == 3 else np.int64(fill[0]))
        for c in range(channels):
            low[c], high[c] = min(low[c], fill[c]), max(high[c], fill[c])
            counts[c, 0, fill[c]] += outside
    table = scratch.stat_luts[k]
    for c in range(channels):
        if op == _CONTRAST:
            _contrast_table(int(gray / total + 0.5), np.float32(factor), table[c])
        elif op == _AUTOCONTRAST:
            _autocontrast_table(nb.int64(low[c]), nb.int64(high[c]), table[c])
        else:
            _join_counts(counts[c])
            _equalize_table(counts[c, 0], table[c])


@pixel_kernel
def _gray_sum(planes: Any, channels: Any, n: Any) -> Any:
    r, g, b = planes[0], planes[1], planes[2]
    total = np.int64(0)
    if channels == 1:
        for x in range(n):
            total += np.int64(r[x])
        return total
    blocks = n - n % LANES
    red, green, blue = address_of(r), address_of(g), address_of(b)
    for x in range(0, blocks, LANES):
        total += luma_sum_block(red + x, green + x, blue + x)
    for x in range(blocks, n):
        total += luma(r[x], g[x], b[x])
    return total


@pixel_kernel
def _extremes(plane: Any, n: Any) -> Any:
    low, high = np.uint8(255), np.uint8(0)
    for x in range(n):
        low = min(low, plane[x])
        high = max(high, plane[x])
    return low, high


@pixel_kernel
def _count(plane: Any, n: Any, counts: Any) -> None:
    """Eight tables in turn: neighbouring pixels are often equal, and one counter cannot be raised twice at once."""
    t0, t1, t2, t3, t4, t5, t6, t7 = (
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        counts[4],
        counts[5],
        counts[6],
        counts[7],
    )
    eights = n - n % 8
    for x in range(0, eights, 8):
        t0[plane[x]] += 1
        t1[plane[x + 1]] += 1
        t2[plane[x + 2]] += 1
        t3[plane[x + 3]] += 1
        t4[plane[x + 4]] += 1
        t5[plane[x + 5]] += 1
        t6[plane[x + 6]] += 1
        t7[plane[x + 7]] += 1
    for x in range(eights, n):
        t0[plane[x]] += 1


@pixel_kernel
def _join_counts(counts: Any) -> None:
    """The eight tables summed into the first."""
    for i in range(256):
        for t in range(1, 8):
            counts[0, i] += counts[t, i]


@pixel_kernel
def _contrast_table(mean: Any, factor: Any, table: Any) -> None:
    base = np.float32(mean)
    for i in range(256):
        value = base + factor * (np.float32(i) - base)
        table[i] = np.uint8(min(max(value, np.float32(0.0)), np.float32(255.0)))


@pixel_kernel
def _autocontrast_table(low: Any, high: Any, table: Any) -> None:
    """ImageOps.autocontrast without cutoff: double arithmetic, truncated, clipped."""
    if high <= low:
        for i in range(256):
            table[i] = i
        return
    scale = 255.0 / (high - low)
    offset = -low * scale
    for i in range(256):
        table[i] = min(max(int(i * scale + offset), 0), 255)


@pixel_kernel
def _equalize_table(counts: Any, table: Any) -> None:
    """ImageOps.equalize."""
    total, bins, last = 0, 0, 0
    for i in range(256):
        n = counts[i]
        total += n
        if n:
            bins += 1
            last = n
    step = (total - last) // 255
    if bins <= 1 or step == 0:
        for i in range(256):
            table[i] = i
        return
    running = step // 2
    for i in range(256):
        table[i] = min(255, running // step)
        running += counts[i]
