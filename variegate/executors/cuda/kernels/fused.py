"""The fused pass: reads a tile of one row, applies all operations in registers, and writes it once.

CPU counterpart: ``native/kernels/run.cpp``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.deep import change_values
from variegate.executors.cuda.kernels.element import (
    add_weighted,
    blue,
    channels_of,
    clamp,
    clipped,
    color_at,
    drop_bits,
    full,
    green,
    mix,
    pack,
    raise_bits,
    red,
    select_pixel,
    select_rgb,
    to_element,
)
from variegate.executors.cuda.kernels.fetch import (
    fetch,
    fetch_levels,
    fold_index,
    linear_form,
    nearest_in_grid,
    pixels_of,
    place,
    step,
    tile_and_row,
    trace_folded,
    trace_grids,
    trace_maps,
    trace_records,
    trace_tables,
)
from variegate.executors.cuda.kernels.memory import (
    float32s_at,
    float64s_at,
    int32s_at,
    int64s_at,
    load_int,
    load_key,
    size_of,
)
from variegate.executors.cuda.kernels.resample import read_resampled
from variegate.executors.cuda.kernels.statistics import is_last, measure, work_of, write_tables
from variegate.executors.cuda.kernels.store import store_canvas, store_result
from variegate.executors.cuda.kernels.values import apply_position, apply_value, look_up
from variegate.executors.cuda.kernels.warp import read_around
from variegate.program import coords as R
from variegate.program import ops
from variegate.program import passes as P


@triton.jit(do_not_specialize=["rows"])
def run_pass(
    buffer,
    workspace,
    code_at,
    args_at,
    headers_at,
    next_headers_at,
    list_at,
    constants_at,
    rows,
    FORMAT: tl.constexpr,
    HAS_SUBPIXEL: tl.constexpr,
    HAS_GRID: tl.constexpr,
    HAS_FOLD: tl.constexpr,
    HAS_FILTER: tl.constexpr,
    HAS_CLAHE: tl.constexpr,
    HAS_WARP: tl.constexpr,
    HAS_RESAMPLE: tl.constexpr,
    HAS_HUE: tl.constexpr,
    HAS_NOISE: tl.constexpr,
    HAS_OVERLAY: tl.constexpr,
    MEASURES: tl.constexpr,
    IS_REGION: tl.constexpr,
    PIXEL_FUNCTIONS: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """Run one pass of the ``rows`` rows in the list at ``list_at``.

    Offsets ``*_at`` are bytes in ``buffer``. ``HAS_*``: features that a row of the launch needs; other features are not
    compiled, to save registers. ``MEASURES``: the next pass of a row needs statistics of this pass's output.
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
    height, width = size_of(header)
    tiles_x = tl.cdiv(width, BLOCK_X)
    tiles = tiles_x * tl.cdiv(height, BLOCK_Y)
    if tile >= tiles:
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)
    # Positions in the full image, for noise, erased rectangles and interpolated maps.
    whole_x = x
    whole_y = y
    whole_height = height
    whole_width = width
    if IS_REGION:
        whole_x = x + load_int(header + L.REGION_X)
        whole_y = y + load_int(header + L.REGION_Y)
        whole_height = load_int(header + L.WHOLE_HEIGHT)
        whole_width = load_int(header + L.WHOLE_WIDTH)

    constants = float32s_at(buffer, constants_at)
    key_low, key_high = load_key(header)
    source = tl.load(header + P.SOURCE)
    begin = load_int(header + P.BEGIN)
    end = load_int(header + P.END)
    first = load_int(header + P.FIRST)
    stage = tl.full([BLOCK_Y * BLOCK_X], -1, tl.int32)
    r = full(x, 0, FORMAT)
    g = r
    b = r
    if source <= P.PassSource.TABLE:
        u = x
        v = y
        if source == P.PassSource.TABLE:
            u, v, stage = trace_tables(buffer, code, header, x, y, inside)
        elif source == P.PassSource.CHAIN:
            u, v, stage = trace_maps(code, first, load_int(header + P.MAPS_END), x, y)
        elif source != P.PassSource.DIRECT:
            u, v, stage = step(code, first, x, y)
        r, g, b = fetch_levels(header, u, v, inside & (stage < 0), FORMAT)
    if HAS_FOLD:
        if source == P.PassSource.FOLDED:
            u, v, stage = trace_folded(buffer, code, first, load_int(header + P.MAPS_END), x, y)
            r, g, b = fetch_levels(header, u, v, inside & (stage < 0), FORMAT)
    if HAS_SUBPIXEL:
        if source == P.PassSource.INTERPOLATED:
            pixel, stage = read_interpolated(
                buffer, code, args, header, whole_x, whole_y, inside, HAS_GRID, HAS_FOLD, FORMAT
            )
            r, g, b = channels_of(pixel)
    if HAS_FILTER:
        if source == P.PassSource.FILTER:
            pixel = read_around(
                buffer, code, args, header, x, y, inside, key_low, key_high, FORMAT, HAS_CLAHE, HAS_WARP
            )
            r, g, b = channels_of(pixel)
    if HAS_RESAMPLE:
        if source == P.PassSource.RESAMPLE:
            pixel = read_resampled(buffer, args, header, x, y, inside, FORMAT)
            r, g, b = channels_of(pixel)

    channels = load_int(header + L.CHANNELS)
    # A pixel that left the image at a map becomes the map's fill there, whatever it was before.
    for slot in range(tl.minimum(first, load_int(header + P.VALUES)), end):
        ins = code + slot * L.CODE
        ins_args = args + slot * 8
        category = tl.load(ins + L.CLASS)
        if category == L.LOOKUP:
            if FORMAT >= L.UINT16:
                r, g, b = change_values(buffer, ins, channels, r, g, b, FORMAT)
            else:
                r, g, b = look_up(buffer, tl.load(ins + L.ARG), channels, r, g, b)
        elif category == L.MAP:
            fill_r, fill_g, fill_b = channels_of(color_at(ins, FORMAT))
            r, g, b = select_rgb(stage == slot, fill_r, fill_g, fill_b, r, g, b)
        elif category == L.VALUE:
            r, g, b = apply_value(buffer, ins, ins_args, r, g, b, channels, HAS_HUE, PIXEL_FUNCTIONS, FORMAT)
        elif category == L.POSITION:
            r, g, b = apply_position(
                buffer,
                ins,
                ins_args,
                header,
                constants,
                whole_x,
                whole_y,
                whole_height,
                whole_width,
                channels,
                r,
                g,
                b,
                key_low,
                key_high,
                HAS_NOISE,
                HAS_OVERLAY,
                FORMAT,
            )

    if tl.load(header + L.IS_FINAL) != 0:
        store_result(
            buffer, code, args, header, constants, begin, end, x, y, height, width, whole_x, whole_y, whole_width,
            inside, r, g, b, key_low, key_high, HAS_NOISE, RESULT, IS_PLANAR,
        )  # fmt: skip
    else:
        store_canvas(header, x, y, height, width, inside, r, g, b, FORMAT)
        if MEASURES:
            next_header = int64s_at(buffer, next_headers_at) + row * L.HEADER
            if tl.load(next_header + P.NEEDS) != 0:
                work = work_of(workspace, row, FORMAT)
                measure(buffer, code, next_header, work, x, y, inside, r, g, b, FORMAT)
                if is_last(work, tiles):
                    write_tables(buffer, code, args, next_header, work, FORMAT)


