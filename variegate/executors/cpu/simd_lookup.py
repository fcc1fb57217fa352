"""Bytes looked up in a table of 256, in registers: the best way that the target has.

===================  ==================================================================================================
AVX-512 VBMI         four registers hold the table; one instruction picks 64 bytes from two of them
AVX-512              the same by words of two bytes, once for even and once for odd places
AVX2, SSSE3          16 rows of 16 bytes, one shuffle each, which gives zero where the top bit of an index is set
===================  ==================================================================================================

Elsewhere a plain loop looks up one byte at a time (``values.look_up``).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_PERMUTE, HAS_BYTE_SHUFFLE
from variegate.executors.cpu import simd as S
from variegate.executors.cpu.simd import BLOCK, I64, vector_block

_bytes, _halves = S.vector(S.i8, BLOCK), S.vector(S.i16, BLOCK // 2)


def _quarters(builder: Any, table: Any, kind: Any) -> list[Any]:
    return [S.load(builder, S.after(builder, table, BLOCK * i), kind) for i in range(4)]


@vector_block(I64, I64, I64, needs=HAS_BYTE_PERMUTE)
def lookup_by_bytes(builder: Any, row: Any, count: Any, table: Any) -> Any:
    """``count`` bytes from ``row`` on become what ``table`` has for them; rounded up to whole blocks of 64."""
    quarters, name = _quarters(builder, table, _bytes), "llvm.x86.avx512.vpermi2var.qi.512"
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, ir.Constant(S.i64, BLOCK), S.i64) as (x, _):
        index = S.load(builder, builder.add(row, x), _bytes)
        low = S.call_named(builder, name, _bytes, quarters[0], index, quarters[1])
        high = S.call_named(builder, name, _bytes, quarters[2], index, quarters[3])
        is_high = builder.icmp_signed("<", index, S.same(_bytes, 0))
        S.store(builder, builder.select(is_high, high, low), builder.add(row, x))


@vector_block(I64, I64, I64, needs=HAS_AVX512)
def lookup_by_words(builder: Any, row: Any, count: Any, table: Any) -> Any:
    """As ``lookup_by_bytes``: bits 1 to 6 of an index pick a word, bit 7 the half of the table, bit 0 the byte."""
    quarters, name = _quarters(builder, table, _halves), "llvm.x86.avx512.vpermi2var.hi.512"
    eight, zero = S.same(_halves, 8), S.same(_halves, 0)
    is_odd_place = ir.Constant(S.vector(ir.IntType(1), BLOCK), [0, 1] * (BLOCK // 2))
    with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, ir.Constant(S.i64, BLOCK), S.i64) as (x, _):
        index = S.load(builder, builder.add(row, x), _halves)
        found = []
        for shift, is_high in (
            (1, builder.icmp_signed("!=", builder.and_(index, S.same(_halves, 128)), zero)),
            (9, builder.icmp_signed("<", index, zero)),
        ):
            at = builder.lshr(index, S.same(_halves, shift))
            low = S.call_named(builder, name, _halves, quarters[0], at, quarters[1])
            high = S.call_named(builder, name, _halves, quarters[2], at, quarters[3])
            found.append(builder.select(is_high, high, low))
        even, odd = found
        first, second = (
            builder.select(is_odd_place, builder.bitcast(b, _bytes), builder.bitcast(a, _bytes))
            for a, b in ((even, builder.shl(odd, eight)), (builder.lshr(even, eight), odd))
        )
        lowest = builder.and_(builder.bitcast(index, _bytes), S.same(_bytes, 1))
        is_second = builder.icmp_signed("!=", lowest, S.same(_bytes, 0))
        S.store(builder, builder.select(is_second, second, first), builder.add(row, x))


def _by_shuffles(width: int, shuffle: str, needs: bool) -> Any:
    @vector_block(I64, I64, I64, needs=needs)
    def lookup(builder: Any, row: Any, count: Any, table: Any) -> Any:
        """As ``lookup_by_bytes``, of up to 32 bytes at a time.

        An index loses 16 from row to row of the table, and stays below zero once it is: what remains of it picks from
        this row *and those before*. So each row is held as its difference (xor) to the one before, and what the
        shuffles give is put together by xor. The upper half of the table has the index less 128.
        """
        narrow, wide = S.vector(S.i8, 16), S.vector(S.i8, width)
        rows = [S.load(builder, S.after(builder, table, 16 * t), narrow) for t in range(16)]
        differences = cgutils.alloca_once(builder, wide, 16)
        lanes = ir.Constant(S.vector(S.i32, width), [i % 16 for i in range(width)])
        for t in range(16):
            difference = rows[t] if t % 8 == 0 else builder.xor(rows[t], rows[t - 1])
            difference = builder.shuffle_vector(difference, difference, lanes)
            builder.store(difference, builder.gep(differences, [ir.Constant(S.i32, t)]))
        # Seen as a variable. LLVM would make seven constants of the one, and copies for instructions that overwrite.
        sixteen = builder.asm(ir.FunctionType(wide, [wide]), "", "=x,0", [S.same(wide, 16)], False)
        subtract = f"llvm.ssub.sat.v{width}i8"
        with cgutils.for_range_slice(builder, ir.Constant(S.i64, 0), count, ir.Constant(S.i64, width), S.i64) as (x, _):
            low = S.load(builder, builder.add(row, x), wide)
            high, total = builder.xor(low, S.same(wide, 128)), S.same(wide, 0)
            for t in range(8):
                for half, index in ((0, low), (8, high)):
                    difference = builder.load(builder.gep(differences, [ir.Constant(S.i32, half + t)]))
                    total = builder.xor(total, S.call_named(builder, shuffle, wide, difference, index))
                low, high = (S.call_named(builder, subtract, wide, index, sixteen) for index in (low, high))
            S.store(builder, total, builder.add(row, x))

    return lookup


lookup_by_32 = _by_shuffles(32, "llvm.x86.avx2.pshuf.b", HAS_AVX2)
lookup_by_16 = _by_shuffles(16, "llvm.x86.ssse3.pshuf.b.128", HAS_BYTE_SHUFFLE)

lookup_row = (
    lookup_by_bytes
    if HAS_BYTE_PERMUTE
    else lookup_by_words
    if HAS_AVX512
    else lookup_by_32
    if HAS_AVX2
    else lookup_by_16
)
