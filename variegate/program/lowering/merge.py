"""Join what can be joined exactly: neighbouring coordinate maps into one map, neighbouring LUTs into one LUT.

A map commutes with value operations on the pixels it keeps inside; on pixels that fall outside only the operations
after it act. So two maps with only value operations between them join (a) where the later one never falls outside (a
flip, an inner crop): at the place of the earlier; (b) where the earlier one never falls outside: at the place of the
later; (c) where the earlier one moves whole pixels, nothing stands between, and both fill alike. A crop must not jump
over an operation that needs statistics of the whole image; a flip may.
"""

from __future__ import annotations

from typing import Any

from variegate.program.compiled import kernel
from variegate.program.coordinate_tables import ONE, moves_whole_pixels
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.program import Program

_FIXED, _FLOAT, _PERSPECTIVE, _LUT = (int(op) for op in (Op.MAP_FIXED, Op.MAP_FLOAT, Op.MAP_PERSPECTIVE, Op.LUT))
_RESIZED_CROP = int(Op.RESIZED_CROP)
_VALUE, _STATISTIC, _GEOMETRY = int(Kind.VALUE), int(Kind.STATISTIC), int(Kind.GEOMETRY)

_GRIDS = ("opcode", "args", "flags", "fill", "out_size", "label", "window")


def merge_maps(program: Program) -> Program:
    """Join maps until no rule applies."""
    grids = [getattr(program, name) for name in _GRIDS]
    _merge_rows(*grids, program.length, program.in_shape)
    return program.replace(stage="merged")


def merge_luts(program: Program) -> Program:
    """Compose LUTs that stand side by side; the first keeps the composed table."""
    grids = [getattr(program, name) for name in _GRIDS]
    _compose_rows(*grids, program.length, program.tables.luts)
    return program.replace(stage="composed")


@kernel
def _remove(
    k: Any, n: Any, opcode: Any, args: Any, flags: Any, fill: Any, out_size: Any, label: Any, window: Any
) -> None:
    """Close the gap at slot k of one row that holds n instructions."""
    for i in range(k, n - 1):
        opcode[i], flags[i], label[i] = opcode[i + 1], flags[i + 1], label[i + 1]
        args[i], fill[i], out_size[i], window[i] = args[i + 1], fill[i + 1], out_size[i + 1], window[i + 1]
    opcode[n - 1] = 0


@kernel
def _stays_inside(a: Any, window: Any, size: Any) -> bool:
    """An integer map whose every output pixel reads inside the window."""
    for corner in range(4):
        x = (size[1] - 1) * (corner & 1)
        y = (size[0] - 1) * (corner >> 1)
        u = (a[0] * x + a[1] * y + a[2]) // ONE
        v = (a[3] * x + a[4] * y + a[5]) // ONE
        if u < window[1] or u >= window[3] or v < window[0] or v >= window[2]:
            return False
    return True


@kernel
def _compose_fixed(first: Any, then: Any, whole_then: Any) -> None:
    """``then`` := source of ``first`` at the place ``then`` reads. ``first`` moves whole pixels, or ``then`` does."""
    if whole_then:
        _substitute(first, then)
        return
    # first(x) = +-x + t per axis, of floor(then): -floor(v / ONE) = floor((ONE - 1 - v) / ONE) keeps it exact.
    a0, a1, a2, a3, a4, a5 = then[0], then[1], then[2], then[3], then[4], then[5]
    if first[0] != 0.0:
        sx, sy = first[0] / ONE, first[4] / ONE
        then[0], then[1], then[2] = sx * a0, sx * a1, sx * a2 + first[2] + (ONE - 1 if sx < 0 else 0)
        then[3], then[4], then[5] = sy * a3, sy * a4, sy * a5 + first[5] + (ONE - 1 if sy < 0 else 0)
    else:
        sx, sy = first[1] / ONE, first[3] / ONE
        then[0], then[1], then[2] = sx * a3, sx * a4, sx * a5 + first[2] + (ONE - 1 if sx < 0 else 0)
        then[3], then[4], then[5] = sy * a0, sy * a1, sy * a2 + first[5] + (ONE - 1 if sy < 0 else 0)


