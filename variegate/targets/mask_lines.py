"""Lines of a region of a row's result: the places of the image that their pixels show.

Along a line an affine map enters its image once and leaves it once, so that between its borders nothing is tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.targets.mask_tables import repeated
from variegate.targets.stages import ERASE, FIRST, GRID, LEFT, MAP, MODE, REPEAT, SCALE, TOP
from variegate.targets.walk import displacement


@inner_kernel()
def is_affine(stages: Any, s: Any) -> bool:
    return bool(stages.kind[s] == MAP and stages.back[s, 6] == 0.0 and stages.back[s, 7] == 0.0)


@inner_kernel()
def within_image(stages: Any, s: Any, table: Any, v: Any, begin: Any, end: Any, is_forward: Any, borders: Any) -> Any:
    """From where to where a line's places are inside of what an affine step reads. ``borders``: int64[4], those of the
    line before: they are looked for from there on, so that all lines together take a few steps a line."""
    m = stages.back[s]
    low, high = begin, end
    for axis in range(2):
        a, b, c = m[3 * axis], m[3 * axis + 1] * v, m[3 * axis + 2]
        rises = (a >= 0.0) == is_forward
        for side in range(2):
            limit, k = float(stages.before[s, 1 - axis] * side), borders[2 * axis + side]
            while k < end and (a * table[k] + b + c >= limit) != rises:
                k += 1
            while k > begin and (a * table[k - 1] + b + c >= limit) == rises:
                k -= 1
            borders[2 * axis + side] = k
        low = max(low, min(borders[2 * axis], borders[2 * axis + 1]))
        high = min(high, max(borders[2 * axis], borders[2 * axis + 1]))
    return low, max(low, high)


@inner_kernel()
def affine_places(m: Any, table: Any, v: Any, columns: Any, begin: Any, end: Any, places: Any) -> None:
    """Of a line all of whose columns from ``begin`` to ``end`` are inside."""
    a, b, c, d, e, f = m[0], m[1] * v, m[2], m[3], m[4] * v, m[5]
    # Indices without a sign are not looked at for being counted from the end: loops over a line are vectorised.
    for at in range(begin, end):
        i = np.uint64(at)
        u = table[i]
        places[i] = np.int32(d * u + e + f) * np.int32(columns) + np.int32(a * u + b + c)


@inner_kernel()
def affine_line(stages: Any, s: Any, table: Any, v: Any, begin: Any, end: Any, x: Any, y: Any, inside: Any) -> None:
    """The same as places, for the steps before."""
    m, rounds = stages.back[s], stages.rounds[s]
    a, b, c, d, e, f = m[0], m[1] * v, m[2], m[3], m[4] * v, m[5]
    for at in range(begin, end):
        i = np.uint64(at)
        u = table[i]
        x[i], y[i], inside[i] = a * u + b + c, d * u + e + f, np.uint8(1)
        if rounds:
            x[i], y[i] = np.floor(x[i]) + 0.5, np.floor(y[i]) + 0.5


@inner_kernel()
def follow_line(stages: Any, last: Any, first: Any, begin: Any, end: Any, x: Any, y: Any, inside: Any) -> None:
    """Places of a line through the steps from ``last`` back to ``first``."""
    for s in range(last, first - 1, -1):
        kind, numbers = stages.kind[s], stages.numbers[s]
        if kind == ERASE:
            continue
        if kind == GRID:
            for at in range(begin, end):
                if inside[at]:
                    dx, dy = displacement(numbers, stages.grids, x[at], y[at])
                    x[at], y[at] = x[at] + dx, y[at] + dy
        elif kind == REPEAT:
            sides = stages.before[s]
            for at in range(begin, end):
                x[at] = repeated(x[at] - numbers[LEFT], float(sides[1]), numbers[MODE])
                y[at] = repeated(y[at] - numbers[TOP], float(sides[0]), numbers[MODE])
        elif kind == SCALE:
            columns_at, lines_at = numbers[FIRST], numbers[FIRST] + stages.after[s, 1]
            for at in range(begin, end):
                if inside[at]:
                    x[at] = stages.tables[columns_at + int(x[at])]
                    y[at] = stages.tables[lines_at + int(y[at])]
        else:
            _map_back(stages.back[s], begin, end, x, y)
        height, width = float(stages.before[s, 0]), float(stages.before[s, 1])
        for at in range(begin, end):
            i = np.uint64(at)
            inside[i] &= np.uint8((x[i] >= 0.0) & (x[i] < width) & (y[i] >= 0.0) & (y[i] < height))
        if stages.rounds[s]:
            for at in range(begin, end):
                i = np.uint64(at)
                x[i], y[i] = np.floor(x[i]) + 0.5, np.floor(y[i]) + 0.5


@inner_kernel()
def _map_back(m: Any, begin: Any, end: Any, x: Any, y: Any) -> None:
    a, b, c, d, e, f, g, h = m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]
    if g == 0.0 and h == 0.0:
        for at in range(begin, end):
            i = np.uint64(at)
            u, v = x[i], y[i]
            x[i], y[i] = a * u + b * v + c, d * u + e * v + f
    else:
        for at in range(begin, end):
            i = np.uint64(at)
            u, v = x[i], y[i]
            depth = g * u + h * v + m[8]
            x[i], y[i] = (a * u + b * v + c) / depth, (d * u + e * v + f) / depth


@inner_kernel()
def places_of(x: Any, y: Any, inside: Any, columns: Any, begin: Any, end: Any, places: Any) -> None:
    for at in range(begin, end):
        i = np.uint64(at)
        places[i] = np.int32(y[i]) * np.int32(columns) + np.int32(x[i]) if inside[i] else np.int32(-1)
