"""Kernels that follow places through one step, and polygons that stay convex."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import inner_kernel
from variegate.targets.stages import COLUMNS, FIRST, LINES, STEP_X, STEP_Y, UNIT

NODES_PER_STEP = 2.0**-26
# A solution of a grid is good enough at this distance in the image; beyond the second the point is not to be seen.
_CLOSE, CLOSE_ENOUGH = 0.01, 0.1
_ROUNDS = 40


@inner_kernel()
def unit_of(numbers: Any) -> float:
    """Pixels in a unit of a grid's nodes."""
    exponent = numbers[UNIT] - 6
    return float(1 << exponent) if exponent >= 0 else 1.0 / (1 << -exponent)


@inner_kernel()
def node_of(place: Any, step: Any, count: Any) -> float:
    """The node, with a fraction, at a place of an axis of ``count`` nodes; node 0 lies at the centre of the first
    pixel."""
    return min(max((place - 0.5) * (step * NODES_PER_STEP), 0.0), count - 1.0)


@inner_kernel()
def displacement(numbers: Any, grids: Any, x: Any, y: Any) -> Any:
    """Displacement of a place by a grid -> along x, along y. Beyond the nodes it is that of the nearest."""
    lines, columns = numbers[LINES], numbers[COLUMNS]
    u, v = node_of(x, numbers[STEP_X], columns), node_of(y, numbers[STEP_Y], lines)
    j, i = max(min(int(u), columns - 2), 0), max(min(int(v), lines - 2), 0)
    s, t = u - j, v - i
    right, below = 2 if columns > 1 else 0, 2 * columns if lines > 1 else 0
    at = np.uint64(numbers[FIRST] + 2 * (i * columns + j))
    next_, under = at + np.uint64(right), at + np.uint64(below)
    over = under + np.uint64(right)
    one, unit = np.uint64(1), unit_of(numbers)
    dx = (grids[at] * (1.0 - s) + grids[next_] * s) * (1.0 - t)
    dx += (grids[under] * (1.0 - s) + grids[over] * s) * t
    dy = (grids[at + one] * (1.0 - s) + grids[next_ + one] * s) * (1.0 - t)
    dy += (grids[under + one] * (1.0 - s) + grids[over + one] * s) * t
    return dx * unit, dy * unit


@inner_kernel()
def farthest(numbers: Any, grids: Any) -> float:
    """The greatest displacement of a grid along either axis, in pixels."""
    most = 0
    for n in range(numbers[FIRST], numbers[FIRST] + 2 * numbers[LINES] * numbers[COLUMNS]):
        most = max(most, abs(int(grids[n])))
    return most * unit_of(numbers)


@inner_kernel()
def undisplaced(numbers: Any, grids: Any, after: Any, x: Any, y: Any) -> Any:
    """Place at which a grid shows (x, y) of its source -> x, y, and how far from it that reads, in pixels. By
    fixed-point iteration; where that leaves the image, Newton's steps from the best place of a lattice of half pixels.
    """
    p, q, error = _iterated(numbers, grids, x, y)
    if error < _CLOSE and _is_within(p, q, after):
        return p, q, error
    reach = farthest(numbers, grids) + 1.0
    best_p, best_q, best = p, q, np.inf
    v = max(0.5, np.floor(y - reach) + 0.5)
    while v < min(y + reach, after[0]):
        u = max(0.5, np.floor(x - reach) + 0.5)
        while u < min(x + reach, after[1]):
            dx, dy = displacement(numbers, grids, u, v)
            distance = np.sqrt((u + dx - x) ** 2 + (v + dy - y) ** 2)
            if distance < best:
                best_p, best_q, best = u, v, distance
            u += 0.5
        v += 0.5
    if best < np.inf:
        best_p, best_q, best = _newton(numbers, grids, x, y, best_p, best_q, best)
        if best < CLOSE_ENOUGH and _is_within(best_p, best_q, after):
            return best_p, best_q, best
    return (p, q, error) if error <= best else (best_p, best_q, best)


@inner_kernel()
def _is_within(x: Any, y: Any, size: Any) -> bool:
    return bool(0.0 <= x <= size[1] and 0.0 <= y <= size[0])


@inner_kernel()
def _iterated(numbers: Any, grids: Any, x: Any, y: Any) -> Any:
    dx, dy = displacement(numbers, grids, x, y)
    p, q = x - dx, y - dy
    best_p, best_q, best = p, q, np.inf
    for _ in range(_ROUNDS):
        dx, dy = displacement(numbers, grids, p, q)
        ex, ey = p + dx - x, q + dy - y
        error = np.sqrt(ex * ex + ey * ey)
        if error < best:
            best_p, best_q, best = p, q, error
        if error < _CLOSE:
            break
        p, q = p - ex, q - ey
    return best_p, best_q, best


