"""Points through rows of a program, all points of a batch in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import pixel_kernel
from variegate.targets.stages import COUNT, ERASE, FIRST, GRID, Stages
from variegate.targets.walk import CLOSE_ENOUGH, undisplaced

# What becomes of a point: it left the image at some step; it is in the image, where something was erased; it is seen.
LEFT_IMAGE, ERASED, SEEN = range(3)
# Places on the image's edge are in it; so much beyond is rounding.
_EDGE = 1e-6


def move_points(
    stages: Stages, row: npt.NDArray[np.int64], points: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Points [P, 2] (x, y in the frame of ``stages``) of images of ``row`` [P] -> float32[P, 2] where the rows' results
    show them, and uint8[P]: LEFT_IMAGE, ERASED or SEEN.

    Points that left the image go on as maps lead them; NaN where a map leads nowhere.
    """
    moved = np.array(points, np.float64, order="C")
    state = np.full(len(moved), SEEN, np.uint8)
    _move_points(stages, np.ascontiguousarray(row, np.int64), moved, state)
    return moved.astype(np.float32), state


def where_mirrored(
    stages: Stages, row: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], order: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Which point comes to be in the place of each, where images are mirrored: int64[P].

    ``counts``: of lists of ``len(order)`` points one after another, all of the image of ``row``.
    """
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
