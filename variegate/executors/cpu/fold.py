"""Rows through maps that fold what lies beyond their images back into them: places of a stage, chains of nearest maps,
and pixels whose neighbours lie across a border.

Places within an image's length of it, as nearly all are, fold without a division, many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.interpolate import bicubic_pixel, bilinear_pixel, place_row
from variegate.executors.cpu.kernel import RESULT_WIDTH, Pixels, address_of, bytes_at, image_of_sweep, part_kernel
from variegate.executors.cpu.rows import read_places
from variegate.program import places as P
from variegate.program.compiled import inner_kernel
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, Interpolation, PadMode
from variegate.program.places import fold_index, fold_place

_EDGE, _REFLECT, _WRAP = int(PadMode.EDGE), int(PadMode.REFLECT), int(PadMode.WRAP)
_BICUBIC = int(Interpolation.BICUBIC)
# Fraction bits of whole pixels, whose places are their centres; and by which 16.16 numbers are shifted to become these.
_WHOLE, _TO_CENTRES = 1, 15
# What fits into 32 bits.
_MOST = (1 << 31) - 1
# Beyond these, a perspective's places are not told apart.
_FAR = np.float32(1 << 30)


@inner_kernel()
def _fold_near(
    places: Any, width: Any, base: Any, sign: Any, n: Any, mode: Any, bits: Any, slack: Any, out: Any
) -> None:
    """Folded places of one axis as ``base + sign * place``. All of them are near: they fold once."""
    half, span, base, sign = np.int32(1 << bits - 1), np.int32(n << bits), np.int32(base), np.int32(sign)
    zero = np.int32(0)
    if mode == _EDGE:
        low, high = np.int32(half - slack), np.int32(span - half + slack)
        for x in range(width):
            out[x] = base + sign * min(max(places[x], low), high)
    elif mode == _WRAP:
        for x in range(width):
            at = places[x]
            out[x] = base + sign * np.int32(at + (span if at < zero else zero) - (span if at >= span else zero))
    else:
        lead = half if mode == _REFLECT else zero
        twice = np.int32(2 * (span - 2 * lead))
        for x in range(width):
            at = np.int32(abs(np.int32(places[x] - lead)))
            out[x] = base + sign * np.int32(lead + min(at, np.int32(twice - at)))


@inner_kernel()
def _are_near(places: Any, width: Any, n: Any, mode: Any, bits: Any) -> bool:
    low, high, reach = np.int32(0), np.int32(0), (n - 1 if mode == _REFLECT else n) << bits
    for x in range(width):
        low, high = min(low, places[x]), max(high, places[x])
    return bool(low >= -reach and high < 2 * reach)


@inner_kernel()
def fold_line(places: Any, width: Any, n: Any, mode: Any, bits: Any, slack: Any) -> None:
    """Fold int32 places of one axis."""
    if _are_near(places, width, n, mode, bits):
        _fold_near(places, width, 0, 1, n, mode, bits, slack, places)
    else:
        for x in range(width):
            places[x] = np.int32(fold_place(np.int64(places[x]), n, mode, bits, slack))


@inner_kernel()
def divided(numerator: Any, depth: Any, shift: Any, factor: Any) -> Any:
    divisor = np.int32(depth >> shift)
    below = np.float32(divisor if divisor != 0 else np.int32(1))
    value = np.float32(np.int32(numerator >> P.NUMERATOR_SHIFT)) / below * factor
    return np.int64(np.floor(min(max(value, -_FAR), _FAR)))


@inner_kernel()
def fold_map(record: Any, y: Any, moved: Any, bits: Any, slack: Any, width: Any, scratch: Any) -> None:
    """Places of a row, less half a pixel, through an interpolating map that folds. Where ``moved``, they are functions
    of the places that there are; elsewhere of the row's pixels."""
    column, line, to_u, to_v = scratch.column, scratch.line, scratch.offset, scratch.row_words
    mode, span_u, span_v = record[P.FOLD], record[P.SPAN_U], record[P.SPAN_V]
    exponent, shift, down = record[P.EXPONENT], record[P.SHIFT], bits if moved else 0
    base_u, base_v = record[P.ORIGIN_U] - (1 << bits - 1), record[P.ORIGIN_V] - (1 << bits - 1)
    sign_u, sign_v = record[P.SIGN_U], record[P.SIGN_V]
    u0, u1, u2 = record[P.U] >> down, record[P.U + 1] >> down, record[P.U + 2]
    v0, v1, v2 = record[P.V] >> down, record[P.V + 1] >> down, record[P.V + 2]
    w0, w1, w2 = record[P.DEPTH] >> down, record[P.DEPTH + 1] >> down, record[P.DEPTH + 2]
    factor, is_near = np.float32(2.0 ** float(exponent)), True
    if not moved:
        begin_places(y, width, column, line)
    if exponent == 0 and not moved:
        # Along a row, places rise or fall all the way.
        for x in (0, width - 1):
            u, v = u0 * x + u1 * y + u2 >> shift, v0 * x + v1 * y + v2 >> shift
            is_near = is_near and abs(u) < _MOST and abs(v) < _MOST
        if is_near:
            place_row(record, y, 0, width, bits, scratch)
            for x in range(width):
                to_u[x] = np.int32(sign_u * np.int32(column[x] - base_u))
                to_v[x] = np.int32(sign_v * np.int32(line[x] - base_v))
    elif exponent == 0:
        for x in range(width):
            at_x, at_y = np.int64(column[x]), np.int64(line[x])
            u, v = u0 * at_x + u1 * at_y + u2 >> shift, v0 * at_x + v1 * at_y + v2 >> shift
            to_u[x], to_v[x] = np.int32(min(max(u, -_MOST), _MOST)), np.int32(min(max(v, -_MOST), _MOST))
    else:
        for x in range(width):
            at_x, at_y = np.int64(column[x]), np.int64(line[x])
            depth = w0 * at_x + w1 * at_y + w2
            to_u[x] = np.int32(divided(u0 * at_x + u1 * at_y + u2, depth, shift, factor))
            to_v[x] = np.int32(divided(v0 * at_x + v1 * at_y + v2, depth, shift, factor))
    is_near = is_near and _are_near(to_u, width, span_u, mode, bits) and _are_near(to_v, width, span_v, mode, bits)
    if is_near:
        _fold_near(to_u, width, base_u, sign_u, span_u, mode, bits, slack, column)
        _fold_near(to_v, width, base_v, sign_v, span_v, mode, bits, slack, line)
        return
    if not moved:
        begin_places(y, width, column, line)
    for x in range(width):
        at_x, at_y = np.int64(column[x]), np.int64(line[x])
        u, v = u0 * at_x + u1 * at_y + u2, v0 * at_x + v1 * at_y + v2
        if exponent == 0:
            u, v = u >> shift, v >> shift
        else:
            depth = w0 * at_x + w1 * at_y + w2
            u, v = divided(u, depth, shift, factor), divided(v, depth, shift, factor)
        column[x] = np.int32(base_u + sign_u * fold_place(u, span_u, mode, bits, slack))
        line[x] = np.int32(base_v + sign_v * fold_place(v, span_v, mode, bits, slack))


