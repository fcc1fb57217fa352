"""Statistics of an image, measured tile by tile, and the tables of operations that need them.

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
from variegate.executors.cuda.kernels.deep import bin_of, key_of, value_of
from variegate.executors.cuda.kernels.element import blue, channels_of, clipped, color_at, green, red
from variegate.executors.cuda.kernels.fetch import fetch, fetch_levels, pixels_of, tile_and_row
from variegate.executors.cuda.kernels.memory import (
    float32s_at,
    float64s_at,
    int32s_at,
    int64s_at,
    load_float,
    load_int,
)
from variegate.executors.cuda.kernels.percentiles import (
    begin_search,
    continue_search,
    count,
    count_digits,
    count_first_digits,
    cut_off,
    end_search,
    is_number,
)
from variegate.executors.cuda.kernels.resample import write_weights
from variegate.executors.cuda.kernels.values import blend, look_up, luma
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def measure(buffer, code, header, work, x, y, inside, r, g, b, FORMAT: tl.constexpr):
    """Add a tile of source pixels ``r, g, b`` at ``x, y`` to the sums of the pass that ``header`` describes."""
    top = load_int(header + P.TOP)
    left = load_int(header + P.LEFT)
    bottom = load_int(header + P.BOTTOM)
    right = load_int(header + P.RIGHT)
    seen = inside & (y >= top) & (y < bottom) & (x >= left) & (x < right)
    needs = tl.load(header + P.NEEDS)
    channels = tl.load(header + L.CHANNELS)
    if FORMAT >= L.UINT16:
        op = tl.load(code + load_int(header + P.STATISTICS) * L.CODE + L.OP)
        _measure_deep(work, op, seen, channels, r, g, b, FORMAT)
    else:
        if (needs & P.NEEDS_COUNTS) != 0:
            count(work, seen, r)
            if channels == 3:
                count(work + 256, seen, g)
                count(work + 512, seen, b)
        if (needs & P.NEEDS_LUMA) != 0:
            for slot in range(load_int(header + P.BEGIN), load_int(header + P.STATISTICS)):
                at = code + slot * L.CODE
                if tl.load(at + L.CLASS) == L.LOOKUP:
                    r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, r, g, b)
            gray = r
            if channels == 3:
                gray = luma(r, g, b, FORMAT)
            total = tl.sum(tl.where(seen, gray, 0), axis=0).to(tl.int64)
            tl.atomic_add((work + L.LUMA).to(tl.pointer_type(tl.int64)), total, sem="relaxed")


@triton.jit
def _measure_deep(work, op, seen, channels, r, g, b, FORMAT: tl.constexpr):
    """``measure`` of a deep image, for the operation ``op``. Lowering allows one statistic per pass, without values
    before it."""
    if op == ops.Op.CONTRAST:
        gray = r
        if channels == 3:
            gray = luma(r, g, b, FORMAT)
        # float64 is exact for uint16. For float32, the order of tiles may change the last bits of the sum.
        total = tl.sum(tl.where(seen, gray, 0.0).to(tl.float64), axis=0)
        tl.atomic_add((work + L.LUMA).to(tl.pointer_type(tl.float64)), total, sem="relaxed")
    elif op == ops.Op.AUTOCONTRAST:
        _add_extremes(work, seen, r)
        if channels == 3:
            _add_extremes(work + 4, seen, g)
            _add_extremes(work + 8, seen, b)
    elif op == ops.Op.EQUALIZE:
        count(work, seen, bin_of(r, FORMAT))
        if channels == 3:
            count(work + 256, seen, bin_of(g, FORMAT))
            count(work + 512, seen, bin_of(b, FORMAT))
    else:
        count_first_digits(work, seen, r, FORMAT)
        if channels == 3:
            count_first_digits(work + 256, seen, g, FORMAT)
            count_first_digits(work + 512, seen, b, FORMAT)


@triton.jit
def _add_extremes(work, seen, value):
    """Add the extremes of a channel, as distances of their keys from the last and from the first of all keys."""
    seen = seen & is_number(value)
    key = key_of(value)
    low = tl.min(tl.where(seen, key, L.LAST_KEY), axis=0).to(tl.int64)
    high = tl.max(tl.where(seen, key, -L.LAST_KEY - 1), axis=0).to(tl.int64)
    extremes = (work + L.EXTREMES).to(tl.pointer_type(tl.int64))
    tl.atomic_max(extremes, L.LAST_KEY - low, sem="relaxed")
    tl.atomic_max(extremes + 1, high + L.LAST_KEY + 1, sem="relaxed")


@triton.jit
def _take_extremes(work):
    """The least and the greatest value of a channel; clears them."""
    extremes = (work + L.EXTREMES).to(tl.pointer_type(tl.int64))
    low = value_of((L.LAST_KEY - tl.load(extremes, cache_modifier=".cg")).to(tl.int32))
    high = value_of((tl.load(extremes + 1, cache_modifier=".cg") - L.LAST_KEY - 1).to(tl.int32))
    tl.debug_barrier()
    tl.store(extremes, 0)
    tl.store(extremes + 1, 0)
    return low, high


@triton.jit
def work_of(workspace, row, FORMAT: tl.constexpr):
    """The part of the workspace that a row's statistics use."""
    if FORMAT >= L.UINT16:
        work = workspace + row * L.DEEP_WORKSPACE
    else:
        work = workspace + row * L.WORKSPACE
    return work