@triton.jit
def read_interpolated(
    buffer, code, args, header, x, y, inside, HAS_GRID: tl.constexpr, HAS_FOLD: tl.constexpr, FORMAT: tl.constexpr
):
    """Pixels at ``x, y`` after a chain of subpixel maps -> (pixel, stage), see ``fetch.trace_maps``.

    CPU counterparts: ``native/kernels/bilinear.cpp``, ``bicubic.cpp`` and ``nearest.cpp``; definition:
    ``tests/oracle/places.py``.
    """
    first = load_int(header + P.FIRST)
    end = load_int(header + P.MAPS_END)
    at = code + first * L.CODE
    flag = tl.load(at + L.FLAG)
    window = at + L.WINDOW
    black = full(x, 0, FORMAT)
    pixel = pack(black, black, black)
    stage = tl.full(x.shape, -1, tl.int32)
    if flag == ops.Interpolation.NEAREST:
        op = tl.load(at + L.OP)
        u, v, is_inside = _nearest(args + first * 8, op, window, x, y, tl.load(at + L.COUNT), HAS_FOLD)
        if HAS_GRID:
            if op == ops.Op.MAP_GRID:
                u, v, is_inside = nearest_in_grid(buffer, at, x, y, HAS_FOLD)
        stage = tl.where(is_inside, -1, first)
        pixel = _tap(buffer, code, header, first, window, u, v, inside & is_inside, HAS_FOLD, FORMAT)
    else:
        bits = tl.where(flag == ops.Interpolation.BICUBIC, R.BICUBIC_BITS, R.BILINEAR_BITS)
        half = (1 << bits) >> 1
        if HAS_GRID or HAS_FOLD:
            u, v, stage = trace_grids(buffer, code, first, end, x, y, bits, HAS_FOLD)
        else:
            record = int64s_at(buffer, tl.load(at + L.ARG))
            u = linear_form(record + R.U, x, y)
            v = linear_form(record + R.V, x, y)
            depth = linear_form(record + R.DEPTH, x, y)
            stage = trace_records(buffer, code, first, end, record, u, v, depth, x, y)
            u, v = place(record, u, v, depth, bits)
            u -= half
            v -= half
        inside &= stage < 0
        column = u >> bits
        line = v >> bits
        dx = u & ((1 << bits) - 1)
        dy = v & ((1 << bits) - 1)
        if flag == ops.Interpolation.CONTAINING_PIXEL:
            column = (u + half) >> bits
            line = (v + half) >> bits
            pixel = _tap(buffer, code, header, first, window, column, line, inside, HAS_FOLD, FORMAT)
        elif flag == ops.Interpolation.BILINEAR:
            p00 = _tap(buffer, code, header, first, window, column, line, inside, HAS_FOLD, FORMAT)
            p01 = _tap(buffer, code, header, first, window, column + 1, line, inside, HAS_FOLD, FORMAT)
            p10 = _tap(buffer, code, header, first, window, column, line + 1, inside, HAS_FOLD, FORMAT)
            p11 = _tap(buffer, code, header, first, window, column + 1, line + 1, inside, HAS_FOLD, FORMAT)
            none = full(flag, 0, FORMAT)
            fill = pack(none, none, none)
            weight = tl.full(x.shape, 1 << 15, tl.int32)
            if HAS_GRID:
                blends = (tl.load(at + L.OP) == ops.Op.MAP_GRID) & (tl.load(at + L.COUNT) == 0)
                if blends:
                    record = int64s_at(buffer, tl.load(at + L.ARG))
                    twice = tl.load(record + R.TWICE) != 0
                    fill = color_at(at, FORMAT)
                    outside = select_pixel(twice, pack(none, none, none), fill)
                    has_left = column >= tl.load(window + 1)
                    has_right = column + 1 < tl.load(window + 3)
                    has_upper = line >= tl.load(window)
                    has_lower = line + 1 < tl.load(window + 2)
                    p00 = select_pixel(has_upper & has_left, p00, outside)
                    p01 = select_pixel(has_upper & has_right, p01, outside)
                    p10 = select_pixel(has_lower & has_left, p10, outside)
                    p11 = select_pixel(has_lower & has_right, p11, outside)
                    across = tl.where(has_left, (1 << 15) - dx, 0) + tl.where(has_right, dx, 0)
                    down = tl.where(has_upper, (1 << 15) - dy, 0) + tl.where(has_lower, dy, 0)
                    weight = tl.where(twice, (across * down + (1 << 14)) >> 15, 1 << 15)
            pixel = pack(
                _blended(red(p00), red(p01), red(p10), red(p11), dx, dy, red(fill), weight, FORMAT),
                _blended(green(p00), green(p01), green(p10), green(p11), dx, dy, green(fill), weight, FORMAT),
                _blended(blue(p00), blue(p01), blue(p10), blue(p11), dx, dy, blue(fill), weight, FORMAT),
            )
        elif FORMAT >= L.UINT16:
            pixel = _cubic(buffer, code, header, first, window, column, line, dx, dy, inside, HAS_FOLD, FORMAT)
        else:
            # Channels and lines in turn, because all at once would not fit into registers.
            for channel in range(3):
                shift = 8 * channel
                total = tl.full(x.shape, 0, tl.int32)
                for j in range(4):
                    row = _cubic_row(
                        buffer, code, header, first, window, column, line - 1 + j, dx, inside, shift, HAS_FOLD, FORMAT
                    )
                    total += _weight(dy, j) * row
                pixel |= clipped(total >> 20) << shift
    return pixel, stage


