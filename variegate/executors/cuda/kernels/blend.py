"""Blends: weighted sums of rows or of rectangles of them, truncated to a level, then stored as an unblended row would
be."""

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
    starts_at,
    canvases_at,
    weights_at,
    boxes_at,
    constants_at,
    rows,
    HAS_NOISE: tl.constexpr,
    RESULT: tl.constexpr,
    IS_PLANAR: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    BLOCK_X: tl.constexpr,
    VERSION: tl.constexpr,
):
    """Output n of ``rows``, which joins entries ``begins[n]`` to ``begins[n + 1]`` (int32) from ``starts[n]`` (float32)
    on.

    ``canvases`` (int64, addresses), ``weights`` (float32) and ``boxes`` (int32[4]: top, left, bottom, right) have one
    for each of those entries. ``headers_at`` has a header per output, of its first row's last pass, with the result as
    its target.
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
    boxes = (buffer + boxes_at).to(tl.pointer_type(tl.int32))
    start = tl.load((buffer + starts_at).to(tl.pointer_type(tl.float32)) + n)
    total_r = tl.full([BLOCK_Y * BLOCK_X], 0.0, tl.float32) + start
    total_g, total_b = total_r, total_r
    for i in range(tl.load(begins), tl.load(begins + 1)):
        canvas = tl.load(canvases + i).to(tl.pointer_type(tl.int32))
        weight = tl.load(weights + i)
        box = boxes + 4 * i
        in_y, in_x = (y >= tl.load(box)) & (y < tl.load(box + 2)), (x >= tl.load(box + 1)) & (x < tl.load(box + 3))
        # What is masked adds a weight times 0, which changes no sum: they are no less than 0.
        pixel = tl.load(canvas + (y * width + x).to(tl.uint32), mask=inside & in_y & in_x, other=0)
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
