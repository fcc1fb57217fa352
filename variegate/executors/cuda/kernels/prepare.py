"""Before the first pass: statistics of the sources, weights of the resizes."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, fetch, green, pixels_of, place_of_program, red
from variegate.executors.cuda.kernels.resample import write_weights
from variegate.executors.cuda.kernels.statistics import is_last, measure, write_tables
from variegate.program import passes as P


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
    """For the ``rows`` entries of the list at ``list_at``; ``headers_at``: those of the first pass."""
    code = (buffer + code_at).to(tl.pointer_type(tl.int32))
    args = (buffer + args_at).to(tl.pointer_type(tl.float64))
    tile, entry = place_of_program()
    if entry >= rows:
        return
    row = tl.load((buffer + list_at).to(tl.pointer_type(tl.int32)) + entry)
    if row < 0:
        return
    header = (buffer + headers_at).to(tl.pointer_type(tl.int64)) + row * L.HEADER
    if tl.load(header + P.SOURCE) == P.PassSource.RESAMPLE:
        write_weights(buffer, code, args, header, tile, WEIGHTS_BLOCK)
        return
    if tl.load(header + P.NEEDS) == 0:
        return
    top, left = tl.load(header + P.TOP).to(tl.int32), tl.load(header + P.LEFT).to(tl.int32)
    bottom, right = tl.load(header + P.BOTTOM).to(tl.int32), tl.load(header + P.RIGHT).to(tl.int32)
    # At least one tile, though the map may show nothing of the source: somebody must write the tables.
    tiles_x = tl.maximum(tl.cdiv(right - left, BLOCK_X), 1)
    all_tiles = tiles_x * tl.maximum(tl.cdiv(bottom - top, BLOCK_Y), 1)
    if tile >= all_tiles:
        return
    x, y = pixels_of(tile, tiles_x, BLOCK_Y, BLOCK_X)
    x, y = x + left, y + top
    inside = (y < bottom) & (x < right)
    pixel = fetch(header, x, y, inside, FORMAT)
    work = workspace + row * L.WORKSPACE
    measure(buffer, code, header, work, x, y, inside, red(pixel), green(pixel), blue(pixel))
    if is_last(work, all_tiles):
        write_tables(buffer, code, args, header, work)