@triton.jit
def is_last(work, tiles):
    """Count this tile as done. True for the last of ``tiles``, which then can read the sums of all."""
    # All threads must have added their sums before this atomic, the only one here with release and acquire order. The
    # sums are relaxed, because a fence per sum would also invalidate the cache.
    tl.debug_barrier()
    return tl.atomic_add(work + L.ARRIVED, 1) == tiles - 1


@triton.jit
def write_tables(buffer, code, args, header, work, FORMAT: tl.constexpr):
    """Write the tables of all statistics of the pass from the sums in ``work``, and clear ``work``."""
    if FORMAT >= L.UINT16:
        _write_deep_tables(buffer, code, args, header, work, FORMAT)
    else:
        _write_tables(buffer, code, args, header, work, FORMAT)
    tl.store((work + L.LUMA).to(tl.pointer_type(tl.int64)), 0)
    tl.store(work + L.ARRIVED, 0)


@triton.jit
def _write_deep_tables(buffer, code, args, header, work, FORMAT: tl.constexpr):
    """Write the numbers of ``deep.change_values``: a line (center, scale, shift) or a table for each channel."""
    slot = load_int(header + P.STATISTICS)
    at = code + slot * L.CODE
    op = tl.load(at + L.OP)
    outside, fill = _outside(header, code, FORMAT)
    if op == ops.Op.CONTRAST:
        mean = _mean_deep_luma(header, work, fill, outside, FORMAT)
        factor = load_float(args + slot * 8)
        for channel in range(3):
            _write_line(buffer, at, channel, mean, factor, mean)
    else:
        _write_deep_channel(buffer, at, args + slot * 8, 0, op, work, outside, red(fill), FORMAT)
        if tl.load(header + L.CHANNELS) == 3:
            _write_deep_channel(buffer, at, args + slot * 8, 1, op, work, outside, green(fill), FORMAT)
            _write_deep_channel(buffer, at, args + slot * 8, 2, op, work, outside, blue(fill), FORMAT)


@triton.jit
def _outside(header, code, FORMAT: tl.constexpr):
    """The number of pixels outside the source that a deep image's statistic counts, and their color."""
    slot = load_int(header + P.STATISTICS)
    outside = load_int(header + P.NUM_FILL)
    # They have the color of the map before the statistic; without a map, no pixel is outside.
    return outside, color_at(code + tl.where(outside > 0, slot - 1, slot) * L.CODE, FORMAT)


@triton.jit
def _mean_deep_luma(header, work, fill, outside, FORMAT: tl.constexpr):
    """The mean luma, float32."""
    gray = red(fill)
    if tl.load(header + L.CHANNELS) == 3:
        gray = luma(red(fill), green(fill), blue(fill), FORMAT)
    height, width = _size_seen(header)
    seen = tl.load((work + L.LUMA).to(tl.pointer_type(tl.float64)), cache_modifier=".cg")
    total = seen + outside.to(tl.float64) * gray.to(tl.float64)
    return (total / (height * width + outside).to(tl.float64)).to(tl.float32)


