"""Numba intrinsics that move elements of ``1 << bits`` bytes between addresses, for lines of masks."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu.simd import I32, I64, Value, repeat, steps, vector_block

# Bytes of a vector that is turned around, and places that are looked at in one go.
_REGISTER, _TOGETHER = 32, 8


@vector_block(I32, I64, I64, I64, I64)
def gather_line(bits: Value, source: Value, places: Value, count: Value, out: Value) -> None:
    """The elements of ``source`` at int32 ``places``, which are 0 or more, in order -> ``out``."""

    def one(size: int, place: Value, to: Value) -> None:
        (source + (place.wide("i64") << size)).load(_element(size)).store(to)

    _for_each_place(bits, places, count, out, one)


@vector_block(I32, I64, I64, I64, I64, I64)
def gather_or_fill(bits: Value, source: Value, places: Value, fill: Value, count: Value, out: Value) -> None:
    """The same with ``fill`` where a place is negative."""

    def one(size: int, place: Value, to: Value) -> None:
        is_there = place >= 0
        # What is not there reads the first element of the source, so that nothing branches.
        safe = is_there.choose(place.wide("i64"), 0)
        found = (source + (safe << size)).load(_element(size))
        is_there.choose(found, _cut(fill, size)).store(to)

    _for_each_place(bits, places, count, out, one)


@vector_block(I32, I64, I64, I64)
def copy_line(bits: Value, source: Value, count: Value, out: Value) -> None:
    size = count << bits.wide("i64")
    to, of = (out.builder.inttoptr(address.value, ir.IntType(8).as_pointer()) for address in (out, source))
    cgutils.raw_memcpy(out.builder, to, of, size.value, 1)


@vector_block(I32, I64, I64, I64)
def copy_reversed(bits: Value, source: Value, count: Value, out: Value) -> None:
    """``count`` elements that end with the one at ``source``, from the last to the first."""

    def line(size: int) -> None:
        lanes = _REGISTER >> size
        whole = count & -lanes
        with steps(whole, lanes) as at:
            found = (source + ((1 - lanes - at) << size)).load(_element(size), lanes)
            found.picked(range(lanes - 1, -1, -1)).store(out + (at << size))
        with steps(count, 1, whole) as at:
            (source + (-at << size)).load(_element(size)).store(out + (at << size))

    _by_size(bits, line)


@vector_block(I32, I64, I64, I64)
def fill_line(bits: Value, fill: Value, count: Value, out: Value) -> None:
    def line(size: int) -> None:
        value = _cut(fill, size)
        with repeat(count) as at:
            value.store(out + (at << size))

    _by_size(bits, line)


def _for_each_place(
    bits: Value, places: Value, count: Value, out: Value, one: Callable[[int, Value, Value], None]
) -> None:
    def line(size: int) -> None:
        whole = count & -_TOGETHER
        with steps(whole, _TOGETHER) as at:
            for pair in range(0, _TOGETHER, 2):
                here = at + pair
                # Two places by one load.
                both = (places + (here << 2)).load("i64")
                one(size, both.narrow("i32"), out + (here << size))
                one(size, (both >> 32).narrow("i32"), out + ((here + 1) << size))
        with steps(count, 1, whole) as at:
            one(size, (places + (at << 2)).load("i32"), out + (at << size))

    _by_size(bits, line)


def _by_size(bits: Value, line: Callable[[int], None]) -> None:
    for size in range(4):
        with bits.builder.if_then(bits.equals(size).value):
            line(size)


def _element(size: int) -> str:
    return f"i{8 << size}"


def _cut(value: Value, size: int) -> Value:
    return value if size == 3 else value.narrow(_element(size))
