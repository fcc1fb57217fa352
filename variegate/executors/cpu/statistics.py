"""Statistics of the image at a stage, read through the LUTs before it, and the tables they lead to."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.rows import copy_pixels
from variegate.executors.cpu.simd_colour import LANES, luma_sum_block
from variegate.executors.cpu.values import apply_values, joined_luts, look_up, luma
from variegate.program.compiled import inner_kernel
from variegate.program.coordinate_tables import seen_by_statistics
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import BEGIN, NEEDS, STATISTICS_END

_GEOMETRY, _STATISTIC = int(Kind.GEOMETRY), int(Kind.STATISTIC)
_CONTRAST, _AUTOCONTRAST, _EQUALIZE = int(Op.CONTRAST), int(Op.AUTOCONTRAST), int(Op.EQUALIZE)


@inner_kernel()
def build_tables(row: Any, plan: Any, image: Any, scratch: Any) -> None:
    """``scratch.stat_luts`` of the pass's statistics. Only tables and at most one whole-pixel map come before them."""
    channels, begin = image.channels, plan[BEGIN]
    map_slot, has_tables = nb.int64(-1), False
    for k in range(begin, plan[STATISTICS_END] if plan[NEEDS] != 0 else begin):
        kind = KIND_OF[row.opcode[k]]
        if kind == _GEOMETRY:
            map_slot = nb.int64(k)
            continue
        if kind == _STATISTIC:
            seen = seen_by_statistics(row.args, row.out_size, row.window, map_slot, image.height, image.width)
            fill = scratch.fills[k]
            if map_slot >= 0:
                colour_after(row, map_slot, k, channels, scratch, fill)
            if has_tables:
                joined_luts(row, begin, k, channels, scratch.stat_luts, scratch.tap_lut)
            _build_table(row.opcode[k], row.args[k, 0], image, seen, fill, has_tables, scratch, scratch.stat_luts[k])
        has_tables = True


@inner_kernel()
def colour_after(row: Any, slot: Any, stop: Any, channels: Any, scratch: Any, out: Any) -> None:
    """What the fill colour of the map at ``slot`` becomes through the value operations between it and ``stop``."""
    spare = scratch.spare
    for c in range(3):
        spare[c, 0] = row.fill[slot, c]
    apply_values(row, slot + 1, stop, channels, scratch.stat_luts, spare, 1)
    for c in range(3):
        out[c] = spare[c, 0]


@inner_kernel(forceinline=True)
def _build_table(
    op: Any, factor: Any, image: Any, seen: Any, fill: Any, has_tables: Any, scratch: Any, table: Any
) -> None:
    """Measure ``seen`` (top, left, bottom, right of the image, and how many pixels of colour ``fill`` besides), through
    ``scratch.tap_lut`` if other tables come first, and write ``table``.
    """
    top, left, bottom, right, outside = seen
    planes, channels, n = scratch.planes, image.channels, max(0, right - left)
    total = max(0, bottom - top) * n + outside
    gray = 0
    low, high, counts = scratch.extremes[0], scratch.extremes[1], scratch.counts
    low[:], high[:] = 255, 0
    if op == _EQUALIZE:
        counts[:] = 0
    for v in range(top, bottom):
        copy_pixels(image, v * image.width + left, n, False, planes, 0)
        if has_tables:
            for c in range(channels):
                look_up(planes[c], scratch.tap_lut[c], 0, n)
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
    for c in range(channels):
        if op == _CONTRAST:
            _contrast_table(int(gray / total + 0.5), np.float32(factor), table[c])
        elif op == _AUTOCONTRAST:
            _autocontrast_table(nb.int64(low[c]), nb.int64(high[c]), table[c])
        else:
            _equalize_table(counts[c], table[c])


@inner_kernel(forceinline=True)
def _gray_sum(planes: Any, channels: Any, n: Any) -> Any:
    total, vectors = np.int64(0), n - n % LANES if channels == 3 else 0
    address, stride = address_of(planes), planes.shape[1]
    for x in range(0, vectors, LANES):
        total += luma_sum_block(address + x, stride)
    for x in range(vectors, n):
        total += luma(planes[0, x], planes[1, x], planes[2, x]) if channels == 3 else np.int64(planes[0, x])
    return total


@inner_kernel(forceinline=True)
def _extremes(plane: Any, n: Any) -> Any:
    low, high = np.uint8(255), np.uint8(0)
    for x in range(n):
        low = min(low, plane[x])
        high = max(high, plane[x])
    return low, high


@inner_kernel(forceinline=True)
def _count(plane: Any, n: Any, counts: Any) -> None:
    """Eight tables in turn: neighbouring pixels are often equal, and one counter cannot be raised twice at once."""
    t0, t1, t2, t3 = counts[0], counts[1], counts[2], counts[3]
    t4, t5, t6, t7 = counts[4], counts[5], counts[6], counts[7]
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


@inner_kernel(forceinline=True)
def _contrast_table(mean: Any, factor: Any, table: Any) -> None:
    base = np.float32(mean)
    for i in range(256):
        value = base + factor * (np.float32(i) - base)
        table[i] = np.uint8(min(max(value, np.float32(0.0)), np.float32(255.0)))


@inner_kernel(forceinline=True)
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


@inner_kernel(forceinline=True)
def _equalize_table(counts: Any, table: Any) -> None:
    """ImageOps.equalize, of the eight tables of ``_count``, which are added up in the first."""
    total, bins, last = 0, 0, 0
    for i in range(256):
        for t in range(1, 8):
            counts[0, i] += counts[t, i]
        n = counts[0, i]
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
        running += counts[0, i]
