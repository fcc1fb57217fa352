"""Vector blocks of blurs, weighed in 16-bit integers and summed exactly in 32 bits, and of medians.

A weight of a separable blur counts for two pixels that mirror each other, so one multiplication of two weights does for
four pixels. ``program/lowering/blurs.py`` says why nothing overflows. For a median, levels of each column of the window
are sorted first, which serves as many pixels as the window has columns. Sorting its lines keeps the columns sorted, so
that most levels are known to be too low or too high; a sorting network finds the middle one of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from variegate.executors.cpu.lanes import HALVES, REGISTER, WORDS, Lanes, halves_of, interleaved, load_lanes, multiplied
from variegate.executors.cpu.simd import I64, after, i8, i32, i64, load, same, splat, store, vector, vector_block
from variegate.program.lowering.blurs import LEVEL_BITS, WEIGHT_BITS
from variegate.program.ops import MEDIAN_SIZES

COLUMNS = 32
# Terms of the most common blurs, which a loop would slow down.
FEW = 3

_LANES = REGISTER // 2


def _weigh(builder: Any, weights: Any, count: Any, read: Any, bits: int, few: int = 0) -> list[Any]:
    """``count`` terms, and a weight of zero if that is odd, ``read(term)(first)`` giving HALVES of each, weighed and
    rounded -> the HALVES of COLUMNS sums. ``few``: so many terms are weighed without a loop.
    """
    start = same(WORDS, 1 << (bits - 1))
    totals = [[cgutils.alloca_once_value(builder, start) for _ in range(2)] for _ in range(COLUMNS // _LANES)]

    def add(first: Any, terms: list[Any]) -> None:
        pair = load(builder, builder.add(weights, builder.shl(first, ir.Constant(i64, 1))), i32)
        weight = builder.bitcast(splat(builder, pair, REGISTER // 4), HALVES)
        readers = [read(term) for term in terms]
        for part, sums in enumerate(totals):
            values = [reader(part * _LANES) for reader in readers]
            other = values[1] if len(values) > 1 else same(HALVES, 0)
            for total, pairs in zip(sums, interleaved(builder, values[0], other), strict=True):
                builder.store(builder.add(builder.load(total), multiplied(builder, pairs, weight)), total)

    def add_many() -> None:
        groups = builder.lshr(after(builder, count, 1), ir.Constant(i64, 1))
        with cgutils.for_range(builder, groups) as loop:
            first = builder.shl(loop.index, ir.Constant(i64, 1))
            add(first, [first, after(builder, first, 1)])

    if few:
        is_few = builder.icmp_signed("==", count, ir.Constant(i64, few))
        with builder.if_else(is_few) as (then, otherwise):
            with then:
                terms = [ir.Constant(i64, term) for term in range(few)]
                for i in range(0, few, 2):
                    add(terms[i], terms[i : i + 2])
            with otherwise:
                add_many()
    else:
        add_many()
    shift = same(WORDS, bits)
    return [halves_of(builder, *(builder.ashr(builder.load(total), shift) for total in sums)) for sums in totals]


def _store_levels(builder: Any, parts: list[Any], target: Any) -> None:
    for i, part in enumerate(parts):
        at = after(builder, target, i * _LANES)
        store(builder, builder.trunc(part, vector(i8, _LANES)), at)


def _levels(builder: Any, address: Any, offset: int) -> Any:
    at = after(builder, address, offset)
    return builder.zext(load(builder, at, vector(i8, _LANES)), HALVES)


def _halves(builder: Any, address: Any, offset: int) -> Any:
    return load(builder, after(builder, address, 2 * offset), HALVES)


def _line(builder: Any, plane: Any, lines: Any, index: Any) -> Any:
    at = builder.add(lines, builder.shl(index, ir.Constant(i64, 3)))
    return builder.add(plane, load(builder, at, i64))


@vector_block(I64, I64, I64, I64, I64)
def blur_columns(builder: Any, plane: Any, lines: Any, weights: Any, count: Any, target: Any) -> Any:
    """32 columns -> int16[32] at ``target``, with LEVEL_BITS. ``lines``: the address of int64 offsets of lines from
    ``plane``, at that of the line itself; offsets of its neighbours lie around it. ``count``: of half weights.
    """

    def read(term: Any) -> Any:
        above, below = (_line(builder, plane, lines, index) for index in (builder.neg(term), term))
        return lambda x: builder.add(_levels(builder, above, x), _levels(builder, below, x))

    for i, part in enumerate(_weigh(builder, weights, count, read, WEIGHT_BITS + 1 - LEVEL_BITS, FEW)):
        store(builder, part, after(builder, target, 2 * i * _LANES))


@vector_block(I64, I64, I64, I64)
def blur_along(builder: Any, row: Any, weights: Any, count: Any, target: Any) -> Any:
    """32 pixels from int16 at ``row`` and around it, with LEVEL_BITS -> 32 levels. ``count``: of half weights."""

    def read(term: Any) -> Any:
        step = builder.shl(term, ir.Constant(i64, 1))
        left, right = builder.sub(row, step), builder.add(row, step)
        return lambda x: builder.add(_halves(builder, left, x), _halves(builder, right, x))

    _store_levels(builder, _weigh(builder, weights, count, read, WEIGHT_BITS + 1 + LEVEL_BITS, FEW), target)


@vector_block(I64, I64, I64, I64, I64)
def weigh_cells(builder: Any, plane: Any, cells: Any, weights: Any, count: Any, target: Any) -> Any:
    """32 pixels, each a sum of what lies at the ``count`` int64 offsets ``cells`` from it, clipped -> 32 levels."""

    def read(term: Any) -> Any:
        at = _line(builder, plane, cells, term)
        return lambda x: _levels(builder, at, x)

    least, most, parts = same(HALVES, 0), same(HALVES, 255), []
    for part in _weigh(builder, weights, count, read, WEIGHT_BITS):
        part = builder.select(builder.icmp_signed("<", part, least), least, part)
        parts.append(builder.select(builder.icmp_signed(">", part, most), most, part))
    _store_levels(builder, parts, target)


# Levels of a row that a block makes.
MEDIANS = REGISTER


def _network(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs to be exchanged, if in the wrong order, to sort ``count`` values."""
    for p in (1 << i for i in range((count - 1).bit_length())):
        for k in (p >> i for i in range(p.bit_length())):
            for j in range(k % p, count - k, 2 * k):
                for i in range(j, min(j + k, count - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        yield i, i + k


def _sort(values: list[Lanes]) -> None:
    for low, high in _network(len(values)):
        values[low], values[high] = values[low].least(values[high]), values[low].most(values[high])


def middle(lines: list[list[Any]]) -> Any:
    """The median of n x n values, n odd, whose lines and columns are sorted.

    A network is right if it is for zeros and ones alone. There are few such inputs here, with a number of zeros in each
    line that does not grow from line to line; bit i of an integer is what a value is in the i-th of them.
    """
    n = len(lines)
    half = n * n // 2
    inputs = list(combinations_with_replacement(range(n, -1, -1), n))
    ones = [[sum((j >= zeros[i]) << at for at, zeros in enumerate(inputs)) for j in range(n)] for i in range(n)]
    wanted = sum((sum(zeros) <= half) << at for at, zeros in enumerate(inputs))
    # Others have too many before or behind them. In order of the diagonals, each of which is nearly sorted.
    left = [(i - j, i, j) for i in range(n) for j in range(n) if max((i + 1) * (j + 1), (n - i) * (n - j)) <= half + 1]
    held = [(lines[i][j], ones[i][j]) for _, i, j in sorted(left)]
    for a, b in _network(len(held)):
        (low, low_ones), (high, high_ones) = held[a], held[b]
        if not high_ones & ~low_ones:
            held[a], held[b] = held[b], held[a]
        elif low_ones & ~high_ones:
            held[a], held[b] = (low.least(high), low_ones & high_ones), (low.most(high), low_ones | high_ones)
    return next(value for value, its_ones in held if its_ones == wanted)


def _blocks(size: int) -> tuple[Any, Any]:
    @vector_block(I64, I64, I64, I64)
    def sort_columns(builder: Any, plane: Any, lines: Any, target: Any, stride: Any) -> None:
        """MEDIANS levels of ``size`` lines, at the int64 offsets ``lines`` from ``plane`` -> in ascending order,
        ``stride`` bytes apart, from ``target`` on."""
        values = []
        for i in range(size):
            offset = load(builder, after(builder, lines, 8 * i), i64)
            values.append(load_lanes(builder, builder.add(plane, offset), "i8", MEDIANS))
        _sort(values)
        for value in values:
            value.store(target)
            target = builder.add(target, stride)

    @vector_block(I64, I64, I64)
    def find_medians(builder: Any, columns: Any, stride: Any, target: Any) -> None:
        """MEDIANS levels at ``target``, of columns that are sorted, the first to the left at ``columns``."""
        lines = []
        for _ in range(size):
            line = [load_lanes(builder, after(builder, columns, j), "i8", MEDIANS) for j in range(size)]
            _sort(line)
            lines.append(line)
            columns = builder.add(columns, stride)
        middle(lines).store(target)

    return sort_columns, find_medians


(sort_columns_3, find_medians_3), (sort_columns_5, find_medians_5), (sort_columns_7, find_medians_7) = (
    _blocks(size) for size in MEDIAN_SIZES
)
