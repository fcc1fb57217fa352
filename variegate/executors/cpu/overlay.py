"""OVERLAY on a row of planes. Lines of nodes are stretched to the image's columns once, and rows are between two."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu import simd_layers as S
from variegate.executors.cpu.kernel import address_of, inlined
from variegate.executors.cpu.simd_values import COLOUR_LANES
from variegate.program.compiled import inner_kernel
from variegate.program.ops import LAYER_PLANES, LIGHTNESSES, LayerMode
from variegate.program.places import STEP_BITS

_CURVE, _OVER, _SCALE = int(LayerMode.CURVE), int(LayerMode.OVER), int(LayerMode.SCALE)
# Of ``Scratch.layer_lines``: the slot whose lines ``layers`` holds, the even one and the odd one; -1 for none.
_SLOT, _EVEN = 0, 1


@inner_kernel()
def overlay_row(
    a: Any, flags: Any, fill: Any, slot: Any, y: Any, width: Any, channels: Any, grids: Any, own: Any
) -> None:
    """Row ``y`` in place; ``a``: arguments of the instruction in ``slot``."""
    planes, mode = flags // LAYER_PLANES, flags % LAYER_PLANES
    if mode == _CURVE:
        _bend_row(grids[int(a[0]) : int(a[0]) + 2 * LIGHTNESSES].view(np.int32), width, channels, own)
        return
    lines, columns, step_y, step_x, top, left = int(a[1]), int(a[2]), int(a[3]), int(a[4]), int(a[5]), int(a[6])
    held, at = own.layer_lines, (y - top) * step_y
    if y == 0 or held[_SLOT] != slot:
        held[_SLOT], held[_EVEN], held[_EVEN + 1] = slot, -1, -1
    first, end = max(0, left), min(width, left + ((columns - 1 << STEP_BITS) + step_x - 1) // step_x)
    if at < 0 or at >= lines - 1 << STEP_BITS or first >= end:
        return
    upper, nodes = at >> STEP_BITS, grids[int(a[0]) :].view(np.uint8)
    for i in (upper, upper + 1):
        if held[_EVEN + (i & 1)] != i:
            held[_EVEN + (i & 1)] = i
            for p in range(planes):
                begin = (p * lines + i) * columns
                _stretch(nodes[begin : begin + columns], step_x, left, first, end, own.layers[2 * p + (i & 1)])
    down, strength = np.int32(at >> STEP_BITS - 15 & 32767), np.int32(np.floor(a[7] * 32767 + 0.5))
    of_level = np.int32(-1 if mode == _OVER else 1 if mode == _SCALE else 0)
    r, g, b = np.int32(fill[0]), np.int32(fill[1]), np.int32(fill[2])
    if mode == _SCALE:
        r, g, b = np.int32(0), np.int32(0), np.int32(0)
    stride, memory, line = own.planes.shape[1], address_of(own.planes), 2 * own.layers.shape[1]
    above = address_of(own.layers) + line * (upper & 1)
    below = address_of(own.layers) + line * (1 - (upper & 1))
    if planes == 1:
        for x in range(first, end, S.LANES):
            alpha, beneath = above + 2 * x, below + 2 * x
            S.lay_alpha_block(memory + x, stride, alpha, beneath, down, strength, r, g, b, of_level)
        return
    plain = own.layers[8]
    for c in range(channels):
        alpha, colour = above + 2 * line * (c if planes == 3 else 0), 2 * line * (1 if planes == 2 else 1 + c)
        beneath, upper_colour, lower_colour = alpha + below - above, above + colour, below + colour
        if planes == 3 or mode == _SCALE:
            plain[first : end + S.LANES] = np.int16((r if c == 0 else g if c == 1 else b) << 7)
            upper_colour, lower_colour = address_of(plain), address_of(plain)
        for x in range(first, end, S.LANES):
            S.lay_colours_block(
                memory + c * stride + x, alpha + 2 * x, beneath + 2 * x, down, strength, upper_colour + 2 * x,
                lower_colour + 2 * x, of_level,
            )  # fmt: skip


@inner_kernel()
def _stretch(nodes: Any, step: Any, left: Any, first: Any, end: Any, line: Any) -> None:
    """A line of nodes, one value with 7 fraction bits for each of the columns first..end; and zeros behind them, which
    leave levels as they are, for blocks that run over."""
    line[end : end + S.LANES] = 0
    if step == 1 << STEP_BITS:
        source, target = address_of(nodes) - left, address_of(line)
        stop = first + (end - first) // S.LANES * S.LANES
        for x in range(first, stop, S.LANES):
            S.widen_block(source + x, target + 2 * x)
        for x in range(stop, end):
            line[x] = np.int16(nodes[x - left]) << 7
        return
    for x in range(first, end):
        at = (x - left) * step
        j, across = at >> STEP_BITS, np.int32(at >> STEP_BITS - 15 & 32767)
        value, slope = np.int32(nodes[j]) << 7, (np.int32(nodes[j + 1]) - np.int32(nodes[j])) << 7
        line[x] = np.int16(value + (np.int32(slope * across + 16384) >> 15))


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
