"""Fewer instructions: those that change no pixel are dropped, and maps that can be joined exactly are joined.

Two maps with value operations between them join (a) where the later one never falls outside, (b) where the earlier one
never does, (c) where the earlier one moves whole pixels, nothing stands between and both fill alike. The other one of
(a) and (b) may fold what lies beyond its image: a mirrored or shifted window folds alike. A crop must not jump over
statistics; a flip may. A grid takes in the whole-pixel map before it, a resize of a whole crop that crop."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program import places as P
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.ops import INTERPOLATION_MASK, IS_COLOUR_ONLY, KIND_OF, Interpolation, Kind, Op
from variegate.program.places import ONE, moves_whole_pixels, source_rectangle, stays_exact, stays_inside


@pixel_kernel
def merge_rows(program: Any) -> None:
    """Join maps until no rule applies."""
    for r in range(program.opcode.shape[0]):
        j = 1
        while j < program.length[r]:
            joined = -1
            if KIND_OF[program.opcode[r, j]] == Kind.GEOMETRY:
                joined = _join_backwards(program, r, j)
            elif program.opcode[r, j] == Op.RESIZED_CROP:
                joined = _join_crop(program, r, j)
            if joined >= 0:
                program.opcode[r, joined] = Op.NOP
                close_gaps(program, r)
                j = max(1, joined - 1)
            else:
                j += 1


@inner_kernel()
def _join_backwards(program: Any, r: Any, j: Any) -> int:
    """Join the map at slot j with what stands before it -> the slot that is not needed any more, or -1."""
    opcode, args, flags, out_size = program.opcode[r], program.args[r], program.flags[r], program.out_size[r]
    between, statistic = False, False
    for i in range(j - 1, -1, -1):
        kind = KIND_OF[opcode[i]]
        if kind == Kind.GEOMETRY:
            return _join(program, r, i, j, between, statistic)
        is_resample = opcode[i] == Op.RESIZED_CROP and flags[i] != Interpolation.NEAREST
        if is_resample and _is_mirror(opcode[j], args[j], out_size[j]):
            args[i, 6] = 1.0 - args[i, 6]
            return int(j)
        if kind != Kind.VALUE and kind != Kind.STATISTIC:
            return -1
        between, statistic = True, statistic or kind == Kind.STATISTIC
    return -1


@inner_kernel()
def _join(program: Any, r: Any, i: Any, j: Any, between: Any, statistic: Any) -> int:
    """Join maps at slots i < j, the survivor in place -> the slot to remove, or -1. ``between``: operations stand
    there."""
    args, flags, fill = program.args[r], program.flags[r], program.fill[r]
    out_size, window = program.out_size[r], program.window[r]
    in_size = out_size[i - 1] if i > 0 else program.in_shape[r, :2]
    first, then = program.opcode[r, i], program.opcode[r, j]
    first_whole = first == Op.MAP_FIXED and moves_whole_pixels(args[i])
    then_whole = then == Op.MAP_FIXED and moves_whole_pixels(args[j])
    if then_whole and stays_inside(args[j], window[j], out_size[j]):
        bijective = out_size[j, 0] * out_size[j, 1] == out_size[i, 0] * out_size[i, 1]
        joins = first == Op.MAP_FIXED or (first == Op.MAP_FLOAT and _takes_later(flags[i], args[i], out_size[i]))
        if (bijective or not statistic) and joins:
            _substitute(args[i], args[j], 0.0 if first == Op.MAP_FIXED else 0.5)
            for n in range(6):
                args[i, n] = args[j, n]
            for k in range(i, j):
                out_size[k, 0], out_size[k, 1] = out_size[j, 0], out_size[j, 1]
            return int(j)
    interpolation = flags[i] & INTERPOLATION_MASK
    if first == Op.MAP_GRID and then_whole and interpolation != Interpolation.NEAREST and not statistic:
        _make_real(args[j])
        program.opcode[r, j], flags[j] = Op.MAP_FLOAT, flags[j] & ~INTERPOLATION_MASK | interpolation
        return -1
    if first_whole and stays_inside(args[i], window[i], out_size[i]):
        bijective = out_size[i, 0] * out_size[i, 1] == in_size[0] * in_size[1]
        if (bijective or not statistic) and (
            then == Op.MAP_FIXED or _takes_flip(then, flags[j], args[i], args[j], out_size[j])
        ):
            _window_through(args[i], window[j])
            if then == Op.MAP_FIXED:
                _compose_fixed(args[i], args[j], then_whole)
            elif then == Op.MAP_GRID:
                args[j, 3] = _turned(args[i], int(args[j, 3]))
            else:
                _real_after_integer(args[i], args[j], then == Op.MAP_PERSPECTIVE)
            for k in range(i, j):
                out_size[k, 0], out_size[k, 1] = in_size[0], in_size[1]
            return int(i)
    same_fill = fill[i, 0] == fill[j, 0] and fill[i, 1] == fill[j, 1] and fill[i, 2] == fill[j, 2]
    folds = max(flags[i], flags[j]) > INTERPOLATION_MASK
    if first_whole and then == Op.MAP_FIXED and not between and same_fill and not folds:
        _window_through(args[i], window[j])
        _compose_fixed(args[i], args[j], then_whole)
        for side in range(2):
            window[j, side] = max(window[j, side], window[i, side])
            window[j, 2 + side] = min(window[j, 2 + side], window[i, 2 + side])
        return int(i)
    return -1


@inner_kernel()
def _join_crop(program: Any, r: Any, j: Any) -> int:
    """Take the crop before the resize at slot j into its box, as -1 - top, -1 - left -> the crop's slot, or -1."""
    i = j - 1
    a, box, size = program.args[r, i], program.args[r, j], program.out_size[r, i]
    is_crop = program.opcode[r, i] == Op.MAP_FIXED and a[0] == ONE and a[4] == ONE and moves_whole_pixels(a)
    is_all = box[0] == 0.0 and box[1] == 0.0 and box[2] == size[0] and box[3] == size[1]
    if not (is_crop and is_all and stays_inside(a, program.window[r, i], size)):
        return -1
    box[0], box[1] = -1.0 - a[5] / ONE, -1.0 - a[2] / ONE
    return int(i)


