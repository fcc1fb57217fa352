"""Integer records by which interpolating maps of a chain are read: see ``executors/reference/places.py``.

A grid of displacements cuts a chain, and so does a map that folds what lies beyond its image: maps before it are
functions of the place that it has moved, joined anew from there; steps of their records are taken per fraction of a
place, ``step >> bits``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, IS_REAL_MAP, Interpolation, Op, PadMode

_EDGE, _REFLECT, _WRAP = int(PadMode.EDGE), int(PadMode.REFLECT), int(PadMode.WRAP)
_SHIFT = 16
ONE = 1 << _SHIFT
# Places are not told apart beyond so many pixels, of which 16.16 numbers fit into 64 bits. An interpolating map that
# reaches farther shows nothing, or where it folds, the first pixel.
FAR = 2.0**46


@inner_kernel()
def reflect(i: Any, n: Any) -> Any:
    """Index ``i`` mirrored into 0..n-1 about the border pixels, repeatedly."""
    if n == 1:
        return 0
    period = 2 * (n - 1)
    i = abs(i) % period
    return period - i if i >= n else i


@inner_kernel()
def fold_index(i: Any, n: Any, mode: Any) -> Any:
    """Pixel ``i`` of an image of ``n`` that a PadMode continues, as one of 0..n-1."""
    if mode == _EDGE:
        return min(max(i, 0), n - 1)
    if mode == _REFLECT:
        return reflect(i, n)
    if mode == _WRAP:
        return i % n
    i = i % (2 * n)
    return 2 * n - 1 - i if i >= n else i


@inner_kernel()
def fold_place(place: Any, n: Any, mode: Any, bits: Any, slack: Any) -> Any:
    """The same of a place with fraction bits. Beyond the centres of the outermost pixels an edge is level; ``slack``:
    how far beyond them places stay apart, for what interpolates there."""
    one, half = 1 << bits, 1 << bits - 1
    if mode == _EDGE:
        return min(max(place, half - slack), n * one - half + slack)
    if mode == _WRAP:
        return place % (n * one)
    lead = half if mode == _REFLECT else 0
    length = n * one - 2 * lead
    if length == 0:
        return lead
    place = (place - lead) % (2 * length)
    return lead + (2 * length - place if place > length else place)


@inner_kernel()
def fold_real(place: Any, low: Any, high: Any, mode: Any) -> Any:
    """The pixel of ``low`` to ``high`` that a real place lies in, after folding; points at infinity are far away."""
    place = place if place == place else 0.0
    return low + fold_index(int(np.floor(min(max(place, -FAR), FAR))) - low, high - low, mode)


@inner_kernel()
def scale_table(start: Any, step: Any, in_size: Any, table: Any, n: Any, mirrored: Any, mode: Any) -> None:
    """Source index per output of Pillow's ImagingScaleAffine, which adds ``step`` up; outside -1, or by ``mode``."""
    at = start + step * 0.5
    for i in range(n):
        if mode != 0:
            index = fold_real(at, 0, in_size, mode)
        else:
            index = -1 if at < 0.0 else int(at)
        table[n - 1 - i if mirrored else i] = index if index < in_size else -1
        at += step


@inner_kernel()
def pad_table(before: Any, mode: Any, in_size: Any, table: Any, n: Any) -> None:
    """Source index per output of padding that is not constant, repeated as NumPy does."""
    for i in range(n):
        table[i] = fold_index(i - before, in_size, mode)


@inner_kernel()
def moves_whole_pixels(a: Any) -> bool:
    """A fixed map moves whole pixels: every step is 0 or +-1 and it has no fraction."""
    unit = abs(a[0]) + abs(a[1]) == ONE and abs(a[3]) + abs(a[4]) == ONE and a[0] * a[1] == 0.0 and a[3] * a[4] == 0.0
    return bool(unit and a[2] % ONE == 0.0 and a[5] % ONE == 0.0 and abs(a[0]) == abs(a[4]))


