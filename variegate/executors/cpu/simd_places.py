"""Vector blocks for the places that interpolating maps read, 16 at a time: where they are, and which taps lie around.

What is computed is defined in ``executors/reference/places.py``. A place is an int32. The taps of a pixel are read by
one load per line, which begins at the first tap. Where that load would leave the image, or a tap the window, the lane's
bit is set in what ``split_*`` returns, and something else is read in its place.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from variegate.executors.cpu import simd as S
from variegate.executors.cpu.simd import F32, I32, I64, vector_block
from variegate.program.places import NUMERATOR_SHIFT

LANES = 16
_words = S.vector(S.i32, LANES)


def _along(builder: Any, start: Any, step: Any, shift: Any) -> Any:
    """``(start + i step) >> shift`` for i = 0..15 as int32; ``shift`` is at most 32."""
    wide = S.vector(S.i64, LANES)
    steps = builder.mul(S.splat(builder, step, LANES), ir.Constant(wide, list(range(LANES))))
    value = builder.add(S.splat(builder, start, LANES), steps)
    return builder.trunc(builder.lshr(value, S.splat(builder, shift, LANES)), _words)


@vector_block(I64, I64, I64, I64, I64, I32, I64, I64)
def affine_places(
    builder: Any, u: Any, step_u: Any, v: Any, step_v: Any, shift: Any, half: Any, columns: Any, lines: Any
) -> Any:
    """16 places of an affine map, less half a pixel -> int32[16] at ``columns`` and ``lines``."""
    halves = S.splat(builder, half, LANES)
    S.store(builder, builder.sub(_along(builder, u, step_u, shift), halves), columns)
    S.store(builder, builder.sub(_along(builder, v, step_v, shift), halves), lines)


@vector_block(I64, I64, F32, I64, I64)
def perspective_places(builder: Any, terms: Any, x: Any, factor: Any, columns: Any, lines: Any) -> Any:
    """16 places from column ``x`` on, as ``affine_places``. ``terms``: int64 of u: its value at x = 0, what a column
    adds, the greatest place, and the place at u = 0 less half a pixel; the same of v; and of the depth its value, what
    a column adds, and by how much it is shifted right. ``factor`` makes a place of a quotient."""
    floats = S.vector(S.f32, LANES)
    numbers = [S.load(builder, S.after(builder, terms, 8 * i), S.i64) for i in range(11)]
    numerator_shift = ir.Constant(S.i64, NUMERATOR_SHIFT)

    def at_x(start: Any, step: Any) -> Any:
        return builder.add(start, builder.mul(step, x))

    divisor = _along(builder, at_x(*numbers[8:10]), numbers[9], numbers[10])
    divisor = builder.select(builder.icmp_signed("==", divisor, S.same(_words, 0)), S.same(_words, 1), divisor)
    divisor, factor = builder.sitofp(divisor, floats), S.splat(builder, factor, LANES)
    zero = ir.Constant(floats, [0.0] * LANES)
    for (start, step, end, origin), target in ((numbers[:4], columns), (numbers[4:8], lines)):
        value = builder.sitofp(_along(builder, at_x(start, step), step, numerator_shift), floats)
        value = builder.fmul(builder.fdiv(value, divisor), factor)
        value = builder.select(builder.fcmp_ordered(">", value, zero), value, zero)
        end = S.splat(builder, builder.sitofp(end, S.f32), LANES)
        value = builder.fptosi(builder.select(builder.fcmp_ordered("<", value, end), value, end), _words)
        S.store(builder, builder.add(value, S.splat(builder, builder.trunc(origin, S.i32), LANES)), target)


def _offsets(builder: Any, column: Any, line: Any, frame: list[Any], target: Any) -> Any:
    """Byte offsets of first taps to ``target`` -> which would be too great. ``frame``: bytes of a line and of a pixel,
    and the greatest offset."""
    row_bytes, pixel_bytes, last = frame
    offset = builder.add(builder.mul(line, row_bytes), builder.mul(column, pixel_bytes))
    is_beyond = builder.icmp_signed(">", offset, last)
    S.store(builder, builder.select(is_beyond, last, offset), target)
    return is_beyond


def _frame(builder: Any, address: Any) -> tuple[list[Any], list[Any]]:
    """int32[7]: left, top, right and bottom of where places or first taps may lie -> (left, right), (top, bottom); and
    what ``_offsets`` takes."""
    left, top, right, bottom, *rest = (
        S.splat(builder, S.load(builder, S.after(builder, address, 4 * i), S.i32), LANES) for i in range(7)
    )
    return [(left, right), (top, bottom)], rest


def _bits(builder: Any, lanes: Any) -> Any:
    return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), S.i32)


@vector_block(I64, I64, I64, I64, I64, result=I32)
def split_bilinear(builder: Any, columns: Any, lines: Any, frame: Any, offsets: Any, weights: Any) -> Any:
    """16 places -> int32 byte offsets of the first of each two by two taps, and 15-bit weights of the others: int16[16]
    along x, then along y. The place is clamped to the centres of the window's outermost pixels, of which ``frame`` says
    where they are, which has the effect that clamping the taps has.
    """
    fraction, whole = S.same(_words, (1 << 15) - 1), S.same(_words, 15)
    limits, bytes_of = _frame(builder, frame)
    found = []
    for i, (address, (low, high)) in enumerate(zip((columns, lines), limits, strict=True)):
        place = S.clamp(builder, S.load(builder, address, _words), low, high)
        weight = builder.trunc(builder.and_(place, fraction), S.vector(S.i16, LANES))
        S.store(builder, weight, S.after(builder, weights, 2 * LANES * i))
        found.append(builder.ashr(place, whole))
    return _bits(builder, _offsets(builder, found[0], found[1], bytes_of, offsets))


@vector_block(I64, I64, I64, I64, I64, result=I32)
def split_bicubic(builder: Any, columns: Any, lines: Any, frame: Any, offsets: Any, weights: Any) -> Any:
    """16 places -> int32 byte offsets of the first of each four by four taps, which lies where ``frame`` says;
    and 14-bit weights in pairs: int32[16] of the first two along x, the last two, and the same along y.
    """
    fraction, whole, one, half = (S.same(_words, v) for v in ((1 << 14) - 1, 14, 1 << 14, 1 << 13))
    low_half, high_half = S.same(_words, 0xFFFF), S.same(_words, 16)

    def times(a: Any, b: Any) -> Any:
        return builder.ashr(builder.add(builder.mul(a, b), half), whole)

    limits, bytes_of = _frame(builder, frame)
    found, is_outside = [], ir.Constant(S.vector(ir.IntType(1), LANES), [0] * LANES)
    for i, (address, (low, high)) in enumerate(zip((columns, lines), limits, strict=True)):
        place = S.load(builder, address, _words)
        t = builder.and_(place, fraction)
        u = builder.sub(one, t)
        product = times(t, u)
        first, last_weight = builder.neg(times(product, u)), builder.neg(times(product, t))
        pairs = ((first, builder.sub(u, first)), (builder.sub(t, last_weight), last_weight))
        for n, (even, odd) in enumerate(pairs):
            pair = builder.or_(builder.and_(even, low_half), builder.shl(odd, high_half))
            S.store(builder, pair, S.after(builder, weights, 4 * LANES * (2 * i + n)))
        at = builder.sub(builder.ashr(place, whole), S.same(_words, 1))
        inside = S.clamp(builder, at, low, high)
        is_outside = builder.or_(is_outside, builder.icmp_signed("!=", at, inside))
        found.append(inside)
    is_beyond = _offsets(builder, found[0], found[1], bytes_of, offsets)
    return _bits(builder, builder.or_(is_outside, is_beyond))
