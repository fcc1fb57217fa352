"""Numba intrinsics that move elements of ``1 << bits`` bytes between addresses, for lines of masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu.simd import I32, I64, load, store, vector, vector_block

_i32, _i64 = ir.IntType(32), ir.IntType(64)
_SIZES = range(4)
# Bytes of a vector that is turned around, and places that are looked at in one go.
_REGISTER, _TOGETHER = 32, 8
_CACHE_LINE = 64
# What LLVM's prefetch is told.
_TO_READ, _SECOND_LEVEL, _DATA = 0, 2, 1


@vector_block(I64, I64)
def fetch_ahead(builder: Any, source: Any, count: Any) -> Any:
    """Have ``count`` bytes brought near, in their order: places along a slanted line come from memory one by one."""
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _i32, _i32, _i32])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    hints = [ir.Constant(_i32, hint) for hint in (_TO_READ, _SECOND_LEVEL, _DATA)]
    with cgutils.for_range_slice(builder, ir.Constant(_i64, 0), count, ir.Constant(_i64, _CACHE_LINE), _i64) as (at, _):
        builder.call(prefetch, [builder.inttoptr(builder.add(source, at), pointer), *hints])


@vector_block(I32, I64, I64, I64, I64)
def gather_line(builder: Any, bits: Any, source: Any, places: Any, count: Any, out: Any) -> Any:
    """The elements of ``source`` at int32 ``places``, which are 0 or more, in order -> ``out``."""

    def one(size: int, place: Any, to: Any) -> None:
        store(builder, load(builder, _at(builder, source, builder.zext(place, _i64), size), _element(size)), to)

    _for_each_place(builder, bits, places, count, out, one)


@vector_block(I32, I64, I64, I64, I64, I64)
def gather_or_fill(builder: Any, bits: Any, source: Any, places: Any, fill: Any, count: Any, out: Any) -> Any:
    """The same with ``fill`` where a place is negative."""

    def one(size: int, place: Any, to: Any) -> None:
        is_there = builder.icmp_signed(">=", place, ir.Constant(_i32, 0))
        # What is not there reads the first element of the source, so that nothing branches.
        safe = builder.select(is_there, builder.zext(place, _i64), ir.Constant(_i64, 0))
        found = load(builder, _at(builder, source, safe, size), _element(size))
        store(builder, builder.select(is_there, found, _cut(builder, fill, size)), to)

    _for_each_place(builder, bits, places, count, out, one)


@vector_block(I32, I64, I64, I64)
def copy_line(builder: Any, bits: Any, source: Any, count: Any, out: Any) -> Any:
    bytes_ = builder.shl(count, builder.zext(bits, _i64))
    to, of = (builder.inttoptr(address, ir.IntType(8).as_pointer()) for address in (out, source))
    cgutils.raw_memcpy(builder, to, of, bytes_, 1)


@vector_block(I32, I64, I64, I64)
def copy_reversed(builder: Any, bits: Any, source: Any, count: Any, out: Any) -> Any:
    """``count`` elements that end with the one at ``source``, from the last to the first."""

    def line(size: int) -> None:
        element, lanes = _element(size), _REGISTER >> size
        order = ir.Constant(vector(_i32, lanes), list(range(lanes - 1, -1, -1)))
        whole = builder.and_(count, ir.Constant(_i64, -lanes))
        undefined = ir.Constant(vector(element, lanes), ir.Undefined)
        with cgutils.for_range_slice(builder, ir.Constant(_i64, 0), whole, ir.Constant(_i64, lanes), _i64) as (at, _):
            back = builder.sub(ir.Constant(_i64, 1 - lanes), at)
            found = load(builder, _at(builder, source, back, size), vector(element, lanes))
            store(builder, builder.shuffle_vector(found, undefined, order), _at(builder, out, at, size))
        with cgutils.for_range_slice(builder, whole, count, ir.Constant(_i64, 1), _i64) as (at, _):
            found = load(builder, _at(builder, source, builder.neg(at), size), element)
            store(builder, found, _at(builder, out, at, size))

    _by_size(builder, bits, line)


@vector_block(I32, I64, I64, I64)
def fill_line(builder: Any, bits: Any, fill: Any, count: Any, out: Any) -> Any:
    def line(size: int) -> None:
        value = _cut(builder, fill, size)
        with cgutils.for_range(builder, count) as loop:
            store(builder, value, _at(builder, out, loop.index, size))

    _by_size(builder, bits, line)


def _for_each_place(
    builder: Any, bits: Any, places: Any, count: Any, out: Any, one: Callable[[int, Any, Any], None]
) -> None:
    def line(size: int) -> None:
        whole = builder.and_(count, ir.Constant(_i64, -_TOGETHER))
        step = ir.Constant(_i64, _TOGETHER)
        with cgutils.for_range_slice(builder, ir.Constant(_i64, 0), whole, step, _i64) as (at, _):
            for pair in range(0, _TOGETHER, 2):
                here = builder.add(at, ir.Constant(_i64, pair))
                # Two places by one load.
                both = load(builder, _at(builder, places, here, 2), _i64)
                low = builder.trunc(both, _i32)
                high = builder.trunc(builder.lshr(both, ir.Constant(_i64, 32)), _i32)
                one(size, low, _at(builder, out, here, size))
                one(size, high, _at(builder, out, builder.add(here, ir.Constant(_i64, 1)), size))
        with cgutils.for_range_slice(builder, whole, count, ir.Constant(_i64, 1), _i64) as (at, _):
            one(size, load(builder, _at(builder, places, at, 2), _i32), _at(builder, out, at, size))

    _by_size(builder, bits, line)


def _by_size(builder: Any, bits: Any, line: Callable[[int], None]) -> None:
    for size in _SIZES:
        with builder.if_then(builder.icmp_unsigned("==", bits, ir.Constant(_i32, size))):
            line(size)


def _at(builder: Any, address: Any, number: Any, size: int) -> Any:
    return builder.add(address, builder.shl(number, ir.Constant(_i64, size)))


def _element(size: int) -> ir.IntType:
    return ir.IntType(8 << size)


def _cut(builder: Any, value: Any, size: int) -> Any:
    return value if size == 3 else builder.trunc(value, _element(size))