@kernel
def _substitute(first: Any, then: Any) -> None:
    """``then`` := first(then(x, y)), where ``then`` gives whole pixels."""
    xx, xy, x0 = then[0] / ONE, then[1] / ONE, then[2] / ONE
    yx, yy, y0 = then[3] / ONE, then[4] / ONE, then[5] / ONE
    a, b, c, d, e, f = first[0], first[1], first[2], first[3], first[4], first[5]
    then[0], then[1], then[2] = a * xx + b * yx, a * xy + b * yy, a * x0 + b * y0 + c
    then[3], then[4], then[5] = d * xx + e * yx, d * xy + e * yy, d * x0 + e * y0 + f


@kernel
def _window_through(first: Any, window: Any) -> None:
    """The window, given in the output of the integer map ``first``, becomes one in its source."""
    if window[3] <= window[1] or window[2] <= window[0]:
        window[:] = 0
        return
    xa, ya = window[1], window[0]
    xb, yb = window[3] - 1, window[2] - 1
    ua = (first[0] * xa + first[1] * ya + first[2]) // ONE
    va = (first[3] * xa + first[4] * ya + first[5]) // ONE
    ub = (first[0] * xb + first[1] * yb + first[2]) // ONE
    vb = (first[3] * xb + first[4] * yb + first[5]) // ONE
    window[1], window[3] = min(ua, ub), max(ua, ub) + 1
    window[0], window[2] = min(va, vb), max(va, vb) + 1


@kernel
def _real_after_integer(first: Any, then: Any, perspective: Any) -> None:
    """``then`` (interpolating, continuous coordinates) := the integer map ``first`` of it."""
    a0, a1, a2, a3, a4, a5 = then[0], then[1], then[2], then[3], then[4], then[5]
    g, h = (then[6], then[7]) if perspective else (0.0, 0.0)
    swap = first[0] == 0.0
    sx = (first[1] if swap else first[0]) / ONE
    sy = (first[3] if swap else first[4]) / ONE
    tx = first[2] / ONE + (1.0 if sx < 0 else 0.0)
    ty = first[5] / ONE + (1.0 if sy < 0 else 0.0)
    if swap:
        a0, a1, a2, a3, a4, a5 = a3, a4, a5, a0, a1, a2
    then[0], then[1], then[2] = sx * a0 + tx * g, sx * a1 + tx * h, sx * a2 + tx
    then[3], then[4], then[5] = sy * a3 + ty * g, sy * a4 + ty * h, sy * a5 + ty
    if not perspective:
        # Inside was [left, right); seen in a mirror it is (left, right].
        mirrored_x, mirrored_y = (then[7], then[6]) if swap else (then[6], then[7])
        then[6] = 1.0 - mirrored_x if sx < 0 else mirrored_x
        then[7] = 1.0 - mirrored_y if sy < 0 else mirrored_y


@kernel
def _integer_after_real(first: Any, then: Any) -> None:
    """``first`` (affine, interpolating) := it at the pixel centres that the integer map ``then`` reads."""
    xx, xy, x0 = then[0] / ONE, then[1] / ONE, then[2] / ONE
    yx, yy, y0 = then[3] / ONE, then[4] / ONE, then[5] / ONE
    # Centres map to centres: shift the offsets from integer to continuous coordinates.
    x0, y0 = x0 + 0.5 - 0.5 * (xx + xy), y0 + 0.5 - 0.5 * (yx + yy)
    a, b, c, d, e, f = first[0], first[1], first[2], first[3], first[4], first[5]
    first[0], first[1], first[2] = a * xx + b * yx, a * xy + b * yy, a * x0 + b * y0 + c
    first[3], first[4], first[5] = d * xx + e * yx, d * xy + e * yy, d * x0 + e * y0 + f


@kernel
def _takes_flip(then: Any, flag: Any, first: Any) -> bool:
    """Whether a real map can take in the whole-pixel map before it; where that mirrors, the border must be minded."""
    mirrors = first[0] < 0.0 or first[1] < 0.0 or first[3] < 0.0 or first[4] < 0.0
    return bool((then == _FLOAT and flag != 0) or ((then == _FLOAT or then == _PERSPECTIVE) and not mirrors))


