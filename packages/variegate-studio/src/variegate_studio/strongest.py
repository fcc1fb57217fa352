"""The strongest of many draws of a policy: by how much they change an image, and by how much of it they leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate_studio.pictures import Image_HWC

_GRID = 16  # points along each side
_OFFSETS = np.array([-3, -1, 1, 3])  # pixels around a point at which levels are compared
_DETAIL = 8  # levels by which they differ where there is something to see
_MOST_COMBINATIONS = 24
BY = ("change", "left")

Points = npt.NDArray[np.float64]  # x, y, visibility


class Draw(NamedTuple):
    """``change``: mean difference of levels. ``left``: share of the photo that can still be seen."""

    copy: int
    operations: frozenset[str]
    change: float
    left: float


def points_with_detail(img_HWC: Image_HWC) -> Points:
    """Visible points all over an image, at details if there are any."""
    height, width = img_HWC.shape[:2]
    y, x = np.mgrid[:_GRID, :_GRID].reshape(2, -1)
    points = np.stack([(x + 0.5) * width / _GRID, (y + 0.5) * height / _GRID, np.full(x.shape, 2.0)], axis=1)
    has_detail = _detail(img_HWC, points) >= _DETAIL
    return points[has_detail] if has_detail.any() else points


def share_left(img_HWC: Image_HWC, points: Points) -> float:
    """The share of points that are within an output, and still have half as much detail around them.

    ``points``: where the points of ``points_with_detail`` are in the output.
    """
    is_left = (points[:, 2] > 0) & (_detail(img_HWC, points) >= _DETAIL / 2)
    return float(is_left.mean())


def _detail(img_HWC: Image_HWC, points: Points) -> npt.NDArray[np.uint8]:
    """The range of levels around each point, of one channel."""
    height, width, channels = img_HWC.shape
    x, y = np.nan_to_num(points[:, :2]).astype(np.int64).T
    rows = np.clip(y[:, None] + _OFFSETS, 0, height - 1)
    columns = np.clip(x[:, None] + _OFFSETS, 0, width - 1)
    around = img_HWC[rows[:, :, None], columns[:, None, :], channels // 2].reshape(len(points), -1)
    return np.ptp(around, axis=1)


def strongest_of(draws: Sequence[Draw], by: str) -> dict[str, list[tuple[str, Draw]]]:
    """The strongest draw of each operation, alone where it was drawn alone, and of each combination, with its name;
    the strongest first. ``by``: one of ``BY``."""

    def strength(draw: Draw) -> Any:
        return draw.change if by == "change" else -draw.left

    drawn: dict[frozenset[str], list[Draw]] = defaultdict(list)
    for draw in draws:
        drawn[draw.operations].append(draw)
    names = sorted(frozenset().union(*drawn))
    operations = []
    for name in names:
        alone = drawn.get(frozenset([name]))
        operations.append((name, max(alone or [one for one in draws if name in one.operations], key=strength)))
    combinations = [(" + ".join(sorted(key)), max(some, key=strength)) for key, some in drawn.items() if len(key) > 1]

    def ranked(some: list[tuple[str, Draw]]) -> list[tuple[str, Draw]]:
        return sorted(some, key=lambda each: strength(each[1]), reverse=True)

    return {"operations": ranked(operations), "combinations": ranked(combinations)[:_MOST_COMBINATIONS]}