@inner_kernel()
def _fold_fixed(record: Any, reach: Any, width: Any, scratch: Any) -> None:
    """Whole pixels of a row through a 16.16 map that folds. ``reach``: the greatest column or line that they have."""
    column, line, to_u, to_v = scratch.column, scratch.line, scratch.offset, scratch.row_words
    mode, span_u, span_v = record[P.FOLD], record[P.SPAN_U], record[P.SPAN_V]
    u0, u1, u2, v0, v1, v2 = (
        record[P.U],
        record[P.U + 1],
        record[P.U + 2],
        record[P.V],
        record[P.V + 1],
        record[P.V + 2],
    )
    far = max((abs(u0) + abs(u1)) * reach + abs(u2), (abs(v0) + abs(v1)) * reach + abs(v2))
    is_near = far < 1 << 31
    if is_near:
        a, b, c, d, e, f = np.int32(u0), np.int32(u1), np.int32(u2), np.int32(v0), np.int32(v1), np.int32(v2)
        for x in range(width):
            at_x, at_y = column[x], line[x]
            to_u[x] = np.int32(np.int32(a * at_x) + np.int32(b * at_y) + c) >> _TO_CENTRES | 1
            to_v[x] = np.int32(np.int32(d * at_x) + np.int32(e * at_y) + f) >> _TO_CENTRES | 1
        is_near = _are_near(to_u, width, span_u, mode, _WHOLE) and _are_near(to_v, width, span_v, mode, _WHOLE)
    if is_near:
        _fold_near(to_u, width, 0, 1, span_u, mode, _WHOLE, 0, column)
        _fold_near(to_v, width, 0, 1, span_v, mode, _WHOLE, 0, line)
    else:
        for x in range(width):
            at_x, at_y = np.int64(column[x]), np.int64(line[x])
            u, v = u0 * at_x + u1 * at_y + u2 >> _TO_CENTRES | 1, v0 * at_x + v1 * at_y + v2 >> _TO_CENTRES | 1
            column[x] = np.int32(fold_place(u, span_u, mode, _WHOLE, 0))
            line[x] = np.int32(fold_place(v, span_v, mode, _WHOLE, 0))
    left, top = np.int32(record[P.ORIGIN_U]), np.int32(record[P.ORIGIN_V])
    for x in range(width):
        column[x], line[x] = left + (column[x] >> _WHOLE), top + (line[x] >> _WHOLE)


