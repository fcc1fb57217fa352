"""Lines of masks: places of pixels followed back, by tables, affine maps and grids of displacements."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.program.ops import PadMode
from variegate.targets import stages as S
from variegate.targets.walk import displacement, node_of, unit_of

_EDGE_MODE, _REFLECT, _WRAP = int(PadMode.EDGE), int(PadMode.REFLECT), int(PadMode.WRAP)
# How places that depend on the column alone run on: anyhow, one by one, or backwards.
ANYHOW, ON, BACK = range(3)


@inner_kernel()
def begin_region(stages: Any, row: Any, left: Any, top: Any, width: Any, height: Any, room: Any, inside: Any) -> Any:
    """Tables of a region in ``room[0]`` (columns) and ``room[1]`` (lines) -> (last other step, first, is turned)."""
    for axis in range(2):
        for i in range(height if axis else width):
            room[axis, i], inside[axis, i] = (top if axis else left) + i + 0.5, np.uint8(1)
    first, s, is_turned = stages.begin[row], stages.begin[row + 1] - 1, False
    while s >= first and (stages.kind[s] == S.ERASE or _keeps_apart(stages, s)):
        if stages.kind[s] != S.ERASE:
            is_turned = is_turned != _is_crossed(stages, s)
            for axis in range(2):
                _step_table(stages, s, (axis == 0) != is_turned, room[axis], inside[axis], height if axis else width)
        s -= 1
    while s > first and stages.kind[first] == S.ERASE:
        first += 1
    return s, first, is_turned


@inner_kernel()
def _keeps_apart(stages: Any, s: Any) -> bool:
    """True if a step's columns depend on columns alone, and lines on lines, or the other way round."""
    m = stages.back[s]
    is_apart = (m[1] == 0.0 and m[3] == 0.0) or (m[0] == 0.0 and m[4] == 0.0)
    return bool(stages.kind[s] != S.GRID and is_apart and m[6] == 0.0 and m[7] == 0.0)


@inner_kernel()
def _is_crossed(stages: Any, s: Any) -> bool:
    m = stages.back[s]
    return bool(stages.kind[s] == S.MAP and not (m[1] == 0.0 and m[3] == 0.0))


@inner_kernel()
def _step_table(stages: Any, s: Any, is_x: Any, table: Any, inside: Any, count: Any) -> None:
    """A table of places through a step that keeps them apart -> places along x, or y, of what it reads."""
    kind, m, numbers, rounds = stages.kind[s], stages.back[s], stages.numbers[s], stages.rounds[s]
    side = float(stages.before[s, 1 if is_x else 0])
    crossed = _is_crossed(stages, s)
    scale = (m[1] if crossed else m[0]) if is_x else (m[3] if crossed else m[4])
    shift = m[2] if is_x else m[5]
    first = numbers[S.FIRST] if is_x else numbers[S.FIRST] + stages.after[s, 1]
    for i in range(count):
        place = table[i]
        if kind == S.REPEAT:
            place = repeated(place - (numbers[S.LEFT] if is_x else numbers[S.TOP]), side, numbers[S.MODE])
        elif kind == S.SCALE:
            if inside[i]:
                place = stages.tables[first + int(place)]
        else:
            place = scale * place + shift
        inside[i] &= np.uint8(first_of(side) <= place < side)
        table[i] = np.floor(place) + 0.5 if rounds else place


@inner_kernel()
def first_of(side: Any) -> float:
    """The first place of an image of this side."""
    return -side if side >= S.ENDLESS else 0.0


@inner_kernel()
def repeated(place: Any, side: Any, mode: Any) -> float:
    """A place beyond an image that is continued by its edge or the other side, or mirrored about its last pixels or its
    border."""
    if 0.0 <= place < side:
        return float(place)
    if mode == _EDGE_MODE or side == 1:
        return min(max(place, 0.5), side - 0.5)
    if mode == _WRAP:
        place = place % side
        # A quotient may be rounded up to the next whole number.
        return place if place < side else 0.0
    # Mirrors: about centres of the outermost pixels, or about the image's border.
    first = 0.5 if mode == _REFLECT else 0.0
    length = side - 1.0 if mode == _REFLECT else float(side)
    place = (place - first) % (2.0 * length)
    place = first + (2.0 * length - place if place > length else place)
    return place if place < side else side - 0.5


@inner_kernel()
def stretch_of(table: Any, inside: Any, count: Any) -> Any:
    """(first inside, end, whether all between is, places rise (1), fall (-1) or neither (0))."""
    begin, end, is_whole = 0, count, True
    while begin < end and not inside[begin]:
        begin += 1
    while end > begin and not inside[end - 1]:
        end -= 1
    rises = 1 if end <= begin or table[end - 1] >= table[begin] else -1
    is_sorted = True
    for i in range(begin + 1, end):
        is_whole = is_whole and inside[i] != 0
        is_sorted = is_sorted and (table[i] - table[i - 1]) * rises >= 0.0
    return begin, end, is_whole, rises if is_whole and is_sorted else 0


@inner_kernel()
def table_of(table: Any, inside: Any, step: Any, begin: Any, end: Any, places: Any) -> int:
    """Fill in the pixels of a line's image that its columns show, ``step`` apart, -1 for none -> how they run on."""
    runs_on, runs_back = True, True
    for i in range(begin, end):
        places[i] = np.int32(table[i]) * np.int32(step) if inside[i] else np.int32(-1)
        if i > begin:
            runs_on = runs_on and places[i] - places[i - 1] == 1 and inside[i] != 0
            runs_back = runs_back and places[i] - places[i - 1] == -1 and inside[i] != 0
    return ON if runs_on else BACK if runs_back else ANYHOW


