"""Rows through real maps, interpolated in integers.

A chain of maps is affine, or projective, in the output's columns and lines at every stage. ``program/places.py`` has
the integers of each; ``executors/reference/places.py`` says what they mean. What is inside is solved for, row by row;
the source is gathered once, where the first map says. Where a grid of displacements is among the maps, or one that
folds, that is solved pixel by pixel, in a part (``displace.py``, ``fold.py``).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.kernel import DISPLACED, SEAM, address_of, call_part, inlined
from variegate.executors.cpu.layout import HAS_GRID, HAS_SEAM
from variegate.executors.cpu.simd_interpolate import (
    LANES,
    affine_places,
    bicubic_rgb,
    bilinear_gray,
    bilinear_rgb,
    perspective_places,
    split_bicubic,
    split_bilinear,
)
from variegate.program import places as P
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Interpolation

_BILINEAR = int(Interpolation.BILINEAR)


@inner_kernel(forceinline=True)
def interpolated_row(
    image: Any, window: Any, flag: Any, count: Any, is_stretch: Any, y: Any, width: Any, scratch: Any, of: Any
) -> Any:
    """Row ``y`` through ``count`` maps -> the part that is inside, if ``is_stretch``: one map, with nothing behind the
    viewer. Else the whole row; ``scratch.stage`` has the slot of the map at which a pixel left, or -1. ``of``: whose
    row it is, as arguments of parts."""
    stage, records = scratch.stage, scratch.records
    first, end = 0, width
    has_grid = scratch.grid_lines[HAS_GRID] != 0
    if has_grid:
        call_part(scratch.parts[DISPLACED], *of, count, y)
    elif not is_stretch:
        stage[:width] = -1
    for i in range(-1 if has_grid else count - 1, -1, -1):
        record = records[i]
        first, end = inside_row(record, y, width, 1)
        if not is_stretch:
            behind, behind_end = 0, 0
            if record[P.BEHIND] != 0:
                behind, behind_end = inside_row(record, y, width, -1)
            mark_outside(stage, scratch.slots[i], width, first, end, behind, behind_end)
            if behind < behind_end:
                first, end = min(first, behind) if first < end else behind, max(end, behind_end)
    if first < end:
        if not has_grid:
            place_row(records[0], y, first, end, P.BILINEAR_BITS if flag == _BILINEAR else P.BICUBIC_BITS, scratch)
        if flag == _BILINEAR:
            _bilinear_row(image, window, first, end, scratch)
        else:
            _bicubic_row(image, window, first, end, scratch)
    if scratch.grid_lines[HAS_SEAM] != 0:
        call_part(scratch.parts[SEAM], *of, scratch.slots[0], y)
    if not is_stretch:
        first, end = 0, width
    return first, end


@inner_kernel()
def inside_row(record: Any, y: Any, width: Any, sign: Any) -> Any:
    """The columns of row ``y`` where a map is inside its window -> (first, end). ``sign`` -1: behind the viewer."""
    depth_step, depth = record[P.DEPTH], record[P.DEPTH + 1] * y + record[P.DEPTH + 2]
    first, end = 0, width
    for axis in range(2):
        step, start = record[P.U + 3 * axis], record[P.U + 3 * axis + 1] * y + record[P.U + 3 * axis + 2]
        span = record[P.SPAN_U + axis]
        first, end = _not_negative(sign * start, sign * step, first, end)
        first, end = _not_negative(sign * (span * depth - start) - 1, sign * (span * depth_step - step), first, end)
    return first, end


@inner_kernel()
def _not_negative(start: Any, step: Any, first: Any, end: Any) -> Any:
    """The x in first..end with ``start + step x >= 0`` -> (first, end)."""
    if end <= first:
        return 0, 0
    if step == 0:
        return (first, end) if start >= 0 else (0, 0)
    # Near the place where the sign changes, as well as floats can tell; the rest by trying.
    x = min(max(int(min(max(-float(start) / float(step), -1.0), 65536.0)), first), end)
    if step > 0:
        while x > first and start + step * (x - 1) >= 0:
            x -= 1
        while x < end and start + step * x < 0:
            x += 1
        return x, end
    while x < end and start + step * x >= 0:
        x += 1
    while x > first and start + step * (x - 1) < 0:
        x -= 1
    return first, x


@inlined
def mark_outside(stage: Any, slot: Any, width: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> None:
    for x in range(width):
        is_inside = (a <= x and x < a_end) or (b <= x and x < b_end)
        stage[x] = slot if stage[x] < 0 and not is_inside else stage[x]


@inner_kernel(forceinline=True)
def place_row(record: Any, y: Any, first: Any, end: Any, bits: Any, scratch: Any) -> None:
    """Places of columns first..end, less half a pixel, into ``scratch.column`` and ``scratch.line``."""
    columns, lines, half = address_of(scratch.column), address_of(scratch.line), 1 << bits - 1
    step_u, u = record[P.U], record[P.U + 1] * y + record[P.U + 2]
    step_v, v = record[P.V], record[P.V + 1] * y + record[P.V + 2]
    shift = record[P.SHIFT]
    if record[P.EXPONENT] == 0:
        if record[P.SIGN_U] < 0:
            # What falls is cut off upwards, so that it mirrors what grows.
            u, step_u = (1 << shift) - 1 - u, -step_u
        if record[P.SIGN_V] < 0:
            v, step_v = (1 << shift) - 1 - v, -step_v
        u, v = u + (record[P.ORIGIN_U] << shift), v + (record[P.ORIGIN_V] << shift)
        for x in range(first, end, LANES):
            affine_places(
                u + step_u * x, step_u, v + step_v * x, step_v, shift, nb.int32(half), columns + 4 * x, lines + 4 * x
            )
        return
    terms, factor = scratch.terms, np.float32(2.0 ** float(record[P.EXPONENT]))
    terms[0], terms[1], terms[2], terms[3] = u, step_u, record[P.SPAN_U] << bits, record[P.ORIGIN_U] - half
    terms[4], terms[5], terms[6], terms[7] = v, step_v, record[P.SPAN_V] << bits, record[P.ORIGIN_V] - half
    terms[8], terms[9], terms[10] = record[P.DEPTH + 1] * y + record[P.DEPTH + 2], record[P.DEPTH], shift
    for x in range(first, end, LANES):
        perspective_places(address_of(terms), x, factor, columns + 4 * x, lines + 4 * x)


@inlined
def _set_frame(frame: Any, left: Any, top: Any, right: Any, bottom: Any) -> None:
    frame[0], frame[1], frame[2], frame[3] = left, top, right, bottom


@inner_kernel(forceinline=True)
def _bilinear_row(image: Any, window: Any, first: Any, end: Any, scratch: Any) -> None:
    channels, row_bytes, size = image.channels, image.channels * image.width, image.levels.size
    columns, lines = address_of(scratch.column), address_of(scratch.line)
    offsets, weights, masks = address_of(scratch.offset), address_of(scratch.tap_weights), scratch.masks
    frame = scratch.tap_frame
    planes, stride = address_of(scratch.planes), scratch.planes.shape[1]
    # What one load reads of a line.
    last = size - row_bytes - (2 if channels == 1 else 8)
    in_vectors = last >= 0 and size < 1 << 31
    if in_vectors:
        _set_frame(frame, window[1] << 15, window[0] << 15, (window[3] - 1) << 15, (window[2] - 1) << 15)
        frame[4], frame[5], frame[6] = row_bytes, channels, last
        for x in range(first, end, LANES):
            masks[x // LANES] = split_bilinear(
                columns + 4 * x, lines + 4 * x, address_of(frame), offsets + 4 * x, weights + 4 * x
            )
        base = address_of(image.levels)
        if channels == 3:
            for x in range(first, end, LANES):
                bilinear_rgb(base, row_bytes, offsets + 4 * x, weights + 4 * x, planes + x, stride)
        else:
            for x in range(first, end, LANES):
                bilinear_gray(base, row_bytes, offsets + 4 * x, weights + 4 * x, planes + x)
    for block in range(first, end, LANES):
        mask = masks[block // LANES] if in_vectors else -1
        if mask != 0:
            for x in range(block, min(block + LANES, end)):
                if mask >> (x - block) & 1:
                    bilinear_pixel(image, window, scratch.column[x], scratch.line[x], x, scratch.planes)


@inner_kernel()
def bilinear_pixel(image: Any, window: Any, u: Any, v: Any, x: Any, planes: Any) -> None:
    levels, width, channels = image.levels, image.width, image.channels
    column, line, dx, dy = int(u) >> 15, int(v) >> 15, int(u) & 32767, int(v) & 32767
    left, right = max(column, window[1]), min(column + 1, window[3] - 1)
    upper, lower = max(line, window[0]) * width, min(line + 1, window[2] - 1) * width
    for c in range(channels):
        a, b = int(levels[channels * (upper + left) + c]) << 7, int(levels[channels * (upper + right) + c]) << 7
        above = a + ((b - a) * dx + (1 << 14) >> 15)
        a, b = int(levels[channels * (lower + left) + c]) << 7, int(levels[channels * (lower + right) + c]) << 7
        below = a + ((b - a) * dx + (1 << 14) >> 15)
        planes[c, x] = above + ((below - above) * dy + (1 << 14) >> 15) >> 7


@inner_kernel(forceinline=True)
def _bicubic_row(image: Any, window: Any, first: Any, end: Any, scratch: Any) -> None:
    channels, row_bytes, size = image.channels, image.channels * image.width, image.levels.size
    columns, lines = address_of(scratch.column), address_of(scratch.line)
    offsets, weights, masks = address_of(scratch.offset), address_of(scratch.tap_weights), scratch.masks
    frame = scratch.tap_frame
    planes, stride = address_of(scratch.planes), scratch.planes.shape[1]
    top, left, bottom, right = window[0], window[1], window[2] - 4, window[3] - 4
    last = size - 3 * row_bytes - 16
    in_vectors = channels == 3 and last >= 0 and bottom >= top and right >= left and size < 1 << 31
    if in_vectors:
        _set_frame(frame, left, top, right, bottom)
        frame[4], frame[5], frame[6] = row_bytes, channels, last
        for x in range(first, end, LANES):
            masks[x // LANES] = split_bicubic(
                columns + 4 * x, lines + 4 * x, address_of(frame), offsets + 4 * x, weights + 16 * x
            )
        base = address_of(image.levels)
        for x in range(first, end, LANES):
            bicubic_rgb(base, row_bytes, offsets + 4 * x, weights + 16 * x, planes + x, stride)
    for block in range(first, end, LANES):
        mask = masks[block // LANES] if in_vectors else -1
        if mask != 0:
            for x in range(block, min(block + LANES, end)):
                if mask >> (x - block) & 1:
                    bicubic_pixel(image, window, scratch.column[x], scratch.line[x], x, scratch.planes)


@inner_kernel()
def bicubic_pixel(image: Any, window: Any, u: Any, v: Any, x: Any, planes: Any) -> None:
    channels, column, line = image.channels, (int(u) >> 14) - 1, (int(v) >> 14) - 1
    along, across = _cubic_weights(int(u) & 16383), _cubic_weights(int(v) & 16383)
    for c in range(channels):
        total = 0
        for j in range(4):
            at = min(max(line + j, window[0]), window[2] - 1) * image.width
            level = 1 << 7
            for i in range(4):
                tap = at + min(max(column + i, window[1]), window[3] - 1)
                level += along[i] * int(image.levels[channels * tap + c])
            total += across[j] * (level >> 8)
        planes[c, x] = min(max(total >> 20, 0), 255)


@inner_kernel()
def _cubic_weights(t: Any) -> Any:
    u = (1 << 14) - t
    product = t * u + (1 << 13) >> 14
    first, last = -(product * u + (1 << 13) >> 14), -(product * t + (1 << 13) >> 14)
    return first, u - first, t - last, last
