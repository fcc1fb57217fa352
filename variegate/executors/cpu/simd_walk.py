"""Where the pixels of a row are read, and reading them: 16.16 maps walked back, gathers, fills of what lies outside.

Coordinates are worked out in vectors of the target's own width, a row rounded up to whole blocks of 16. A pixel is read
by one 4-byte load, of which three bytes count.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512
from variegate.executors.cpu import simd as S
from variegate.executors.cpu.simd import I32, I64, planes_from, vector_block

_LANES = 16 if HAS_AVX512 else 8 if HAS_AVX2 else 4
_BLOCK = 16

_words = S.vector(S.i32, _LANES)


def _row(builder: Any, count: Any) -> Any:
    """A loop over ``count`` coordinates -> where 4-byte items of the next _LANES lie from an array's start."""
    end = builder.and_(S.after(builder, count, _BLOCK - 1), ir.Constant(S.i64, -_BLOCK))
    end = builder.shl(end, ir.Constant(S.i64, 2))
    return cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), end, ir.Constant(S.i64, 4 * _LANES), S.i64)


class _Stepping:
    """A coordinate along a row: ``start + i step``, vector by vector."""

    def __init__(self, builder: Any, start: Any, step: Any) -> None:
        ramp = ir.Constant(_words, list(range(_LANES)))
        first = builder.add(S.splat(builder, start, _LANES), builder.mul(S.splat(builder, step, _LANES), ramp))
        self._builder, self._held = builder, cgutils.alloca_once_value(builder, first)
        self._step = S.splat(builder, builder.mul(step, ir.Constant(S.i32, _LANES)), _LANES)

    def next(self) -> Any:
        value = self._builder.load(self._held)
        self._builder.store(self._builder.add(value, self._step), self._held)
        return value


class _Offsets:
    """Coordinates as byte offsets of RGB pixels at which four bytes can be read, and whether that moved any."""

    def __init__(self, builder: Any, width: Any, last: Any) -> None:
        # A side has at most 15 bits. LLVM multiplies such numbers faster, if it can see that they are.
        self._width = S.splat(builder, builder.sext(builder.trunc(width, S.i16), S.i32), _LANES)
        self._last = S.splat(builder, last, _LANES)
        self._builder, self._moved = builder, cgutils.alloca_once_value(builder, S.same(_words, 0))

    def store(self, column: Any, line: Any, out: Any) -> None:
        builder = self._builder
        pixel = builder.add(builder.mul(line, self._width), column)
        offset = builder.add(builder.add(pixel, pixel), pixel)
        offset = builder.select(builder.icmp_signed(">", offset, S.same(_words, 0)), offset, S.same(_words, 0))
        beyond = builder.icmp_signed(">", offset, self._last)
        builder.store(builder.or_(builder.load(self._moved), builder.sext(beyond, _words)), self._moved)
        S.store(builder, builder.select(beyond, self._last, offset), out)

    def any_moved(self) -> Any:
        builder = self._builder
        moved = S.call_named(builder, f"llvm.vector.reduce.or.v{_LANES}i32", S.i32, builder.load(self._moved))
        return builder.zext(moved, S.i64)


@vector_block(I32, I32, I32, I32, I32, I32, I64, I64, result=I64)
def affine_offsets(builder: Any, x: Any, y: Any, dx: Any, dy: Any, width: Any, last: Any, count: Any, out: Any) -> Any:
    """The int32 byte offsets of ``count`` pixels at 16.16 coordinates ``(x + i dx, y + i dy)``, but at most ``last``,
    image bytes - 4 -> 0 if the last pixel of the image, which lies at ``last + 1``, is surely not among them.
    """
    xs, ys, offsets = _Stepping(builder, x, dx), _Stepping(builder, y, dy), _Offsets(builder, width, last)
    with _row(builder, count) as (at, _):
        column, line = (builder.ashr(along.next(), S.same(_words, 16)) for along in (xs, ys))
        offsets.store(column, line, builder.add(out, at))
    return offsets.any_moved()


@vector_block(I64, I64, I32, I32, I64, I64, result=I64)
def walked_offsets(builder: Any, columns: Any, lines: Any, width: Any, last: Any, count: Any, out: Any) -> Any:
    """As ``affine_offsets``, of the int32 coordinates that a walk has led to."""
    offsets = _Offsets(builder, width, last)
    with _row(builder, count) as (at, _):
        column, line = (S.load(builder, builder.add(array, at), _words) for array in (columns, lines))
        offsets.store(column, line, builder.add(out, at))
    return offsets.any_moved()


