"""Boxes through rows of a program: the smallest box around all that is left of each.

A box is a convex polygon and a frame that cuts it off. Aligned maps move both; what turns or bends cuts the polygon,
maps its corners and begins a new frame. Where a nearest scale grows whole pixels, a box becomes that of pixels that
show it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.targets.bending import bend
from variegate.targets.stages import COUNT, ERASE, FIRST, GRID, SCALE, Stages
from variegate.targets.walk import CLOSE_ENOUGH, area, bounds, cut, cut_to, farthest, rectangle, undisplaced

# What becomes of a point: it left the image at some step; it is in the image, where something was erased; it is seen.
LEFT_IMAGE, ERASED, SEEN = range(3)
# Places on the image's edge are in it; so much beyond is rounding.
_EDGE = 1e-6


def move_points(
    stages: Stages, row: npt.NDArray[np.int64], points: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Points [P, 2] of images of ``row`` [P] -> places in the results, float32[P, 2] (NaN where a map leads nowhere),
    and uint8[P]: LEFT_IMAGE, ERASED or SEEN."""
    moved = np.array(points, np.float64, order="C")
    state = np.full(len(moved), SEEN, np.uint8)
    _move_points(stages, np.ascontiguousarray(row, np.int64), moved, state)
    return moved.astype(np.float32), state


def where_mirrored(
    stages: Stages, row: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], order: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Point that takes the place of each where images are mirrored, int64[P]; lists of ``len(order)`` points,
    ``counts``."""
    matrices = stages.back.reshape(-1, 3, 3)
    turns = np.linalg.det(matrices) * np.sign(matrices[:, 2, 2]) < 0
    before = np.concatenate([[0], np.cumsum(turns)])
    is_mirrored = (before[stages.begin[1:]] - before[stages.begin[:-1]]) % 2 == 1
    lists = np.arange(int(counts.sum())).reshape(-1, len(order))
    swapped = np.repeat(is_mirrored[row], counts // len(order))
    lists[swapped] = lists[swapped][:, np.array(order)]
    return lists.ravel()


@pixel_kernel
def _move_points(stages: Any, row: Any, points: Any, state: Any) -> None:
    for n in range(len(points)):
        x, y = points[n, 0], points[n, 1]
        for s in range(stages.begin[row[n]], stages.begin[row[n] + 1]):
            if stages.kind[s] == ERASE:
                first = stages.numbers[s, FIRST]
                for r in range(first, first + stages.numbers[s, COUNT]):
                    top, left = stages.rectangles[r, 0], stages.rectangles[r, 1]
                    bottom, right = top + stages.rectangles[r, 2], left + stages.rectangles[r, 3]
                    if top <= y < bottom and left <= x < right and state[n] == SEEN:
                        state[n] = ERASED
                continue
            if stages.kind[s] == GRID:
                x, y, error = undisplaced(stages.numbers[s], stages.grids, stages.after[s], x, y)
                if not error <= CLOSE_ENOUGH:
                    state[n] = LEFT_IMAGE
            else:
                m = stages.ahead[s]
                depth = m[6] * x + m[7] * y + m[8]
                x, y = (m[0] * x + m[1] * y + m[2]) / depth, (m[3] * x + m[4] * y + m[5]) / depth
            height, width = stages.after[s, 0], stages.after[s, 1]
            if not (-_EDGE <= x <= width + _EDGE and -_EDGE <= y <= height + _EDGE):
                state[n] = LEFT_IMAGE
        points[n, 0], points[n, 1] = x, y


# Every step cuts off at most five corners, and so adds as many; beyond this a polygon becomes its box.
_CORNERS, _FULL = 96, 80
_AHEAD = 1e-9
# Pixels' centres so close to an edge lie on it, but for rounding.
_ON_EDGE = 1e-6


def move_boxes(
    stages: Stages, row: npt.NDArray[np.int64], corners: npt.NDArray[np.floating], size: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Boxes [B, 4, 2] of images of ``row`` [B], ``size`` [B, 2] -> edges seen of each and before the last frame cut
    them, float64[B, 2, 4] (inverted or empty where nothing is), and the share that earlier frames have left,
    float64[B]."""
    polygons = np.ascontiguousarray(corners, np.float64)
    seen = np.empty((len(polygons), 2, 4))
    share = np.ones(len(polygons))
    room = np.empty((4, _CORNERS, 3))
    frame = np.empty((2, 4))
    far = np.full(len(stages.kind), np.nan)
    size = np.ascontiguousarray(size, np.int64)
    _move(stages, np.ascontiguousarray(row, np.int64), polygons, size, seen, share, room, frame, far)
    return seen, share


