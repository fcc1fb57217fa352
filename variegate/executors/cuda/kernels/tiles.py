"""Filters, and CLAHE, whose tables are made of whole tiles of the image."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.fetch import blue, green, pack, red
from variegate.executors.cuda.kernels.neighbourhood import before, clipped, read_filtered, reflect
from variegate.executors.cuda.kernels.values import luma
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def read_around(buffer, code, args, header, x, y, inside, FORMAT: tl.constexpr, HAS_CLAHE: tl.constexpr):
    """Pixels after the filter of the pass, of whatever kind."""
    if HAS_CLAHE:
        slot = tl.load(header + P.FIRST).to(tl.int32)
        pixel = tl.full(x.shape, 0, tl.int32)
        if tl.load(code + slot * L.CODE + L.OP) == ops.Op.CLAHE:
            pixel = _equalize_tiles(buffer, code, args, header, slot, x, y, inside, FORMAT)
        else:
            pixel = read_filtered(buffer, code, args, header, x, y, inside, FORMAT)
    else:
        pixel = read_filtered(buffer, code, args, header, x, y, inside, FORMAT)
    return pixel


@triton.jit
def _equalize_tiles(buffer, code, args, header, slot, x, y, inside, FORMAT: tl.constexpr):
    """CLAHE: of every tile that lies around a pixel of this block, the table, made here of the tile's own pixels."""
    height, width = tl.load(header + P.HEIGHT).to(tl.int32), tl.load(header + P.WIDTH).to(tl.int32)
    channels = tl.load(header + L.CHANNELS).to(tl.int32)
    clip = tl.load(args + slot * 8)
    tiles_x = tl.load(args + slot * 8 + 1).to(tl.int32)
    tiles_y = tl.load(args + slot * 8 + 2).to(tl.int32)
    more = tl.where((height % tiles_y == 0) & (width % tiles_x == 0), 0, 1)
    tile_h, tile_w = height // tiles_y + more, width // tiles_x + more
    left, right, share_x = _between(x, tile_w, tiles_x)
    above, below, share_y = _between(y, tile_h, tiles_y)
    pixel = before(buffer, code, header, slot, x, y, inside, FORMAT)
    level = _gray(pixel, channels)
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
                counts += tl.histogram(_gray(source, channels), 256, mask=seen)
            table = _clipped_table(counts, clip, tile_h * tile_w)
            value = tl.gather(table, level, 0)
            # A byte for each of the four tiles; several of them are one beyond the outermost centres.
            is_above, is_below = above == tile_y, below == tile_y
            is_left, is_right = left == tile_x, right == tile_x
            corners |= tl.where(is_above & is_left, value, 0) | tl.where(is_above & is_right, value << 8, 0)
            corners |= tl.where(is_below & is_left, value << 16, 0) | tl.where(is_below & is_right, value << 24, 0)
    upper = (corners & 255).to(tl.float32) * (1.0 - share_x) + ((corners >> 8) & 255).to(tl.float32) * share_x
    lower = ((corners >> 16) & 255).to(tl.float32) * (1.0 - share_x) + ((corners >> 24) & 255).to(tl.float32) * share_x
    moved = _nearest(upper * (1.0 - share_y) + lower * share_y) - level
    return pack(clipped(red(pixel) + moved), clipped(green(pixel) + moved), clipped(blue(pixel) + moved))


@triton.jit
def _gray(pixel, channels):
    return tl.where(channels == 3, luma(red(pixel), green(pixel), blue(pixel)), red(pixel))


@triton.jit
def _between(at, tile, tiles):
    """The tile before a pixel, the one behind it, by their centres, and the latter's share."""
    # A quotient in double, rounded again, is that in float32.
    place = at.to(tl.float32) * (1.0 / tile.to(tl.float64)).to(tl.float32) - 0.5
    first = tl.floor(place)
    tile_number = first.to(tl.int32)
    return tl.maximum(tile_number, 0), tl.minimum(tile_number + 1, tiles - 1), place - first


@triton.jit
def _clipped_table(counts, clip, total):
    """OpenCV's: counts above the limit are cut off and given to all levels alike, then summed up."""
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
    """float32 below 2**22, rounded half to even."""
    return ((value + 12582912.0) - 12582912.0).to(tl.int32)
