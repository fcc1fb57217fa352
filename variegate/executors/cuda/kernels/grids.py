"""Chains of real maps with a grid of displacements among them. What is computed is defined in
``executors/reference/displacement.py``, and for chains in ``program/places.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.maps import form, is_in_span, place
from variegate.program import ops
from variegate.program import places as R


@triton.jit
def walk_grids(buffer, code, begin, end, x, y, bits):
    """Through the real maps of slots begin..end -> (u, v, stage): places less half a pixel, int32, and ``maps.walk``'s
    stage."""
    stage = tl.full(x.shape, -1, tl.int32)
    half = (1 << bits) >> 1
    u, v = (x << bits).to(tl.int32), (y << bits).to(tl.int32)
    # Where the last grid has left a place, of which the maps before it are functions.
    moved_u, moved_v = u, v
    is_moved = 0
    for i in range(end - begin):
        slot = end - 1 - i
        at = code + slot * L.CODE
        op = tl.load(at + L.OP)
        if op == ops.Op.MAP_GRID:
            u, v, is_inside = _displaced(buffer, at, u, v, bits, -1, 0)
            stage = tl.maximum(stage, tl.where(is_inside, -1, slot))
            moved_u, moved_v = u, v
            is_moved = 1
        elif (op == ops.Op.MAP_FLOAT) | (op == ops.Op.MAP_PERSPECTIVE):
            record = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int64))
            if is_moved == 0:
                a, b, depth = form(record + R.U, x, y), form(record + R.V, x, y), form(record + R.DEPTH, x, y)
            else:
                a = _form_at(record + R.U, moved_u, moved_v, bits)
                b = _form_at(record + R.V, moved_u, moved_v, bits)
                depth = _form_at(record + R.DEPTH, moved_u, moved_v, bits)
            stage = tl.maximum(stage, tl.where(is_in_span(record, a, b, depth), -1, slot))
            u, v = place(record, a, b, depth, bits)
            u, v = u - half, v - half
    return u, v, stage


@triton.jit
def nearest_in_grid(buffer, at, x, y):
    """The pixel that the grid of the instruction at ``at`` moves a pixel's centre into -> (column, line, whether it is
    inside)."""
    bits = R.BILINEAR_BITS
    half = (1 << bits) >> 1
    u, v, is_inside = _displaced(buffer, at, x << bits, y << bits, bits, -(1 << bits), half)
    return u >> bits, v >> bits, is_inside


@triton.jit
def _form_at(numbers, u, v, bits):
    """A linear function of columns and lines at a place between them; see ``maps.form``."""
    along, across = tl.load(numbers) >> bits, tl.load(numbers + 1) >> bits
    return along * u.to(tl.int64) + across * v.to(tl.int64) + tl.load(numbers + 2)


@triton.jit
def _displaced(buffer, at, u, v, bits, kept, added):
    """Places less half a pixel, moved -> (u, v, whether they are inside the image that the map makes), in the source.
    Of the place in that image, the bits ``kept`` stay, and ``added`` comes to them."""
    record = (buffer + tl.load(at + L.ARG)).to(tl.pointer_type(tl.int64))
    nodes = (buffer + tl.load(at + L.COEFFICIENT)).to(tl.pointer_type(tl.int16))
    width, height = tl.load(record + R.SPAN_U).to(tl.int32), tl.load(record + R.SPAN_V).to(tl.int32)
    half = (1 << bits) >> 1
    at_x = tl.minimum(tl.maximum(u, 0), (width - 1) << bits).to(tl.int64) * tl.load(record + R.STEP_X)
    at_y = tl.minimum(tl.maximum(v, 0), (height - 1) << bits).to(tl.int64) * tl.load(record + R.STEP_Y)
    columns = tl.load(record + R.COLUMNS).to(tl.int32)
    cell = (at_y >> (R.STEP_BITS + bits)).to(tl.int32) * columns + (at_x >> (R.STEP_BITS + bits)).to(tl.int32)
    across = (at_x >> (R.STEP_BITS - R.WEIGHT_BITS + bits)).to(tl.int32) & ((1 << R.WEIGHT_BITS) - 1)
    down = (at_y >> (R.STEP_BITS - R.WEIGHT_BITS + bits)).to(tl.int32) & ((1 << R.WEIGHT_BITS) - 1)
    node, shift = nodes + 2 * cell, tl.load(record + R.SHIFT)
    u += half + _weighed(node, 2 * columns, across, down, shift)
    v += half + _weighed(node + 1, 2 * columns, across, down, shift)
    is_inside = (u >= 0) & (u < (width << bits)) & (v >= 0) & (v < (height << bits))
    u, v = (u & kept) + added, (v & kept) + added
    swaps = tl.load(record + R.SWAPS) != 0
    a, b = tl.where(swaps, v, u), tl.where(swaps, u, v)
    a = tl.load(record + R.ORIGIN_U).to(tl.int32) + tl.load(record + R.SIGN_U).to(tl.int32) * a
    b = tl.load(record + R.ORIGIN_V).to(tl.int32) + tl.load(record + R.SIGN_V).to(tl.int32) * b
    return a - half, b - half, is_inside


@triton.jit
def _weighed(node, line, across, down, shift):
    """The displacement between four nodes, as a distance between places, int32."""
    a, b = tl.load(node).to(tl.int32), tl.load(node + line).to(tl.int32)
    upper = (a << R.WEIGHT_BITS) + (tl.load(node + 2).to(tl.int32) - a) * across
    lower = (b << R.WEIGHT_BITS) + (tl.load(node + line + 2).to(tl.int32) - b) * across
    total = (upper.to(tl.int64) << R.WEIGHT_BITS) + (lower - upper).to(tl.int64) * down
    return ((total + ((shift * 0 + 1) << (shift - 1))) >> shift).to(tl.int32)