@inner_kernel()
def _newton(numbers: Any, grids: Any, x: Any, y: Any, p: Any, q: Any, error: Any) -> Any:
    """Newton's steps from (p, q), halved until they come closer."""
    h = 0.25
    for _ in range(12):
        if error < _CLOSE:
            break
        dx, dy = displacement(numbers, grids, p, q)
        right_x, right_y = displacement(numbers, grids, p + h, q)
        left_x, left_y = displacement(numbers, grids, p - h, q)
        low_x, low_y = displacement(numbers, grids, p, q + h)
        high_x, high_y = displacement(numbers, grids, p, q - h)
        a, b = 1.0 + (right_x - left_x) / (2 * h), (low_x - high_x) / (2 * h)
        c, d = (right_y - left_y) / (2 * h), 1.0 + (low_y - high_y) / (2 * h)
        determinant = a * d - b * c
        if abs(determinant) < 1e-9:
            break
        ex, ey = p + dx - x, q + dy - y
        step_p, step_q, share, is_better = (d * ex - b * ey) / determinant, (a * ey - c * ex) / determinant, 1.0, False
        for _ in range(6):
            dx, dy = displacement(numbers, grids, p - share * step_p, q - share * step_q)
            ex, ey = p - share * step_p + dx - x, q - share * step_q + dy - y
            new = np.sqrt(ex * ex + ey * ey)
            if new < error:
                p, q, error, is_better = p - share * step_p, q - share * step_q, new, True
                break
            share *= 0.5
        if not is_better:
            break
    return p, q, error


@inner_kernel()
def cut(polygon: Any, count: Any, a: Any, b: Any, c: Any, room: Any) -> int:
    """Cut a convex polygon to ``a x + b y + c >= 0`` -> its number of corners; ``polygon`` is written over."""
    kept = 0
    for n in range(count):
        x, y = polygon[n, 0], polygon[n, 1]
        m = n + 1 if n + 1 < count else 0
        next_x, next_y = polygon[m, 0], polygon[m, 1]
        here, there = a * x + b * y + c, a * next_x + b * next_y + c
        if here >= 0.0:
            room[kept, 0], room[kept, 1] = x, y
            kept += 1
        if (here > 0.0 and there < 0.0) or (here < 0.0 and there > 0.0):
            share = here / (here - there)
            room[kept, 0], room[kept, 1] = x + share * (next_x - x), y + share * (next_y - y)
            kept += 1
    for n in range(kept):
        polygon[n, 0], polygon[n, 1] = room[n, 0], room[n, 1]
    return kept


@inner_kernel()
def cut_to(polygon: Any, count: Any, rectangle: Any, room: Any) -> int:
    """Cut a convex polygon to left, top, right, bottom."""
    count = cut(polygon, count, 1.0, 0.0, -rectangle[0], room)
    count = cut(polygon, count, 0.0, 1.0, -rectangle[1], room)
    count = cut(polygon, count, -1.0, 0.0, rectangle[2], room)
    return int(cut(polygon, count, 0.0, -1.0, rectangle[3], room))


@inner_kernel()
def twice_area(polygon: Any, count: Any) -> float:
    """Negative where corners go around the other way."""
    total = 0.0
    for n in range(count):
        m = n + 1 if n + 1 < count else 0
        total += polygon[n, 0] * polygon[m, 1] - polygon[m, 0] * polygon[n, 1]
    return total


@inner_kernel()
def area(polygon: Any, count: Any) -> float:
    return abs(twice_area(polygon, count)) * 0.5


@inner_kernel()
def bounds(polygon: Any, count: Any, out: Any) -> None:
    """left, top, right, bottom; inverted for no corners."""
    out[0], out[1], out[2], out[3] = np.inf, np.inf, -np.inf, -np.inf
    for n in range(count):
        out[0], out[1] = min(out[0], polygon[n, 0]), min(out[1], polygon[n, 1])
        out[2], out[3] = max(out[2], polygon[n, 0]), max(out[3], polygon[n, 1])


@inner_kernel()
def meets(sides: Any, count: Any, x: Any, y: Any, next_x: Any, next_y: Any) -> bool:
    """True if a line between places meets a convex polygon. ``sides``: a, b, c with ``a x + b y + c >= 0`` within."""
    begin, end = 0.0, 1.0
    for n in range(count):
        here = sides[n, 0] * x + sides[n, 1] * y + sides[n, 2]
        there = sides[n, 0] * next_x + sides[n, 1] * next_y + sides[n, 2]
        if here < 0.0 and there < 0.0:
            return False
        if here < 0.0:
            begin = max(begin, here / (here - there))
        elif there < 0.0:
            end = min(end, here / (here - there))
    return begin <= end and count > 2


@inner_kernel()
def rectangle(polygon: Any, box: Any) -> int:
    polygon[0, 0], polygon[0, 1], polygon[1, 0], polygon[1, 1] = box[0], box[1], box[2], box[1]
    polygon[2, 0], polygon[2, 1], polygon[3, 0], polygon[3, 1] = box[2], box[3], box[0], box[3]
    return 4
