"""Filtered pixels: sharpness, blurs, medians, erosion, CLAHE. Operations before the filter are applied per tap.

CPU counterparts: ``native/kernels/sharpen.cpp``, ``blur.cpp``, ``median.cpp``, ``filters.cpp`` and ``clahe.cpp``;
definition: ``tests/oracle/neighborhood.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.deep import key_of, value_of
from variegate.executors.cuda.kernels.element import (
    add_weighted,
    begin_sum,
    blue,
    clamp,
    clipped,
    color_at,
    drop_bits,
    from_byte,
    full,
    green,
    pack,
    red,
    round_value,
    select_pixel,
    to_element,
    truncate_value,
)
from variegate.executors.cuda.kernels.fetch import fetch, fetch_levels, step, trace_maps
from variegate.executors.cuda.kernels.memory import float32s_at, int16s_at, load_float, load_int, size_of
from variegate.executors.cuda.kernels.values import blend, look_up, luma
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def equalize_tiles(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """CLAHE: computes the table of every image tile that is around a pixel of this block, from the tile's pixels."""
    height, width = size_of(header)
    channels = load_int(header + L.CHANNELS)
    clip = tl.load(args + slot * 8)
    tiles_x = load_int(args + slot * 8 + 1)
    tiles_y = load_int(args + slot * 8 + 2)
    more = tl.where((height % tiles_y == 0) & (width % tiles_x == 0), 0, 1)
    tile_h = height // tiles_y + more
    tile_w = width // tiles_x + more
    left, right, share_x = _between(x, tile_w, tiles_x)
    above, below, share_y = _between(y, tile_h, tiles_y)
    pixel = before(buffer, code, header, slot, x, y, inside, FORMAT)
    level = _gray(pixel, channels, FORMAT)
    corners = tl.full(x.shape, 0, tl.int32)
    for tile_y in range(tl.min(tl.where(inside, above, tiles_y)), tl.max(tl.where(inside, below, 0)) + 1):
        for tile_x in range(tl.min(tl.where(inside, left, tiles_x)), tl.max(tl.where(inside, right, 0)) + 1):
            counts = tl.full([256], 0, tl.int32)
            for first in range(0, tile_h * tile_w, x.shape[0]):
                at = first + tl.arange(0, x.shape[0])
                seen = at < tile_h * tile_w
                u = reflect(tile_x * tile_w + at % tile_w, width)
                v = reflect(tile_y * tile_h + at // tile_w, height)
                source = before(buffer, code, header, slot, u, v, seen, FORMAT)
                counts += tl.histogram(_gray(source, channels, FORMAT), 256, mask=seen)
            table = _clipped_table(counts, clip, tile_h * tile_w)
            value = tl.gather(table, level, 0)
            # One byte per tile around the pixel. Beyond the outermost centers, several of the four tiles are equal.
            is_above = above == tile_y
            is_below = below == tile_y
            is_left = left == tile_x
            is_right = right == tile_x
            corners |= tl.where(is_above & is_left, value, 0) | tl.where(is_above & is_right, value << 8, 0)
            corners |= tl.where(is_below & is_left, value << 16, 0) | tl.where(is_below & is_right, value << 24, 0)
    upper = (corners & 255).to(tl.float32) * (1.0 - share_x) + ((corners >> 8) & 255).to(tl.float32) * share_x
    lower = ((corners >> 16) & 255).to(tl.float32) * (1.0 - share_x) + ((corners >> 24) & 255).to(tl.float32) * share_x
    moved = _nearest(upper * (1.0 - share_y) + lower * share_y) - level
    return pack(clipped(red(pixel) + moved), clipped(green(pixel) + moved), clipped(blue(pixel) + moved))


@triton.jit
def _gray(pixel, channels, FORMAT: tl.constexpr):
    return tl.where(channels == 3, luma(red(pixel), green(pixel), blue(pixel), FORMAT), red(pixel))


@triton.jit
def _between(at, tile, tiles):
    """Tiles with their centers before and after a pixel -> (first tile, second tile, weight of the second)."""
    # The float64 quotient, rounded to float32, equals the CPU's float32 quotient.
    place = at.to(tl.float32) * (1.0 / tile.to(tl.float64)).to(tl.float32) - 0.5
    first = tl.floor(place)
    tile_number = first.to(tl.int32)
    return tl.maximum(tile_number, 0), tl.minimum(tile_number + 1, tiles - 1), place - first


@triton.jit
def _clipped_table(counts, clip, total):
    """OpenCV's clipped table: counts above the limit are clipped, distributed over all values, and accumulated."""
    bins = tl.arange(0, 256)
    limit = tl.maximum((clip * total.to(tl.float64) / 256.0).to(tl.int32), 1)
    over = tl.sum(tl.maximum(counts - limit, 0), axis=0)
    rest = over % 256
    step = tl.maximum(256 // tl.maximum(rest, 1), 1)
    counts = tl.minimum(counts, limit) + over // 256
    counts += tl.where((bins % step == 0) & (bins // step < rest), 1, 0)
    scale = (255.0 / total.to(tl.float64)).to(tl.float32)
    return tl.minimum(_nearest(tl.cumsum(counts, axis=0).to(tl.float32) * scale), 255)


@triton.jit
def _nearest(value):
    """Round float32 below 2**22, halves to even."""
    return ((value + 12582912.0) - 12582912.0).to(tl.int32)


@triton.jit
def read_filtered(buffer, code, args, header, x, y, inside, FORMAT: tl.constexpr):
    """Pixels after the filter of the pass, for all filters but CLAHE and warps: see ``warp.read_around``."""
    slot = load_int(header + P.FIRST)
    at = code + slot * L.CODE
    black = full(x, 0, FORMAT)
    pixel = pack(black, black, black)
    if tl.load(at + L.OP) == ops.Op.SHARPNESS:
        pixel = _sharpen(buffer, code, args, header, slot, x, y, inside, FORMAT)
    elif tl.load(at + L.OP) == ops.Op.MEDIAN:
        pixel = _median(buffer, code, args, header, slot, x, y, inside, FORMAT)
    elif tl.load(at + L.OP) == ops.Op.MORPHOLOGY:
        pixel = _erode_or_dilate(buffer, code, args, header, slot, x, y, inside, FORMAT)
    elif tl.load(at + L.FLAG) != 0:
        pixel = _blur_separably(buffer, code, args, header, slot, x, y, inside, FORMAT)
    else:
        pixel = _convolve(buffer, code, header, slot, x, y, inside, FORMAT)
    return pixel


@triton.jit
def before(buffer, code, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """The filter's input at ``x, y``: the source after the operations before ``slot``, which are maps and tables."""
    begin = load_int(header + P.BEGIN)
    u, v, stage = trace_maps(code, begin, slot, x, y)
    pixel = fetch(header, u, v, inside & (stage < 0), FORMAT)
    channels = tl.load(header + L.CHANNELS)
    for k in range(begin, slot):
        at = code + k * L.CODE
        category = tl.load(at + L.CLASS)
        if category == L.LOOKUP:
            # Of deep images, operations on values are in passes of their own.
            if FORMAT < L.UINT16:
                r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, red(pixel), green(pixel), blue(pixel))
                pixel = pack(r, g, b)
        elif category == L.MAP:
            pixel = select_pixel(stage == k, color_at(at, FORMAT), pixel)
    return pixel


@triton.jit
def _sharpen(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """Pillow's blend with SMOOTH (1 1 1, 1 5 1, 1 1 1)/13; the one-pixel border is unchanged."""
    height, width = size_of(header)
    is_inner = (x > 0) & (x < width - 1) & (y > 0) & (y < height - 1)
    if FORMAT >= L.UINT16:
        pixel = _sharpen_deep(buffer, code, args, header, slot, x, y, inside, is_inner, FORMAT)
    elif tl.load(code + slot * L.CODE + L.FLAG) != 0:
        pixel = _sharpen_plain(code, args, header, slot, x, y, inside, is_inner, FORMAT)
    else:
        pixel = _sharpen_mapped(buffer, code, args, header, slot, x, y, inside, is_inner, FORMAT)
    return pixel


@triton.jit
def _sharpen_plain(code, args, header, slot, x, y, inside, is_inner, FORMAT: tl.constexpr):
    """Sharpen if at most a flip comes before: then a pixel's neighbors are adjacent in the source."""
    begin = load_int(header + P.BEGIN)
    u = x
    v = y
    if begin < slot:
        u, v, _ = step(code, begin, x, y)
    r, g, b = fetch_levels(header, u, v, inside, FORMAT)
    center = pack(r, g, b)
    inside &= is_inner
    outer = 4 * (r + (b << 16))
    middle = 4 * g
    for tap in range(9):
        r, g, b = fetch_levels(header, u + (tap % 3 - 1), v + (tap // 3 - 1), inside, FORMAT)
        outer += r + (b << 16)
        middle += g
    return _sharpened(args, slot, center, outer, middle, is_inner, FORMAT)


@triton.jit
def _sharpen_mapped(buffer, code, args, header, slot, x, y, inside, is_inner, FORMAT: tl.constexpr):
    """Sharpen with arbitrary maps and tables before: each neighbor is read through all of them."""
    center = before(buffer, code, header, slot, x, y, inside, FORMAT)
    outer = 4 * (center & 0xFF00FF)
    middle = 4 * green(center)
    for tap in range(9):
        dx = tap % 3 - 1
        dy = tap // 3 - 1
        pixel = before(buffer, code, header, slot, x + dx, y + dy, inside & is_inner, FORMAT)
        outer += pixel & 0xFF00FF
        middle += green(pixel)
    return _sharpened(args, slot, center, outer, middle, is_inner, FORMAT)


@triton.jit
def _sharpen_deep(buffer, code, args, header, slot, x, y, inside, is_inner, FORMAT: tl.constexpr):
    """Sharpen deep images. Border pixels are clipped too."""
    center = before(buffer, code, header, slot, x, y, inside, FORMAT)
    r, g, b = add_weighted(full(x, 0, FORMAT), full(x, 0, FORMAT), full(x, 0, FORMAT), 4.0, center)
    for tap in range(9):
        dx = tap % 3 - 1
        dy = tap // 3 - 1
        pixel = before(buffer, code, header, slot, x + dx, y + dy, inside & is_inner, FORMAT)
        r, g, b = add_weighted(r, g, b, 1.0, pixel)
    factor = load_float(args + slot * 8)
    return (
        _away_from_mean(r, red(center), factor, is_inner, FORMAT),
        _away_from_mean(g, green(center), factor, is_inner, FORMAT),
        _away_from_mean(b, blue(center), factor, is_inner, FORMAT),
    )


@triton.jit
def _away_from_mean(total, level, factor, is_inner, FORMAT: tl.constexpr):
    smooth = tl.div_rn(total, full(total, 13.0, FORMAT))
    if FORMAT == L.UINT16:
        smooth = round_value(smooth, FORMAT)
    return tl.where(is_inner, blend(smooth, level, factor, FORMAT), truncate_value(level, FORMAT))


@triton.jit
def _sharpened(args, slot, center, outer, middle, is_inner, FORMAT: tl.constexpr):
    """Sharpen by sums of neighbors. ``outer``: sums of red and blue in one word; ``middle``: of green.

    A sum of nine values and four times the center fits into 16 bits.
    """
    factor = load_float(args + slot * 8)
    sharpened = pack(
        blend(_thirteenth(outer & 0xFFFF), red(center), factor, FORMAT),
        blend(_thirteenth(middle), green(center), factor, FORMAT),
        blend(_thirteenth(outer >> 16), blue(center), factor, FORMAT),
    )
    return tl.where(is_inner, sharpened, center)


@triton.jit
def _thirteenth(total):
    """floor((2 total + 13) / 26), by a multiplication that is exact for every total up to 13 * 255."""
    return ((2 * total + 13) * 20165) >> 19


@triton.jit
def reflect(i, n):
    """Index ``i`` mirrored into 0..n-1 about the border pixels, repeatedly."""
    period = tl.maximum(2 * (n - 1), 1)
    i = tl.abs(i) % period
    return tl.where(n == 1, 0, tl.where(i >= n, period - i, i))


@triton.jit
def _weights_at(buffer, offset, FORMAT: tl.constexpr):
    """The table of a convolution: see native/lowering/kernel_weights.cpp."""
    if FORMAT >= L.UINT16:
        weights = float32s_at(buffer, offset)
    else:
        weights = int16s_at(buffer, offset)
    return weights


@triton.jit
def _load_weight(address):
    weight = tl.load(address)
    return weight if weight.dtype.is_floating() else weight.to(tl.int32)


@triton.jit
def _blur_separably(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """Blur along columns, rounded to LEVEL_BITS fraction bits, then along rows; reflect padding."""
    height, width = size_of(header)
    at = code + slot * L.CODE
    radius_x = tl.load(at + L.PARAMS) // 2
    radius_y = tl.load(at + L.PARAMS + 1) // 2
    along_x = _weights_at(buffer, tl.load(at + L.ARG), FORMAT)
    along_y = along_x + tl.load(at + L.PARAMS + 2)
    column_bits: tl.constexpr = L.WEIGHT_BITS + 1 - L.LEVEL_BITS
    bits: tl.constexpr = L.WEIGHT_BITS + 1 + L.LEVEL_BITS
    total_r = begin_sum(x, bits, FORMAT)
    total_g = total_r
    total_b = total_r
    for i in range(2 * radius_x + 1):
        u = reflect(x + (i - radius_x), width)
        sum_r = begin_sum(x, column_bits, FORMAT)
        sum_g = sum_r
        sum_b = sum_r
        for j in range(2 * radius_y + 1):
            v = reflect(y + (j - radius_y), height)
            pixel = before(buffer, code, header, slot, u, v, inside, FORMAT)
            weight = _mirrored(along_y, j - radius_y)
            sum_r, sum_g, sum_b = add_weighted(sum_r, sum_g, sum_b, weight, pixel)
        weight = _mirrored(along_x, i - radius_x)
        total_r += weight * drop_bits(sum_r, column_bits)
        total_g += weight * drop_bits(sum_g, column_bits)
        total_b += weight * drop_bits(sum_b, column_bits)
    r = drop_bits(total_r, bits)
    g = drop_bits(total_g, bits)
    b = drop_bits(total_b, bits)
    if FORMAT >= L.UINT16:
        amount = load_float(args + slot * 8 + 6) - 1.0
    else:
        amount = tl.load(at + L.PARAMS + 4) - 1
    threshold = tl.load(at + L.PARAMS + 5)
    if amount >= 0:
        pixel = before(buffer, code, header, slot, x, y, inside, FORMAT)
        r = _unsharpened(red(pixel), r, amount, threshold, FORMAT)
        g = _unsharpened(green(pixel), g, amount, threshold, FORMAT)
        b = _unsharpened(blue(pixel), b, amount, threshold, FORMAT)
    elif FORMAT == L.UINT16:
        r = round_value(r, FORMAT)
        g = round_value(g, FORMAT)
        b = round_value(b, FORMAT)
    return pack(r, g, b)


@triton.jit
def _unsharpened(level, blurred, amount, threshold, FORMAT: tl.constexpr):
    away = level - blurred
    added = drop_bits(away * amount + begin_sum(amount, L.AMOUNT_BITS, FORMAT), L.AMOUNT_BITS)
    if FORMAT >= L.UINT16:
        least = from_byte(threshold, FORMAT)
        value = round_value(level + tl.where(tl.abs(away) > least, added, 0.0), FORMAT)
    else:
        value = clipped(level + tl.where(tl.abs(away) > threshold, added, 0))
    return value


@triton.jit
def _mirrored(half, i):
    """The weight at distance ``i``. ``half``: weights from the center on, with half of the center's weight."""
    weight = _load_weight(half + tl.abs(i))
    return tl.where(i == 0, 2 * weight, weight)


@triton.jit
def _convolve(buffer, code, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """Convolve with all cells of a kernel, rounded half up and clipped; adds the results of several kernels.

    Edge padding.
    """
    height, width = size_of(header)
    at = code + slot * L.CODE
    apart = tl.load(at + L.PARAMS + 2)
    cells = tl.load(at + L.PARAMS + 3)
    weights = _weights_at(buffer, tl.load(at + L.ARG), FORMAT)
    r = full(x, 0, FORMAT)
    g = r
    b = r
    more = tl.load(at + L.PARAMS + 4)
    for _ in range(more + 1):
        total_r = begin_sum(x, L.WEIGHT_BITS, FORMAT)
        total_g = total_r
        total_b = total_r
        for cell in range(cells):
            weight = _load_weight(weights + cell)
            u = clamp(x + load_int(weights + apart + cell), 0, width - 1)
            v = clamp(y + load_int(weights + 2 * apart + cell), 0, height - 1)
            pixel = before(buffer, code, header, slot, u, v, inside, FORMAT)
            total_r, total_g, total_b = add_weighted(total_r, total_g, total_b, weight, pixel)
        r += _clipped_result(to_element(total_r, L.WEIGHT_BITS, FORMAT), more, FORMAT)
        g += _clipped_result(to_element(total_g, L.WEIGHT_BITS, FORMAT), more, FORMAT)
        b += _clipped_result(to_element(total_b, L.WEIGHT_BITS, FORMAT), more, FORMAT)
        weights += 3 * apart
    if FORMAT < L.UINT16:
        pixel = pack(clipped(r), clipped(g), clipped(b))
    else:
        pixel = (
            _clipped_result(r, more, FORMAT),
            _clipped_result(g, more, FORMAT),
            _clipped_result(b, more, FORMAT),
        )
    return pixel


@triton.jit
def _clipped_result(value, more, FORMAT: tl.constexpr):
    """Clip results of several kernels. The result of one kernel may be outside black and white in float32."""
    if FORMAT >= L.UINT16:
        value = tl.where(more > 0, truncate_value(value, FORMAT), value)
    return value


@triton.jit
def _median(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """The median of a square window, edge padding.

    Finds two bits at a time of the greatest value such that at most half of the values are below it.
    """
    height, width = size_of(header)
    size = load_int(args + slot * 8)
    half = size * size // 2
    # Floats are sorted by keys of 32 bits, which may be negative.
    bits: tl.constexpr = 32 if FORMAT == L.FLOAT32 else 16 if FORMAT == L.UINT16 else 8
    r = tl.full(x.shape, -(1 << 31) if FORMAT == L.FLOAT32 else 0, tl.int32)
    g = r
    b = r
    for pair in range(bits // 2):
        step = (1 << (bits - 2)) >> (2 * pair)
        below_r = tl.full(x.shape, 0, tl.int32)
        below_g = below_r
        below_b = below_r
        for cell in range(size * size):
            u = clamp(x + (cell % size - size // 2), 0, width - 1)
            v = clamp(y + (cell // size - size // 2), 0, height - 1)
            pixel = before(buffer, code, header, slot, u, v, inside, FORMAT)
            if FORMAT == L.FLOAT32:
                below_r += _below_key(key_of(red(pixel)), r, step)
                below_g += _below_key(key_of(green(pixel)), g, step)
                below_b += _below_key(key_of(blue(pixel)), b, step)
            else:
                below_r += _below(red(pixel) - r, step)
                below_g += _below(green(pixel) - g, step)
                below_b += _below(blue(pixel) - b, step)
        r += step * _reached(below_r, half)
        g += step * _reached(below_g, half)
        b += step * _reached(below_b, half)
    if FORMAT == L.FLOAT32:
        pixel = (value_of(r), value_of(g), value_of(b))
    elif FORMAT == L.UINT16:
        pixel = (r.to(tl.float32), g.to(tl.float32), b.to(tl.float32))
    else:
        pixel = pack(r, g, b)
    return pixel


@triton.jit
def _below(away, step):
    """Flags of values less than one, two or three steps away, one byte each, because no window has 256 values."""
    return tl.where(away < step, 1, 0) + tl.where(away < 2 * step, 1 << 8, 0) + tl.where(away < 3 * step, 1 << 16, 0)


@triton.jit
def _below_key(key, least, step):
    """``_below`` of keys, whose differences may not fit into 32 bits."""
    one = least + step
    two = one + step
    return tl.where(key < one, 1, 0) + tl.where(key < two, 1 << 8, 0) + tl.where(key < two + step, 1 << 16, 0)


@triton.jit
def _reached(below, half):
    """Number of the three steps with at most half of the values below."""
    one = below & 255
    two = (below >> 8) & 255
    three = below >> 16
    return tl.where(one <= half, 1, 0) + tl.where(two <= half, 1, 0) + tl.where(three <= half, 1, 0)


@triton.jit
def _erode_or_dilate(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """The greatest value in OpenCV's ellipse; the least value is the greatest of flipped bits, or of negative floats.

    Cells outside the image are clamped to its edge: the ellipse contains those pixels also, so they change nothing.
    """
    height, width = size_of(header)
    columns = load_int(args + slot * 8)
    lines = load_int(args + slot * 8 + 1)
    dilates = tl.load(args + slot * 8 + 2) != 0.0
    if FORMAT >= L.UINT16:
        flip = tl.where(dilates, 1.0, -1.0)
    else:
        flip = tl.where(dilates, 0, 255)
    middle = columns // 2
    radius = lines // 2
    r = full(x, float("-inf") if FORMAT >= L.UINT16 else 0, FORMAT)
    g = r
    b = r
    for line in range(lines):
        away = line - radius
        half = radius * 0
        for column in range(1, middle + 1):
            odd = (2 * column - 1) * radius
            fits = odd * odd <= 4 * middle * middle * (radius * radius - away * away)
            half += tl.where((radius > 0) & fits, 1, 0)
        v = clamp(y + away, 0, height - 1)
        for column in range(tl.maximum(middle - half, 0), tl.minimum(middle + half + 1, columns)):
            u = clamp(x + (column - middle), 0, width - 1)
            pixel = before(buffer, code, header, slot, u, v, inside, FORMAT)
            r = tl.maximum(r, _flipped(red(pixel), flip))
            g = tl.maximum(g, _flipped(green(pixel), flip))
            b = tl.maximum(b, _flipped(blue(pixel), flip))
    return pack(_flipped(r, flip), _flipped(g, flip), _flipped(b, flip))


@triton.jit
def _flipped(level, flip):
    return level * flip if level.dtype.is_floating() else level ^ flip