@inner_kernel()
def begin_places(y: Any, width: Any, column: Any, line: Any) -> None:
    """The pixels of a row themselves."""
    for x in range(width):
        column[x], line[x] = np.int32(x), np.int32(y)


@part_kernel
def folded_row(batch: Any, scratch: Any, r: Any, count: Any, y: Any) -> Any:
    """Row ``y`` of ``count`` 16.16 maps run backwards, some of which fold. The whole row; see ``rows.py``."""
    own = scratch_at(scratch)
    width, column, line, stage = own.sweep[RESULT_WIDTH], own.column, own.line, own.stage
    begin_places(y, width, column, line)
    stage[:width] = -1
    reach = max(width, y + 1)
    for i in range(count - 1, -1, -1):
        record, before = own.records[i], reach
        reach = max(record[P.ORIGIN_U] + record[P.SPAN_U], record[P.ORIGIN_V] + record[P.SPAN_V])
        if record[P.FOLD] != 0:
            _fold_fixed(record, before, width, own)
            continue
        u0, u1, u2, left = record[P.U], record[P.U + 1], record[P.U + 2], record[P.ORIGIN_U]
        v0, v1, v2, top = record[P.V], record[P.V + 1], record[P.V + 2], record[P.ORIGIN_V]
        end_u, end_v, slot = record[P.SPAN_U], record[P.SPAN_V], np.int32(own.slots[i])
        for x in range(width):
            at_x, at_y = np.int64(column[x]), np.int64(line[x])
            u, v = u0 * at_x + u1 * at_y + u2 >> record[P.SHIFT], v0 * at_x + v1 * at_y + v2 >> record[P.SHIFT]
            is_inside = (u >= 0) & (u < end_u) & (v >= 0) & (v < end_v)
            now = slot if (stage[x] < 0) & (not is_inside) else stage[x]
            # What is outside reads the window's first pixel, which nobody sees.
            column[x], line[x] = np.int32(left + (u if now < 0 else 0)), np.int32(top + (v if now < 0 else 0))
            stage[x] = now
    read_places(image_of_sweep(own.sweep), y, width, own)
    return np.int64(0)


@inner_kernel()
def folded_real_row(
    a: Any, window: Any, mode: Any, perspective: Any, y: Any, width: Any, column: Any, line: Any
) -> None:
    """Whole pixels of row ``y`` through a nearest map of real numbers."""
    g, h = (a[6], a[7]) if perspective else (0.0, 0.0)
    yc = y + 0.5
    for x in range(width):
        xc = x + 0.5
        depth = g * xc + h * yc + 1.0
        u, v = (a[0] * xc + a[1] * yc + a[2]) / depth, (a[3] * xc + a[4] * yc + a[5]) / depth
        column[x] = np.int32(P.fold_real(u, window[1], window[3], mode))
        line[x] = np.int32(P.fold_real(v, window[0], window[2], mode))


