"""A polygon through a grid of displacements, by a scan from all four sides for pixels that read within it."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.targets.stages import COLUMNS, FIRST, LINES, STEP_X, STEP_Y
from variegate.targets.walk import (
    CLOSE_ENOUGH,
    bounds,
    displacement,
    meets,
    node_of,
    rectangle,
    twice_area,
    undisplaced,
    unit_of,
)

_ROUNDING = 1e-6


@inner_kernel()
def bend(stages: Any, s: Any, polygon: Any, count: Any, reach: Any, sides: Any, far: Any) -> int:
    """A polygon by a grid of displacements, of which ``far`` is the greatest."""
    numbers, grids, after = stages.numbers[s], stages.grids, stages.after[s]
    bounds(polygon, count, reach)
    left, right = _between_lines(numbers, grids, reach, far, 0)
    top, bottom = _between_lines(numbers, grids, reach, far, 1)
    left, right = min(max(left, 0), after[1]), min(max(right, 0), after[1])
    top, bottom = min(max(top, 0), after[0]), min(max(bottom, 0), after[0])
    _normals(polygon, count, sides)
    first, one = _scan(numbers, grids, sides, count, reach, True, top, bottom, left, right)
    last, other = _scan(numbers, grids, sides, count, reach, True, bottom, top, left, right)
    if np.isnan(first) and np.isnan(last):
        return _bend_corners(numbers, grids, after, polygon, count)
    if np.isnan(last):  # it lies between the image's border and the first line of pixels' centres
        last, other = first + 0.5, one
    elif np.isnan(first):
        first, one = last - 0.5, other
    low, high = max(int(np.floor(first)), 0), min(int(np.ceil(last)), after[0])
    begin, _ = _scan(numbers, grids, sides, count, reach, False, left, right, low, high)
    end, _ = _scan(numbers, grids, sides, count, reach, False, right, left, low, high)
    # What lies between two columns, the lines found.
    begin = min(one, other) - 0.5 if np.isnan(begin) else begin
    end = max(one, other) + 0.5 if np.isnan(end) else end
    # Corners may stick out between the pixels that were looked at.
    for i in range(count):
        x, y, error = undisplaced(numbers, grids, after, polygon[i, 0], polygon[i, 1])
        if error <= CLOSE_ENOUGH and 0.0 <= x <= after[1] and 0.0 <= y <= after[0]:
            begin, first, end, last = min(begin, x), min(first, y), max(end, x), max(last, y)
    reach[0], reach[1], reach[2], reach[3] = begin, first, end, last
    return int(rectangle(polygon, reach))


@inner_kernel()
def _scan(
    numbers: Any,
    grids: Any,
    sides: Any,
    count: Any,
    reach: Any,
    by_line: Any,
    begin: Any,
    end: Any,
    low: Any,
    high: Any,
) -> Any:
    """The border of what reads within the polygon, from line ``begin`` towards ``end``, and where along it; NaN for
    none."""
    step = 1 if end > begin else -1
    axis = 1 if by_line else 0
    outside, at = float(begin), begin + 0.5 * step
    found = _hit(numbers, grids, sides, count, reach, by_line, outside, low, high)
    if not np.isnan(found):
        return outside, found
    while (end - at) * step > 0.0:
        least, most = _range_along(numbers, grids, axis, at, low, high)
        if at + most < reach[axis] - _ROUNDING or at + least > reach[axis + 2] + _ROUNDING:
            outside, at = at, at + step
            continue
        found = _hit(numbers, grids, sides, count, reach, by_line, at, low, high)
        if not np.isnan(found):
            inside = at
            for _ in range(3):
                middle = 0.5 * (inside + outside)
                here = _hit(numbers, grids, sides, count, reach, by_line, middle, low, high)
                if np.isnan(here):
                    outside = middle
                else:
                    inside, found = middle, here
            return outside, found
        outside, at = at, at + step
    return np.nan, np.nan


@inner_kernel()
def _hit(
    numbers: Any, grids: Any, sides: Any, count: Any, reach: Any, by_line: Any, at: Any, low: Any, high: Any
) -> float:
    """The first place along a line that reads within the polygon, right to a pixel; NaN for none."""
    last_x, last_y = np.nan, np.nan
    for n in range(low, high + 2):
        across = min(max(n - 0.5, low), high)
        x, y = (across, at) if by_line else (at, across)
        dx, dy = displacement(numbers, grids, x, y)
        x, y = x + dx, y + dy
        is_beside = (
            (x < reach[0] and last_x < reach[0])
            or (x > reach[2] and last_x > reach[2])
            or (y < reach[1] and last_y < reach[1])
            or (y > reach[3] and last_y > reach[3])
        )
        if n > low and not is_beside and meets(sides, count, last_x, last_y, x, y):
            return float(across)
        last_x, last_y = x, y
    return np.nan


@inner_kernel()
def _normals(polygon: Any, count: Any, sides: Any) -> None:
    """For each side a, b, c with ``a x + b y + c >= 0`` within."""
    sign = 1.0 if twice_area(polygon, count) >= 0.0 else -1.0
    for n in range(count):
        m = n + 1 if n + 1 < count else 0
        sides[n, 0], sides[n, 1] = sign * (polygon[n, 1] - polygon[m, 1]), sign * (polygon[m, 0] - polygon[n, 0])
        sides[n, 2] = -sides[n, 0] * polygon[n, 0] - sides[n, 1] * polygon[n, 1]


@inner_kernel()
def _bend_corners(numbers: Any, grids: Any, after: Any, polygon: Any, count: Any) -> int:
    """Of what is smaller than a pixel: its corners alone, as points."""
    for i in range(count):
        x, y, _ = undisplaced(numbers, grids, after, polygon[i, 0], polygon[i, 1])
        polygon[i, 0], polygon[i, 1] = x, y
    return int(count)


@inner_kernel()
def _between_lines(numbers: Any, grids: Any, reach: Any, far: Any, axis: Any) -> Any:
    """Between which columns (``axis`` 0) or lines (1) whatever reads within ``reach`` is, and one pixel around it."""
    least, most = np.inf, -np.inf
    first_i, last_i = _nodes(numbers[STEP_Y], numbers[LINES], reach[1] - far, reach[3] + far)
    first_j, last_j = _nodes(numbers[STEP_X], numbers[COLUMNS], reach[0] - far, reach[2] + far)
    for i in range(first_i, last_i + 1):
        for j in range(first_j, last_j + 1):
            value = float(grids[np.uint64(numbers[FIRST] + 2 * (i * numbers[COLUMNS] + j) + axis)])
            least, most = min(least, value), max(most, value)
    unit = unit_of(numbers)
    return int(np.floor(reach[axis] - most * unit)) - 1, int(np.ceil(reach[axis + 2] - least * unit)) + 1


@inner_kernel()
def _range_along(numbers: Any, grids: Any, axis: Any, at: Any, low: Any, high: Any) -> Any:
    """The least and the greatest displacement across a line (``axis`` 1) or a column (0) from ``low`` to ``high``."""
    if axis == 1:
        node, count, step = node_of(at, numbers[STEP_Y], numbers[LINES]), numbers[LINES], 2 * numbers[COLUMNS]
        first, last = _nodes(numbers[STEP_X], numbers[COLUMNS], low, high)
        along = 2
    else:
        node, count, step = node_of(at, numbers[STEP_X], numbers[COLUMNS]), numbers[COLUMNS], 2
        first, last = _nodes(numbers[STEP_Y], numbers[LINES], low, high)
        along = 2 * numbers[COLUMNS]
    cell = max(min(int(node), count - 2), 0)
    share, beside = node - cell, np.uint64(step if count > 1 else 0)
    least, most = np.inf, -np.inf
    for n in range(first, last + 1):
        place = np.uint64(numbers[FIRST] + cell * step + n * along + axis)
        value = grids[place] * (1.0 - share) + grids[place + beside] * share
        least, most = min(least, value), max(most, value)
    unit = unit_of(numbers)
    return least * unit, most * unit


@inner_kernel()
def _nodes(step: Any, count: Any, low: Any, high: Any) -> Any:
    """The first and the last of an axis's nodes that say what is added to places from ``low`` to ``high``."""
    first, last = int(node_of(low, step, count)), int(node_of(high, step, count)) + 1
    # What is no number, as maps may make of places, has no integer either.
    return min(max(first, 0), count - 1), min(max(last, 0), count - 1)
