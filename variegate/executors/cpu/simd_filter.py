"""Vector blocks of blurs, weighed in 16-bit integers and summed exactly in 32 bits, and of medians.

A weight of a separable blur counts for two pixels that mirror each other, so one multiplication of two weights does for
four pixels. ``program/lowering/blurs.py`` says why nothing overflows. For a median, levels of each column of the window
are sorted first, which serves as many pixels as the window has columns. Sorting its lines keeps the columns sorted, so
that most levels are known to be too low or too high; a sorting network finds the middle one of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

from llvmlite import ir

from variegate.executors.cpu.simd import (
    I64,
    REGISTER,
    Value,
    halves_of,
    interleaved,
    kind_of,
    multiplied,
    repeat,
    vector_block,
)
from variegate.program.lowering.blurs import LEVEL_BITS, WEIGHT_BITS
from variegate.program.ops import MEDIAN_SIZES

COLUMNS = 32
# Terms of the most common blurs, which a loop would slow down; there are no fewer.
FEW = (3, 4)

_LANES = REGISTER // 2
Read = Callable[[Value], Callable[[int], Value]]


def _weigh(weights: Value, count: Value, read: Read, bits: int, few: Sequence[int] = ()) -> list[Value]:
    """``count`` terms, and a weight of zero if that is odd, ``read(term)(first)`` giving registers of i16 of each,
    weighed and rounded -> COLUMNS sums in such registers. ``few``: numbers of terms that are weighed without a loop.
    """
    builder = weights.builder
    start = Value(builder, ir.Constant(kind_of("i32", REGISTER // 4), [1 << (bits - 1)] * (REGISTER // 4)))
    totals = [[start.variable() for _ in range(2)] for _ in range(COLUMNS // _LANES)]

    def add(first: Value, terms: list[Value]) -> None:
        weight = (weights + (first << 1)).load("i32").splat(REGISTER // 4).bits("i16", _LANES)
        readers = [read(term) for term in terms]
        for part, sums in enumerate(totals):
            values = [reader(part * _LANES) for reader in readers]
            other = values[1] if len(values) > 1 else values[0].constant(0)
            for total, pairs in zip(sums, interleaved(values[0], other), strict=True):
                total.set(total.get() + multiplied(pairs, weight))

    def add_all(few: Sequence[int]) -> None:
        if few:
            with builder.if_else(count.equals(few[0]).value) as (then, otherwise):
                with then:
                    terms = [count.constant(term) for term in range(few[0])]
                    for i in range(0, few[0], 2):
                        add(terms[i], terms[i : i + 2])
                with otherwise:
                    add_all(few[1:])
            return
        with repeat((count + 1) >> 1) as pair:
            first = pair << 1
            add(first, [first, first + 1])

    add_all(few)
    return [halves_of(*(total.get().ashr(bits) for total in sums)) for sums in totals]


def _store_levels(parts: list[Value], target: Value) -> None:
    for i, part in enumerate(parts):
        part.narrow("i8").store(target + i * _LANES)


def _levels(address: Value, offset: int) -> Value:
    return (address + offset).load("i8", _LANES).wide("i16")


def _line(plane: Value, lines: Value, index: Value) -> Value:
    return plane + (lines + (index << 3)).load("i64")


@vector_block(I64, I64, I64, I64, I64)
def blur_columns(plane: Value, lines: Value, weights: Value, count: Value, target: Value) -> None:
    """32 columns -> int16[32] at ``target``, with LEVEL_BITS. ``lines``: the address of int64 offsets of lines from
    ``plane``, at that of the line itself; offsets of its neighbours lie around it. ``count``: of half weights.
    """

    def read(term: Value) -> Callable[[int], Value]:
        above, below = (_line(plane, lines, index) for index in (-term, term))
        return lambda x: _levels(above, x) + _levels(below, x)

    for i, part in enumerate(_weigh(weights, count, read, WEIGHT_BITS + 1 - LEVEL_BITS, FEW)):
        part.store(target + 2 * i * _LANES)


@vector_block(I64, I64, I64, I64)
def blur_along(row: Value, weights: Value, count: Value, target: Value) -> None:
    """32 pixels from int16 at ``row`` and around it, with LEVEL_BITS -> 32 levels. ``count``: of half weights."""

    def read(term: Value) -> Callable[[int], Value]:
        step = term << 1
        left, right = row - step, row + step
        return lambda x: (left + 2 * x).load("i16", _LANES) + (right + 2 * x).load("i16", _LANES)

    _store_levels(_weigh(weights, count, read, WEIGHT_BITS + 1 + LEVEL_BITS, FEW), target)


@vector_block(I64, I64, I64, I64, I64)
def weigh_cells(plane: Value, cells: Value, weights: Value, count: Value, target: Value) -> None:
    """32 pixels, each a sum of what lies at the ``count`` int64 offsets ``cells`` from it, clipped -> 32 levels."""

    def read(term: Value) -> Callable[[int], Value]:
        at = _line(plane, cells, term)
        return lambda x: _levels(at, x)

    _store_levels([part.within(0, 255) for part in _weigh(weights, count, read, WEIGHT_BITS)], target)


# Levels of a row that a block makes.
MEDIANS = REGISTER


@vector_block(I64, I64, I64, I64, I64)
def most_of_cells(plane: Value, cells: Value, count: Value, flip: Value, target: Value) -> None:
    """MEDIANS levels, each the greatest of what lies at the ``count`` int64 offsets ``cells``; the least, if the bits
    ``flip`` of all are flipped."""
    flips = flip.narrow("i8").splat(MEDIANS)
    greatest = (flips ^ flips).variable()
    with repeat(count) as cell:
        greatest.set(greatest.get().most(_line(plane, cells, cell).load("i8", MEDIANS) ^ flips))
    (greatest.get() ^ flips).store(target)


def _network(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs to be exchanged, if in the wrong order, to sort ``count`` values."""
    for p in (1 << i for i in range((count - 1).bit_length())):
        for k in (p >> i for i in range(p.bit_length())):
            for j in range(k % p, count - k, 2 * k):
                for i in range(j, min(j + k, count - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        yield i, i + k


def _sort(values: list[Value]) -> None:
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
    def sort_columns(plane: Value, lines: Value, target: Value, stride: Value) -> None:
        """MEDIANS levels of ``size`` lines, at the int64 offsets ``lines`` from ``plane`` -> in ascending order,
        ``stride`` bytes apart, from ``target`` on."""
        values = [(plane + (lines + 8 * i).load("i64")).load("i8", MEDIANS) for i in range(size)]
        _sort(values)
        for value in values:
            value.store(target)
            target = target + stride

    @vector_block(I64, I64, I64)
    def find_medians(columns: Value, stride: Value, target: Value) -> None:
        """MEDIANS levels at ``target``, of columns that are sorted, the first to the left at ``columns``."""
        lines = []
        for _ in range(size):
            line = [(columns + j).load("i8", MEDIANS) for j in range(size)]
            _sort(line)
            lines.append(line)
            columns = columns + stride
        middle(lines).store(target)

    return sort_columns, find_medians


(sort_columns_3, find_medians_3), (sort_columns_5, find_medians_5), (sort_columns_7, find_medians_7) = (
    _blocks(size) for size in MEDIAN_SIZES
)
