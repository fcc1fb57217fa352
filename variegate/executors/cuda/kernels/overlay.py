"""OVERLAY on a tile's pixels.

CPU counterpart: ``native/kernels/overlay.cpp``; definition: ``overlay`` in ``tests/oracle/position.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels.element import blue, clipped, green, red
from variegate.executors.cuda.kernels.memory import int16s_at, load_inside, load_int
from variegate.program import coords as R
from variegate.program import ops


@triton.jit
def overlay(buffer, at, x, y, channels, r, g, b):
    """Apply an OVERLAY. ``at``: address of the instruction's code, see ``CodeWriter`` in ``native/cuda/code.cpp``."""
    flag = tl.load(at + L.FLAG)
    mode = flag % ops.LAYER_PLANES
    planes = flag // ops.LAYER_PLANES
    if mode == ops.LayerMode.CURVE:
        r, g, b = _bend(buffer, at, channels, r, g, b)
    else:
        r, g, b = _overlay_nodes(buffer, at, x, y, channels, mode, planes, r, g, b)
    return r, g, b


@triton.jit
def _overlay_nodes(buffer, at, x, y, channels, mode, planes, r, g, b):
    lines = tl.load(at + L.PARAMS)
    columns = tl.load(at + L.PARAMS + 1)
    across = (x - tl.load(at + L.PARAMS + 5)).to(tl.int64) * tl.load(at + L.PARAMS + 3)
    down = (y - tl.load(at + L.PARAMS + 4)).to(tl.int64) * tl.load(at + L.PARAMS + 2)
    j = (across >> R.STEP_BITS).to(tl.int32)
    i = (down >> R.STEP_BITS).to(tl.int32)
    inside = (j >= 0) & (j < columns - 1) & (i >= 0) & (i < lines - 1)
    across = (across >> (R.STEP_BITS - 15)).to(tl.int32) & 32767
    down = (down >> (R.STEP_BITS - 15)).to(tl.int32) & 32767
    node = buffer + tl.load(at + L.ARG).to(tl.int64) + tl.where(inside, i * columns + j, 0)
    plane = lines * columns
    fill = tl.load(at + L.FILL)
    # Distances from one channel's planes of alpha and color to the next channel's.
    apart = tl.where(planes == 3, plane, 0)
    colors = tl.where(planes == 4, plane, 0)
    # `0 * x` makes it a tensor, because Triton's interpreter treats a scalar bool as bytes.
    colored = inside & ((planes + 0 * x) % 2 == 0)
    r = _move(node, node + plane, columns, across, down, inside, at, mode, colored, red(fill), r)
    if channels == 3:
        second = node + apart
        color = node + plane + colors
        g = _move(second, color, columns, across, down, inside, at, mode, colored, green(fill), g)
        b = _move(second + apart, color + colors, columns, across, down, inside, at, mode, colored, blue(fill), b)
    return r, g, b


@triton.jit
def _move(alpha, colors, columns, across, down, inside, at, mode, colored, color, level):
    weight = _scaled(_value(alpha, columns, across, down, inside), tl.load(at + L.COUNT))
    weight += weight >> 8
    own = (_value(colors, columns, across, down, colored) + 64) >> 7
    color = tl.where(colored, own, color)
    towards = tl.where(mode == ops.LayerMode.OVER, color - level, color)
    towards = tl.where(mode == ops.LayerMode.SCALE, level, towards)
    moved = clipped(level + _scaled(towards, weight))
    return tl.where(inside, moved, level)


@triton.jit
def _value(node, columns, across, down, inside):
    """Interpolate between four nodes, with 7 fraction bits."""
    a = load_inside(node, inside).to(tl.int32) << 7
    b = load_inside(node + 1, inside).to(tl.int32) << 7
    c = load_inside(node + columns, inside).to(tl.int32) << 7
    d = load_inside(node + columns + 1, inside).to(tl.int32) << 7
    upper = a + _scaled(b - a, across)
    lower = c + _scaled(d - c, across)
    return upper + _scaled(lower - upper, down)


@triton.jit
def _scaled(value, share):
    """Multiply by a number with 15 fraction bits, rounded half up."""
    return (value * share + (1 << 14)) >> 15


@triton.jit
def _bend(buffer, at, channels, r, g, b):
    if channels == 1:
        g = r
        b = r
    lightness = tl.minimum(tl.minimum(r, g), b) + tl.maximum(tl.maximum(r, g), b)
    curve = int16s_at(buffer, tl.load(at + L.ARG)) + 2 * lightness
    new = load_int(curve) << 6
    factor = load_int(curve + 1)
    return (
        _bent(new, factor, 2 * r - lightness),
        _bent(new, factor, 2 * g - lightness),
        _bent(new, factor, 2 * b - lightness),
    )


@triton.jit
def _bent(new, factor, away):
    return clipped((new + factor * away + (1 << 11)) >> 12)
