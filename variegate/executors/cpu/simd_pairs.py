"""Both passes of a resize by multiplications of 16 bits, two weights at a time, exact in integers.

A weight of 22 fraction bits is split into two, ``w = low + 4096 high``. Where the processor multiplies bytes by the
four, ``simd_resize.py`` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu import simd as S
from variegate.executors.cpu.kernel import inlined
from variegate.executors.cpu.simd import I64, vector_block
from variegate.executors.cpu.simd_words import (
    BYTES,
    HALVES,
    REGISTER,
    WORDS,
    bytes_of,
    halves_of,
    interleaved,
    multiplied,
)

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
