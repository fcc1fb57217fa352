"""Walking a tile's pixels backwards through nearest maps, to the places of the source that they show."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.program import ops
from variegate.program import passes as P


@triton.jit
def walk(code, begin, end, x, y):
    """Through the fixed maps of slots begin..end -> (column, line, stage, colour).

    ``stage`` is the slot of the map at which a pixel left the image, or -1, and ``colour`` that map's fill.
    """
    stage = tl.full(x.shape, -1, tl.int32)
    colour = tl.full(x.shape, 0, tl.int32)
    for i in range(end - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        if tl.load(at + L.OP) == ops.Op.MAP_FIXED:
            a = at + L.COEFFICIENT
            u = (tl.load(a) * x + tl.load(a + 1) * y + tl.load(a + 2)) >> 16
            v = (tl.load(a + 3) * x + tl.load(a + 4) * y + tl.load(a + 5)) >> 16
            window = at + L.WINDOW
            top, left = tl.load(window), tl.load(window + 1)
            is_outside = (v < top) | (v >= tl.load(window + 2)) | (u < left) | (u >= tl.load(window + 3))
            leaves = is_outside & (stage < 0)
            stage = tl.where(leaves, slot, stage)
            colour = tl.where(leaves, tl.load(at + L.FILL), colour)
            x = tl.where(is_outside, left, u)
            y = tl.where(is_outside, top, v)
    return x, y, stage, colour


@triton.jit
def walk_tables(buffer, code, header, x, y, inside):
    """Through a map that is a table of columns and one of lines (-1: outside) -> as ``walk``."""
    slot = tl.load(header + P.FIRST).to(tl.int32)
    at = code + slot * L.CODE
    columns = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int32))
    lines = (buffer + tl.load(at + L.COEFFICIENT)).to(tl.pointer_type(tl.int32))
    u = tl.load(columns + x, mask=inside, other=-1)
    v = tl.load(lines + y, mask=inside, other=-1)
    is_outside = (u < 0) | (v < 0)
    stage = tl.where(is_outside, slot, -1)
    colour = tl.where(is_outside, tl.load(at + L.FILL), 0)
    return tl.maximum(u, 0), tl.maximum(v, 0), stage, colour
