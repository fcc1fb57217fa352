"""Statistics of an image, measured tile by tile, and the tables of contrast, autocontrast and equalize.

Every tile adds its counts to the row's workspace; the last tile computes tables from the sums and clears the sums.
Only tables and at most one integer map may come before a statistic. Values of the source are counted, and the tables
before an operation are applied to the counts. The mean luma cannot be derived from counts per channel, so lowering
allows a contrast only as the first statistic of a pass. CPU counterpart: ``native/kernels/statistics.cpp``;
definition: ``tests/oracle/statistics.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import (
    blue,
    channels_of,
    clipped,
    fetch,
    green,
    pixels_of,
    red,
    tile_and_row,
)
from variegate.executors.cuda.kernels.memory import float64s_at, int32s_at, int64s_at, load_float, load_int
from variegate.executors.cuda.kernels.resample import write_weights
from variegate.executors.cuda.kernels.values import blend, look_up, luma
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def measure(buffer, code, header, work, x, y, inside, r, g, b):
    """Add a tile of source pixels ``r, g, b`` at ``x, y`` to the sums of the pass that ``header`` describes."""
    top = load_int(header + P.TOP)
    left = load_int(header + P.LEFT)
    bottom = load_int(header + P.BOTTOM)
    right = load_int(header + P.RIGHT)
    seen = inside & (y >= top) & (y < bottom) & (x >= left) & (x < right)
    needs = tl.load(header + P.NEEDS)
    channels = tl.load(header + L.CHANNELS)
    if (needs & P.NEEDS_COUNTS) != 0:
        _count(work, seen, r)
        if channels == 3:
            _count(work + 256, seen, g)
            _count(work + 512, seen, b)
    if (needs & P.NEEDS_LUMA) != 0:
        for slot in range(load_int(header + P.BEGIN), load_int(header + P.STATISTICS)):
            at = code + slot * L.CODE
            if tl.load(at + L.CLASS) == L.LOOKUP:
                r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, r, g, b)
        gray = r
        if channels == 3:
            gray = luma(r, g, b)
        total = tl.sum(tl.where(seen, gray, 0), axis=0).to(tl.int64)
        tl.atomic_add((work + L.LUMA).to(tl.pointer_type(tl.int64)), total, sem="relaxed")


@triton.jit
def _count(work, seen, level):
    counts = tl.histogram(level, 256, mask=seen)
    bins = tl.arange(0, 256)
    tl.atomic_add(work + L.COUNTS + bins, counts, mask=counts != 0, sem="relaxed")


@triton.jit
def is_last(work, tiles):
    """Count this tile as done. True for the last of ``tiles``, which then can read the sums of all."""
    # All threads must have added their sums before this atomic, the only one here with release and acquire order. The
    # sums are relaxed, because a fence per sum would also invalidate the cache.
    tl.debug_barrier()
    return tl.atomic_add(work + L.ARRIVED, 1) == tiles - 1


@triton.jit
def write_tables(buffer, code, args, header, work):
    """Write the tables of all statistics of the pass from the sums in ``work``, and clear ``work``."""
    bins = tl.arange(0, 256)
    begin = load_int(header + P.BEGIN)
    end = load_int(header + P.STATISTICS_END)
    outside = tl.load(header + P.NUM_FILL)
    mean = _mean_luma(buffer, code, header, work)
    for channel in range(load_int(header + L.CHANNELS)):
        counts = tl.load(work + 256 * channel + bins, cache_modifier=".cg")
        # The current values of the source's 256 values, and of the fill color, after the tables so far.
        now = bins
        fill = 0
        for slot in range(begin, end):
            at = code + slot * L.CODE
            op = tl.load(at + L.OP)
            if op == ops.Op.MAP_FIXED:
                fill = (tl.load(at + L.FILL) >> (8 * channel)) & 255
            if tl.load(at + L.CLASS) == L.LOOKUP:
                table = buffer + tl.load(at + L.ARG) + 256 * channel
                if op == ops.Op.CONTRAST:
                    factor = load_float(args + slot * 8)
                    tl.store(table + bins, blend(mean, bins, factor).to(tl.uint8))
                elif op == ops.Op.AUTOCONTRAST:
                    tl.store(table + bins, _stretch(counts, now, outside, fill).to(tl.uint8))
                elif op == ops.Op.EQUALIZE:
                    remapped = _remap(work, counts, now, outside, fill)
                    tl.store(table + bins, _equalize(remapped).to(tl.uint8))
                tl.debug_barrier()
                now = load_int(table + now)
                fill = load_int(table + fill)
        tl.store(work + 256 * channel + bins, counts * 0)
    tl.store((work + L.LUMA).to(tl.pointer_type(tl.int64)), 0)
    tl.store(work + L.ARRIVED, 0)


@triton.jit
def _mean_luma(buffer, code, header, work):
    """The mean luma before the first statistic, rounded half up as in Pillow."""
    channels = tl.load(header + L.CHANNELS)
    outside = tl.load(header + P.NUM_FILL)
    height = tl.maximum(tl.load(header + P.BOTTOM) - tl.load(header + P.TOP), 0)
    width = tl.maximum(tl.load(header + P.RIGHT) - tl.load(header + P.LEFT), 0)
    r = 0
    g = 0
    b = 0
    for slot in range(load_int(header + P.BEGIN), load_int(header + P.STATISTICS)):
        at = code + slot * L.CODE
        if tl.load(at + L.OP) == ops.Op.MAP_FIXED:
            fill = tl.load(at + L.FILL)
            r, g, b = channels_of(fill)
        elif tl.load(at + L.CLASS) == L.LOOKUP:
            r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, r, g, b)
    gray = r
    if channels == 3:
        gray = luma(r, g, b)
    seen = tl.load((work + L.LUMA).to(tl.pointer_type(tl.int64)), cache_modifier=".cg")
    total = (seen + outside * gray).to(tl.float64)
    return (total / (height * width + outside).to(tl.float64) + 0.5).to(tl.int32)


@triton.jit
def _stretch(counts, now, outside, fill):
    """The table of ImageOps.autocontrast without cutoff: 256 values, computed in double, truncated, clipped."""
    bins = tl.arange(0, 256)
    low = tl.min(tl.where(counts > 0, now, 255), axis=0)
    high = tl.max(tl.where(counts > 0, now, 0), axis=0)
    if outside > 0:
        low = tl.minimum(low, fill)
        high = tl.maximum(high, fill)
    scale = 255.0 / tl.maximum(high - low, 1).to(tl.float64)
    stretched = (bins.to(tl.float64) * scale + -low.to(tl.float64) * scale).to(tl.int32)
    return tl.where(high > low, clipped(stretched), bins)


@triton.jit
def _remap(work, counts, now, outside, fill):
    """The counts of values after the tables so far (``now``), including the pixels outside the source."""
    bins = tl.arange(0, 256)
    remapped = work + L.REMAPPED + bins
    tl.atomic_add(work + L.REMAPPED + now, counts, sem="relaxed")
    tl.debug_barrier()
    counts = tl.load(remapped, cache_modifier=".cg")
    tl.debug_barrier()
    tl.store(remapped, counts * 0)
    return counts + tl.where(bins == fill, outside, 0).to(tl.int32)


@triton.jit
def _equalize(counts):
    """The table of ImageOps.equalize: 256 values."""
    bins = tl.arange(0, 256)
    highest = tl.max(tl.where(counts > 0, bins, 0), axis=0)
    lowest = tl.min(tl.where(counts > 0, bins, 255), axis=0)
    total = tl.sum(counts, axis=0)
    at_highest = tl.sum(tl.where(bins == highest, counts, 0), axis=0)
    step = (total - at_highest) // 255
    is_kept = (lowest == highest) | (step == 0)
    step = tl.maximum(step, 1)
    before = tl.cumsum(counts, axis=0) - counts
    return tl.where(is_kept, bins, tl.minimum((step // 2 + before) // step, 255))


@triton.jit(do_not_specialize=["rows"])
def prepare(
    buffer,
    workspace,
    code_at,
    args_at,
    headers_at,
    list_at,
    rows,
    FORMAT: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    WEIGHTS_BLOCK: tl.constexpr,
    VERSION: tl.constexpr,
):
    """Prepare the first pass of the ``rows`` entries of the list at ``list_at``: resize weights, or statistics.

    ``headers_at``: offset of the first pass's headers.
    """
    code = int32s_at(buffer, code_at)
    args = float64s_at(buffer, args_at)
    tile, entry = tile_and_row()
    if entry >= rows:
        return
    row = tl.load(int32s_at(buffer, list_at) + entry)
    if row < 0:
        return
    header = int64s_at(buffer, headers_at) + row * L.HEADER
    if tl.load(header + P.SOURCE) == P.PassSource.RESAMPLE:
        write_weights(buffer, code, args, header, tile, WEIGHTS_BLOCK)
        return
    if tl.load(header + P.NEEDS) == 0:
        return
    top = load_int(header + P.TOP)
    left = load_int(header + P.LEFT)
    bottom = load_int(header + P.BOTTOM)
    right = load_int(header + P.RIGHT)
    # At least one tile, even if the map shows no pixel of the source, because the last tile writes the tables.
    tiles_x = tl.maximum(tl.cdiv(right - left, BLOCK_X), 1)
    all_tiles = tiles_x * tl.maximum(tl.cdiv(bottom - top, BLOCK_Y), 1)
    if tile >= all_tiles:
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    x += left
    y += top
    inside = (y < bottom) & (x < right)
    pixel = fetch(header, x, y, inside, FORMAT)
    work = workspace + row * L.WORKSPACE
    measure(buffer, code, header, work, x, y, inside, red(pixel), green(pixel), blue(pixel))
    if is_last(work, all_tiles):
        write_tables(buffer, code, args, header, work)
