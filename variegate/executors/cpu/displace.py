"""Rows through real maps: their records, nearest rows, and chains with a grid of displacements.

What is computed is defined in ``executors/reference/displacement.py``. Along a line of nodes, displacements are worked
out for all columns once, and every row between two lines weighs theirs. Of rows that other maps have turned, each
place is weighed between its own four nodes. What a grid has moved goes through the maps before it pixel by pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.fold import fold_line, fold_map, folded_real_row
from variegate.executors.cpu.interpolate import inside_row, mark_outside, place_row
from variegate.executors.cpu.kernel import DISPLACED, RESULT_WIDTH, call_part, image_of_sweep, inlined, part_kernel
from variegate.executors.cpu.layout import EVEN_LINE, HAS_GRID, HAS_SEAM, ODD_LINE
from variegate.executors.cpu.rows import read_places
from variegate.program import places as P
from variegate.program.compiled import inner_kernel
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, Interpolation, Op, PadMode
from variegate.program.places import FOLD, GRID, write_records

_NEAREST, _BICUBIC = int(Interpolation.NEAREST), int(Interpolation.BICUBIC)
_BILINEAR = int(Interpolation.BILINEAR)
_PART = P.STEP_BITS - P.WEIGHT_BITS
_WEIGHT = (1 << P.WEIGHT_BITS) - 1
_EDGE, _WRAP = int(PadMode.EDGE), int(PadMode.WRAP)
_EVERY_FOURTH = 1 << P.STEP_BITS - 2


@part_kernel
def displaced_row(batch: Any, scratch: Any, r: Any, count: Any, y: Any) -> Any:
    """Row ``y`` through ``count`` maps, one of them a grid at least, or one that folds: places less half a pixel in
    ``column`` and ``line``, or whole pixels where the map is nearest; and ``stage``. What is outside has any place
    inside."""
    held, own = batch_at(batch), scratch_at(scratch)
    grids, width, slot = held.side.grids, own.sweep[RESULT_WIDTH], own.slots[0]
    column, line = own.column, own.line
    flag, window = held.program.flags[r, slot] & INTERPOLATION_MASK, held.program.window[r, slot]
    records, stage = own.records, own.stage
    bits = P.BICUBIC_BITS if flag == _BICUBIC else P.BILINEAR_BITS
    last = count - 1
    stage[:width] = -1
    while records[last, P.GRID] == 0 and records[last, FOLD] == 0:
        first, end = inside_row(records[last], y, width, 1)
        behind, behind_end = 0, 0
        if records[last, P.BEHIND] != 0:
            behind, behind_end = inside_row(records[last], y, width, -1)
        mark_outside(stage, own.slots[last], width, first, end, behind, behind_end)
        last -= 1
    if last == count - 1 and records[last, P.GRID] != 0:
        _displace_row(records[last], grids, y, width, bits, own.along, own.grid_lines, column, line)
    elif records[last, P.GRID] != 0:
        place_row(records[last + 1], y, 0, width, bits, own)
    # What is outside reads this place, which nobody sees.
    safe_u, safe_v = np.int32(window[1] << bits), np.int32(window[0] << bits)
    for i in range(last, -1, -1):
        record = records[i]
        slack = 1 << bits if i == 0 and flag == _BICUBIC else 0
        if record[P.GRID] == 0 and record[FOLD] != 0:
            fold_map(record, y, i < last, bits, slack, width, own)
            continue
        if record[P.GRID] == 0:
            moves = i == 0 or records[i - 1, P.GRID] != 0
            _walk(record, moves, own.slots[i], width, bits, (safe_u, safe_v), column, line, stage)
            continue
        if i < count - 1:
            _displace_places(record, grids, width, bits, column, line, own.offset, own.tap_weights, own.row_words)
        if flag == _NEAREST:
            _drop_fractions(width, bits, column, line)
        if record[FOLD] != 0:
            _fold_into(record, width, bits, slack, column, line)
        # Beyond the border of the source, bilinear places blend it with the fill, see ``fold.seam_row``.
        beyond = 1 << bits - 1 if i == 0 and flag == _BILINEAR else 0
        _enter(record, own.slots[i], beyond, width, bits, (safe_u, safe_v), column, line, stage)
    if flag == _NEAREST:
        for x in range(width):
            column[x], line[x] = column[x] >> bits, line[x] >> bits
    return np.int64(0)


@inner_kernel()
def _displace_row(
    record: Any, grids: Any, y: Any, width: Any, bits: Any, along: Any, held: Any, column: Any, line: Any
) -> None:
    """Places of a row that nothing else has moved."""
    at = y * record[P.STEP_Y]
    upper = at >> P.STEP_BITS
    for i in (upper, upper + 1):
        if held[EVEN_LINE + (i & 1)] != i:
            held[EVEN_LINE + (i & 1)] = i
            begin = record[P.GRID] - 1 + 2 * record[P.COLUMNS] * i
            _follow(grids[begin:], record[P.STEP_X], width, along[2 * (i & 1)], along[2 * (i & 1) + 1])
    down, shift, a, b = at >> _PART & _WEIGHT, record[P.SHIFT], 2 * (upper & 1), 2 * (upper + 1 & 1)
    _weigh(along[a], along[b], down, shift, 0, 1 << bits, width, column)
    _weigh(along[a + 1], along[b + 1], down, shift, y << bits, 0, width, line)


@inner_kernel()
def _follow(nodes: Any, step: Any, width: Any, along_x: Any, along_y: Any) -> None:
    """Displacements along a line of nodes, one for each column, with the fraction bits of a weight."""
    if step == _EVERY_FOURTH:
        # As smooth noise mostly has them; known beforehand, four columns are one vector.
        _follow_evenly(nodes, _EVERY_FOURTH, width, along_x, along_y)
        return
    begin, j = 0, 0
    while begin < width:
        end = min(width, ((j + 1 << P.STEP_BITS) + step - 1) // step) if step > 0 else width
        a, b = int(nodes[2 * j]), int(nodes[2 * j + 1])
        slope_a, slope_b = int(nodes[2 * j + 2]) - a, int(nodes[2 * j + 3]) - b
        a, b = a << P.WEIGHT_BITS, b << P.WEIGHT_BITS
        for x in range(begin, end):
            t = x * step >> _PART & _WEIGHT
            along_x[x], along_y[x] = a + slope_a * t, b + slope_b * t
        begin, j = end, j + 1


@inlined
def _follow_evenly(nodes: Any, step: Any, width: Any, along_x: Any, along_y: Any) -> None:
    for x in range(width):
        at = x * step
        j, t = at >> P.STEP_BITS << 1, at >> _PART & _WEIGHT
        a, b = int(nodes[j]), int(nodes[j + 1])
        along_x[x] = (a << P.WEIGHT_BITS) + (int(nodes[j + 2]) - a) * t
        along_y[x] = (b << P.WEIGHT_BITS) + (int(nodes[j + 3]) - b) * t


@inner_kernel()
def _weigh(a: Any, b: Any, t: Any, shift: Any, start: Any, step: Any, width: Any, places: Any) -> None:
    # Without a sign, as processors have no such shift of 64 bits: of the result, the lower half is kept.
    half, places_down = 1 << shift - 1, np.uint64(shift)
    for x in range(width):
        total = (np.int64(a[x]) << P.WEIGHT_BITS) + np.int64(np.int32(b[x] - a[x])) * t + half
        places[x] = np.int32(start + x * step + np.int64(np.uint64(total) >> places_down))


@inner_kernel()
def _displace_places(
    record: Any, grids: Any, width: Any, bits: Any, column: Any, line: Any, offset: Any, weight: Any, words: Any
) -> None:
    """Places anywhere, moved; those outside of the grid by what its border says. In three loops, of which only the one
    that fetches nodes is not made of vectors."""
    columns, shift = record[P.COLUMNS], record[P.SHIFT]
    nodes, half, across, down = grids[record[P.GRID] - 1 :].view(np.int32), 1 << shift - 1, weight, weight[width:]
    far_x, far_y = np.int32(record[P.SPAN_U] - 1 << bits), np.int32(record[P.SPAN_V] - 1 << bits)
    whole, part, places_down = np.uint64(P.STEP_BITS + bits), np.uint64(_PART + bits), np.uint64(shift)
    step_x, step_y, zero = np.int32(record[P.STEP_X]), np.int32(record[P.STEP_Y]), np.int32(0)
    for x in range(width):
        at_x = np.uint64(np.int64(min(max(column[x], zero), far_x)) * step_x)
        at_y = np.uint64(np.int64(min(max(line[x], zero), far_y)) * step_y)
        across[x], down[x] = np.int32(at_x >> part) & _WEIGHT, np.int32(at_y >> part) & _WEIGHT
        offset[x] = np.int32(np.int32(at_y >> whole) * columns + np.int32(at_x >> whole))
    for x in range(width):
        at = np.int64(offset[x])
        words[4 * x], words[4 * x + 1] = nodes[at], nodes[at + 1]
        words[4 * x + 2], words[4 * x + 3] = nodes[at + columns], nodes[at + columns + 1]
    for x in range(width):
        # Two numbers of 16 bits each, the one along x below.
        a, b, c, d = words[4 * x], words[4 * x + 1], words[4 * x + 2], words[4 * x + 3]
        t, u = across[x], np.int64(down[x])
        upper = _between(np.int32(a << 16) >> 16, np.int32(b << 16) >> 16, t)
        lower = _between(np.int32(c << 16) >> 16, np.int32(d << 16) >> 16, t)
        total = (np.int64(upper) << P.WEIGHT_BITS) + np.int64(np.int32(lower - upper)) * u + half
        column[x] = np.int32(column[x] + np.int64(np.uint64(total) >> places_down))
        upper, lower = _between(a >> 16, b >> 16, t), _between(c >> 16, d >> 16, t)
        total = (np.int64(upper) << P.WEIGHT_BITS) + np.int64(np.int32(lower - upper)) * u + half
        line[x] = np.int32(line[x] + np.int64(np.uint64(total) >> places_down))


@inlined
def _between(a: Any, b: Any, t: Any) -> Any:
    """With the fraction bits of a weight."""
    return np.int32((a << P.WEIGHT_BITS) + (b - a) * t)


@inner_kernel()
def _drop_fractions(width: Any, bits: Any, column: Any, line: Any) -> None:
    """The centres of the pixels that places lie in."""
    half, kept = 1 << bits - 1, -(1 << bits)
    for x in range(width):
        column[x] = np.int32(column[x] + half & kept)
        line[x] = np.int32(line[x] + half & kept)


@inner_kernel()
def _fold_into(record: Any, width: Any, bits: Any, slack: Any, column: Any, line: Any) -> None:
    """Fold what a grid has moved out of its image."""
    half = np.int32(1 << bits - 1)
    for x in range(width):
        column[x], line[x] = column[x] + half, line[x] + half
    fold_line(column, width, record[P.SPAN_U], record[FOLD], bits, slack)
    fold_line(line, width, record[P.SPAN_V], record[FOLD], bits, slack)
    for x in range(width):
        column[x], line[x] = column[x] - half, line[x] - half


@inner_kernel()
def _enter(
    record: Any, slot: Any, beyond: Any, width: Any, bits: Any, safe: Any, column: Any, line: Any, stage: Any
) -> None:
    """Mark places that a grid has moved out of its image by more than ``beyond``; then go from the image to the source,
    which may lie turned."""
    # Of 32 bits all through: so 16 of them are one vector.
    half, at_slot, folds = np.int32(1 << bits - 1), np.int32(slot), record[FOLD] != 0
    more, both = np.int32(beyond), 2 * beyond
    end_u, end_v = np.uint32((record[P.SPAN_U] << bits) + both), np.uint32((record[P.SPAN_V] << bits) + both)
    from_u, from_v = np.int32(record[P.ORIGIN_U] - half), np.int32(record[P.ORIGIN_V] - half)
    far_u, far_v, swaps, (safe_u, safe_v) = record[P.SIGN_U] < 0, record[P.SIGN_V] < 0, record[P.SWAPS] != 0, safe
    for x in range(width):
        u, v, before = np.int32(column[x] + half), np.int32(line[x] + half), stage[x]
        # Without a sign, what is negative is large. What has been folded may lie on the border, or for cubic weights
        # beyond it.
        is_inside = folds | ((np.uint32(np.int32(u + more)) < end_u) & (np.uint32(np.int32(v + more)) < end_v))
        now = before if (before >= 0) | is_inside else at_slot
        a, b = (v, u) if swaps else (u, v)
        a = np.int32(from_u - a) if far_u else np.int32(from_u + a)
        b = np.int32(from_v - b) if far_v else np.int32(from_v + b)
        column[x], line[x], stage[x] = a if now < 0 else safe_u, b if now < 0 else safe_v, now


@inner_kernel()
def _walk(
    record: Any, moves: Any, slot: Any, width: Any, bits: Any, safe: Any, column: Any, line: Any, stage: Any
) -> None:
    """Mark the places that a real map leaves outside; and where ``moves``, go through it."""
    half = 1 << bits - 1
    u0, u1, u2 = record[P.U] >> bits, record[P.U + 1] >> bits, record[P.U + 2]
    v0, v1, v2 = record[P.V] >> bits, record[P.V + 1] >> bits, record[P.V + 2]
    w0, w1, w2 = record[P.DEPTH] >> bits, record[P.DEPTH + 1] >> bits, record[P.DEPTH + 2]
    span_u, span_v, shift, exponent = record[P.SPAN_U], record[P.SPAN_V], record[P.SHIFT], record[P.EXPONENT]
    origin_u, sign_u, origin_v, sign_v = record[P.ORIGIN_U], record[P.SIGN_U], record[P.ORIGIN_V], record[P.SIGN_V]
    origin_u, origin_v, factor = origin_u - half, origin_v - half, np.float32(2.0 ** float(exponent))
    safe_u, safe_v = safe
    for x in range(width):
        at_x, at_y = np.int64(column[x]), np.int64(line[x])
        u, v, depth = u0 * at_x + u1 * at_y + u2, v0 * at_x + v1 * at_y + v2, w0 * at_x + w1 * at_y + w2
        far_u, far_v = span_u * depth - u, span_v * depth - v
        ahead = (u >= 0) & (far_u > 0) & (v >= 0) & (far_v > 0)
        behind = (u <= 0) & (far_u < 0) & (v <= 0) & (far_v < 0)
        now = np.int32(slot) if (stage[x] < 0) & (not (ahead | behind)) else stage[x]
        stage[x] = now
        if moves:
            if exponent == 0:
                u, v = u >> shift, v >> shift
            else:
                divisor = np.int32(depth >> shift)
                below = np.float32(divisor if divisor != 0 else np.int32(1))
                u = quotient(u, below, factor, span_u << bits)
                v = quotient(v, below, factor, span_v << bits)
            column[x] = np.int32(origin_u + sign_u * u) if now < 0 else safe_u
            line[x] = np.int32(origin_v + sign_v * v) if now < 0 else safe_v


@inner_kernel()
def quotient(numerator: Any, divisor: Any, factor: Any, end: Any) -> Any:
    value = np.float32(np.int32(numerator >> P.NUMERATOR_SHIFT)) / divisor * factor
    return np.int64(min(max(value, np.float32(0.0)), np.float32(end)))


@part_kernel
def prepare_maps(batch: Any, scratch: Any, r: Any, first: Any, end: Any) -> Any:
    """``scratch.records`` of the real maps in slots first..end -> how many they are."""
    return record_maps(batch, scratch, r, first, end)


@inner_kernel()
def record_maps(batch: Any, scratch: Any, r: Any, first: Any, end: Any) -> Any:
    program, own = batch_at(batch).program, scratch_at(scratch)
    opcode, args, flags, window = program.opcode[r], program.args[r], program.flags[r], program.window[r]
    count = write_records(opcode, args, flags, window, program.out_size[r], first, end, own.records)
    lines = own.grid_lines
    lines[EVEN_LINE], lines[ODD_LINE] = -1, -1
    describe_maps(own.records, count, flags[first], lines)
    return np.int64(count)


@inner_kernel()
def describe_maps(records: Any, count: Any, flag: Any, lines: Any) -> None:
    """Into ``Scratch.grid_lines``, what is among the maps, of which the first has this ``flag``."""
    lines[HAS_GRID], mode = 0, records[0, FOLD]
    for i in range(count):
        if records[i, GRID] != 0 or records[i, FOLD] != 0:
            lines[HAS_GRID] = 1
    is_level = mode == 0 or mode == _EDGE
    if records[0, GRID] != 0 and mode == 0:
        lines[HAS_SEAM] = flag & INTERPOLATION_MASK == _BILINEAR
    else:
        lines[HAS_SEAM] = 0 if is_level else mode == _WRAP or flag & INTERPOLATION_MASK == _BICUBIC


@part_kernel
def real_nearest_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """Row ``y`` of a nearest map that 16.16 fixed point does not hold."""
    program, own = batch_at(batch).program, scratch_at(scratch)
    op, a, window = program.opcode[r, slot], program.args[r, slot], program.window[r, slot]
    if op == Op.MAP_GRID:
        call_part(own.parts[DISPLACED], batch, scratch, r, 1, y)
        read_places(image_of_sweep(own.sweep), y, own.sweep[RESULT_WIDTH], own)
        return np.int64(0)
    is_perspective, mode = op == Op.MAP_PERSPECTIVE, program.flags[r, slot] >> INTERPOLATION_BITS
    if mode != 0:
        width = own.sweep[RESULT_WIDTH]
        own.stage[:width] = -1
        folded_real_row(a, window, mode, is_perspective, y, width, own.column, own.line)
        read_places(image_of_sweep(own.sweep), y, width, own)
        return np.int64(0)
    _nearest_row(image_of_sweep(own.sweep), a, window, slot, is_perspective, y, own.sweep[RESULT_WIDTH], own)
    return np.int64(0)


@inner_kernel(forceinline=True)
def _nearest_row(
    image: Any, a: Any, window: Any, slot: Any, perspective: Any, y: Any, width: Any, scratch: Any
) -> None:
    """Pillow's arithmetic. The whole row."""
    top, left, bottom, right = (
        np.float64(window[0]), np.float64(window[1]), np.float64(window[2]), np.float64(window[3]),
    )  # fmt: skip
    stage, column, line = scratch.stage, scratch.column, scratch.line
    g, h = (a[6], a[7]) if perspective else (0.0, 0.0)
    a0, a1, a2, a3, a4, a5, yc = a[0], a[1], a[2], a[3], a[4], a[5], y + 0.5
    for x in range(width):
        xc = x + 0.5
        # Of an affine map the depth is exactly 1, which changes nothing.
        depth = g * xc + h * yc + 1.0
        u, v = (a0 * xc + a1 * yc + a2) / depth, (a3 * xc + a4 * yc + a5) / depth
        # False for NaN, a point at infinity.
        is_inside = (u >= left) & (u < right) & (v >= top) & (v < bottom)
        stage[x] = -1 if is_inside else slot
        column[x], line[x] = np.int32(u if is_inside else 0.0), np.int32(v if is_inside else 0.0)
    read_places(image, y, width, scratch)