@inner_kernel()
def _is_mirror(op: Any, a: Any, size: Any) -> bool:
    """A plain horizontal flip."""
    keeps_rows = a[3] == 0.0 and a[4] == ONE and a[5] == 0.0
    return bool(op == Op.MAP_FIXED and keeps_rows and a[0] == -ONE and a[1] == 0.0 and a[2] == (size[1] - 1) * ONE)


@inner_kernel()
def _takes_flip(then: Any, flag: Any, first: Any, a: Any, size: Any) -> bool:
    """True if a real map can take in the whole-pixel map before it: mirrors change borders, turns the order of
    rounding."""
    if then == Op.MAP_GRID:
        return bool(flag & INTERPOLATION_MASK == Interpolation.NEAREST or first[1] == 0.0)
    if then != Op.MAP_FLOAT and then != Op.MAP_PERSPECTIVE:
        return False
    mirrors = first[0] < 0.0 or first[1] < 0.0 or first[3] < 0.0 or first[4] < 0.0
    if flag & INTERPOLATION_MASK == Interpolation.NEAREST:
        return not mirrors
    is_perspective = then == Op.MAP_PERSPECTIVE
    keeps_axes = first[1] == 0.0 and not (is_perspective and mirrors)
    return bool(keeps_axes and stays_exact(a, size, is_perspective))


@inner_kernel()
def _takes_later(flag: Any, a: Any, size: Any) -> bool:
    """True if an affine map of coefficients ``a`` can take in the whole-pixel map after it."""
    return bool(flag & INTERPOLATION_MASK == Interpolation.NEAREST or stays_exact(a, size, False))


@inner_kernel()
def _window_through(first: Any, window: Any) -> None:
    """The window, given in the output of the integer map ``first``, becomes one in its source."""
    top, left, bottom, right = 0, 0, 0, 0
    if window[3] > window[1] and window[2] > window[0]:
        top, left, bottom, right = source_rectangle(first, window[0], window[1], window[2], window[3])
    window[0], window[1], window[2], window[3] = top, left, bottom, right


@inner_kernel()
def _substitute(first: Any, then: Any, centre: Any) -> None:
    """``then`` := first(then(x, y)), ``then`` giving whole pixels; ``centre``: 0.5 where ``first`` takes points."""
    xx, xy, x0 = then[0] / ONE, then[1] / ONE, then[2] / ONE
    yx, yy, y0 = then[3] / ONE, then[4] / ONE, then[5] / ONE
    x0, y0 = x0 + centre - centre * (xx + xy), y0 + centre - centre * (yx + yy)
    a, b, c, d, e, f = first[0], first[1], first[2], first[3], first[4], first[5]
    then[0], then[1], then[2] = a * xx + b * yx, a * xy + b * yy, a * x0 + b * y0 + c
    then[3], then[4], then[5] = d * xx + e * yx, d * xy + e * yy, d * x0 + e * y0 + f


@inner_kernel()
def _compose_fixed(first: Any, then: Any, whole_then: Any) -> None:
    """``then`` := source of ``first`` at the place ``then`` reads. ``first`` moves whole pixels, or ``then`` does."""
    _substitute(first, then, 0.0)
    if not whole_then:
        # What ``first`` mirrors is the floor of what ``then`` gives: -floor(v / ONE) = floor((ONE - 1 - v) / ONE).
        then[2] += ONE - 1 if first[0] + first[1] < 0.0 else 0
        then[5] += ONE - 1 if first[3] + first[4] < 0.0 else 0


