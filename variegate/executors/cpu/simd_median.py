"""Vector blocks of medians: the middle one of 3 x 3, 5 x 5 or 7 x 7 levels, by exchanges of minimum and maximum.

Levels of each column of the window are sorted first, which serves as many pixels as the window has columns. Sorting its
lines then keeps the columns sorted, so that most levels can be told to be too low or too high; the middle one of the
others is found by a sorting network, without the exchanges that never do anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

from variegate.executors.cpu.lanes import Lanes, load_lanes
from variegate.executors.cpu.simd import I64, after, i64, load, vector_block
from variegate.executors.cpu.simd_words import REGISTER
from variegate.program.ops import MEDIAN_SIZES

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
