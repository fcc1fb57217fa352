"""CLAHE: equalisation tables of an image's tiles, and a row looked up in those of the four tiles around each pixel."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.kernel import address_of, bytes_at, floats_at, inlined
from variegate.executors.cpu.values import luma
from variegate.program.compiled import inner_kernel
from variegate.program.ops import MAX_TILES
from variegate.program.places import reflect

_HALF, _ONE = np.float32(0.5), np.float32(1.0)


@inlined
def prepare_tiles(a: Any, first: Any, stride: Any, height: Any, width: Any, channels: Any, scratch: Any) -> None:
    """Tables of all tiles, and which of them each column reads. ``first``: the image in planes, rows 3 strides apart.

    ``scratch.column, line``: where the tables of the tiles to the left and to the right begin, in a row of tiles;
    ``tap_weights``: the right one's share, as float32.
    """
    tiles_x, tiles_y = int(a[1]), int(a[2])
    tile_h, tile_w = tile_sides(height, width, tiles_y, tiles_x)
    shares = floats_at(address_of(scratch.tap_weights), width)
    scale = _ONE / np.float32(tile_w)
    for x in range(width):
        at = np.float32(x) * scale - _HALF
        tile = int(np.floor(at))
        shares[x] = at - np.float32(tile)
        scratch.column[x], scratch.line[x] = 256 * max(tile, 0), 256 * min(tile + 1, tiles_x - 1)
    limit = max(int(a[0] * (tile_h * tile_w) / 256.0), 1)
    row, counts, luts = address_of(scratch.row_bytes), scratch.tile_counts, scratch.tile_luts
    for tile_y in range(tiles_y):
        counts[:tiles_x] = 0
        for y in range(tile_y * tile_h, (tile_y + 1) * tile_h):
            lumas_of(first + 3 * stride * reflect(y, height), stride, width, channels, row)
            count_row(row, width, tile_w, tiles_x, counts)
        for tile_x in range(tiles_x):
            fill_table(counts[tile_x], limit, tile_h * tile_w, luts[tile_y * tiles_x + tile_x])


@inner_kernel()
def tile_sides(height: Any, width: Any, tiles_y: Any, tiles_x: Any) -> Any:
    """Of the image continued below and to the right, by a whole number of tiles where either side is none."""
    if height % tiles_y == 0 and width % tiles_x == 0:
        return height // tiles_y, width // tiles_x
    return height // tiles_y + 1, width // tiles_x + 1


@inner_kernel()
def lumas_of(row: Any, stride: Any, width: Any, channels: Any, target: Any) -> None:
    r, g, b = bytes_at(row, width), bytes_at(row + stride, width), bytes_at(row + 2 * stride, width)
    out = bytes_at(target, width)
    if channels == 1:
        for x in range(width):
            out[x] = r[x]
    else:
        for x in range(width):
            out[x] = luma(r[x], g[x], b[x])


@inner_kernel()
def count_row(row: Any, width: Any, tile_w: Any, tiles_x: Any, counts: Any) -> None:
    levels = bytes_at(row, width)
    for tile in range(tiles_x):
        begin, end = tile * tile_w, (tile + 1) * tile_w
        for x in range(begin, min(end, width)):
            counts[tile, levels[x]] += 1
        for x in range(max(begin, width), end):
            counts[tile, levels[reflect(x, width)]] += 1


@inner_kernel()
def fill_table(counts: Any, limit: Any, total: Any, table: Any) -> None:
    """OpenCV's: counts above the limit are cut off and given to all levels alike, then summed up."""
    clipped = nb.int64(0)
    for i in range(256):
        clipped += max(counts[i] - limit, 0)
    batch, rest = clipped // 256, clipped % 256
    step = max(256 // max(rest, 1), 1)
    scale, running = np.float32(255.0) / np.float32(total), nb.int64(0)
    for i in range(256):
        running += min(counts[i], limit) + batch + (1 if i % step == 0 and i // step < rest else 0)
        table[i] = min(int(np.rint(np.float32(running) * scale)), 255)


@inlined
def equalize_row(a: Any, first: Any, stride: Any, height: Any, width: Any, y: Any, channels: Any, scratch: Any) -> None:
    """Row ``y`` into ``scratch.planes``, each channel moved as far as the luma is."""
    tiles_x, tiles_y = int(a[1]), int(a[2])
    tile_h, _ = tile_sides(height, width, tiles_y, tiles_x)
    at = np.float32(y) * (_ONE / np.float32(tile_h)) - _HALF
    tile = int(np.floor(at))
    share = at - np.float32(tile)
    row, moved = address_of(scratch.row_bytes), address_of(scratch.row_pixels)
    lumas_of(first + 3 * stride * y, stride, width, channels, row)
    above = address_of(scratch.tile_luts) + 256 * tiles_x * max(tile, 0)
    below = address_of(scratch.tile_luts) + 256 * tiles_x * min(tile + 1, tiles_y - 1)
    shares = address_of(scratch.tap_weights)
    look_up_row(row, width, above, below, scratch.column, scratch.line, shares, share, moved)
    for c in range(channels):
        move_row(first + (3 * y + c) * stride, row, moved, width, address_of(scratch.planes) + c * stride)


@inner_kernel()
def look_up_row(
    row: Any, width: Any, above: Any, below: Any, left: Any, right: Any, shares_at: Any, share: Any, target: Any
) -> None:
    levels, out, shares = bytes_at(row, width), bytes_at(target, width), floats_at(shares_at, width)
    size = 256 * MAX_TILES
    top, bottom = bytes_at(above, size), bytes_at(below, size)
    for x in range(width):
        level = nb.int64(levels[x])
        a, b, t = left[x] + level, right[x] + level, shares[x]
        rest = _ONE - t
        upper = np.float32(top[a]) * rest + np.float32(top[b]) * t
        lower = np.float32(bottom[a]) * rest + np.float32(bottom[b]) * t
        out[x] = min(int(np.rint(upper * (_ONE - share) + lower * share)), 255)


@inner_kernel()
def move_row(row: Any, before: Any, after: Any, width: Any, target: Any) -> None:
    levels, old, new = bytes_at(row, width), bytes_at(before, width), bytes_at(after, width)
    out = bytes_at(target, width)
    for x in range(width):
        out[x] = min(max(nb.int32(levels[x]) + nb.int32(new[x]) - nb.int32(old[x]), 0), 255)