@inner_kernel()
def source_rectangle(a: Any, top: Any, left: Any, bottom: Any, right: Any) -> Any:
    """Part of the source that a whole-pixel map shows in a rectangle of its output: top, left, bottom, right."""
    xa, ya = int(a[0]) * left + int(a[1]) * top + int(a[2]), int(a[3]) * left + int(a[4]) * top + int(a[5])
    xb = xa + int(a[0]) * (right - 1 - left) + int(a[1]) * (bottom - 1 - top)
    yb = ya + int(a[3]) * (right - 1 - left) + int(a[4]) * (bottom - 1 - top)
    return min(ya, yb) >> _SHIFT, min(xa, xb) >> _SHIFT, (max(ya, yb) >> _SHIFT) + 1, (max(xa, xb) >> _SHIFT) + 1


@inner_kernel()
def stays_inside(a: Any, window: Any, size: Any) -> bool:
    """An integer map whose every output pixel reads inside the window."""
    top, left, bottom, right = source_rectangle(a, 0, 0, size[0], size[1])
    return bool(top >= window[0] and left >= window[1] and bottom <= window[2] and right <= window[3])


@inner_kernel()
def seen_by_statistics(args: Any, out_size: Any, window: Any, map_slot: Any, height: Any, width: Any) -> Any:
    """The part of a source of height x width that a statistic sees behind the whole-pixel map at ``map_slot`` (-1:
    none): (top, left, bottom, right, pixels of the map's fill colour besides)."""
    top, left, bottom, right, outside = 0, 0, int(height), int(width), 0
    if map_slot >= 0:
        h, w, inside = int(out_size[map_slot, 0]), int(out_size[map_slot, 1]), window[map_slot]
        y0, x0, y1, x1 = source_rectangle(args[map_slot], 0, 0, h, w)
        top, left, bottom, right = max(y0, inside[0]), max(x0, inside[1]), min(y1, inside[2]), min(x1, inside[3])
        outside = h * w - max(0, bottom - top) * max(0, right - left)
    return top, left, bottom, right, outside


@inner_kernel()
def may_hit(a: Any, window: Any, size: Any) -> bool:
    """True if the bounding box of what a 16.16 map reads meets its window."""
    dx, dy = a[0] * (size[1] - 1), a[1] * (size[0] - 1)
    ex, ey = a[3] * (size[1] - 1), a[4] * (size[0] - 1)
    left, right = a[2] + min(dx, 0.0) + min(dy, 0.0), a[2] + max(dx, 0.0) + max(dy, 0.0)
    top, bottom = a[5] + min(ex, 0.0) + min(ey, 0.0), a[5] + max(ex, 0.0) + max(ey, 0.0)
    return bool(
        right >= window[1] * ONE and left < window[3] * ONE and bottom >= window[0] * ONE and top < window[2] * ONE
    )


_FIXED, _PERSPECTIVE, _GRID_MAP = int(Op.MAP_FIXED), int(Op.MAP_PERSPECTIVE), int(Op.MAP_GRID)
_BICUBIC = int(Interpolation.BICUBIC)

# Fields of a record, int64[RECORD]. U, V and DEPTH are three numbers each: what a column adds, what a line adds, and
# the value where both are 0. U and V are distances from a side of the window, times the depth.
U, V, DEPTH = 0, 3, 6
(
    SPAN_U,  # inside is 0 <= u < SPAN_U depth; where the depth is negative, 0 >= u > SPAN_U depth
    SPAN_V,
    SHIFT,  # u and v are shifted right by so much to become places; under perspective, the depth before it divides
    EXPONENT,  # a quotient is multiplied by this power of two to become a place; 0: no perspective
    ORIGIN_U,  # the place at u = 0; and whether places grow with u or, as in a mirror, fall: 1 or -1
    SIGN_U,
    ORIGIN_V,
    SIGN_V,
    # Whether the depth is negative anywhere, a grid moves places or they fold: whether what is inside may have gaps.
    BEHIND,
    GRID,  # of a grid: where its nodes begin, and 1 more; else 0
    FOLD,  # the PadMode of what lies beyond the window: if it is not 0, nothing is outside
) = range(9, 20)
RECORD = 20
RECORD_FIELDS = (
    "U", "V", "DEPTH", "SPAN_U", "SPAN_V", "SHIFT", "EXPONENT", "ORIGIN_U", "SIGN_U", "ORIGIN_V", "SIGN_V", "BEHIND",
    "GRID", "FOLD", "STEP_X", "STEP_Y", "COLUMNS", "SWAPS", "TWICE",
)  # fmt: skip

