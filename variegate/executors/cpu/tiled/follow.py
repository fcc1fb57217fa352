"""Places that single pixels and tiles read: chains with grids, nearest scales, pads that repeat the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.displace import quotient
from variegate.executors.cpu.fold import divided
from variegate.executors.cpu.interpolate import inside_row
from variegate.executors.cpu.kernel import inlined
from variegate.executors.reference.places import folded
from variegate.program import places as P
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.ops import Interpolation, PadMode
from variegate.program.places import fold_place, fold_real

_NEAREST, _BICUBIC = int(Interpolation.NEAREST), int(Interpolation.BICUBIC)
_BILINEAR = int(Interpolation.BILINEAR)
_PART, _WEIGHT = P.STEP_BITS - P.WEIGHT_BITS, (1 << P.WEIGHT_BITS) - 1


@inlined
def _is_inside(u: Any, v: Any, depth: Any, record: Any) -> Any:
    """Before the viewer or behind."""
    far_u, far_v = record[P.SPAN_U] * depth - u, record[P.SPAN_V] * depth - v
    ahead = u >= 0 and far_u > 0 and v >= 0 and far_v > 0
    return ahead or (u <= 0 and far_u < 0 and v <= 0 and far_v < 0)


@inlined
def _divided(numerator: Any, depth: Any, record: Any, span: Any, bits: Any) -> Any:
    divisor = np.int32(depth >> record[P.SHIFT])
    below = np.float32(divisor if divisor != 0 else np.int32(1))
    factor = np.float32(2.0 ** float(record[P.EXPONENT]))
    return quotient(numerator, below, factor, span << bits)


@inner_kernel()
def _place(record: Any, x: Any, y: Any, bits: Any) -> Any:
    """The place, less half a pixel, at which the maps from the output to ``record`` read: see ``place_row``."""
    half, shift = 1 << bits - 1, record[P.SHIFT]
    u = record[P.U] * x + record[P.U + 1] * y + record[P.U + 2]
    v = record[P.V] * x + record[P.V + 1] * y + record[P.V + 2]
    if record[P.EXPONENT] == 0:
        # What falls is cut off upwards, so that it mirrors what grows.
        column = u >> shift if record[P.SIGN_U] > 0 else (1 << shift) - 1 - u >> shift
        line = v >> shift if record[P.SIGN_V] > 0 else (1 << shift) - 1 - v >> shift
    else:
        depth = record[P.DEPTH] * x + record[P.DEPTH + 1] * y + record[P.DEPTH + 2]
        column = _divided(u, depth, record, record[P.SPAN_U], bits)
        line = _divided(v, depth, record, record[P.SPAN_V], bits)
    return column + record[P.ORIGIN_U] - half, line + record[P.ORIGIN_V] - half


@inner_kernel()
def _folded(record: Any, at_x: Any, at_y: Any, down: Any, bits: Any, slack: Any) -> Any:
    """The place of one pixel, as ``fold.fold_map`` has it, before its origin."""
    u = (record[P.U] >> down) * at_x + (record[P.U + 1] >> down) * at_y + record[P.U + 2]
    v = (record[P.V] >> down) * at_x + (record[P.V + 1] >> down) * at_y + record[P.V + 2]
    shift = record[P.SHIFT]
    if record[P.EXPONENT] == 0:
        u, v = u >> shift, v >> shift
    else:
        depth = (record[P.DEPTH] >> down) * at_x + (record[P.DEPTH + 1] >> down) * at_y + record[P.DEPTH + 2]
        factor = np.float32(2.0 ** float(record[P.EXPONENT]))
        u, v = divided(u, depth, shift, factor), divided(v, depth, shift, factor)
    u = fold_place(u, record[P.SPAN_U], record[P.FOLD], bits, slack)
    return u, fold_place(v, record[P.SPAN_V], record[P.FOLD], bits, slack)


@inlined
def _between(a: Any, b: Any, t: Any) -> Any:
    return (np.int64(a) << P.WEIGHT_BITS) + (np.int64(b) - np.int64(a)) * t


@inner_kernel()
def _displaced(record: Any, grids: Any, column: Any, line: Any, bits: Any) -> Any:
    """A place less half a pixel, moved; those outside of the grid by what its border says."""
    columns, shift, begin = record[P.COLUMNS], record[P.SHIFT], record[P.GRID] - 1
    at_x = min(max(column, 0), record[P.SPAN_U] - 1 << bits) * record[P.STEP_X]
    at_y = min(max(line, 0), record[P.SPAN_V] - 1 << bits) * record[P.STEP_Y]
    across, down = at_x >> _PART + bits & _WEIGHT, at_y >> _PART + bits & _WEIGHT
    at = begin + 2 * ((at_y >> P.STEP_BITS + bits) * columns + (at_x >> P.STEP_BITS + bits))
    below, half = at + 2 * columns, 1 << shift - 1
    upper, lower = _between(grids[at], grids[at + 2], across), _between(grids[below], grids[below + 2], across)
    column += (upper << P.WEIGHT_BITS) + (lower - upper) * down + half >> shift
    upper = _between(grids[at + 1], grids[at + 3], across)
    lower = _between(grids[below + 1], grids[below + 3], across)
    line += (upper << P.WEIGHT_BITS) + (lower - upper) * down + half >> shift
    return column, line


@inner_kernel()
def follow(records: Any, grids: Any, count: Any, x: Any, y: Any, flag: Any, bits: Any) -> Any:
    """Output pixel (x, y) through ``count`` maps, a grid or one that folds among them -> (the number of the map at
    which it left, or -1; its place less half a pixel). Whatever has left has any place."""
    half, left_at, last = 1 << bits - 1, -1, count - 1
    while records[last, P.GRID] == 0 and records[last, P.FOLD] == 0:
        record = records[last]
        u = record[P.U] * x + record[P.U + 1] * y + record[P.U + 2]
        v = record[P.V] * x + record[P.V + 1] * y + record[P.V + 2]
        depth = record[P.DEPTH] * x + record[P.DEPTH + 1] * y + record[P.DEPTH + 2]
        if left_at < 0 and not _is_inside(u, v, depth, record):
            left_at = last
        last -= 1
    if left_at >= 0:
        return left_at, 0, 0
    column, line = x << bits, y << bits
    if last < count - 1 and records[last, P.GRID] != 0:
        column, line = _place(records[last + 1], x, y, bits)
    for i in range(last, -1, -1):
        record, slack = records[i], 1 << bits if i == 0 and flag == _BICUBIC else 0
        if record[P.GRID] == 0 and record[P.FOLD] != 0:
            at_x, at_y, down = (column, line, bits) if i < last else (x, y, 0)
            u, v = _folded(record, at_x, at_y, down, bits, slack)
            column = record[P.ORIGIN_U] - half + record[P.SIGN_U] * u
            line = record[P.ORIGIN_V] - half + record[P.SIGN_V] * v
            continue
        if record[P.GRID] == 0:
            u = (record[P.U] >> bits) * column + (record[P.U + 1] >> bits) * line + record[P.U + 2]
            v = (record[P.V] >> bits) * column + (record[P.V + 1] >> bits) * line + record[P.V + 2]
            depth = (record[P.DEPTH] >> bits) * column + (record[P.DEPTH + 1] >> bits) * line + record[P.DEPTH + 2]
            if not _is_inside(u, v, depth, record):
                return i, 0, 0
            if i == 0 or records[i - 1, P.GRID] != 0:
                if record[P.EXPONENT] == 0:
                    u, v = u >> record[P.SHIFT], v >> record[P.SHIFT]
                else:
                    u = _divided(u, depth, record, record[P.SPAN_U], bits)
                    v = _divided(v, depth, record, record[P.SPAN_V], bits)
                column = record[P.ORIGIN_U] - half + record[P.SIGN_U] * u
                line = record[P.ORIGIN_V] - half + record[P.SIGN_V] * v
            continue
        column, line = _displaced(record, grids, column, line, bits)
        if flag == _NEAREST:
            column, line = column + half & -(1 << bits), line + half & -(1 << bits)
        u, v = column + half, line + half
        if record[P.FOLD] != 0:
            u = fold_place(u, record[P.SPAN_U], record[P.FOLD], bits, slack)
            v = fold_place(v, record[P.SPAN_V], record[P.FOLD], bits, slack)
        else:
            beyond = half if i == 0 and flag == _BILINEAR else 0  # as in displace.py
            is_in_x = -beyond <= u and u < (record[P.SPAN_U] << bits) + beyond
            is_in_y = -beyond <= v and v < (record[P.SPAN_V] << bits) + beyond
            if not (is_in_x and is_in_y):
                return i, 0, 0
        if record[P.SWAPS] != 0:
            u, v = v, u
        column, line = (
            record[P.ORIGIN_U] - half + record[P.SIGN_U] * u,
            record[P.ORIGIN_V] - half + record[P.SIGN_V] * v,
        )
    return -1, column, line


@inlined
def _widen(out: Any, column: Any, line: Any) -> None:
    out[0], out[1] = min(out[0], line), min(out[1], column)
    out[2], out[3] = max(out[2], line + 1), max(out[3], column + 1)


@pixel_kernel
def reach_of_grid(records: Any, grids: Any, count: Any, tile: Any, flag: Any, bits: Any, out: Any) -> None:
    """Into ``out``, top, left, bottom, right of the pixels at or before the places that ``tile`` reads."""
    for y in range(tile[0], tile[2]):
        for x in range(tile[1], tile[3]):
            left_at, column, line = follow(records, grids, count, x, y, flag, bits)
            if left_at < 0:
                _widen(out, column >> bits, line >> bits)


@pixel_kernel
def reach_of_maps(record: Any, moved: Any, tile: Any, bits: Any, out: Any) -> None:
    """As ``reach_of_grid``, of maps without one, whose first has this ``record``. ``moved``: room for another.

    Along a row, places grow or fall all the way: the first and the last inside are the farthest.
    """
    width = tile[3] - tile[1]
    for y in range(tile[0], tile[2]):
        for j in range(P.RECORD):
            moved[j] = record[j]
        for axis in range(3):
            moved[3 * axis + 2] += record[3 * axis] * tile[1]
        for sign in range(-1, 2, 2):
            first, end = inside_row(moved, y, width, sign)
            if first < end:
                for x in (first, end - 1):
                    column, line = _place(record, x + tile[1], y, bits)
                    _widen(out, column >> bits, line >> bits)


@pixel_kernel
def reach_of_nearest(a: Any, window: Any, mode: Any, perspective: Any, tile: Any, out: Any) -> None:
    """As ``reach_of_grid``, of a nearest map that 16.16 fixed point does not hold: the pixels themselves."""
    for y in range(tile[0], tile[2]):
        for x in range(tile[1], tile[3]):
            is_inside, column, line = real_nearest(a, window, mode, perspective, x, y)
            if is_inside:
                _widen(out, column, line)


@inner_kernel()
def real_nearest(a: Any, window: Any, mode: Any, perspective: Any, x: Any, y: Any) -> Any:
    """Pillow's arithmetic, as in ``interpolate.py`` -> (whether output pixel (x, y) is inside, its column, line)."""
    g, h = (a[6], a[7]) if perspective else (0.0, 0.0)
    xc, yc = x + 0.5, y + 0.5
    depth = g * xc + h * yc + 1.0
    u, v = (a[0] * xc + a[1] * yc + a[2]) / depth, (a[3] * xc + a[4] * yc + a[5]) / depth
    if mode != 0:
        column, line = fold_real(u, window[1], window[3], mode), fold_real(v, window[0], window[2], mode)
        return True, np.int64(column), np.int64(line)
    # False for NaN, a point at infinity.
    is_inside = (
        u >= np.float64(window[1]) and u < np.float64(window[3])
        and v >= np.float64(window[0]) and v < np.float64(window[2])
    )  # fmt: skip
    return is_inside, np.int64(u if is_inside else 0.0), np.int64(v if is_inside else 0.0)


@pixel_kernel
def records_of(program: Any, first: Any, end: Any, records: Any) -> int:
    """``write_records`` of the first row of fused instructions."""
    opcode, args, flags = program.opcode[0], program.args[0], program.flags[0]
    return P.write_records(opcode, args, flags, program.window[0], program.out_size[0], first, end, records)


Indices = npt.NDArray[np.int64]


def scale_indices(start: float, step: float, in_size: int, size: int, mode: int) -> Indices:
    """Of ``size`` outputs; outside -1, or by ``mode``. The step is added up, as Pillow adds it."""
    at = np.full(size, step)
    at[0] = start + step * 0.5
    at = np.add.accumulate(at)
    if mode:
        return folded(np.floor(np.clip(at, -P.FAR, P.FAR)), in_size, PadMode(mode))
    inside = (at >= 0.0) & (at < in_size)
    return np.where(inside, np.where(inside, at, 0.0).astype(np.int64), -1)


def pad_indices(before: int, mode: int, in_size: int, size: int) -> Indices:
    """Of padding that is not constant, repeated where it is wider than the image."""
    return folded(np.arange(size) - before, in_size, PadMode(mode))
