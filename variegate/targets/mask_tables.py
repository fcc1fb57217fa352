"""Tables of a region of a row's result: what its columns show, and what its lines show.

Steps that keep lines and columns apart (flips, crops, pads, resizes, quarter turns) and follow the last map that does
not are tables, one for columns and one for lines: they cost nothing for each pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.program.ops import PadMode
from variegate.targets.stages import COLUMNS, ERASE, FIRST, GRID, LEFT, MAP, MODE, REPEAT, SCALE, STEP_X, TOP
from variegate.targets.walk import node_of

_EDGE_MODE, _REFLECT = int(PadMode.EDGE), int(PadMode.REFLECT)
# How places that depend on the column alone run on: anyhow, one by one, or backwards.
ANYHOW, ON, BACK = range(3)


@inner_kernel()
def begin_region(stages: Any, row: Any, left: Any, top: Any, width: Any, height: Any, room: Any, inside: Any) -> Any:
    """The tables of a region: ``room[0]`` by columns, ``room[1]`` by lines, with ``inside`` -> the last step that is
    not in them, the first one, and whether columns tell places along y."""
    for axis in range(2):
        for i in range(height if axis else width):
            room[axis, i], inside[axis, i] = (top if axis else left) + i + 0.5, np.uint8(1)
    first, s, is_turned = stages.begin[row], stages.begin[row + 1] - 1, False
    while s >= first and (stages.kind[s] == ERASE or _keeps_apart(stages, s)):
        if stages.kind[s] != ERASE:
            is_turned = is_turned != _is_crossed(stages, s)
            for axis in range(2):
                _step_table(stages, s, (axis == 0) != is_turned, room[axis], inside[axis], height if axis else width)
        s -= 1
    while s > first and stages.kind[first] == ERASE:
        first += 1
    return s, first, is_turned


@inner_kernel()
def _keeps_apart(stages: Any, s: Any) -> bool:
    """Whether a step's columns depend on columns alone, and lines on lines, or the other way round."""
    m = stages.back[s]
    is_apart = (m[1] == 0.0 and m[3] == 0.0) or (m[0] == 0.0 and m[4] == 0.0)
    return bool(stages.kind[s] != GRID and is_apart and m[6] == 0.0 and m[7] == 0.0)


@inner_kernel()
def _is_crossed(stages: Any, s: Any) -> bool:
    m = stages.back[s]
    return bool(stages.kind[s] == MAP and not (m[1] == 0.0 and m[3] == 0.0))


@inner_kernel()
def _step_table(stages: Any, s: Any, is_x: Any, table: Any, inside: Any, count: Any) -> None:
    """A table of places through a step that keeps them apart -> places along x, or y, of what it reads."""
    kind, m, numbers, rounds = stages.kind[s], stages.back[s], stages.numbers[s], stages.rounds[s]
    side = float(stages.before[s, 1 if is_x else 0])
    crossed = _is_crossed(stages, s)
    scale = (m[1] if crossed else m[0]) if is_x else (m[3] if crossed else m[4])
    shift = m[2] if is_x else m[5]
    first = numbers[FIRST] if is_x else numbers[FIRST] + stages.after[s, 1]
    for i in range(count):
        place = table[i]
        if kind == REPEAT:
            place = repeated(place - (numbers[LEFT] if is_x else numbers[TOP]), side, numbers[MODE])
        elif kind == SCALE:
            if inside[i]:
                place = stages.tables[first + int(place)]
        else:
            place = scale * place + shift
        inside[i] &= np.uint8(0.0 <= place < side)
        table[i] = np.floor(place) + 0.5 if rounds else place


@inner_kernel()
def repeated(place: Any, side: Any, mode: Any) -> float:
    """A place beyond an image that is continued by its edge, or mirrored about its last pixels or its border."""
    if 0.0 <= place < side:
        return float(place)
    if mode == _EDGE_MODE or side == 1:
        return min(max(place, 0.5), side - 0.5)
    # Mirrors: about centres of the outermost pixels, or about the image's border.
    first = 0.5 if mode == _REFLECT else 0.0
    length = side - 1.0 if mode == _REFLECT else float(side)
    place = (place - first) % (2.0 * length)
    return first + (2.0 * length - place if place > length else place)


@inner_kernel()
def stretch_of(table: Any, inside: Any, count: Any) -> Any:
    """The first and the end of what is inside, whether all between is, and whether places rise (1), fall (-1) or do
    neither all along (0)."""
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
    """Which pixels of a line's image its columns show, ``step`` apart, -1 for none -> how they run on."""
    runs_on, runs_back = True, True
    for i in range(begin, end):
        places[i] = np.int32(table[i]) * np.int32(step) if inside[i] else np.int32(-1)
        if i > begin:
            runs_on = runs_on and places[i] - places[i - 1] == 1 and inside[i] != 0
            runs_back = runs_back and places[i] - places[i - 1] == -1 and inside[i] != 0
    return ON if runs_on else BACK if runs_back else ANYHOW


@inner_kernel()
def cells_of(numbers: Any, table: Any, count: Any, cells: Any, shares: Any) -> bool:
    """Of each place the column of nodes to the left of it, and how far towards the next it is -> whether all lie on
    nodes; those are given then."""
    columns, are_nodes = numbers[COLUMNS], True
    for i in range(count):
        u = node_of(table[i], numbers[STEP_X], columns)
        are_nodes = are_nodes and u == np.floor(u)
    for i in range(count):
        u = node_of(table[i], numbers[STEP_X], columns)
        cells[i] = int(u) if are_nodes else max(min(int(u), columns - 2), 0)
        shares[i] = u - cells[i]
    return are_nodes
