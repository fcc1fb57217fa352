"""Blends: weighted sums of rows, truncated to a level, then stored as an unblended row would be."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, green, pixels_of, place_of_program, red
from variegate.executors.cuda.kernels.store import load_key, store_result
from variegate.executors.cuda.kernels.values import to_level
from variegate.program import passes as P


@triton.jit(do_not_specialize=["rows"])
def blend_rows(
    buffer,
    code_at,
    args_at,
    headers_at,
    begins_at,
    canvases_at,
    weights_at,
    constants_at,
    rows,
    HAS_NOISE: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """Output n of ``rows``, which joins rows ``begins[n]`` to ``begins[n + 1]`` (int32).

    ``canvases`` (int64, addresses) and ``weights`` (float32) have an entry for each of those rows. ``headers_at`` has a
    header per output, of its first row's last pass, with the result as its target.
    """
    code = (buffer + code_at).to(tl.pointer_type(tl.int32))
    args = (buffer + args_at).to(tl.pointer_type(tl.float64))
    tile, n = place_of_program()
    if n >= rows:
        return
    header = (buffer + headers_at).to(tl.pointer_type(tl.int64)) + n * L.HEADER
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    tiles_x = tl.cdiv(width, BLOCK_X)
    if tile >= tiles_x * tl.cdiv(height, BLOCK_Y):
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    inside = (y < height) & (x < width)
    begins = (buffer + begins_at).to(tl.pointer_type(tl.int32)) + n
    canvases = (buffer + canvases_at).to(tl.pointer_type(tl.int64))
    weights = (buffer + weights_at).to(tl.pointer_type(tl.float32))
    total_r = tl.full([BLOCK_Y * BLOCK_X], 0.0, tl.float32)
    total_g, total_b = total_r, total_r
    for i in range(tl.load(begins), tl.load(begins + 1)):
        canvas = tl.load(canvases + i).to(tl.pointer_type(tl.int32))
        weight = tl.load(weights + i)
        pixel = tl.load(canvas + (y * width + x).to(tl.uint32), mask=inside, other=0)
        total_r += weight * red(pixel).to(tl.float32)
        total_g += weight * green(pixel).to(tl.float32)
        total_b += weight * blue(pixel).to(tl.float32)
    constants = (buffer + constants_at).to(tl.pointer_type(tl.float32))
    key_low, key_high = load_key(header)
    begin, end = tl.load(header + P.BEGIN).to(tl.int32), tl.load(header + P.END).to(tl.int32)
    store_result(
        buffer, code, args, header, constants, begin, end, x, y, height, width, inside,
        to_level(total_r), to_level(total_g), to_level(total_b), key_low, key_high, HAS_NOISE, RESULT, IS_PLANAR,
    )  # fmt: skip