@inner_kernel()
def cells_of(numbers: Any, table: Any, count: Any, cells: Any, shares: Any) -> None:
    """The node left of each place, and the share towards the next."""
    columns = numbers[S.COLUMNS]
    for i in range(count):
        u = node_of(table[i], numbers[S.STEP_X], columns)
        cells[i] = max(min(int(u), columns - 2), 0)
        shares[i] = u - cells[i]


@inner_kernel()
def is_affine(stages: Any, s: Any) -> bool:
    return bool(stages.kind[s] == S.MAP and stages.back[s, 6] == 0.0 and stages.back[s, 7] == 0.0)


@inner_kernel()
def within_image(stages: Any, s: Any, table: Any, v: Any, begin: Any, end: Any, is_forward: Any, borders: Any) -> Any:
    """The columns that are inside of what an affine step reads. ``borders``: int64[4] of the line before, updated."""
    m = stages.back[s]
    low, high = begin, end
    for axis in range(2):
        a, b, c = m[3 * axis], m[3 * axis + 1] * v, m[3 * axis + 2]
        rises = (a >= 0.0) == is_forward
        for side in range(2):
            whole, k = float(stages.before[s, 1 - axis]), borders[2 * axis + side]
            limit = whole if side else first_of(whole)
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
        if kind == S.ERASE:
            continue
        if kind == S.GRID:
            for at in range(begin, end):
                if inside[at]:
                    dx, dy = displacement(numbers, stages.grids, x[at], y[at])
                    x[at], y[at] = x[at] + dx, y[at] + dy
        elif kind == S.REPEAT:
            sides = stages.before[s]
            for at in range(begin, end):
                x[at] = repeated(x[at] - numbers[S.LEFT], float(sides[1]), numbers[S.MODE])
                y[at] = repeated(y[at] - numbers[S.TOP], float(sides[0]), numbers[S.MODE])
        elif kind == S.SCALE:
            columns_at, lines_at = numbers[S.FIRST], numbers[S.FIRST] + stages.after[s, 1]
            for at in range(begin, end):
                if inside[at]:
                    x[at] = stages.tables[columns_at + int(x[at])]
                    y[at] = stages.tables[lines_at + int(y[at])]
        else:
            _map_back(stages.back[s], begin, end, x, y)
        height, width = float(stages.before[s, 0]), float(stages.before[s, 1])
        top, left = first_of(height), first_of(width)
        for at in range(begin, end):
            i = np.uint64(at)
            inside[i] &= np.uint8((x[i] >= left) & (x[i] < width) & (y[i] >= top) & (y[i] < height))
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


# Rows of a region's room: places by columns, where they go, how far they are between nodes, and the displacements along
# x and y of two of the grid's lines.
_TABLE, _X, _Y, _SHARES, _LONG = 0, 2, 3, 4, 5
ROOM = _LONG + 4


@inner_kernel()
def line_through_grid(
    stages: Any, s: Any, v: Any, begin: Any, end: Any, room: Any, inside: Any, cells: Any, held: Any
) -> None:
    """Places of a line by a grid.

    ``held``: int64[2], of which of the grid's lines ``room`` has the even and the odd one.
    """
    table, x, y, within, here = room[_TABLE], room[_X], room[_Y], inside[0], inside[2]
    numbers, rounds, unit = stages.numbers[s], stages.rounds[s], unit_of(stages.numbers[s])
    node = node_of(v, numbers[S.STEP_Y], numbers[S.LINES])
    above = max(min(int(node), numbers[S.LINES] - 2), 0)
    below, t = min(above + 1, numbers[S.LINES] - 1), node - above
    for line in (above, below):
        if held[line & 1] != line:
            _lengthen(stages.grids, numbers, line, begin, end, cells, room)
            held[line & 1] = line
    upper, lower = _LONG + 2 * (above & 1), _LONG + 2 * (below & 1)
    upper_x, upper_y, lower_x, lower_y = room[upper], room[upper + 1], room[lower], room[lower + 1]
    height, width = float(stages.before[s, 0]), float(stages.before[s, 1])
    top, left = first_of(height), first_of(width)
    for at in range(begin, end):
        i = np.uint64(at)
        p = table[i] + (upper_x[i] * (1.0 - t) + lower_x[i] * t) * unit
        q = v + (upper_y[i] * (1.0 - t) + lower_y[i] * t) * unit
        here[i] = within[i] & np.uint8((p >= left) & (p < width) & (q >= top) & (q < height))
        x[i], y[i] = np.floor(p) + 0.5 if rounds else p, np.floor(q) + 0.5 if rounds else q


@inner_kernel()
def _lengthen(grids: Any, numbers: Any, line: Any, begin: Any, end: Any, cells: Any, room: Any) -> None:
    """The displacements of one of the grid's lines at all columns."""
    shares, along_x, along_y = room[_SHARES], room[_LONG + 2 * (line & 1)], room[_LONG + 2 * (line & 1) + 1]
    first = numbers[S.FIRST] + 2 * line * numbers[S.COLUMNS]
    for at in range(begin, end):
        i = np.uint64(at)
        n, s = np.uint64(first + 2 * cells[i]), shares[i]
        # Right of the last node is none.
        m = n + np.uint64(2 if s > 0.0 else 0)
        along_x[i] = grids[n] * (1.0 - s) + grids[m] * s
        along_y[i] = grids[n + np.uint64(1)] * (1.0 - s) + grids[m + np.uint64(1)] * s