# What the first fields of a grid's record say. SPAN_U and SPAN_V are the sides of the image that it makes; sums of
# nodes, weighed, are shifted right by SHIFT to become distances between places. ORIGIN and SIGN lead to the source.
# TWICE: whether blends with the fill multiply by the weight of the image twice.
STEP_X, STEP_Y, COLUMNS, SWAPS, TWICE = range(5)
# Steps are nodes per pixel; node 0 lies at the centre of pixel 0. Weights of nodes have WEIGHT_BITS. A node's
# displacement counts in 2**(unit - NODE_BITS) pixels, the unit no greater than MAX_UNIT and no less than -MAX_UNIT.
STEP_BITS, WEIGHT_BITS, NODE_BITS, MAX_UNIT = 26, 14, 6, 6
# How the source lies to what a grid was made for: from the right, from below, and with columns and lines swapped.
FAR_X, FAR_Y, SWAPPED = 1, 2, 4
# A further bit of that argument: within a pixel of the border, bilinear places blend the image with the fill by the
# weight of the image, which torchvision's elastic applies twice: w (w image) + (1 - w) fill.
WEIGHS_TWICE = 8

# Fraction bits of places.
BILINEAR_BITS, BICUBIC_BITS = 15, 14
# Numerators are shifted by so much before they are divided.
NUMERATOR_SHIFT = 31

_GRID, _DEPTH_GRID, _NUDGE, _LARGE = 2.0**36, 2.0**48, 2.0**-24, 2.0**17
_AFFINE_BITS, _INTEGER_BITS, _DIVISOR_BITS = 37, 61, 30
# Below these, sums of coefficients have 53 bits at most: multiples of 2**-37, with some pixels added, and of 2**-48.
_EXACT, _EXACT_STEPS = 2.0**15, 2.0**4


@inner_kernel()
def snap(a: Any, count: Any) -> None:
    """Round coefficients to multiples of 2**-36 (a denominator's to 2**-48): sums with whole pixels are exact then."""
    for i in range(count):
        grid = _GRID if i < 6 else _DEPTH_GRID
        if abs(a[i]) < _LARGE:
            a[i] = np.floor(a[i] * grid + 0.5) / grid


@inner_kernel()
def stays_exact(a: Any, size: Any, perspective: Any) -> bool:
    """True if sums of coefficients times columns and lines of an output of this size are exact in float64."""
    if perspective:
        steps = max(max(abs(a[0]), abs(a[1])), max(abs(a[3]), abs(a[4]))) + 2.0**15 * max(abs(a[6]), abs(a[7]))
        return bool(steps < _EXACT_STEPS and max(abs(a[2]), abs(a[5])) < _EXACT)
    u = abs(a[0]) * size[1] + abs(a[1]) * size[0] + abs(a[2])
    v = abs(a[3]) * size[1] + abs(a[4]) * size[0] + abs(a[5])
    return bool(max(u, v) < _EXACT)