@triton.jit
def _nearest(a, op, window, x, y, mode, HAS_FOLD: tl.constexpr):
    """The source pixel that contains a mapped pixel center -> (column, line, is inside)."""
    x = x.to(tl.float64) + 0.5
    y = y.to(tl.float64) + 0.5
    u = tl.load(a) * x + tl.load(a + 1) * y + tl.load(a + 2)
    v = tl.load(a + 3) * x + tl.load(a + 4) * y + tl.load(a + 5)
    if op == ops.Op.MAP_PERSPECTIVE:
        depth = tl.load(a + 6) * x + tl.load(a + 7) * y + 1.0
        u = u / depth
        v = v / depth
    # False for NaN, the coordinate of a point at infinity.
    in_x = (u >= tl.load(window + 1).to(tl.float64)) & (u < tl.load(window + 3).to(tl.float64))
    in_y = (v >= tl.load(window).to(tl.float64)) & (v < tl.load(window + 2).to(tl.float64))
    is_inside = in_x & in_y
    if HAS_FOLD:
        if mode != 0:
            u = _pixel_in(u, tl.load(window + 1), tl.load(window + 3), mode)
            v = _pixel_in(v, tl.load(window), tl.load(window + 2), mode)
            is_inside = x == x
    return tl.where(is_inside, u, 0.0).to(tl.int32), tl.where(is_inside, v, 0.0).to(tl.int32), is_inside