class _WindowedMap:
    """A map and its window, int32[11] at an address: a, b, c, d, e, f, top, left, bottom, right, slot."""

    def __init__(self, builder: Any, address: Any) -> None:
        self._builder = builder
        self.numbers = [S.load(builder, S.after(builder, address, 4 * i), S.i32) for i in range(11)]
        self.vectors = [S.splat(builder, number, _LANES) for number in self.numbers]

    def store(self, u: Any, v: Any, left_at: Any, places: list[Any]) -> None:
        """16.16 coordinates in the source of the map, and where they left so far, as columns, lines and stages."""
        builder, (top, left, bottom, right, slot) = self._builder, self.vectors[6:]
        u, v = builder.ashr(u, S.same(_words, 16)), builder.ashr(v, S.same(_words, 16))
        inside = builder.and_(
            builder.and_(builder.icmp_signed(">=", u, left), builder.icmp_signed("<", u, right)),
            builder.and_(builder.icmp_signed(">=", v, top), builder.icmp_signed("<", v, bottom)),
        )
        stays = builder.or_(inside, builder.icmp_signed(">=", left_at, S.same(_words, 0)))
        stage = builder.select(stays, left_at, slot)
        found = (builder.select(inside, u, S.same(_words, 0)), builder.select(inside, v, S.same(_words, 0)), stage)
        for value, place in zip(found, places, strict=True):
            S.store(builder, value, place)


@vector_block(I32, I64, I64, I64, I64, I64)
def begin_walk(builder: Any, y: Any, mapping: Any, count: Any, columns: Any, lines: Any, stages: Any) -> Any:
    """Row ``y`` of the output, ``count`` pixels, through the last map of a chain: see ``step_back``."""
    by = _WindowedMap(builder, mapping)
    a, b, c, d, e, f = by.numbers[:6]
    us = _Stepping(builder, builder.add(builder.mul(b, y), c), a)
    vs = _Stepping(builder, builder.add(builder.mul(e, y), f), d)
    with _row(builder, count) as (at, _):
        by.store(
            us.next(), vs.next(), S.same(_words, -1), [builder.add(array, at) for array in (columns, lines, stages)]
        )


@vector_block(I64, I64, I64, I64, I64)
def step_back(builder: Any, mapping: Any, count: Any, columns: Any, lines: Any, stages: Any) -> Any:
    """``count`` int32 coordinates, at ``columns`` and ``lines``, through one map, in place.

    A pixel that is outside for the first time gets the map's slot at ``stages``, which hold -1 for what is inside;
    whatever is outside goes on from (0, 0).
    """
    by = _WindowedMap(builder, mapping)
    a, b, c, d, e, f = by.vectors[:6]
    with _row(builder, count) as (at, _):
        places = [builder.add(array, at) for array in (columns, lines, stages)]
        x, y, left_at = (S.load(builder, place, _words) for place in places)
        u = builder.add(builder.add(builder.mul(a, x), builder.mul(b, y)), c)
        v = builder.add(builder.add(builder.mul(d, x), builder.mul(e, y)), f)
        by.store(u, v, left_at, places)


@vector_block(I64, I64, I64, I64, I64)
def load_pixels(builder: Any, image: Any, offsets: Any, count: Any, ahead: Any, out: Any) -> Any:
    """The four bytes at each of ``count`` int32 byte offsets, rounded up to a multiple of 8 -> words at ``out``.

    By scalar loads: gather instructions took longer wherever they were measured, and take far longer where microcode
    keeps them from leaking data. What lies ``ahead`` bytes further is brought into the cache.
    """
    size, step = builder.shl(count, ir.Constant(S.i64, 2)), ir.Constant(S.i64, 32)
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), size, step, S.i64) as (at, _):
        for pair in range(0, 32, 8):
            place = S.after(builder, at, pair)
            # Two offsets by one load.
            both = S.load(builder, builder.add(offsets, place), S.i64)
            low, high = builder.and_(both, ir.Constant(S.i64, 0xFFFFFFFF)), builder.lshr(both, ir.Constant(S.i64, 32))
            if pair == 0:
                S.ask_for(builder, builder.add(builder.add(image, low), ahead))
            pixels = [S.load(builder, builder.add(image, offset), S.i32) for offset in (low, high)]
            for pixel, offset in zip(pixels, (0, 4), strict=True):
                S.store(builder, pixel, builder.add(builder.add(out, place), ir.Constant(S.i64, offset)))


@vector_block(I64, I64, I32, I32, I64, I64)
def fill_row(builder: Any, stages: Any, count: Any, slot: Any, colour: Any, planes: Any, stride: Any) -> Any:
    """Where ``stages``, int32[count] rounded up to a multiple of 16, hold ``slot``, the pixel gets a packed colour."""
    lanes = 16
    levels = [
        S.splat(builder, builder.trunc(builder.lshr(colour, ir.Constant(S.i32, 8 * c)), S.i8), lanes) for c in range(3)
    ]
    slots, addresses = S.splat(builder, slot, lanes), planes_from(builder, planes, stride)
    step = ir.Constant(S.i64, lanes)
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, step, S.i64) as (x, _):
        stage = S.load(builder, builder.add(stages, builder.shl(x, ir.Constant(S.i64, 2))), S.vector(S.i32, lanes))
        left_here = builder.icmp_signed("==", stage, slots)
        which = builder.bitcast(left_here, ir.IntType(lanes))
        with builder.if_then(builder.icmp_unsigned("!=", which, ir.Constant(which.type, 0))):
            for level, address in zip(levels, addresses, strict=True):
                place = builder.add(address, x)
                S.store(builder, builder.select(left_here, level, S.load(builder, place, level.type)), place)
