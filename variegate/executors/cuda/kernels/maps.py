"""Walking a tile's pixels backwards through maps, to the places of the source that they show."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.program import ops
from variegate.program import passes as P
from variegate.program import places as R


@triton.jit
def step(code, slot, x, y):
    """Through the fixed map at ``slot`` -> (column, line, stage); see ``walk``."""
    at = code + slot * L.CODE
    a = at + L.COEFFICIENT
    u = (tl.load(a) * x + tl.load(a + 1) * y + tl.load(a + 2)) >> 16
    v = (tl.load(a + 3) * x + tl.load(a + 4) * y + tl.load(a + 5)) >> 16
    window = at + L.WINDOW
    top, left = tl.load(window), tl.load(window + 1)
    # Without a sign, what is negative is large: one comparison for both ends.
    in_y = (v - top).to(tl.uint32) < (tl.load(window + 2) - top).to(tl.uint32)
    in_x = (u - left).to(tl.uint32) < (tl.load(window + 3) - left).to(tl.uint32)
    return u, v, tl.where(in_y & in_x, -1, slot)


@triton.jit
def walk(code, begin, end, x, y):
    """Through the fixed maps of slots begin..end -> (column, line, stage).

    ``stage`` is the slot of the map at which a pixel left the image, or -1. A pixel that left has any place.
    """
    stage = tl.full(x.shape, -1, tl.int32)
    for i in range(end - begin):
        slot = end - 1 - i
        if tl.load(code + slot * L.CODE + L.OP) == ops.Op.MAP_FIXED:
            x, y, left_at = step(code, slot, x, y)
            # The highest slot is where a pixel left first; what its places are from there on does not matter.
            stage = tl.maximum(stage, left_at)
    return x, y, stage


@triton.jit
def walk_tables(buffer, code, header, x, y, inside):
    """Through a map that is a table of columns and one of lines (-1: outside) -> as ``walk``."""
    slot = tl.load(header + P.FIRST).to(tl.int32)
    at = code + slot * L.CODE
    columns = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int32))
    lines = (buffer + tl.load(at + L.COEFFICIENT)).to(tl.pointer_type(tl.int32))
    u = tl.load(columns + x, mask=inside, other=-1)
    v = tl.load(lines + y, mask=inside, other=-1)
    return u, v, tl.where((u < 0) | (v < 0), slot, -1)


@triton.jit
def form(numbers, x, y):
    """A linear function of columns and lines, int64; see ``program/places.py``."""
    return tl.load(numbers) * x.to(tl.int64) + tl.load(numbers + 1) * y.to(tl.int64) + tl.load(numbers + 2)


@triton.jit
def walk_records(buffer, code, begin, end, record, u, v, depth, x, y):
    """Through the real maps of slots begin..end -> the stage, as in ``walk``. The rest is said of the first map: its
    record, and what its three functions are."""
    stage = tl.full(x.shape, -1, tl.int32)
    for i in range(end - 1 - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        op = tl.load(at + L.OP)
        if (op == ops.Op.MAP_FLOAT) | (op == ops.Op.MAP_PERSPECTIVE):
            later = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int64))
            is_inside = is_in_span(later, form(later + R.U, x, y), form(later + R.V, x, y), form(later + R.DEPTH, x, y))
            stage = tl.maximum(stage, tl.where(is_inside, -1, slot))
    return tl.maximum(stage, tl.where(is_in_span(record, u, v, depth), -1, begin))


@triton.jit
def is_in_span(record, u, v, depth):
    far_u, far_v = tl.load(record + R.SPAN_U) * depth - u, tl.load(record + R.SPAN_V) * depth - v
    ahead = (u >= 0) & (far_u > 0) & (v >= 0) & (far_v > 0)
    return ahead | ((u <= 0) & (far_u < 0) & (v <= 0) & (far_v < 0))


@triton.jit
def place(record, u, v, depth, bits):
    """Where in the source a map's functions lie, int32 with so many fraction bits. Anything where it is outside."""
    exponent = tl.load(record + R.EXPONENT).to(tl.int32)
    shift = tl.load(record + R.SHIFT)
    if exponent == 0:
        along, across = (u >> shift).to(tl.int32), (v >> shift).to(tl.int32)
    else:
        divisor = (depth >> shift).to(tl.int32)
        divisor = tl.where(divisor == 0, 1, divisor).to(tl.float32)
        factor = ((exponent + 127) << 23).to(tl.float32, bitcast=True)
        along = _quotient(u, divisor, factor, tl.load(record + R.SPAN_U).to(tl.int32) << bits)
        across = _quotient(v, divisor, factor, tl.load(record + R.SPAN_V).to(tl.int32) << bits)
    along = tl.load(record + R.ORIGIN_U).to(tl.int32) + tl.load(record + R.SIGN_U).to(tl.int32) * along
    return along, tl.load(record + R.ORIGIN_V).to(tl.int32) + tl.load(record + R.SIGN_V).to(tl.int32) * across


@triton.jit
def _quotient(numerator, divisor, factor, end):
    numerator = (numerator >> R.NUMERATOR_SHIFT).to(tl.int32).to(tl.float32)
    quotient = tl.div_rn(numerator, divisor) * factor
    return tl.minimum(tl.maximum(quotient, 0.0), end.to(tl.float32)).to(tl.int32)
