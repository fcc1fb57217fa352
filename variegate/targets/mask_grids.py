"""Lines of a region through a grid of displacements, which is coarser than the pixels, or has a node for each.

Between nodes a line of the grid is made as long as the region's once, and then each of the region's lines from two of
them: what is to be done for a pixel is one step between two numbers that lie side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.targets.stages import COLUMNS, FIRST, LINES, STEP_Y
from variegate.targets.walk import node_of, unit_of

# Rows of a region's room: places by columns, where they go, how far they are between nodes, and the displacements along
# x and y of two of the grid's lines.
_TABLE, _X, _Y, _SHARES, _LONG = 0, 2, 3, 4, 5
ROOM = _LONG + 4


@inner_kernel()
def line_on_nodes(stages: Any, s: Any, v: Any, begin: Any, end: Any, room: Any, inside: Any, nodes: Any) -> bool:
    """By a grid on whose nodes a line's pixels lie, from the table of columns to the rows of ``room``, ``inside``
    of places -> False where this line lies between nodes; nothing is done then."""
    table, x, y, within, here = room[_TABLE], room[_X], room[_Y], inside[0], inside[2]
    numbers, grids, rounds = stages.numbers[s], stages.grids, stages.rounds[s]
    node = node_of(v, numbers[STEP_Y], numbers[LINES])
    if node != np.floor(node):
        return False
    first, unit = numbers[FIRST] + 2 * int(node) * numbers[COLUMNS], unit_of(numbers)
    height, width = float(stages.before[s, 0]), float(stages.before[s, 1])
    for at in range(begin, end):
        i = np.uint64(at)
        n = np.uint64(first + 2 * nodes[i])
        p, q = table[i] + grids[n] * unit, v + grids[n + np.uint64(1)] * unit
        here[i] = within[i] & np.uint8((p >= 0.0) & (p < width) & (q >= 0.0) & (q < height))
        x[i], y[i] = np.floor(p) + 0.5 if rounds else p, np.floor(q) + 0.5 if rounds else q
    return True


@inner_kernel()
def line_between_nodes(
    stages: Any, s: Any, v: Any, begin: Any, end: Any, room: Any, inside: Any, cells: Any, held: Any
) -> None:
    """The same by any grid. ``held``: int64[2], of which of the grid's lines ``room`` has the even and the odd one."""
    table, x, y, within, here = room[_TABLE], room[_X], room[_Y], inside[0], inside[2]
    numbers, rounds, unit = stages.numbers[s], stages.rounds[s], unit_of(stages.numbers[s])
    node = node_of(v, numbers[STEP_Y], numbers[LINES])
    above = max(min(int(node), numbers[LINES] - 2), 0)
    below, t = min(above + 1, numbers[LINES] - 1), node - above
    for line in (above, below):
        if held[line & 1] != line:
            _lengthen(stages.grids, numbers, line, begin, end, cells, room)
            held[line & 1] = line
    upper, lower = _LONG + 2 * (above & 1), _LONG + 2 * (below & 1)
    upper_x, upper_y, lower_x, lower_y = room[upper], room[upper + 1], room[lower], room[lower + 1]
    height, width = float(stages.before[s, 0]), float(stages.before[s, 1])
    for at in range(begin, end):
        i = np.uint64(at)
        p = table[i] + (upper_x[i] * (1.0 - t) + lower_x[i] * t) * unit
        q = v + (upper_y[i] * (1.0 - t) + lower_y[i] * t) * unit
        here[i] = within[i] & np.uint8((p >= 0.0) & (p < width) & (q >= 0.0) & (q < height))
        x[i], y[i] = np.floor(p) + 0.5 if rounds else p, np.floor(q) + 0.5 if rounds else q


@inner_kernel()
def _lengthen(grids: Any, numbers: Any, line: Any, begin: Any, end: Any, cells: Any, room: Any) -> None:
    """The displacements of one of the grid's lines at all columns."""
    shares, along_x, along_y = room[_SHARES], room[_LONG + 2 * (line & 1)], room[_LONG + 2 * (line & 1) + 1]
    first = numbers[FIRST] + 2 * line * numbers[COLUMNS]
    for at in range(begin, end):
        i = np.uint64(at)
        n, s = np.uint64(first + 2 * cells[i]), shares[i]
        # Right of the last node is none.
        m = n + np.uint64(2 if s > 0.0 else 0)
        along_x[i] = grids[n] * (1.0 - s) + grids[m] * s
        along_y[i] = grids[n + np.uint64(1)] * (1.0 - s) + grids[m + np.uint64(1)] * s