@part_kernel
def seam_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """Pixels of an interpolated row whose neighbors lie across a border: computed again from the folded neighbors, or
    without folding blended with the fill."""
    program, own = batch_at(batch).program, scratch_at(scratch)
    image, flag, window, frame = (
        image_of_sweep(own.sweep),
        program.flags[r, slot],
        program.window[r, slot],
        own.tap_frame,
    )
    mode, is_bicubic = flag >> INTERPOLATION_BITS, flag & INTERPOLATION_MASK == _BICUBIC
    bits, before = (P.BICUBIC_BITS, 1) if is_bicubic else (P.BILINEAR_BITS, 0)
    top, left, lines, columns = window[0], window[1], window[2] - window[0], window[3] - window[1]
    channels, part = image.channels, (1 << bits) - 1
    near = bytes_at(address_of(own.row_pixels), 16 * channels)
    frame[0], frame[1], frame[2], frame[3] = 0, 0, 4, 4
    for x in range(own.sweep[RESULT_WIDTH]):
        i, j = (own.column[x] >> bits) - left, (own.line[x] >> bits) - top
        is_within = i >= before and i + before + 1 < columns and j >= before and j + before + 1 < lines
        if is_within or own.stage[x] >= 0:
            continue
        if mode == 0:
            place = own.column[x], own.line[x]
            _blend(image, window, place, program.fill[r, slot], own.records[0, P.TWICE] != 0, x, own.planes)
            continue
        for b in range(4):
            at = (top + fold_index(np.int64(j + b - 1), np.int64(lines), mode)) * image.width + left
            for a in range(4):
                pixel = at + fold_index(np.int64(i + a - 1), np.int64(columns), mode)
                for c in range(channels):
                    near[channels * (4 * b + a) + c] = image.levels[channels * pixel + c]
        u, v = (own.column[x] & part) + (1 << bits), (own.line[x] & part) + (1 << bits)
        around = Pixels(near, 4, 4, channels)
        if is_bicubic:
            bicubic_pixel(around, frame, u, v, x, own.planes)
        else:
            bilinear_pixel(around, frame, u, v, x, own.planes)
    return np.int64(0)


@inner_kernel()
def _blend(image: Any, window: Any, place: Any, fill: Any, weighs_twice: Any, x: Any, planes: Any) -> None:
    """A bilinear pixel whose neighbors outside of the window have the color ``fill``."""
    levels, channels = image.levels, image.channels
    column, line, dx, dy = place[0] >> 15, place[1] >> 15, int(place[0]) & 32767, int(place[1]) & 32767
    has_left, has_right = column >= window[1], column + 1 < window[3]
    has_upper, has_lower = line >= window[0], line + 1 < window[2]
    weight_x = (32768 - dx if has_left else 0) + (dx if has_right else 0)
    weight_y = (32768 - dy if has_upper else 0) + (dy if has_lower else 0)
    weight = weight_x * weight_y + (1 << 14) >> 15 if weighs_twice else 32768
    upper, lower = channels * (line * image.width + column), channels * ((line + 1) * image.width + column)
    for c in range(channels):
        color = int(fill[c])
        outside = 0 if weighs_twice else color
        a = int(levels[upper + c]) if has_upper and has_left else outside
        b = int(levels[upper + channels + c]) if has_upper and has_right else outside
        above = (a << 7) + ((b - a << 7) * dx + (1 << 14) >> 15)
        a = int(levels[lower + c]) if has_lower and has_left else outside
        b = int(levels[lower + channels + c]) if has_lower and has_right else outside
        below = (a << 7) + ((b - a << 7) * dx + (1 << 14) >> 15)
        blended = above + ((below - above) * dy + (1 << 14) >> 15)
        planes[c, x] = (color << 7) + ((blended - (color << 7)) * weight + (1 << 14) >> 15) >> 7
