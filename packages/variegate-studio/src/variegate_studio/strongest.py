"""The strongest of many draws of a policy: by how much they change an image, and by how much of it they leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate_studio.pictures import Image_HWC

_GRID = 16  # points along each side
_RADIUS = 3  # pixels around a point within which levels may differ
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


def grid_points(img_HWC: Image_HWC) -> Points:
    """Visible points all over an image."""
    height, width = img_HWC.shape[:2]
    y, x = np.mgrid[:_GRID, :_GRID].reshape(2, -1)
    return np.stack([(x + 0.5) * width / _GRID, (y + 0.5) * height / _GRID, np.full(x.shape, 2.0)], axis=1)


def share_left(made_HWC: Image_HWC, original_HWC: Image_HWC, points: Points, moved: Points) -> float:
    """The share of points with detail around them that are still within the image, and still have some.

    ``points``: in the original; ``moved``: in the image that was made of it.
    """
    had_detail = _detail(original_HWC, points) >= _DETAIL
    if not had_detail.any():
        had_detail[:] = True
    is_seen = (moved[:, 2] > 0) & (_detail(made_HWC, moved) >= _DETAIL / 2)
    return float(is_seen[had_detail].mean())


def _detail(img_HWC: Image_HWC, points: Points) -> npt.NDArray[np.int16]:
    """The range of levels around each point."""
    height, width = img_HWC.shape[:2]
    offsets = np.arange(-_RADIUS, _RADIUS + 1)
    x, y = np.nan_to_num(points[:, :2]).astype(np.int64).T
    rows = np.clip(y[:, None] + offsets, 0, height - 1)
    columns = np.clip(x[:, None] + offsets, 0, width - 1)
    around = img_HWC[rows[:, :, None], columns[:, None, :]].astype(np.int16).mean(axis=3)
    detail: npt.NDArray[np.int16] = (around.max(axis=(1, 2)) - around.min(axis=(1, 2))).astype(np.int16)
    return detail


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