@pixel_kernel
def _move(
    stages: Any, row: Any, boxes: Any, size: Any, seen: Any, share: Any, room: Any, frames: Any, far: Any
) -> None:
    polygon, spare, frame, reach = room[0], room[1], frames[0], frames[1]
    for n in range(len(boxes)):
        count = 4
        for i in range(4):
            polygon[i, 0], polygon[i, 1] = boxes[n, i, 0], boxes[n, i, 1]
        _whole(size[n], frame)
        is_upright = polygon[0, 0] == polygon[1, 0] or polygon[0, 1] == polygon[1, 1]
        end = stages.begin[row[n] + 1]
        for s in range(stages.begin[row[n]], end):
            if stages.kind[s] == ERASE:
                continue
            is_upright = is_upright and stages.is_aligned[s]
            if not stages.is_aligned[s]:
                whole = area(polygon, count)
                count = cut_to(polygon, count, frame, spare)
                share[n] *= area(polygon, count) / whole if whole > 0.0 else 1.0
                if count > _FULL:
                    bounds(polygon, count, reach)
                    count = rectangle(polygon, reach)
            if count == 0:
                break
            if stages.kind[s] == GRID:
                if np.isnan(far[s]):
                    far[s] = farthest(stages.numbers[s], stages.grids)
                count = bend(stages, s, polygon, count, reach, room[3], far[s])
            elif stages.kind[s] == SCALE and _grows_in_blocks(stages, stages.begin[row[n]], s, end, is_upright):
                count = _scale(stages, s, polygon, count, frame, reach, is_upright)
                continue
            else:
                count = _project(stages.ahead[s], stages.after[s], polygon, count, room, frames)
            if stages.is_aligned[s]:
                _frame_ahead(stages.ahead[s], frame)
                frame[0], frame[1] = max(frame[0], 0.0), max(frame[1], 0.0)
                frame[2], frame[3] = min(frame[2], stages.after[s, 1]), min(frame[3], stages.after[s, 0])
            else:
                _whole(stages.after[s], frame)
        bounds(polygon, count, seen[n, 1])
        for i in range(2):
            seen[n, 0, i] = max(seen[n, 1, i], frame[i])
            seen[n, 0, 2 + i] = min(seen[n, 1, 2 + i], frame[2 + i])


@inner_kernel()
def _whole(size: Any, frame: Any) -> None:
    frame[0], frame[1], frame[2], frame[3] = 0.0, 0.0, size[1], size[0]


@inner_kernel()
def _grows_in_blocks(stages: Any, first: Any, s: Any, end: Any, is_upright: Any) -> bool:
    """True if pixels taken whole by a nearest scale grow, here or later, and a box can follow them."""
    while first < s and stages.kind[first] == ERASE:
        first += 1
    growth = 1.0
    for later in range(end - 1, s - 1, -1):
        if stages.kind[later] == ERASE:
            continue
        if not (is_upright or stages.is_aligned[later]):
            return False
        m = stages.ahead[later]
        if stages.is_aligned[later]:
            growth *= max(abs(m[0]) + abs(m[1]), abs(m[3]) + abs(m[4])) / abs(m[8])
        elif stages.kind[later] != GRID and m[6] == 0.0 and m[7] == 0.0:
            growth *= np.sqrt(abs(m[0] * m[4] - m[1] * m[3])) / abs(m[8])
        if growth > 1.0 + _ON_EDGE and (later > s or s > first):
            return True
    return False


