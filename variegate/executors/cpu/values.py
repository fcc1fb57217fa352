"""Value operations on a row of planes, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiling.levels import HAS_BYTE_SHUFFLE
from variegate.executors.cpu.kernel import address_of, inlined
from variegate.executors.cpu.simd import BLOCK, call_point
from variegate.executors.cpu.simd_colour import COLOUR_LANES, matrix_block, mix_block, permute_block
from variegate.executors.cpu.simd_hue import HUE_LANES, hue_block
from variegate.executors.cpu.simd_lookup import lookup_row
from variegate.program.compiled import inner_kernel
from variegate.program.ops import KIND_OF, LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, Kind, Op

_LUT, _MIX, _HUE, _PERMUTE, _COLOR_MATRIX, _POINT = (
    int(op) for op in (Op.LUT, Op.MIX, Op.HUE, Op.PERMUTE, Op.COLOR_MATRIX, Op.POINT)
)
_VALUE, _STATISTIC = int(Kind.VALUE), int(Kind.STATISTIC)


@inner_kernel(forceinline=True)
def look_up(plane: Any, table: Any, first: Any, end: Any) -> None:
    """``plane[x] = table[plane[x]]`` for first <= x < end (and, harmlessly, some padding after it)."""
    if HAS_BYTE_SHUFFLE:
        lookup_row(address_of(plane) + first, end - first, address_of(table))
    else:
        for x in range(first, end):
            plane[x] = table[plane[x]]


@inner_kernel(forceinline=True)
def apply_value(row: Any, k: Any, channels: Any, stat_luts: Any, planes: Any, first: Any, end: Any) -> None:
    """Run slot ``k`` on columns first..end if it holds a value or statistic operation."""
    op = row.opcode[k]
    kind = KIND_OF[op]
    if kind == _STATISTIC or op == _LUT:
        table = stat_luts[k] if kind == _STATISTIC else row.side.luts[int(row.args[k, 0])]
        for c in range(channels):
            look_up(planes[c], table[c], first, end)
    elif kind == _VALUE and (channels == 3 or op == _COLOR_MATRIX or op == _POINT):
        a, r, g, b = row.args[k], planes[0], planes[1], planes[2]
        if channels == 1:
            for x in range(first, end):
                g[x] = r[x]
                b[x] = r[x]
        if op == _MIX:
            factor, address, stride = np.float32(a[0]), address_of(planes), planes.shape[1]
            # Pillow's ImageEnhance.Color. Runs over into the padding.
            for x in range(first, end, COLOUR_LANES):
                mix_block(address + x, stride, factor)
        elif op == _HUE:
            shift, address, stride = np.int32(int(a[0] * 255.0) & 255), address_of(planes), planes.shape[1]
            for x in range(first, end, HUE_LANES):
                hue_block(address + x, stride, shift)
        elif op == _PERMUTE:
            address, stride = address_of(planes), planes.shape[1]
            red, green, blue = int(a[0]) * stride, int(a[1]) * stride, int(a[2]) * stride
            for x in range(first, end, BLOCK):
                permute_block(address + x, stride, red, green, blue)
        elif op == _COLOR_MATRIX:
            address, stride, matrix = address_of(planes), planes.shape[1], address_of(row.side.matrices[int(a[0])])
            for x in range(first, end, COLOUR_LANES):
                matrix_block(address + x, stride, matrix)
        elif op == _POINT:
            red, green, blue = address_of(r) + first, address_of(g) + first, address_of(b) + first
            call_point(row.side.points[int(a[0])], red, green, blue, end - first, np.float32(a[1]))


@inner_kernel()
def apply_values(row: Any, begin: Any, stop: Any, channels: Any, stat_luts: Any, planes: Any, columns: Any) -> None:
    """Run the value and statistic operations of slots begin..stop on a few columns, once per pass."""
    for k in range(begin, stop):
        apply_value(row, k, channels, stat_luts, planes, 0, columns)


@inlined
def joined_luts(row: Any, begin: Any, stop: Any, channels: Any, stat_luts: Any, table: Any) -> None:
    """The tables of slots begin..stop, of which no other value operation is one, as one: uint8[3, 256]."""
    for c in range(3):
        for i in range(256):
            table[c, i] = i
    apply_values(row, begin, stop, channels, stat_luts, table, 256)


@inner_kernel()
def luma(r: Any, g: Any, b: Any) -> Any:
    """Pillow's L of one pixel."""
    return (np.int64(r) * LUMA_RED + np.int64(g) * LUMA_GREEN + np.int64(b) * LUMA_BLUE + LUMA_HALF) >> LUMA_SHIFT
