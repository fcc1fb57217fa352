"""Value operations on a row of planes, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiling.levels import HAS_BYTE_SHUFFLE
from variegate.executors.cpu.kernel import address_of, inlined
from variegate.executors.cpu.simd import call_point
from variegate.executors.cpu.simd_colour import LANES, mix_block
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
            for x in range(first, end, LANES):
                mix_block(address + x, stride, factor)
        elif op == _HUE:
            _hue(r, g, b, a[0], first, end)
        elif op == _PERMUTE:
            _permute(planes, int(a[0]), int(a[1]), int(a[2]), first, end)
        elif op == _COLOR_MATRIX:
            _matrix(r, g, b, row.side.matrices[int(a[0])], first, end)
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


@inner_kernel()
def _permute(planes: Any, first_from: Any, second_from: Any, third_from: Any, first: Any, end: Any) -> None:
    for x in range(first, end):
        r, g, b = planes[first_from, x], planes[second_from, x], planes[third_from, x]
        planes[0, x], planes[1, x], planes[2, x] = r, g, b


@inner_kernel()
def _matrix(r: Any, g: Any, b: Any, m: Any, first: Any, end: Any) -> None:
    low, high, half = np.float32(0.0), np.float32(255.0), np.float32(0.5)
    for x in range(first, end):
        red, green, blue = np.float32(r[x]), np.float32(g[x]), np.float32(b[x])
        r1 = m[0, 0] * red + m[0, 1] * green + m[0, 2] * blue + m[0, 3]
        g1 = m[1, 0] * red + m[1, 1] * green + m[1, 2] * blue + m[1, 3]
        b1 = m[2, 0] * red + m[2, 1] * green + m[2, 2] * blue + m[2, 3]
        r[x] = np.uint8(min(max(r1 + half, low), high))
        g[x] = np.uint8(min(max(g1 + half, low), high))
        b[x] = np.uint8(min(max(b1 + half, low), high))


@inner_kernel()
def _hue(r: Any, g: Any, b: Any, factor: Any, first: Any, end: Any) -> None:
    """Pillow's RGB -> HSV -> RGB in 8 bits, with the hue byte shifted by ``uint8(factor * 255)``, which wraps."""
    shift = int(factor * 255.0) & 255
    for x in range(first, end):
        high, low = max(r[x], g[x], b[x]), min(r[x], g[x], b[x])
        h, s = 0, 0
        if high != low:
            span = np.float32(high - low)
            s = int(np.float32(span / np.float32(high)) * 255.0)
            rc = np.float32(high - r[x]) / span
            gc = np.float32(high - g[x]) / span
            bc = np.float32(high - b[x]) / span
            if r[x] == high:
                turn = bc - gc
            elif g[x] == high:
                turn = np.float32(2.0 + rc - bc)
            else:
                turn = np.float32(4.0 + gc - rc)
            turn = np.float32((turn / 6.0 + 1.0) % 1.0)
            h = min(max(int(turn * 255.0), 0), 255)
        h = (h + shift) & 255
        if s == 0:
            r[x], g[x], b[x] = high, high, high
            continue
        sector = h * 6.0 / 255.0
        i = int(np.floor(sector))
        f = np.float32(sector - i)
        fs = np.float32(s / 255.0)
        v = float(high)
        p = _round(v * (1.0 - fs))
        q = _round(v * (1.0 - fs * f))
        t = _round(v * (1.0 - fs * (1.0 - f)))
        i = i % 6
        if i == 0:
            r[x], g[x], b[x] = high, t, p
        elif i == 1:
            r[x], g[x], b[x] = q, high, p
        elif i == 2:
            r[x], g[x], b[x] = p, high, t
        elif i == 3:
            r[x], g[x], b[x] = p, q, high
        elif i == 4:
            r[x], g[x], b[x] = t, p, high
        else:
            r[x], g[x], b[x] = high, p, q


@inlined
def _round(v: Any) -> Any:
    """C's round() of a non-negative number, clipped to a level."""
    return np.uint8(min(int(v + 0.5), 255))
