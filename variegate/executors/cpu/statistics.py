"""Statistics of the image at a stage, read through the LUTs before it, and the tables they lead to."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu import simd_pixels as S
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import address_of, bytes_at, image_of_sweep, inlined, part_kernel
from variegate.executors.cpu.layout import row_program
from variegate.executors.cpu.rows import copy_pixels
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import join_rgb
from variegate.executors.cpu.values import apply_values, joined_luts, look_up, luma
from variegate.program.compiled import inner_kernel
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import BEGIN, STATISTICS_END
from variegate.program.places import seen_by_statistics

_GEOMETRY, _STATISTIC = int(Kind.GEOMETRY), int(Kind.STATISTIC)
# Measured as one: no more than ``sum_luma`` can add up.
MOST_PIXELS = 1 << 20


@part_kernel
def build_tables(batch: Any, scratch: Any, r: Any, p: Any, _: Any) -> Any:
    """``scratch.stat_luts`` of the statistics of pass ``p``. Only tables and at most one whole-pixel map come before
    them."""
    held, own = batch_at(batch), scratch_at(scratch)
    _build_tables(row_program(held.program, r, held.side), held.program.passes[r, p], image_of_sweep(own.sweep), own)
    return nb.int64(0)


@inlined
def _build_tables(row: Any, plan: Any, image: Any, scratch: Any) -> None:
    channels, begin = image.channels, plan[BEGIN]
    map_slot, has_tables = nb.int64(-1), False
    for k in range(begin, plan[STATISTICS_END]):
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
            build_table(row.opcode[k], row.args[k], image, seen, fill, has_tables, scratch, k)
        has_tables = True


@inner_kernel()
def colour_after(row: Any, slot: Any, stop: Any, channels: Any, scratch: Any, out: Any) -> None:
    """Fill colour of the map at ``slot`` after the value operations between it and ``stop``."""
    spare = scratch.spare
    for c in range(3):
        spare[c, 0] = row.fill[slot, c]
    apply_values(row, slot + 1, stop, channels, scratch.stat_luts, spare, 1)
    for c in range(3):
        out[c] = spare[c, 0]


@inner_kernel(forceinline=True)
def build_table(op: Any, a: Any, image: Any, seen: Any, fill: Any, has_tables: Any, scratch: Any, slot: Any) -> None:
    """Measure ``seen`` (top, left, bottom, right of the image, and how many pixels of colour ``fill`` besides), through
    ``scratch.tap_lut`` if other tables come first, and write the table of ``slot``.
    """
    factor, table = a[0], scratch.stat_luts[slot]
    top, left, bottom, right, outside = seen
    channels, n = image.channels, max(0, right - left)
    total = max(0, bottom - top) * n + outside
    gray = np.int64(0)
    low, high, counts = scratch.extremes[0], scratch.extremes[1], scratch.counts
    low[:], high[:] = 255, 0
    if op == Op.EQUALIZE:
        counts[:] = 0
    # Whole rows lie one after another.
    lines = max(1, MOST_PIXELS // max(n, 1)) if n == image.width and not has_tables else 1
    for v in range(top, bottom if n > 0 else top, lines):
        source, size = address_of(image.levels) + channels * (v * image.width + left), channels * n
        if has_tables:
            source = _looked_up(image, v * image.width + left, n, scratch)
        else:
            size *= min(lines, bottom - v)
        if op == Op.CONTRAST:
            gray += gray_sum(source, size, channels)
        elif op == Op.AUTOCONTRAST:
            _widen(source, size, low, high)
        else:
            count_bytes(source, size, counts)
    if outside:
        gray += outside * (luma(fill[0], fill[1], fill[2]) if channels == 3 else np.int64(fill[0]))
        for c in range(channels):
            low[c], high[c] = min(low[c], fill[c]), max(high[c], fill[c])
            counts[c, 0, fill[c]] += outside
    for c in range(channels):
        # Of gray images all three "channels" are one.
        stop = c + 1 if channels == 3 else 3
        if op == Op.CONTRAST:
            contrast_table(int(gray / total + 0.5), np.float32(factor), table[c])
        elif op == Op.AUTOCONTRAST:
            least, greatest = nb.int64(255), nb.int64(0)
            for i in range(0, S.EXTREMES, 3):
                for j in range(i + c, i + stop):
                    least, greatest = min(least, nb.int64(low[j])), max(greatest, nb.int64(high[j]))
            autocontrast_table(least, greatest, table[c])
        else:
            for i in range(256):
                for d in range(c, stop):
                    for t in range(1 if d == c else 0, S.TABLES):
                        counts[c, 0, i] += counts[d, t, i]
            equalize_table(counts[c, 0], table[c])


@inner_kernel(forceinline=True)
def _looked_up(image: Any, start: Any, n: Any, scratch: Any) -> Any:
    """``n`` pixels through ``scratch.tap_lut`` -> where they lie, interleaved."""
    planes, out = scratch.planes, address_of(scratch.row_pixels)
    copy_pixels(image, start, n, False, planes, 0)
    for c in range(image.channels):
        look_up(planes[c], scratch.tap_lut[c], 0, n)
    if image.channels == 1:
        return address_of(planes)
    for x in range(0, n, BLOCK):
        join_rgb(address_of(planes) + x, planes.shape[1], out + 3 * x)
    return out


@inner_kernel(forceinline=True)
def gray_sum(source: Any, size: Any, channels: Any) -> Any:
    levels, total = bytes_at(source, size), np.int64(0)
    if channels == 1:
        for i in range(size):
            total += levels[i]
        return total
    groups = max(0, size - 4) // (3 * S.LUMAS)
    total += S.sum_luma(source, groups)
    for i in range(3 * S.LUMAS * groups, size, 3):
        total += luma(levels[i], levels[i + 1], levels[i + 2])
    return total


@inner_kernel(forceinline=True)
def _widen(source: Any, size: Any, low: Any, high: Any) -> None:
    if size >= S.EXTREMES:
        S.widen_extremes(source, size, address_of(low))
        return
    levels = bytes_at(source, size)
    for i in range(size):
        low[i], high[i] = min(low[i], levels[i]), max(high[i], levels[i])


@inner_kernel(forceinline=True)
def count_bytes(source: Any, size: Any, counts: Any) -> None:
    levels, groups = bytes_at(source, size), size // S.COUNTED
    S.count_levels(source, groups, address_of(counts))
    for i in range(S.COUNTED * groups, size):
        counts[i % 3, 0, levels[i]] += 1


@inner_kernel(forceinline=True)
def contrast_table(mean: Any, factor: Any, table: Any) -> None:
    base = np.float32(mean)
    for i in range(256):
        value = base + factor * (np.float32(i) - base)
        table[i] = np.uint8(min(max(value, np.float32(0.0)), np.float32(255.0)))


@inner_kernel(forceinline=True)
def autocontrast_table(low: Any, high: Any, table: Any) -> None:
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
def equalize_table(counts: Any, table: Any) -> None:
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
    # Exact in doubles, which divide several times faster than integers of 64 bits.
    running, divisor = step // 2, np.float64(step)
    for i in range(256):
        table[i] = min(255, int(running / divisor))
        running += counts[i]
