"""Where maps read, worked out before a pixel is touched: tables of separable maps, and what a fixed map shows."""

from __future__ import annotations

from typing import Any

from variegate.program.compiled import inner_kernel
from variegate.program.ops import PadMode

_EDGE, _REFLECT = int(PadMode.EDGE), int(PadMode.REFLECT)
_SHIFT = 16
ONE = 1 << _SHIFT


@inner_kernel()
def reflect(i: Any, n: Any) -> Any:
    """Index ``i`` mirrored into 0..n-1 about the border pixels, repeatedly."""
    if n == 1:
        return 0
    period = 2 * (n - 1)
    i = abs(i) % period
    return period - i if i >= n else i


@inner_kernel()
def scale_table(start: Any, step: Any, in_size: Any, table: Any, n: Any, mirrored: Any) -> None:
    """Source index per output of Pillow's ImagingScaleAffine, which adds ``step`` up; -1 outside."""
    at = start + step * 0.5
    for i in range(n):
        index = -1 if at < 0.0 else int(at)
        table[n - 1 - i if mirrored else i] = index if index < in_size else -1
        at += step


@inner_kernel()
def pad_table(before: Any, mode: Any, in_size: Any, table: Any, n: Any) -> None:
    """Source index per output of edge, reflect or symmetric padding, reflections repeated as NumPy does."""
    for i in range(n):
        at = i - before
        if mode == _EDGE:
            table[i] = min(max(at, 0), in_size - 1)
        elif mode == _REFLECT:
            table[i] = reflect(at, in_size)
        else:
            at = at % (2 * in_size)
            table[i] = 2 * in_size - 1 - at if at >= in_size else at


@inner_kernel()
def moves_whole_pixels(a: Any) -> bool:
    """A fixed map moves whole pixels: every step is 0 or +-1 and it has no fraction."""
    unit = abs(a[0]) + abs(a[1]) == ONE and abs(a[3]) + abs(a[4]) == ONE and a[0] * a[1] == 0.0 and a[3] * a[4] == 0.0
    return bool(unit and a[2] % ONE == 0.0 and a[5] % ONE == 0.0 and abs(a[0]) == abs(a[4]))


@inner_kernel()
def source_rectangle(a: Any, top: Any, left: Any, bottom: Any, right: Any) -> Any:
    """What of the source a whole-pixel map shows in a rectangle of its output: top, left, bottom, right."""
    xa, ya = int(a[0]) * left + int(a[1]) * top + int(a[2]), int(a[3]) * left + int(a[4]) * top + int(a[5])
    xb = xa + int(a[0]) * (right - 1 - left) + int(a[1]) * (bottom - 1 - top)
    yb = ya + int(a[3]) * (right - 1 - left) + int(a[4]) * (bottom - 1 - top)
    return min(ya, yb) >> _SHIFT, min(xa, xb) >> _SHIFT, (max(ya, yb) >> _SHIFT) + 1, (max(xa, xb) >> _SHIFT) + 1


@inner_kernel()
def seen_by_statistics(args: Any, out_size: Any, window: Any, map_slot: Any, height: Any, width: Any) -> Any:
    """What a statistic behind the whole-pixel map at ``map_slot`` (-1: none) sees of a source of height x width:
    (top, left, bottom, right, how many pixels of the map's fill colour besides)."""
    top, left, bottom, right, outside = 0, 0, int(height), int(width), 0
    if map_slot >= 0:
        h, w, inside = int(out_size[map_slot, 0]), int(out_size[map_slot, 1]), window[map_slot]
        y0, x0, y1, x1 = source_rectangle(args[map_slot], 0, 0, h, w)
        top, left, bottom, right = max(y0, inside[0]), max(x0, inside[1]), min(y1, inside[2]), min(x1, inside[3])
        outside = h * w - max(0, bottom - top) * max(0, right - left)
    return top, left, bottom, right, outside


@inner_kernel()
def may_hit(a: Any, window: Any, size: Any) -> bool:
    """Whether the bounding box of what a 16.16 map reads meets its window."""
    dx, dy = a[0] * (size[1] - 1), a[1] * (size[0] - 1)
    ex, ey = a[3] * (size[1] - 1), a[4] * (size[0] - 1)
    left, right = a[2] + min(dx, 0.0) + min(dy, 0.0), a[2] + max(dx, 0.0) + max(dy, 0.0)
    top, bottom = a[5] + min(ex, 0.0) + min(ey, 0.0), a[5] + max(ex, 0.0) + max(ey, 0.0)
    return bool(
        right >= window[1] * ONE and left < window[3] * ONE and bottom >= window[0] * ONE and top < window[2] * ONE
    )
