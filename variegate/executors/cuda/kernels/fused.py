"""The fused pass: a tile of one row's output, read once, worked on in registers, written once."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, fetch, green, pack, pixels_of, red
from variegate.executors.cuda.kernels.interpolate import read_interpolated
from variegate.executors.cuda.kernels.maps import walk, walk_tables
from variegate.executors.cuda.kernels.neighbourhood import read_filtered
from variegate.executors.cuda.kernels.position import apply_position
from variegate.executors.cuda.kernels.resample import read_resampled
from variegate.executors.cuda.kernels.statistics import is_last, measure, write_tables
from variegate.executors.cuda.kernels.store import load_key, store_result
from variegate.executors.cuda.kernels.values import apply_value, look_up
from variegate.program import passes as P


@triton.jit(do_not_specialize=["tiles"])
def run_pass(
    buffer,
    workspace,
    code_at,
    args_at,
    headers_at,
    next_headers_at,
    list_at,
    constants_at,
    tiles,
    FORMAT: tl.constexpr,
    HAS_REAL: tl.constexpr,
    HAS_FILTER: tl.constexpr,
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
    """One pass of the rows in the list at ``list_at``, ``tiles`` programs for each.

    Offsets ``*_at`` are bytes in ``buffer``. ``HAS_*``: what some row of the launch needs; the rest is not compiled in,
    so that it costs no registers. ``MEASURES``: some row's next pass needs statistics of what this one writes.
    """
    code = (buffer + code_at).to(tl.pointer_type(tl.int32))
    args = (buffer + args_at).to(tl.pointer_type(tl.float64))
    entry = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    row = tl.load((buffer + list_at).to(tl.pointer_type(tl.int32)) + entry)
    if row < 0:
        return
    header = (buffer + headers_at).to(tl.pointer_type(tl.int64)) + row * L.HEADER
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    tiles_x = tl.cdiv(width, BLOCK_X)
    if tile >= tiles_x * tl.cdiv(height, BLOCK_Y):
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)

    constants = (buffer + constants_at).to(tl.pointer_type(tl.float32))
    key_low, key_high = load_key(header)
    source = tl.load(header + P.SOURCE)
    begin, end = tl.load(header + P.BEGIN).to(tl.int32), tl.load(header + P.END).to(tl.int32)
    pixel = tl.full([BLOCK_Y * BLOCK_X], 0, tl.int32)
    stage = tl.full([BLOCK_Y * BLOCK_X], -1, tl.int32)
    colour = pixel
    if source <= P.PassSource.CHAIN:
        u, v, stage, colour = walk(code, begin, tl.load(header + P.MAPS_END).to(tl.int32), x, y)
        pixel = fetch(header, u, v, inside & (stage < 0), FORMAT)
    elif source == P.PassSource.TABLE:
        u, v, stage, colour = walk_tables(buffer, code, header, x, y, inside)
        pixel = fetch(header, u, v, inside & (stage < 0), FORMAT)
    if HAS_REAL:
        if source == P.PassSource.INTERPOLATED:
            pixel, stage, colour = read_interpolated(buffer, code, args, header, x, y, inside, FORMAT)
    if HAS_FILTER:
        if source == P.PassSource.FILTER:
            pixel = read_filtered(buffer, code, args, header, x, y, inside, FORMAT)
    if HAS_RESAMPLE:
        if source == P.PassSource.RESAMPLE:
            pixel = read_resampled(buffer, args, header, x, y, inside, FORMAT)
    pixel = tl.where(stage < 0, pixel, colour)
    r, g, b = red(pixel), green(pixel), blue(pixel)

    channels = tl.load(header + L.CHANNELS).to(tl.int32)
    for slot in range(tl.load(header + P.VALUES).to(tl.int32), end):
        at = code + slot * L.CODE
        real = args + slot * 8
        category = tl.load(at + L.CLASS)
        new_r, new_g, new_b = r, g, b
        if category == L.LOOKUP:
            new_r, new_g, new_b = look_up(buffer, tl.load(at + L.ARG), channels, r, g, b)
        elif category == L.VALUE:
            new_r, new_g, new_b = apply_value(buffer, at, real, r, g, b, channels, HAS_HUE, POINTS)
        elif category == L.POSITION:
            new_r, new_g, new_b = apply_position(
                buffer, at, real, header, constants, x, y, width, r, g, b, key_low, key_high, HAS_NOISE
            )
        # A pixel that left the image at a map is touched only by what comes after that map.
        is_on = stage < slot
        r, g, b = tl.where(is_on, new_r, r), tl.where(is_on, new_g, g), tl.where(is_on, new_b, b)

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
                if is_last(work, tiles_x * tl.cdiv(height, BLOCK_Y)):
                    write_tables(buffer, code, args, next_header, work)