@inner_kernel()
def _turned(first: Any, turn: Any) -> float:
    """Turn of a grid's source (``places.TURN``) that read the integer map ``first``, turned by ``turn``."""
    far_x, far_y = turn & P.FAR_X != 0, turn & P.FAR_Y != 0
    transposed = first[0] == 0.0
    if transposed:
        far_x, far_y = far_y, far_x
    far_x, far_y = far_x != (first[0] + first[1] < 0.0), far_y != (first[3] + first[4] < 0.0)
    swaps = transposed != (turn & P.SWAPPED != 0)
    sides = (P.FAR_X if far_x else 0) + (P.FAR_Y if far_y else 0) + (P.SWAPPED if swaps else 0)
    return float(sides + (turn & P.WEIGHS_TWICE))


@inner_kernel()
def _make_real(a: Any) -> None:
    """A whole-pixel map, in continuous coordinates."""
    for i in range(6):
        a[i] /= ONE
    a[2] += 1.0 if a[0] + a[1] < 0.0 else 0.0
    a[5] += 1.0 if a[3] + a[4] < 0.0 else 0.0
    a[6], a[7] = 0.0, 0.0


@inner_kernel()
def _real_after_integer(first: Any, then: Any, perspective: Any) -> None:
    """``then`` (interpolating, continuous coordinates) := the integer map ``first`` of it."""
    a0, a1, a2, a3, a4, a5 = then[0], then[1], then[2], then[3], then[4], then[5]
    g, h = (then[6], then[7]) if perspective else (0.0, 0.0)
    xx, xy, yx, yy = first[0] / ONE, first[1] / ONE, first[3] / ONE, first[4] / ONE
    mirrors_x, mirrors_y = xx + xy < 0.0, yx + yy < 0.0
    x0, y0 = first[2] / ONE + (1.0 if mirrors_x else 0.0), first[5] / ONE + (1.0 if mirrors_y else 0.0)
    # One of the two factors of a line is zero, so that nothing is rounded twice.
    then[0], then[1], then[2] = xx * a0 + xy * a3 + x0 * g, xx * a1 + xy * a4 + x0 * h, xx * a2 + xy * a5 + x0
    then[3], then[4], then[5] = yx * a0 + yy * a3 + y0 * g, yx * a1 + yy * a4 + y0 * h, yx * a2 + yy * a5 + y0
    if not perspective:
        # Inside was [left, right); seen in a mirror it is (left, right].
        far_x, far_y = (then[6], then[7]) if xx != 0.0 else (then[7], then[6])
        then[6] = 1.0 - far_x if mirrors_x else far_x
        then[7] = 1.0 - far_y if mirrors_y else far_y


@pixel_kernel
def compact(program: Any, neutral: Any) -> None:
    """Remove neutral instructions and close the gaps, keeping order.

    ``neutral``: float64[MAX_OPCODE, 2], NEUTRAL_OF.
    """
    for r in range(program.opcode.shape[0]):
        h, w, channels = program.in_shape[r, 0], program.in_shape[r, 1], program.in_shape[r, 2]
        for k in range(program.length[r]):
            op, size = program.opcode[r, k], program.out_size[r, k]
            if (channels == 1 and IS_COLOUR_ONLY[op]) or _is_neutral(op, program.args[r, k], neutral[op], size, h, w):
                program.opcode[r, k] = Op.NOP
            else:
                h, w = size[0], size[1]
        close_gaps(program, r)


@inner_kernel()
def close_gaps(program: Any, r: Any) -> None:
    """Move the instructions of a row together, over slots whose opcode is NOP."""
    n = 0
    for k in range(program.length[r]):
        if program.opcode[r, k] == Op.NOP:
            continue
        if n < k:
            program.opcode[r, n], program.flags[r, n] = program.opcode[r, k], program.flags[r, k]
            program.label[r, n] = program.label[r, k]
            _move(program.args[r], k, n)
            _move(program.fill[r], k, n)
            _move(program.out_size[r], k, n)
            if len(program.window):
                _move(program.window[r], k, n)
        n += 1
    for k in range(n, program.length[r]):
        program.opcode[r, k] = Op.NOP
    program.length[r] = n


@inner_kernel()
def _move(values: Any, k: Any, n: Any) -> None:
    for i in range(values.shape[1]):
        values[n, i] = values[k, i]


@inner_kernel()
def _is_neutral(op: Any, a: Any, neutral: Any, out_size: Any, h: Any, w: Any) -> bool:
    if neutral[0] <= a[0] <= neutral[1]:
        return True
    # What a range of one argument does not say.
    if op == Op.ROTATE:
        return bool(a[0] % 360.0 == 0.0 and np.isnan(a[1]))
    same = out_size[0] == h and out_size[1] == w
    if op == Op.PAD:
        return bool(same)
    at_origin = a[0] == 0.0 and a[1] == 0.0
    if op == Op.CROP:
        return bool(same and at_origin)
    if op == Op.RESIZED_CROP:
        return bool(same and at_origin and a[2] == h and a[3] == w and a[6] == 0.0)
    return False