@inner_kernel()
def _scale(stages: Any, s: Any, polygon: Any, count: Any, frame: Any, reach: Any, is_upright: Any) -> int:
    """A box and its frame as the pixels that a nearest scale reads in them; without any, as the scale leads."""
    bounds(polygon, count, reach)
    m, left, top, is_shown, is_framed = stages.ahead[s], reach[0], reach[1], True, True
    for axis in range(2):
        # As a mask does, a box has what lies on its first edge, and not what lies on its last one.
        falls = is_upright and polygon[0, axis] > polygon[2, axis]
        is_shown = _read_between(stages, s, reach, axis, not falls, falls or not is_upright) and is_shown
        is_framed = _read_between(stages, s, frame, axis, not falls, falls or not is_upright) and is_framed
    if not is_framed:
        return 0
    if not is_shown:
        _mapped(m, polygon, count)
        return int(count)
    if not is_upright:
        return int(rectangle(polygon, reach))
    for i in range(4):
        polygon[i, 0] = reach[0] if (polygon[i, 0] == left) == (m[0] > 0.0) else reach[2]
        polygon[i, 1] = reach[1] if (polygon[i, 1] == top) == (m[4] > 0.0) else reach[3]
    return int(count)


@inner_kernel()
def _read_between(stages: Any, s: Any, box: Any, axis: Any, has_first: Any, has_last: Any) -> bool:
    """Edges along an axis become those of the pixels whose centres lie between; False, and no change, without any."""
    begin = stages.numbers[s, FIRST] + (stages.after[s, 1] if axis == 1 else 0)
    least = box[axis] + (-_ON_EDGE if has_first else _ON_EDGE)
    most = box[axis + 2] + (_ON_EDGE if has_last else -_ON_EDGE)
    low, high = -1, -1
    for i in range(stages.after[s, 1 - axis]):
        if least <= np.floor(stages.tables[begin + i]) + 0.5 <= most:
            low, high = i if low < 0 else low, i
    if low >= 0:
        box[axis], box[axis + 2] = low, high + 1
    return low >= 0


@inner_kernel()
def _frame_ahead(m: Any, frame: Any) -> None:
    """Two opposite corners of a frame by a map that keeps it along the axes."""
    x0, y0 = m[0] * frame[0] + m[1] * frame[1] + m[2], m[3] * frame[0] + m[4] * frame[1] + m[5]
    x1, y1 = m[0] * frame[2] + m[1] * frame[3] + m[2], m[3] * frame[2] + m[4] * frame[3] + m[5]
    frame[0], frame[1], frame[2], frame[3] = min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


@inner_kernel()
def _mapped(m: Any, polygon: Any, count: Any) -> None:
    for i in range(count):
        x, y = polygon[i, 0], polygon[i, 1]
        depth = m[6] * x + m[7] * y + m[8]
        polygon[i, 0], polygon[i, 1] = (m[0] * x + m[1] * y + m[2]) / depth, (m[3] * x + m[4] * y + m[5]) / depth


@inner_kernel()
def _project(m: Any, after: Any, polygon: Any, count: Any, room: Any, frames: Any) -> int:
    """A polygon by a projective map; one that reaches behind the viewer becomes the box around its visible parts."""
    if not np.isfinite(m[8]):
        return 0
    low, high = np.inf, -np.inf
    for i in range(count):
        depth = m[6] * polygon[i, 0] + m[7] * polygon[i, 1] + m[8]
        low, high = min(low, depth), max(high, depth)
    least = _AHEAD * max(abs(low), abs(high))
    if low > least or high < -least:
        _mapped(m, polygon, count)
        return int(count)
    other, spare, frame, reach = room[2], room[1], frames[0], frames[1]
    left, top, right, bottom = np.inf, np.inf, -np.inf, -np.inf
    for sign in (1.0, -1.0):
        for i in range(count):
            other[i, 0], other[i, 1] = polygon[i, 0], polygon[i, 1]
        part = cut(other, count, sign * m[6], sign * m[7], sign * m[8] - least, spare)
        _mapped(m, other, part)
        _whole(after, frame)
        part = cut_to(other, part, frame, spare)
        bounds(other, part, reach)
        left, top, right, bottom = min(left, reach[0]), min(top, reach[1]), max(right, reach[2]), max(bottom, reach[3])
    if not (left <= right and top <= bottom):
        return 0
    reach[0], reach[1], reach[2], reach[3] = left, top, right, bottom
    return int(rectangle(polygon, reach))