@triton.jit
def _pixel_in(place, low, high, mode):
    """``fold_real`` of ``native/coords.h``, in float64."""
    place = tl.where(place == place, place, 0.0)
    index = tl.floor(clamp(place, -R.MAX_COORD, R.MAX_COORD)).to(tl.int64) - low
    return (low + fold_index(index, (high - low).to(tl.int64), mode)).to(tl.float64)


@triton.jit
def _tap(buffer, code, header, first, window, column, line, inside, HAS_FOLD: tl.constexpr, FORMAT: tl.constexpr):
    """A pixel of the first map's window, clamped to it or folded into it, after the tables before that map."""
    top = tl.load(window)
    left = tl.load(window + 1)
    if HAS_FOLD:
        mode = tl.load(code + first * L.CODE + L.COUNT)
        if mode != 0:
            column = left + fold_index(column - left, tl.load(window + 3) - left, mode)
            line = top + fold_index(line - top, tl.load(window + 2) - top, mode)
    column = clamp(column, left, tl.load(window + 3) - 1)
    line = clamp(line, top, tl.load(window + 2) - 1)
    pixel = fetch(header, column, line, inside, FORMAT)
    # Of deep images, operations on values are in passes of their own.
    if FORMAT < L.UINT16:
        pixel = _through_tables(buffer, code, header, first, pixel)
    return pixel


@triton.jit
def _through_tables(buffer, code, header, end, pixel):
    """Apply the tables from the pass's first slot up to slot ``end`` to ``pixel``."""
    channels = tl.load(header + L.CHANNELS)
    for slot in range(load_int(header + P.BEGIN), end):
        at = code + slot * L.CODE
        if tl.load(at + L.CLASS) == L.LOOKUP:
            r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, red(pixel), green(pixel), blue(pixel))
            pixel = pack(r, g, b)
    return pixel


@triton.jit
def _blended(p00, p01, p10, p11, dx, dy, fill, weight, FORMAT: tl.constexpr):
    """Interpolate bilinearly, then blend with ``fill``, whose share is 1 - ``weight``, with 15 fraction bits."""
    upper = mix(raise_bits(p00, 7), raise_bits(p01, 7), dx)
    value = mix(upper, mix(raise_bits(p10, 7), raise_bits(p11, 7), dx), dy)
    value = drop_bits(mix(raise_bits(fill, 7), value, weight), 7)
    if FORMAT == L.UINT16:
        value = tl.floor(value)
    return value


@triton.jit
def _cubic(
    buffer, code, header, first, window, column, line, dx, dy, inside, HAS_FOLD: tl.constexpr, FORMAT: tl.constexpr
):
    """Interpolate pixels of deep images bicubically."""
    r = full(dx, 0, FORMAT)
    g = r
    b = r
    for j in range(4):
        across_r = full(dx, 0, FORMAT)
        across_g = across_r
        across_b = across_r
        for i in range(4):
            tap = _tap(buffer, code, header, first, window, column - 1 + i, line - 1 + j, inside, HAS_FOLD, FORMAT)
            across_r, across_g, across_b = add_weighted(across_r, across_g, across_b, _weight(dx, i), tap)
        r, g, b = add_weighted(r, g, b, _weight(dy, j), (across_r, across_g, across_b))
    return to_element(r, 28, FORMAT), to_element(g, 28, FORMAT), to_element(b, 28, FORMAT)


@triton.jit
def _cubic_row(
    buffer, code, header, first, window, column, line, dx, inside, shift, HAS_FOLD: tl.constexpr, FORMAT: tl.constexpr
):
    """The weighted sum of a line's four taps, with 6 fraction bits."""
    total = tl.full(dx.shape, 1 << 7, tl.int32)
    for i in range(4):
        tap = _tap(buffer, code, header, first, window, column - 1 + i, line, inside, HAS_FOLD, FORMAT)
        total += _weight(dx, i) * ((tap >> shift) & 255)
    return total >> 8


@triton.jit
def _weight(t, i):
    """The weight of tap ``i`` with 14 fraction bits: cubic convolution with a = -1."""
    u = (1 << 14) - t
    # The weights are symmetric: the last two taps are the first two seen from the other side.
    t, u = tl.where(i < 2, t, u), tl.where(i < 2, u, t)
    product = (t * u + (1 << 13)) >> 14
    outer = -((product * u + (1 << 13)) >> 14)
    return tl.where((i == 0) | (i == 3), outer, u - outer)
