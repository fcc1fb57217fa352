"""OVERLAY on a row of planes. Lines of nodes are stretched to the image's columns once, and rows are between two."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiling.levels import HAS_BYTE_SHUFFLE
from variegate.executors.cpu import simd_layers as S
from variegate.executors.cpu.kernel import address_of, inlined
from variegate.executors.cpu.simd_values import COLOUR_LANES
from variegate.program.compiled import inner_kernel
from variegate.program.ops import LAYER_PLANES, LIGHTNESSES, LayerMode
from variegate.program.places import STEP_BITS

_CURVE, _OVER, _SCALE = int(LayerMode.CURVE), int(LayerMode.OVER), int(LayerMode.SCALE)
# Of ``Scratch.layer_lines``: the slot whose lines ``layers`` holds, the even one and the odd one; -1 for none.
_SLOT, _EVEN = 0, 1
# Of ``Scratch.layers``: the row's weights, and its colours, behind two lines of each plane.
_WEIGHTS, _COLOURS = 8, 11


@inlined
def overlay_row(
    a: Any, flags: Any, fill: Any, slot: Any, y: Any, width: Any, channels: Any, grids: Any, own: Any
) -> None:
    """Row ``y`` in place; ``a``: arguments of the instruction in ``slot``."""
    planes, mode = flags // LAYER_PLANES, flags % LAYER_PLANES
    lines, columns, step_y, step_x, top, left = int(a[1]), int(a[2]), int(a[3]), int(a[4]), int(a[5]), int(a[6])
    held, at = own.layer_lines, (y - top) * step_y
    if y == 0 or held[_SLOT] != slot:
        held[_SLOT], held[_EVEN], held[_EVEN + 1] = slot, -1, -1
        for c in range(channels):
            own.layers[_COLOURS + c] = 0 if mode == _SCALE else fill[c]
    first, end = max(0, left), min(width, left + ((columns - 1 << STEP_BITS) + step_x - 1) // step_x)
    if mode == _CURVE:
        _bend_row(grids[int(a[0]) : int(a[0]) + 2 * LIGHTNESSES].view(np.int32), width, channels, own)
    elif 0 <= at < lines - 1 << STEP_BITS and first < end:
        upper, nodes = at >> STEP_BITS, grids[int(a[0]) :].view(np.uint8)
        for i in range(upper, upper + 2):
            if held[_EVEN + (i & 1)] != i:
                held[_EVEN + (i & 1)] = i
                for p in range(planes):
                    line, begin = own.layers[2 * p + (i & 1)], (p * lines + i) * columns
                    _stretch(nodes, begin, step_x, left, first, end, line, own.row_bytes)
        down, strength = np.int32(at >> STEP_BITS - 15 & 32767), np.int32(np.floor(a[7] * 32767 + 0.5))
        apart, alphas, count = 2 * own.layers.shape[1], 3 if planes == 3 else 1, end - first
        memory = address_of(own.layers) + 2 * first
        for p in range(alphas if mode == _SCALE else planes):
            above, below = memory + apart * (2 * p + (upper & 1)), memory + apart * (2 * p + 1 - (upper & 1))
            if p < alphas:
                S.weigh_row(above, below, down, strength, memory + apart * (_WEIGHTS + p), count)
            else:
                S.mix_row(above, below, down, memory + apart * (_COLOURS + p - 1), count)
        levels, stride = address_of(own.planes) + first, own.planes.shape[1]
        of_level = np.int32(-1 if mode == _OVER else 1 if mode == _SCALE else 0)
        for c in range(channels):
            weights = memory + apart * (_WEIGHTS + (c if planes == 3 else 0))
            colours = memory + apart * (_COLOURS + (0 if planes == 2 and mode != _SCALE else c))
            S.lay_row(levels + c * stride, weights, colours, of_level, count)


@inner_kernel()
def _stretch(nodes: Any, begin: Any, step: Any, left: Any, first: Any, end: Any, line: Any, room: Any) -> None:
    """A line of nodes, from ``begin`` on: one value with 7 fraction bits for each of the columns first..end; and zeros
    behind them, which leave levels as they are, for blocks that run over."""
    at = (begin << STEP_BITS) + (first - left) * step
    if HAS_BYTE_SHUFFLE and step <= 1 << STEP_BITS:
        source, last = address_of(nodes), at + (end - 1 - first) * step >> STEP_BITS
        # Vectors read beyond the last of them.
        if last + S.READ > nodes.size:
            source = address_of(room) - (at >> STEP_BITS)
            for j in range(at >> STEP_BITS, last + 2):
                room[j - (at >> STEP_BITS)] = nodes[j]
        S.stretch_row(source, at, step, address_of(line) + 2 * first, end - first)
    else:
        for x in range(first, end):
            j, across = at >> STEP_BITS, np.int32(at >> STEP_BITS - 15 & 32767)
            value, slope = np.int32(nodes[j]) << 7, (np.int32(nodes[j + 1]) - np.int32(nodes[j])) << 7
            line[x] = np.int16(value + (np.int32(slope * across + 16384) >> 15))
            at += step
    line[end : end + S.MARGIN] = 0


@inlined
def _bend_row(curve: Any, width: Any, channels: Any, own: Any) -> None:
    stride, memory, found = own.planes.shape[1], address_of(own.planes), own.row_words
    lightness = own.tap_weights
    if channels == 1:
        for x in range(width):
            lightness[x] = np.int32(own.planes[0, x]) << 1
    else:
        for x in range(0, width, COLOUR_LANES):
            S.lightness_block(memory + x, stride, address_of(lightness) + 4 * x)
    for x in range(width):
        found[x] = curve[lightness[x]]
    for c in range(channels):
        for x in range(0, width, COLOUR_LANES):
            S.bend_block(memory + c * stride + x, address_of(lightness) + 4 * x, address_of(found) + 4 * x)