@kernel
def _join(
    i: Any,
    j: Any,
    in_size: Any,
    between: Any,
    statistic: Any,
    opcode: Any,
    args: Any,
    flags: Any,
    fill: Any,
    out_size: Any,
    window: Any,
) -> int:
    """Try to join maps at slots i < j of one row -> the slot to remove, or -1. The survivor is updated.

    ``in_size`` is the size of the image before slot i.
    """
    first, then = opcode[i], opcode[j]
    first_whole = first == _FIXED and moves_whole_pixels(args[i])
    then_whole = then == _FIXED and moves_whole_pixels(args[j])
    if then_whole and _stays_inside(args[j], window[j], out_size[j]):
        bijective = out_size[j, 0] * out_size[j, 1] == out_size[i, 0] * out_size[i, 1]
        if (bijective or not statistic) and (first == _FIXED or first == _FLOAT):
            if first == _FIXED:
                _substitute(args[i], args[j])
                args[i, :6] = args[j, :6]
            else:
                _integer_after_real(args[i], args[j])
            for k in range(i, j + 1):
                out_size[k] = out_size[j]
            return int(j)
    if first_whole and _stays_inside(args[i], window[i], out_size[i]):
        bijective = out_size[i, 0] * out_size[i, 1] == in_size[0] * in_size[1]
        if (bijective or not statistic) and (then == _FIXED or _takes_flip(then, flags[j], args[i])):
            _window_through(args[i], window[j])
            if then == _FIXED:
                _compose_fixed(args[i], args[j], then_whole)
            else:
                _real_after_integer(args[i], args[j], then == _PERSPECTIVE)
            for k in range(i, j):
                out_size[k, 0], out_size[k, 1] = in_size[0], in_size[1]
            return int(i)
    same_fill = fill[i, 0] == fill[j, 0] and fill[i, 1] == fill[j, 1] and fill[i, 2] == fill[j, 2]
    if first_whole and then == _FIXED and not between and same_fill:
        _window_through(args[i], window[j])
        _compose_fixed(args[i], args[j], then_whole)
        window[j, 0], window[j, 1] = max(window[j, 0], window[i, 0]), max(window[j, 1], window[i, 1])
        window[j, 2], window[j, 3] = min(window[j, 2], window[i, 2]), min(window[j, 3], window[i, 3])
        return int(i)
    return -1


@kernel
def _merge_rows(
    opcode: Any, args: Any, flags: Any, fill: Any, out_size: Any, label: Any, window: Any, length: Any, in_shape: Any
) -> None:
    for r in range(opcode.shape[0]):
        j = 1
        while j < length[r]:
            gone = -1
            if KIND_OF[opcode[r, j]] == _GEOMETRY:
                between, statistic = False, False
                for i in range(j - 1, -1, -1):
                    kind = KIND_OF[opcode[r, i]]
                    if kind == _GEOMETRY:
                        in_size = out_size[r, i - 1] if i > 0 else in_shape[r, :2]
                        gone = _join(
                            i,
                            j,
                            in_size,
                            between,
                            statistic,
                            opcode[r],
                            args[r],
                            flags[r],
                            fill[r],
                            out_size[r],
                            window[r],
                        )
                        break
                    is_next = opcode[r, i] == _RESIZED_CROP and flags[r, i] != 0
                    if is_next and _is_mirror(args[r, j], opcode[r, j], out_size[r, j]):
                        args[r, i, 6] = 1.0 - args[r, i, 6]
                        gone = j
                    if kind != _VALUE and kind != _STATISTIC:
                        break
                    between, statistic = True, statistic or kind == _STATISTIC
            if gone >= 0:
                _remove(gone, length[r], opcode[r], args[r], flags[r], fill[r], out_size[r], label[r], window[r])
                length[r] -= 1
                j = max(1, gone - 1)
            else:
                j += 1


@kernel
def _is_mirror(a: Any, op: Any, size: Any) -> bool:
    """A plain horizontal flip."""
    return bool(
        op == _FIXED
        and a[0] == -ONE
        and a[1] == 0.0
        and a[2] == (size[1] - 1) * ONE
        and a[3] == 0.0
        and a[4] == ONE
        and a[5] == 0.0
    )


@kernel
def _compose_rows(
    opcode: Any, args: Any, flags: Any, fill: Any, out_size: Any, label: Any, window: Any, length: Any, luts: Any
) -> None:
    for r in range(opcode.shape[0]):
        k = 1
        while k < length[r]:
            if opcode[r, k] == _LUT and opcode[r, k - 1] == _LUT:
                first, then = luts[int(args[r, k - 1, 0])], luts[int(args[r, k, 0])]
                for c in range(3):
                    for i in range(256):
                        first[c, i] = then[c, first[c, i]]
                _remove(k, length[r], opcode[r], args[r], flags[r], fill[r], out_size[r], label[r], window[r])
                length[r] -= 1
            else:
                k += 1
