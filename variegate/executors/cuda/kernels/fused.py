"""The fused pass: a tile of one row's output, read once, worked on in registers, written once."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import (
    blue,
    fetch_levels,
    green,
    pack,
    pixels_of,
    place_of_program,
    red,
    step,
    walk,
    walk_tables,
)
from variegate.executors.cuda.kernels.interpolate import read_interpolated
from variegate.executors.cuda.kernels.resample import read_resampled
from variegate.executors.cuda.kernels.statistics import is_last, measure, write_tables
from variegate.executors.cuda.kernels.store import load_key, store_result
from variegate.executors.cuda.kernels.tiles import read_around
from variegate.executors.cuda.kernels.values import apply_position, apply_value, look_up
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
    HAS_REAL: tl.constexpr,
    HAS_GRID: tl.constexpr,
    HAS_FILTER: tl.constexpr,
    HAS_CLAHE: tl.constexpr,
    HAS_RESAMPLE: tl.constexpr,
    HAS_HUE: tl.constexpr,
    HAS_NOISE: tl.constexpr,
    MEASURES: tl.constexpr,
    POINTS: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """One pass of the rows in the list at ``list_at``, of which there are ``rows``.

    Offsets ``*_at`` are bytes in ``buffer``. ``HAS_*``: what some row of the launch needs; the rest is not compiled in,
    so that it costs no registers. ``MEASURES``: some row's next pass needs statistics of what this one writes.
    """
    code = (buffer + code_at).to(tl.pointer_type(tl.int32))
    args = (buffer + args_at).to(tl.pointer_type(tl.float64))
    tile, entry = place_of_program()
    if entry >= rows:
        return
    row = tl.load((buffer + list_at).to(tl.pointer_type(tl.int32)) + entry)
    if row < 0:
        return
    header = (buffer + headers_at).to(tl.pointer_type(tl.int64)) + row * L.HEADER
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    tiles_x = tl.cdiv(width, BLOCK_X)
    tiles = tiles_x * tl.cdiv(height, BLOCK_Y)
    if tile >= tiles:
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)

    constants = (buffer + constants_at).to(tl.pointer_type(tl.float32))
    key_low, key_high = load_key(header)
    source = tl.load(header + P.SOURCE)
    begin, end = tl.load(header + P.BEGIN).to(tl.int32), tl.load(header + P.END).to(tl.int32)
    first = tl.load(header + P.FIRST).to(tl.int32)
    stage = tl.full([BLOCK_Y * BLOCK_X], -1, tl.int32)
    r = tl.full([BLOCK_Y * BLOCK_X], 0, tl.int32)
    g, b = r, r
    if source <= P.PassSource.TABLE:
        u, v = x, y
        if source == P.PassSource.TABLE:
            u, v, stage = walk_tables(buffer, code, header, x, y, inside)
        elif source == P.PassSource.CHAIN:
            u, v, stage = walk(code, first, tl.load(header + P.MAPS_END).to(tl.int32), x, y)
        elif source != P.PassSource.DIRECT:
            u, v, stage = step(code, first, x, y)
        r, g, b = fetch_levels(header, u, v, inside & (stage < 0), FORMAT)
    if HAS_REAL:
        if source == P.PassSource.INTERPOLATED:
            pixel, stage = read_interpolated(buffer, code, args, header, x, y, inside, HAS_GRID, FORMAT)
            r, g, b = red(pixel), green(pixel), blue(pixel)
    if HAS_FILTER:
        if source == P.PassSource.FILTER:
            pixel = read_around(buffer, code, args, header, x, y, inside, FORMAT, HAS_CLAHE)
            r, g, b = red(pixel), green(pixel), blue(pixel)
    if HAS_RESAMPLE:
        if source == P.PassSource.RESAMPLE:
            pixel = read_resampled(buffer, args, header, x, y, inside, FORMAT)
            r, g, b = red(pixel), green(pixel), blue(pixel)

    channels = tl.load(header + L.CHANNELS).to(tl.int32)
    # A pixel that left the image at a map takes on the fill there, whatever it was before.
    for slot in range(tl.minimum(first, tl.load(header + P.VALUES).to(tl.int32)), end):
        at = code + slot * L.CODE
        real = args + slot * 8
        category = tl.load(at + L.CLASS)
        if category == L.LOOKUP:
            r, g, b = look_up(buffer, tl.load(at + L.ARG), channels, r, g, b)
        elif category == L.MAP:
            left = stage == slot
            fill = tl.load(at + L.FILL)
            r, g, b = tl.where(left, red(fill), r), tl.where(left, green(fill), g), tl.where(left, blue(fill), b)
        elif category == L.VALUE:
            r, g, b = apply_value(buffer, at, real, r, g, b, channels, HAS_HUE, POINTS)
        elif category == L.POSITION:
            r, g, b = apply_position(
                buffer, at, real, header, constants, x, y, width, r, g, b, key_low, key_high, HAS_NOISE
            )

    if tl.load(header + L.IS_FINAL) != 0:
        store_result(
            buffer, code, args, header, constants, begin, end, x, y, height, width, inside, r, g, b, key_low, key_high,
            HAS_NOISE, RESULT, IS_PLANAR,
        )  # fmt: skip
    else:
        canvas = tl.load(header + L.TARGET).to(tl.pointer_type(tl.int32))
        tl.store(canvas + (y * width + x).to(tl.uint32), pack(r, g, b), mask=inside)
        if MEASURES:
            next_header = (buffer + next_headers_at).to(tl.pointer_type(tl.int64)) + row * L.HEADER
            if tl.load(next_header + P.NEEDS) != 0:
                work = workspace + row * L.WORKSPACE
                measure(buffer, code, next_header, work, x, y, inside, r, g, b)
                if is_last(work, tiles):
                    write_tables(buffer, code, args, next_header, work)
