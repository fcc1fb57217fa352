"""The pixels of one kernel program: which they are, and how they are read from a source: three channels as one int32,
red in its lowest byte.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L


@triton.jit
def place_of_program():
    """Which tile, and of which row: a grid's second size has an end, so that there is a third."""
    return tl.program_id(0), tl.program_id(1) + tl.program_id(2) * L.ROWS_SIDE_BY_SIDE


@triton.jit
def pixels_of(tile, tiles_x, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    """Columns and lines of tile number ``tile``, ``tiles_x`` of which lie side by side, as flat int32 tensors."""
    i = tl.arange(0, BLOCK_Y * BLOCK_X)
    # Without signs, a division takes half as many instructions.
    above = (tile.to(tl.uint32) // tiles_x.to(tl.uint32)).to(tl.int32)
    x = (tile - above * tiles_x) * BLOCK_X + i % BLOCK_X
    y = above * BLOCK_Y + i // BLOCK_X
    return x, y


@triton.jit
def red(pixel):
    return pixel & 255


@triton.jit
def green(pixel):
    return (pixel >> 8) & 255


@triton.jit
def blue(pixel):
    return (pixel >> 16) & 255


@triton.jit
def pack(r, g, b):
    return r | (g << 8) | (b << 16)


@triton.jit
def fetch(header, x, y, inside, FORMAT: tl.constexpr):
    """Pixels at whole places ``x, y`` (int32), 0 where not ``inside``. Bytes above a pixel's channels are arbitrary."""
    if FORMAT == L.CANVAS:
        pixel = _fetch_word(header, x, y, inside)
    elif FORMAT == L.INTERLEAVED:
        pixel = _fetch_unaligned(header, x, y, inside)
    else:
        r, g, b = _fetch_bytes(header, x, y, inside, FORMAT)
        pixel = pack(r, g, b)
    return pixel


@triton.jit
def fetch_levels(header, x, y, inside, FORMAT: tl.constexpr):
    """As ``fetch``, but the three channels one by one: with a single pixel to read, the least instructions."""
    if FORMAT == L.CANVAS:
        pixel = _fetch_word(header, x, y, inside)
        r, g, b = red(pixel), green(pixel), blue(pixel)
    else:
        r, g, b = _fetch_bytes(header, x, y, inside, FORMAT)
    return r, g, b


# An image spans less than 4 GiB, so that offsets are uint32: adding one to an address takes one instruction.


@triton.jit
def _fetch_word(header, x, y, inside):
    source = tl.load(header + L.IMAGE).to(tl.pointer_type(tl.int32))
    at = (y * tl.load(header + L.IN_WIDTH).to(tl.int32) + x).to(tl.uint32)
    return tl.load(source + at, mask=inside, other=0)


@triton.jit
def _fetch_unaligned(header, x, y, inside):
    """One or two aligned words in place of three bytes: fewer requests, and no word without a wanted byte is read."""
    source = tl.load(header + L.IMAGE)
    at = y * tl.load(header + L.STRIDE_Y).to(tl.int32) + x * tl.load(header + L.STRIDE_X).to(tl.int32)
    channels = tl.load(header + L.CHANNELS).to(tl.int32)
    ahead = source & 3
    byte = (at + ahead.to(tl.int32)).to(tl.uint32)
    word = (source - ahead).to(tl.pointer_type(tl.uint32)) + (byte >> 2)
    lead = byte & 3
    low = tl.load(word, mask=inside, other=0)
    high = tl.load(word + 1, mask=inside & (lead.to(tl.int32) > 4 - channels), other=0)
    # Two shifts, as one by all 32 bits is not defined.
    return ((low >> (8 * lead)) | ((high << 1) << (31 - 8 * lead))).to(tl.int32)


@triton.jit
def _fetch_bytes(header, x, y, inside, FORMAT: tl.constexpr):
    at = y * tl.load(header + L.STRIDE_Y).to(tl.int32) + x * tl.load(header + L.STRIDE_X).to(tl.int32)
    byte = tl.load(header + L.IMAGE).to(tl.pointer_type(tl.uint8)) + at.to(tl.uint32)
    in_colour = inside & (x * 0 + tl.load(header + L.CHANNELS).to(tl.int32) == 3)
    if FORMAT == L.PLANAR:
        next_channel = tl.load(header + L.STRIDE_C)
    else:
        next_channel = tl.full([], 1, tl.int64)
    r = tl.load(byte, mask=inside, other=0).to(tl.int32)
    g = tl.load(byte + next_channel, mask=in_colour, other=0).to(tl.int32)
    b = tl.load(byte + 2 * next_channel, mask=in_colour, other=0).to(tl.int32)
    return r, g, b
