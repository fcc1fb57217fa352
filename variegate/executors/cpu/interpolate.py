"""Rows through real-valued maps: perspective, and bilinear or bicubic anything, with Pillow's double arithmetic.

A chain of maps is walked backwards on continuous coordinates; at each the point must lie in that map's window. The
source is gathered once, through the LUTs that precede the first map. Also rows of the two separable nearest maps, given
tables of columns and lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.kernel import inlined
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Interpolation, Op

_PERSPECTIVE = int(Op.MAP_PERSPECTIVE)
_NEAREST, _BILINEAR = int(Interpolation.NEAREST), int(Interpolation.BILINEAR)


@inner_kernel()
def walk_back(
    opcode: Any, args: Any, windows: Any, slots: Any, count: Any, y: Any, out_width: Any, real: Any, stage: Any
) -> None:
    """Continuous source coordinates of row ``y`` into ``real[0]`` (x) and ``real[1]`` (y); ``stage`` as in rows.py."""
    us, vs = real[0], real[1]
    for x in range(out_width):
        us[x] = x + 0.5
        vs[x] = y + 0.5
        stage[x] = -1
    for i in range(count - 1, -1, -1):
        slot = slots[i]
        a, window = args[slot], windows[slot]
        top, left, bottom, right = window[0], window[1], window[2], window[3]
        is_affine = opcode[slot] != _PERSPECTIVE
        mirrored_x, mirrored_y = is_affine and a[6] != 0.0, is_affine and a[7] != 0.0
        for x in range(out_width):
            u = a[0] * us[x] + a[1] * vs[x] + a[2]
            v = a[3] * us[x] + a[4] * vs[x] + a[5]
            if not is_affine:
                depth = a[6] * us[x] + a[7] * vs[x] + 1.0
                u, v = u / depth, v / depth
            # Written so that NaN (a point at infinity) counts as outside. A map that took in a flip has the border that
            # counts on the other side.
            inside_x = (u > left and u <= right) if mirrored_x else (u >= left and u < right)
            inside_y = (v > top and v <= bottom) if mirrored_y else (v >= top and v < bottom)
            is_inside = inside_x and inside_y
            stage[x] = slot if stage[x] < 0 and not is_inside else stage[x]
            us[x] = u if is_inside else left + 0.5
            vs[x] = v if is_inside else top + 0.5


@inner_kernel()
def sample_row(
    image: Any, window: Any, flag: Any, table: Any, real: Any, stage: Any, out_width: Any, planes: Any
) -> None:
    """Read the points of ``walk_back``. ``window`` clamps the taps, ``table`` uint8[3, 256] is applied to each tap."""
    levels, width, channels = image.levels, image.width, image.channels
    top, left, bottom, right = window[0], window[1], window[2], window[3]
    for x in range(out_width):
        if stage[x] >= 0:
            continue
        u, v = real[0, x], real[1, x]
        if flag == _NEAREST:
            at = channels * (int(v) * width + int(u))
            for c in range(channels):
                planes[c, x] = table[c, levels[at + c]]
            continue
        u, v = u - 0.5, v - 0.5
        column, line = int(np.floor(u)), int(np.floor(v))
        dx, dy = u - column, v - line
        if flag == _BILINEAR:
            x0, x1 = max(column, left), min(column + 1, right - 1)
            y0, y1 = max(line, top), min(line + 1, bottom - 1)
            for c in range(channels):
                a = float(table[c, levels[channels * (y0 * width + x0) + c]])
                b = float(table[c, levels[channels * (y0 * width + x1) + c]])
                upper = a + (b - a) * dx
                a = float(table[c, levels[channels * (y1 * width + x0) + c]])
                b = float(table[c, levels[channels * (y1 * width + x1) + c]])
                lower = a + (b - a) * dx
                planes[c, x] = np.uint8(upper + (lower - upper) * dy)
        else:
            for c in range(channels):
                level = 0.0
                rows = (0.0, 0.0, 0.0, 0.0)
                for j in range(4):
                    row = min(max(line - 1 + j, top), bottom - 1)
                    taps = (0.0, 0.0, 0.0, 0.0)
                    for i in range(4):
                        at = min(max(column - 1 + i, left), right - 1)
                        taps = _put(taps, i, float(table[c, levels[channels * (row * width + at) + c]]))
                    rows = _put(rows, j, _cubic(taps, dx))
                level = _cubic(rows, dy)
                planes[c, x] = np.uint8(min(max(level, 0.0), 255.0))


@inlined
def _put(values: Any, i: Any, value: Any) -> Any:
    return (
        value if i == 0 else values[0],
        value if i == 1 else values[1],
        value if i == 2 else values[2],
        value if i == 3 else values[3],
    )


@inlined
def _cubic(v: Any, d: Any) -> Any:
    """Pillow's cubic through four values (a = -1)."""
    p2 = -v[0] + v[2]
    p3 = 2.0 * (v[0] - v[1]) + v[2] - v[3]
    p4 = -v[0] + v[1] - v[2] + v[3]
    return v[1] + d * (p2 + d * (p3 + d * p4))


@inner_kernel()
def table_row(image: Any, columns: Any, line: Any, slot: Any, out_width: Any, stage: Any, planes: Any) -> None:
    """Pixels of one source line at the columns of a table; -1 marks the outside."""
    channels = image.channels
    for x in range(out_width):
        is_outside = line < 0 or columns[x] < 0
        stage[x] = slot if is_outside else -1
        if not is_outside:
            at = channels * (line * image.width + columns[x])
            for c in range(channels):
                planes[c, x] = image.levels[at + c]
