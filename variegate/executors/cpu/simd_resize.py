"""Both passes of a resize as byte dot products (AVX-512 VNNI), exact in integers.

A weight of 22 fraction bits is split into three signed bytes, ``w = d0 + 256 d1 + 65536 d2``. One instruction
multiplies four bytes of an image with four such digits and adds them up in 32 bits, for 16 outputs at once. Where the
processor lacks the instructions, ``resample.py`` takes its plain way, with the same results to the bit.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_BYTE_DOT
from variegate.executors.cpu.kernel import inlined
from variegate.executors.cpu.simd import I64, after, call_named, i8, i32, i64, load, splat, store, vector, vector_block

DIGITS = 3
# Bytes of a source row that one block of 16 outputs may span: two registers, between which bytes are picked.
WINDOW = 128

_bytes, _words = vector(i8, 64), vector(i32, 16)


def _dot(builder: Any, total: Any, levels: Any, digits: Any) -> Any:
    """int32[16] ``total`` plus, per lane, four unsigned ``levels`` times four signed ``digits``."""
    # The instruction's operands are words of four bytes in LLVM up to 21, and bytes from 22 on.
    if llvmlite.binding.llvm_version_info[0] >= 22:
        return call_named(builder, "llvm.x86.avx512.vpdpbusd.512", _words, total, levels, digits)
    return call_named(
        builder,
        "llvm.x86.avx512.vpdpbusd.512",
        _words,
        total,
        builder.bitcast(levels, _words),
        builder.bitcast(digits, _words),
    )


def _joined(builder: Any, totals: list[Any]) -> Any:
    """The three digits' sums as one, rounded and shifted to a level that may still lie outside 0..255."""
    value = builder.add(totals[0], ir.Constant(_words, [1 << 21] * 16))
    for digit in (1, 2):
        value = builder.add(value, builder.shl(totals[digit], ir.Constant(_words, [8 * digit] * 16)))
    return builder.ashr(value, ir.Constant(_words, [22] * 16))


@vector_block(I64, I64, I64, I64, I64, needs=HAS_BYTE_DOT)
def resize_block(builder: Any, source: Any, picks: Any, digits: Any, groups: Any, target: Any) -> Any:
    """16 output pixels of a horizontal pass -> 16 RGBX pixels at ``target``.

    ``source``: WINDOW readable bytes. Per group of four weights: ``picks`` holds 3 x 64 byte positions (per channel,
    output and weight), ``digits`` holds 3 x 64 signed bytes (per digit, output and weight).
    """
    zero = ir.Constant(_words, [0] * 16)
    low = load(builder, source, _bytes)
    high = load(builder, after(builder, source, 64), _bytes)
    totals = [[cgutils.alloca_once_value(builder, zero) for _ in range(DIGITS)] for _ in range(3)]
    with cgutils.for_range(builder, groups) as loop:
        at = builder.mul(loop.index, ir.Constant(i64, 192))
        weight = [
            load(builder, builder.add(builder.add(digits, at), ir.Constant(i64, 64 * d)), _bytes) for d in range(DIGITS)
        ]
        for channel in range(3):
            pick = load(builder, builder.add(builder.add(picks, at), ir.Constant(i64, 64 * channel)), _bytes)
            levels = call_named(builder, "llvm.x86.avx512.vpermi2var.qi.512", _bytes, low, pick, high)
            for digit in range(DIGITS):
                total = totals[channel][digit]
                builder.store(_dot(builder, builder.load(total), levels, weight[digit]), total)
    packed = zero
    top = ir.Constant(_words, [255] * 16)
    for channel in range(3):
        value = _joined(builder, [builder.load(total) for total in totals[channel]])
        value = builder.select(builder.icmp_signed("<", value, zero), zero, value)
        value = builder.select(builder.icmp_signed(">", value, top), top, value)
        packed = builder.or_(packed, builder.shl(value, ir.Constant(_words, [8 * channel] * 16)))
    store(builder, packed, target)


def _interleave(builder: Any, a: Any, b: Any, unit: int, high: bool) -> Any:
    """The low or high halves of each 16 bytes of ``a`` and ``b``, interleaved by units of bytes (vpunpck)."""
    lanes = []
    for lane in range(4):
        for i in range(8 // unit):
            first = 16 * lane + (8 if high else 0) + unit * i
            lanes += [first + j for j in range(unit)] + [64 + first + j for j in range(unit)]
    return builder.shuffle_vector(a, b, ir.Constant(vector(i32, 64), lanes))


@vector_block(I64, I64, I64, I64, I64, I64, needs=HAS_BYTE_DOT)
def weigh_rows_block(builder: Any, source: Any, stride: Any, digits: Any, groups: Any, count: Any, target: Any) -> Any:
    """64 bytes of a vertical pass: ``count`` rows, ``stride`` bytes apart, weighed into one.

    ``digits``: int32[groups][3], four signed bytes each; those past ``count`` are zero, and row ``count - 1`` is read
    for them.
    """
    zero = ir.Constant(_words, [0] * 16)
    last = builder.sub(count, ir.Constant(i64, 1))
    totals = [[cgutils.alloca_once_value(builder, zero) for _ in range(DIGITS)] for _ in range(4)]
    with cgutils.for_range(builder, groups) as loop:
        rows = []
        for j in range(4):
            row = builder.add(builder.mul(loop.index, ir.Constant(i64, 4)), ir.Constant(i64, j))
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            rows.append(load(builder, builder.add(source, builder.mul(row, stride)), _bytes))
        pairs = [_interleave(builder, rows[2 * i], rows[2 * i + 1], 1, high) for i in (0, 1) for high in (False, True)]
        quads = [
            _interleave(builder, pairs[half], pairs[2 + half], 2, high) for half in (0, 1) for high in (False, True)
        ]
        at = builder.add(digits, builder.mul(loop.index, ir.Constant(i64, 12)))
        for d in range(DIGITS):
            word = load(builder, after(builder, at, 4 * d), i32)
            weight = builder.bitcast(splat(builder, word, 16), _bytes)
            for q in range(4):
                builder.store(_dot(builder, builder.load(totals[q][d]), quads[q], weight), totals[q][d])
    values = [_joined(builder, [builder.load(total) for total in totals[q]]) for q in range(4)]
    halves = vector(ir.IntType(16), 32)
    # Packing saturates, which is the clipping, and undoes the interleaving's order.
    first = call_named(builder, "llvm.x86.avx512.packusdw.512", halves, values[0], values[1])
    second = call_named(builder, "llvm.x86.avx512.packusdw.512", halves, values[2], values[3])
    store(builder, call_named(builder, "llvm.x86.avx512.packuswb.512", _bytes, first, second), target)


@inlined
def split_weight(weight: Any) -> Any:
    """Three signed bytes with ``weight = d0 + 256 d1 + 65536 d2``."""
    d0 = ((weight + 128) & 255) - 128
    rest = (weight - d0) >> 8
    d1 = ((rest + 128) & 255) - 128
    return d0, d1, (rest - d1) >> 8