@inner_kernel()
def write_records(
    opcode: Any, args: Any, flags: Any, window: Any, out_size: Any, first: Any, end: Any, records: Any
) -> Any:
    """Records of the maps in slots first..end, which are run from the last to the first -> how many they are. All are
    real, or all are fixed: of these, from whole pixels to whole pixels."""
    count, last = 0, first
    for k in range(first, end):
        if _has_record(opcode[k]):
            count, last = count + 1, k
    columns, lines = int(out_size[last, 1]) - 1, int(out_size[last, 0]) - 1
    # The maps so far as one: u's numerator, v's, and the depth.
    u, v, w = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    is_affine, is_moved, i, cut = True, False, count, -1
    for k in range(last, first - 1, -1):
        if not _has_record(opcode[k]):
            continue
        i -= 1
        interpolation, mode = flags[k] & INTERPOLATION_MASK, flags[k] >> INTERPOLATION_BITS
        if opcode[k] == _FIXED:
            _write_fixed(args[k], window[k], mode, records[i])
            continue
        if cut >= 0:
            u, v, w = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
            is_affine, is_moved = True, True
            # Half a pixel farther than centres: all that a place can be.
            columns, lines = int(window[cut, 3]), int(window[cut, 2])
            cut = -1
        if opcode[k] == _GRID_MAP:
            _write_grid(args[k], interpolation, window[k], out_size[k], records[i])
            records[i, FOLD], cut = mode, k
            continue
        a, record, inside = args[k], records[i], window[k]
        new_u, new_v = _combined(a[0], u, a[1], v, a[2], w), _combined(a[3], u, a[4], v, a[5], w)
        far_x, far_y = False, False
        if opcode[k] == _PERSPECTIVE:
            w, is_affine = _combined(a[6], u, a[7], v, 1.0, w), False
        else:
            far_x, far_y = a[6] != 0.0, a[7] != 0.0
        u, v = new_u, new_v
        # From the side that is inside: of a map that took in a flip, the far one.
        sign_u, sign_v = -1 if far_x else 1, -1 if far_y else 1
        side_u, side_v = int(inside[3 if far_x else 1]), int(inside[2 if far_y else 0])
        span_u, span_v = int(inside[3]) - int(inside[1]), int(inside[2]) - int(inside[0])
        depth = _at_centres(w)
        from_u = _nudged(_at_centres(_from(side_u, sign_u, u, w)), depth)
        from_v = _nudged(_at_centres(_from(side_v, sign_v, v, w)), depth)
        bits = BICUBIC_BITS if interpolation == _BICUBIC else BILINEAR_BITS
        record[:] = 0
        record[ORIGIN_U], record[SIGN_U], record[ORIGIN_V], record[SIGN_V] = (
            side_u << bits, sign_u, side_v << bits, sign_v,
        )  # fmt: skip
        if mode != 0:
            record[FOLD], record[BEHIND], record[SPAN_U], record[SPAN_V] = mode, 1, span_u, span_v
            cut = k
        reach = max(_reach(from_u, columns, lines), _reach(from_v, columns, lines))
        reach = max(reach, _reach(depth, columns, lines) * max(span_u, span_v))
        # Also where it is not a number, and where the window is empty: with all 0, nothing is inside.
        if not reach < FAR or min(span_u, span_v) < 1:
            continue
        scale = _INTEGER_BITS - math.frexp(reach)[1]
        if is_affine and not is_moved:
            scale = min(scale, _AFFINE_BITS)
        record[SPAN_U], record[SPAN_V] = span_u, span_v
        _put(from_u, scale, columns, lines, record[U : U + 3])
        _put(from_v, scale, columns, lines, record[V : V + 3])
        _put(depth, scale, columns, lines, record[DEPTH : DEPTH + 3])
        if is_affine:
            record[SHIFT] = scale - bits
        else:
            _describe_depth(record, columns, lines, bits)
    return count


@inner_kernel()
def _has_record(op: Any) -> bool:
    return bool(IS_REAL_MAP[op] or op == _FIXED)