@triton.jit
def _write_deep_channel(buffer, at, ins_args, channel, op, work, outside, fill, FORMAT: tl.constexpr):
    """Write the line of an AUTOCONTRAST, the table of an EQUALIZE, or the first digits of percentiles."""
    if op == ops.Op.AUTOCONTRAST:
        low, high = _take_extremes(work + 4 * channel)
        low = tl.where(outside > 0, tl.minimum(low, fill), low)
        high = tl.where(outside > 0, tl.maximum(high, fill), high)
        _write_stretch(buffer, at, channel, low, high, FORMAT)
    elif op == ops.Op.PERCENTILE_STRETCH:
        begin_search(work, channel, tl.load(ins_args), tl.load(ins_args + 1), outside, fill, FORMAT)
    else:
        bins = tl.arange(0, 256)
        counts = tl.load(work + 256 * channel + bins, cache_modifier=".cg")
        tl.debug_barrier()
        tl.store(work + 256 * channel + bins, counts * 0)
        counts += tl.where(bins == bin_of(fill, FORMAT), outside, 0)
        tl.store(buffer + tl.load(at + L.ARG) + 256 * channel + bins, _equalize(counts).to(tl.uint8))


@triton.jit
def _write_stretch(buffer, at, channel, low, high, FORMAT: tl.constexpr):
    """Write the line that stretches ``low`` to black and ``high`` to white; unchanged if they are equal or NaN."""
    span = tl.where(low < high, high - low, 1.0)
    scale = tl.where(low < high, tl.div_rn(tl.full([], L.WHITE[FORMAT], tl.float32), span), 1.0)
    _write_line(buffer, at, channel, tl.where(low < high, low, 0.0), scale, 0.0)


@triton.jit
def _write_line(buffer, at, channel, center, scale, shift):
    line = float32s_at(buffer, tl.load(at + L.ARG)) + 3 * channel
    tl.store(line, center)
    tl.store(line + 1, scale)
    tl.store(line + 2, shift)


@triton.jit
def _write_tables(buffer, code, args, header, work, FORMAT: tl.constexpr):
    bins = tl.arange(0, 256)
    begin = load_int(header + P.BEGIN)
    end = load_int(header + P.STATISTICS_END)
    outside = tl.load(header + P.NUM_FILL)
    mean = _mean_luma(buffer, code, header, work, FORMAT)
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
                    tl.store(table + bins, blend(mean, bins, factor, FORMAT).to(tl.uint8))
                elif op == ops.Op.AUTOCONTRAST:
                    tl.store(table + bins, _stretch(counts, now, outside, fill).to(tl.uint8))
                elif op == ops.Op.PERCENTILE_STRETCH:
                    remapped = _remap(work, counts, now, outside, fill)
                    low = tl.load(args + slot * 8)
                    high = tl.load(args + slot * 8 + 1)
                    tl.store(table + bins, _stretch_percentiles(remapped, low, high).to(tl.uint8))
                elif op == ops.Op.EQUALIZE:
                    remapped = _remap(work, counts, now, outside, fill)
                    tl.store(table + bins, _equalize(remapped).to(tl.uint8))
                tl.debug_barrier()
                now = load_int(table + now)
                fill = load_int(table + fill)
        tl.store(work + 256 * channel + bins, counts * 0)


@triton.jit
def _size_seen(header):
    """Height and width of the part of the source that statistics measure, int64."""
    height = tl.maximum(tl.load(header + P.BOTTOM) - tl.load(header + P.TOP), 0)
    return height, tl.maximum(tl.load(header + P.RIGHT) - tl.load(header + P.LEFT), 0)


@triton.jit
def _mean_luma(buffer, code, header, work, FORMAT: tl.constexpr):
    """The mean luma before the first statistic, rounded half up as in Pillow."""
    channels = tl.load(header + L.CHANNELS)
    outside = tl.load(header + P.NUM_FILL)
    height, width = _size_seen(header)
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
        gray = luma(r, g, b, FORMAT)
    seen = tl.load((work + L.LUMA).to(tl.pointer_type(tl.int64)), cache_modifier=".cg")
    total = (seen + outside * gray).to(tl.float64)
    return (total / (height * width + outside).to(tl.float64) + 0.5).to(tl.int32)


@triton.jit
def _stretch(counts, now, outside, fill):
    """The table of ImageOps.autocontrast without cutoff: 256 values."""
    low = tl.min(tl.where(counts > 0, now, 255), axis=0)
    high = tl.max(tl.where(counts > 0, now, 0), axis=0)
    if outside > 0:
        low = tl.minimum(low, fill)
        high = tl.maximum(high, fill)
    return _stretch_between(low, high)


