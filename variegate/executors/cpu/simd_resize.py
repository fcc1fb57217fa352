"""Both passes of a resize, exact in integers: by byte dot products (AVX-512 VNNI), or by multiplications of 16 bits.

A weight of 22 fraction bits is split into three signed bytes, ``w = d0 + 256 d1 + 65536 d2``. One instruction
multiplies four bytes of an image with four such digits and adds them up in 32 bits, for 16 outputs at once. Where the
processor lacks the instructions, a weight is split into two, ``w = low + 4096 high``, and two are weighed at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils

from variegate.compiling.levels import HAS_BYTE_DOT
from variegate.executors.cpu import simd as S
from variegate.executors.cpu.kernel import inlined
from variegate.executors.cpu.lanes import BYTES, HALVES, REGISTER, WORDS, bytes_of, halves_of, interleaved, multiplied
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


# Outputs of a horizontal pass that are made at a time: each 16 bytes of four registers are one's R, G, B and nothing.
PIXELS = REGISTER // 4
# Bytes that are read of each pair of source pixels, which takes six.
READ = 16
_SPLIT_BITS, _PRECISION = 12, 22


@inlined
def split_in_two(weight: Any) -> Any:
    """Two signed numbers of at most 12 bits, and 12 less than the weight's, with ``weight = low + 4096 high``."""
    low = ((weight + 2048) & 4095) - 2048
    return low, (weight - low) >> 12


def _sum_pairs(builder: Any, pairs: Any, read: Callable[[Any], tuple[list[Any], list[list[Any]]]]) -> Any:
    """Over ``pairs`` pairs of weights, ``read(pair)`` giving four HALVES of levels, and of weights low and high ->
    the BYTES of the sums."""
    starts = [S.same(WORDS, 1 << (_PRECISION - 1)), S.same(WORDS, 0)]
    totals = [[cgutils.alloca_once_value(builder, start) for start in starts] for _ in range(4)]
    with cgutils.for_range(builder, pairs) as loop:
        for part, levels, weights in zip(totals, *read(loop.index), strict=True):
            for total, weight in zip(part, weights, strict=True):
                builder.store(builder.add(builder.load(total), multiplied(builder, levels, weight)), total)
    values = []
    for low, high in totals:
        value = builder.add(builder.load(low), builder.shl(builder.load(high), S.same(WORDS, _SPLIT_BITS)))
        values.append(builder.ashr(value, S.same(WORDS, _PRECISION)))
    return bytes_of(builder, halves_of(builder, *values[:2]), halves_of(builder, *values[2:]))


@vector_block(I64, I64, I64, I64, I64)
def resize_pixels(builder: Any, source: Any, offsets: Any, weights: Any, pairs: Any, target: Any) -> Any:
    """PIXELS outputs of a horizontal pass -> as many RGBX pixels at ``target``.

    ``offsets``: int32, of each output's first source pixel; pairs are six bytes apart, and READ bytes of each are read.
    ``weights``: see ``resize_weights.pair_weights``.
    """
    firsts = []
    for x in range(PIXELS):
        offset = S.load(builder, S.after(builder, offsets, 4 * x), S.i32)
        firsts.append(builder.add(source, builder.sext(offset, S.i64)))
    # Of each 16 bytes: red of both pixels, green, blue, and nothing, as 16 bits each.
    lanes = []
    for span in range(0, REGISTER, 16):
        for i in (0, 3, 1, 4, 2, 5):
            lanes += [span + i, REGISTER]
        lanes += [REGISTER] * 4

    def read(pair: Any) -> tuple[list[Any], list[list[Any]]]:
        on = builder.mul(pair, ir.Constant(S.i64, 6))
        at = builder.add(weights, builder.mul(pair, ir.Constant(S.i64, 8 * REGISTER)))
        levels, halves = [], []
        for i in range(4):
            # In the order that packing undoes.
            spans = [S.load(builder, builder.add(first, on), S.vector(S.i8, READ)) for first in firsts[i::4]]
            while len(spans) > 1:
                order = list(range(2 * spans[0].type.count))
                spans = [S.shuffle(builder, spans[s], spans[s + 1], order) for s in range(0, len(spans), 2)]
            levels.append(builder.bitcast(S.shuffle(builder, spans[0], S.same(BYTES, 0), lanes), HALVES))
            places = [builder.add(at, ir.Constant(S.i64, (2 * i + half) * REGISTER)) for half in (0, 1)]
            halves.append([S.load(builder, place, HALVES) for place in places])
        return levels, halves

    S.store(builder, _sum_pairs(builder, pairs, read), target)


@vector_block(I64, I64, I64, I64, I64, I64)
def weigh_row_pairs(builder: Any, source: Any, stride: Any, weights: Any, pairs: Any, count: Any, target: Any) -> Any:
    """REGISTER bytes of a vertical pass: ``count`` rows, ``stride`` bytes apart, weighed into one.

    ``weights``: int16[pairs][2][2], low and high, of both rows each; the weight of a row past ``count`` is zero, and
    row ``count - 1`` is read for it.
    """
    last, zero = builder.sub(count, ir.Constant(S.i64, 1)), S.same(BYTES, 0)

    def read(pair: Any) -> tuple[list[Any], list[list[Any]]]:
        first = builder.shl(pair, ir.Constant(S.i64, 1))
        second = S.after(builder, first, 1)
        second = builder.select(builder.icmp_signed("<", second, last), second, last)
        rows = [S.load(builder, builder.add(source, builder.mul(row, stride)), BYTES) for row in (first, second)]
        at = builder.add(weights, builder.shl(pair, ir.Constant(S.i64, 3)))
        words = [S.load(builder, S.after(builder, at, 4 * half), S.i32) for half in (0, 1)]
        halves = [builder.bitcast(S.splat(builder, word, REGISTER // 4), HALVES) for word in words]
        wide = [part for both in interleaved(builder, *rows) for part in interleaved(builder, both, zero)]
        return [builder.bitcast(part, HALVES) for part in wide], [halves] * 4

    S.store(builder, _sum_pairs(builder, pairs, read), target)