@inner_kernel()
def _write_fixed(a: Any, inside: Any, mode: Any, record: Any) -> None:
    record[:] = 0
    for axis in range(2):
        for j in range(3):
            record[U + 3 * axis + j] = int(a[3 * axis + j])
        record[U + 3 * axis + 2] -= int(inside[1 - axis]) << _SHIFT
        record[SPAN_U + axis] = int(inside[3 - axis]) - int(inside[1 - axis])
    record[SHIFT], record[FOLD] = _SHIFT, mode
    record[ORIGIN_U], record[SIGN_U], record[ORIGIN_V], record[SIGN_V] = inside[1], 1, inside[0], 1


@inner_kernel()
def _write_grid(a: Any, flag: Any, inside: Any, size: Any, record: Any) -> None:
    bits, turn = BICUBIC_BITS if flag == _BICUBIC else BILINEAR_BITS, int(a[3])
    far_x, far_y = turn & FAR_X != 0, turn & FAR_Y != 0
    record[:] = 0
    record[GRID], record[COLUMNS], record[STEP_Y], record[STEP_X] = int(a[0]) + 1, int(a[2]), int(a[4]), int(a[5])
    record[SPAN_U], record[SPAN_V], record[SWAPS] = size[1], size[0], turn & SWAPPED
    record[TWICE] = turn & WEIGHS_TWICE
    record[SHIFT] = NODE_BITS + 2 * WEIGHT_BITS - int(a[6]) - bits
    record[ORIGIN_U], record[SIGN_U] = int(inside[3 if far_x else 1]) << bits, -1 if far_x else 1
    record[ORIGIN_V], record[SIGN_V] = int(inside[2 if far_y else 0]) << bits, -1 if far_y else 1
    record[BEHIND] = 1


@inner_kernel()
def _combined(a: Any, u: Any, b: Any, v: Any, c: Any, w: Any) -> Any:
    return a * u[0] + b * v[0] + c * w[0], a * u[1] + b * v[1] + c * w[1], a * u[2] + b * v[2] + c * w[2]


@inner_kernel()
def _from(side: Any, sign: Any, form: Any, depth: Any) -> Any:
    return (sign * (form[0] - side * depth[0]), sign * (form[1] - side * depth[1]), sign * (form[2] - side * depth[2]))


@inner_kernel()
def _at_centres(form: Any) -> Any:
    """A function of points, as one of whole columns and lines."""
    return form[0], form[1], form[2] + (form[0] + form[1]) * 0.5


@inner_kernel()
def _nudged(form: Any, depth: Any) -> Any:
    return form[0] + _NUDGE * depth[0], form[1] + _NUDGE * depth[1], form[2] + _NUDGE * depth[2]


@inner_kernel()
def _reach(form: Any, columns: Any, lines: Any) -> Any:
    """The greatest magnitude of a function; it is at a corner."""
    a, b, c = form[0] * columns, form[1] * lines, form[2]
    reach = max(max(abs(c), abs(a + c)), max(abs(b + c), abs(a + b + c)))
    return reach if abs(a) + abs(b) + abs(c) < np.inf else np.inf


@inner_kernel()
def _put(form: Any, scale: Any, columns: Any, lines: Any, numbers: Any) -> None:
    # A step that is never taken may be as large as it likes.
    numbers[0] = int(np.floor(math.ldexp(form[0], scale) + 0.5)) if columns else 0
    numbers[1] = int(np.floor(math.ldexp(form[1], scale) + 0.5)) if lines else 0
    numbers[2] = int(np.floor(math.ldexp(form[2], scale) + 0.5))


@inner_kernel()
def _describe_depth(record: Any, columns: Any, lines: Any, bits: Any) -> None:
    a, b, c = record[DEPTH] * columns, record[DEPTH + 1] * lines, record[DEPTH + 2]
    greatest = max(max(abs(c), abs(a + c)), max(abs(b + c), abs(a + b + c)))
    record[SHIFT] = max(0, math.frexp(float(greatest))[1] - _DIVISOR_BITS)
    record[EXPONENT] = bits + NUMERATOR_SHIFT - record[SHIFT]
    if min(min(c, a + c), min(b + c, a + b + c)) < 0:
        record[BEHIND] = 1
