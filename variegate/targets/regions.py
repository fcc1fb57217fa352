"""Boxes through rows of a program: the smallest box around all that is left of each.

A box is a convex polygon and a frame that cuts it off. Maps that keep sides along the axes move both. What turns or
bends cuts the polygon by the frame, maps its corners, and begins with the frame of the new image. So a single operation
gives torchvision's boxes, and of a chain the box is as tight as what of it has stayed in the image.

A grid of displacements bends sides. Its output is scanned from all four sides for the first pixels that read within the
polygon, whatever folds it has, and the last step is refined to an eighth of a pixel; corners are mapped as points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.targets.stages import ERASE, GRID, Stages
from variegate.targets.walk import CLOSE_ENOUGH, area, bounds, cut, cut_to, displacement, farthest, meets, undisplaced

# Every step cuts off at most five corners, and so adds as many; beyond this a polygon becomes its box.
_CORNERS, _FULL = 96, 80
_AHEAD = 1e-9


def move_boxes(
    stages: Stages, row: npt.NDArray[np.int64], corners: npt.NDArray[np.floating], size: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Boxes [B, 4, 2], corners in turn, of images of ``row`` [B] with ``size`` (height, width) [B, 2].

    -> float64[B, 5, 4]: left, top, right, bottom of what is seen of each (inverted or empty where nothing is), and
    before the last frame cut it off; float64[B]: the share of it that earlier frames have left.
    """
    polygons = np.ascontiguousarray(corners, np.float64)
    seen = np.empty((len(polygons), 2, 4))
    share = np.ones(len(polygons))
    room = np.empty((4, _CORNERS, 3))
    frame = np.empty((2, 4))
    size = np.ascontiguousarray(size, np.int64)
    _move(stages, np.ascontiguousarray(row, np.int64), polygons, size, seen, share, room, frame)
    return seen, share


@pixel_kernel
def _move(stages: Any, row: Any, boxes: Any, size: Any, seen: Any, share: Any, room: Any, frames: Any) -> None:
    polygon, spare, frame, reach = room[0], room[1], frames[0], frames[1]
    for n in range(len(boxes)):
        count = 4
        for i in range(4):
            polygon[i, 0], polygon[i, 1] = boxes[n, i, 0], boxes[n, i, 1]
        _whole(size[n], frame)
        for s in range(stages.begin[row[n]], stages.begin[row[n] + 1]):
            if stages.kind[s] == ERASE:
                continue
            if not stages.is_aligned[s]:
                whole = area(polygon, count)
                count = cut_to(polygon, count, frame, spare)
                share[n] *= area(polygon, count) / whole if whole > 0.0 else 1.0
                if count > _FULL:
                    bounds(polygon, count, reach)
                    count = _rectangle(polygon, reach)
            if count == 0:
                break
            if stages.kind[s] == GRID:
                count = _bend(stages, s, polygon, count, reach, room[3])
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
def _rectangle(polygon: Any, box: Any) -> int:
    polygon[0, 0], polygon[0, 1], polygon[1, 0], polygon[1, 1] = box[0], box[1], box[2], box[1]
    polygon[2, 0], polygon[2, 1], polygon[3, 0], polygon[3, 1] = box[2], box[3], box[0], box[3]
    return 4


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
    """A polygon by a projective map. One that reaches behind the viewer is seen in two parts, as the image is: it
    becomes the box around what of them is within the new image."""
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
    return int(_rectangle(polygon, reach))


@inner_kernel()
def _bend(stages: Any, s: Any, polygon: Any, count: Any, reach: Any, sides: Any) -> int:
    """A polygon by a grid of displacements."""
    numbers, grids, after = stages.numbers[s], stages.grids, stages.after[s]
    bounds(polygon, count, reach)
    far = farthest(numbers, grids) + 1.0
    left, right = max(int(np.floor(reach[0] - far)), 0), min(int(np.ceil(reach[2] + far)), after[1])
    top, bottom = max(int(np.floor(reach[1] - far)), 0), min(int(np.ceil(reach[3] + far)), after[0])
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
    return int(_rectangle(polygon, reach))


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
    """The border of what reads within the polygon, from lines (or columns) ``begin`` towards ``end``, and where along
    it; NaN for nothing. Each is looked at from ``low`` to ``high``."""
    step = 1 if end > begin else -1
    outside, at = float(begin), begin + 0.5 * step
    found = _hit(numbers, grids, sides, count, reach, by_line, outside, low, high)
    if not np.isnan(found):
        return outside, found
    while (end - at) * step > 0.0:
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
    """Where first along a line something reads within the polygon, pixels' centres and straight on from each to the
    next; NaN for nothing. Right to a pixel."""
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
    twice = 0.0
    for n in range(count):
        m = n + 1 if n + 1 < count else 0
        twice += polygon[n, 0] * polygon[m, 1] - polygon[m, 0] * polygon[n, 1]
    sign = 1.0 if twice >= 0.0 else -1.0
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
