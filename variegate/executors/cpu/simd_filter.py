"""Vector blocks of blurs: 32 pixels of one plane, weighed in 16-bit integers and summed exactly in 32 bits.

Two terms are multiplied and added by one instruction (``pmaddwd``), which every x86-64 has; for the rest there is the
same in plain LLVM. A weight of a separable blur counts for two pixels that mirror each other, so one multiplication
does for four. ``program/lowering/blurs.py`` says why nothing overflows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_SHUFFLE
from variegate.executors.cpu.simd import I64, load, splat, store, vector, vector_block
from variegate.program.lowering.blurs import LEVEL_BITS, WEIGHT_BITS

COLUMNS = 32
# Terms of the most common blurs, which a loop would slow down.
FEW = 3

_i8, _i16, _i32, _i64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
# Lanes of 16 bits that one register has, of the instructions that are named.
_LANES = 32 if HAS_AVX512 else 16 if HAS_AVX2 else 8 if HAS_BYTE_SHUFFLE else COLUMNS
_MADD = {32: "llvm.x86.avx512.pmaddw.d.512", 16: "llvm.x86.avx2.pmadd.wd", 8: "llvm.x86.sse2.pmadd.wd"}
_PACK = {32: "llvm.x86.avx512.packssdw.512", 16: "llvm.x86.avx2.packssdw", 8: "llvm.x86.sse2.packssdw.128"}


def _call(builder: Any, name: str, result: ir.Type, *args: Any) -> Any:
    function_type = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), args)


def _interleaved(builder: Any, a: Any, b: Any) -> list[Any]:
    """The low and the high halves of each 16 bytes of two registers, word by word."""
    lanes = a.type.count
    halves = []
    for half in (0, 4):
        order = [first + half + i + of for first in range(0, lanes, 8) for i in range(4) for of in (0, lanes)]
        halves.append(builder.shuffle_vector(a, b, ir.Constant(vector(_i32, lanes), order)))
    return halves


def _weighed(builder: Any, a: Any, b: Any, weights: Any) -> list[Any]:
    """``a`` and ``b``, int16[_LANES], times the two int16 of ``weights`` -> what ``_narrowed`` takes."""
    if not HAS_BYTE_SHUFFLE:
        wide, sums = vector(_i32, a.type.count), []
        for value, shift in ((a, 16), (b, 0)):
            weight = builder.ashr(builder.shl(weights, ir.Constant(_i32, shift)), ir.Constant(_i32, 16))
            sums.append(builder.mul(builder.sext(value, wide), splat(builder, weight, a.type.count)))
        return [builder.add(*sums)]
    pair = builder.bitcast(splat(builder, weights, _LANES // 2), a.type)
    result = vector(_i32, _LANES // 2)
    return [_call(builder, _MADD[_LANES], result, half, pair) for half in _interleaved(builder, a, b)]


def _narrowed(builder: Any, totals: list[Any], bits: int) -> Any:
    """Sums shifted right by ``bits`` -> int16[_LANES]."""
    values = [builder.ashr(total, ir.Constant(total.type, [bits] * total.type.count)) for total in totals]
    if not HAS_BYTE_SHUFFLE:
        return builder.trunc(values[0], vector(_i16, values[0].type.count))
    return _call(builder, _PACK[_LANES], vector(_i16, _LANES), *values)


def _weigh(builder: Any, weights: Any, count: Any, read: Any, bits: int, few: int = 0) -> list[Any]:
    """``count`` terms and a zero weight if that is odd, ``read(term)(part)`` giving int16[_LANES] of each, weighed ->
    COLUMNS rounded sums, in parts. ``few``: so many terms, if they are, without a loop.
    """
    sums = [_LANES // 2] * 2 if HAS_BYTE_SHUFFLE else [_LANES]
    kinds = [[vector(_i32, n) for n in sums] for _ in range(COLUMNS // _LANES)]
    half = 1 << (bits - 1)
    totals = [[cgutils.alloca_once_value(builder, ir.Constant(k, [half] * k.count)) for k in part] for part in kinds]

    def add(first: Any, terms: list[Any]) -> None:
        pair = load(builder, builder.add(weights, builder.shl(first, ir.Constant(_i64, 1))), _i32)
        readers = [read(term) for term in terms]
        for part, part_totals in enumerate(totals):
            values = [reader(part * _LANES) for reader in readers]
            if len(values) == 1:
                values.append(ir.Constant(values[0].type, [0] * _LANES))
            for total, product in zip(part_totals, _weighed(builder, *values, pair), strict=True):
                builder.store(builder.add(builder.load(total), product), total)

    def add_many() -> None:
        groups = builder.lshr(builder.add(count, ir.Constant(_i64, 1)), ir.Constant(_i64, 1))
        with cgutils.for_range(builder, groups) as loop:
            first = builder.shl(loop.index, ir.Constant(_i64, 1))
            add(first, [first, builder.add(first, ir.Constant(_i64, 1))])

    if few:
        is_few = builder.icmp_signed("==", count, ir.Constant(_i64, few))
        with builder.if_else(is_few) as (then, otherwise):
            with then:
                terms = [ir.Constant(_i64, term) for term in range(few)]
                for i in range(0, few, 2):
                    add(terms[i], terms[i : i + 2])
            with otherwise:
                add_many()
    else:
        add_many()
    return [_narrowed(builder, [builder.load(total) for total in part], bits) for part in totals]


def _store_levels(builder: Any, parts: list[Any], target: Any) -> None:
    for i, part in enumerate(parts):
        at = builder.add(target, ir.Constant(_i64, i * _LANES))
        store(builder, builder.trunc(part, vector(_i8, _LANES)), at)


def _levels(builder: Any, address: Any, offset: int) -> Any:
    at = builder.add(address, ir.Constant(_i64, offset))
    return builder.zext(load(builder, at, vector(_i8, _LANES)), vector(_i16, _LANES))


def _words(builder: Any, address: Any, offset: int) -> Any:
    return load(builder, builder.add(address, ir.Constant(_i64, 2 * offset)), vector(_i16, _LANES))


def _line(builder: Any, plane: Any, lines: Any, index: Any) -> Any:
    at = builder.add(lines, builder.shl(index, ir.Constant(_i64, 3)))
    return builder.add(plane, load(builder, at, _i64))


@vector_block(I64, I64, I64, I64, I64)
def blur_columns(builder: Any, plane: Any, lines: Any, weights: Any, count: Any, target: Any) -> Any:
    """32 columns -> int16[32] at ``target``, with LEVEL_BITS. ``lines``: the address of int64 offsets of lines from
    ``plane``, at that of the line itself; offsets of its neighbours lie around it."""

    def read(term: Any) -> Any:
        above, below = (_line(builder, plane, lines, index) for index in (builder.neg(term), term))
        return lambda x: builder.add(_levels(builder, above, x), _levels(builder, below, x))

    for i, part in enumerate(_weigh(builder, weights, count, read, WEIGHT_BITS + 1 - LEVEL_BITS, FEW)):
        store(builder, part, builder.add(target, ir.Constant(_i64, 2 * i * _LANES)))


@vector_block(I64, I64, I64, I64)
def blur_along(builder: Any, row: Any, weights: Any, count: Any, target: Any) -> Any:
    """32 pixels from int16 at ``row`` and around it, with LEVEL_BITS -> 32 levels."""

    def read(term: Any) -> Any:
        step = builder.shl(term, ir.Constant(_i64, 1))
        left, right = builder.sub(row, step), builder.add(row, step)
        return lambda x: builder.add(_words(builder, left, x), _words(builder, right, x))

    _store_levels(builder, _weigh(builder, weights, count, read, WEIGHT_BITS + 1 + LEVEL_BITS, FEW), target)


@vector_block(I64, I64, I64, I64, I64)
def weigh_cells(builder: Any, plane: Any, cells: Any, weights: Any, count: Any, target: Any) -> Any:
    """32 pixels, each a sum of what lies at the int64 offsets ``cells`` from it -> 32 levels."""

    def read(term: Any) -> Any:
        at = _line(builder, plane, cells, term)
        return lambda x: _levels(builder, at, x)

    _store_levels(builder, _weigh(builder, weights, count, read, WEIGHT_BITS), target)