@triton.jit
def _stretch_percentiles(counts, low, high):
    """The table of ImageOps.autocontrast with cutoff=(low, 100 - high): 256 values."""
    up_to = tl.cumsum(counts, axis=0)
    total = tl.sum(counts, axis=0)
    first = tl.sum((up_to <= cut_off(total, low)).to(tl.int32), axis=0)
    last = 255 - tl.sum((total - up_to + counts <= cut_off(total, 100.0 - high)).to(tl.int32), axis=0)
    return _stretch_between(first, last)


@triton.jit
def _stretch_between(low, high):
    """The table that stretches ``low`` to 0 and ``high`` to 255, in double, truncated; unchanged if they are equal."""
    bins = tl.arange(0, 256)
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


@triton.jit
def _tiles_seen(header, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    """The part of the source that statistics measure, and the number of its tiles: in a line of tiles, and of all."""
    top = load_int(header + P.TOP)
    left = load_int(header + P.LEFT)
    bottom = load_int(header + P.BOTTOM)
    right = load_int(header + P.RIGHT)
    # At least one tile, even if the map shows no pixel of the source, because the last tile writes the tables.
    tiles_x = tl.maximum(tl.cdiv(right - left, BLOCK_X), 1)
    return top, left, bottom, right, tiles_x, tiles_x * tl.maximum(tl.cdiv(bottom - top, BLOCK_Y), 1)


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
    top, left, bottom, right, tiles_x, all_tiles = _tiles_seen(header, BLOCK_Y, BLOCK_X)
    if tile >= all_tiles:
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    x += left
    y += top
    inside = (y < bottom) & (x < right)
    pixel = fetch(header, x, y, inside, FORMAT)
    work = work_of(workspace, row, FORMAT)
    measure(buffer, code, header, work, x, y, inside, red(pixel), green(pixel), blue(pixel), FORMAT)
    if is_last(work, all_tiles):
        write_tables(buffer, code, args, header, work, FORMAT)


@triton.jit(do_not_specialize=["rows", "number"])
def search(
    buffer,
    workspace,
    code_at,
    headers_at,
    list_at,
    rows,
    number,
    FORMAT: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """Run round ``number`` of the search for percentiles of ``rows`` rows, after the launch that measured round 0.

    ``list_at``, ``rows``: the rows of that launch. ``headers_at``: offset of the headers of the passes whose source it
    measured.
    """
    code = int32s_at(buffer, code_at)
    tile, entry = tile_and_row()
    if entry >= rows:
        return
    row = tl.load(int32s_at(buffer, list_at) + entry)
    if row < 0:
        return
    header = int64s_at(buffer, headers_at) + row * L.HEADER
    # Headers of passes that a row does not have are empty.
    if tl.load(header + P.NEEDS) == 0:
        return
    at = code + load_int(header + P.STATISTICS) * L.CODE
    if tl.load(at + L.OP) != ops.Op.PERCENTILE_STRETCH:
        return
    top, left, bottom, right, tiles_x, all_tiles = _tiles_seen(header, BLOCK_Y, BLOCK_X)
    if tile >= all_tiles:
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    x += left
    y += top
    inside = (y < bottom) & (x < right)
    r, g, b = fetch_levels(header, x, y, inside, FORMAT)
    work = work_of(workspace, row, FORMAT)
    channels = load_int(header + L.CHANNELS)
    count_digits(work, 0, number, inside, r, FORMAT)
    if channels == 3:
        count_digits(work, 1, number, inside, g, FORMAT)
        count_digits(work, 2, number, inside, b, FORMAT)
    if is_last(work, all_tiles):
        outside, fill = _outside(header, code, FORMAT)
        _search_channel(buffer, at, work, 0, number, outside, red(fill), FORMAT)
        if channels == 3:
            _search_channel(buffer, at, work, 1, number, outside, green(fill), FORMAT)
            _search_channel(buffer, at, work, 2, number, outside, blue(fill), FORMAT)
        tl.store(work + L.ARRIVED, 0)


@triton.jit
def _search_channel(buffer, at, work, channel, number, outside, fill, FORMAT: tl.constexpr):
    """Find the next digits of a channel's percentiles; after the last round, write its line."""
    continue_search(work, channel, number, outside, fill, FORMAT)
    if number == L.ROUNDS[FORMAT] - 1:
        low, high = end_search(work, channel, FORMAT)
        _write_stretch(buffer, at, channel, low, high, FORMAT)
