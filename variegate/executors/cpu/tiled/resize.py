"""A resize as two stages, one for each axis."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.tiled.areas import Area, CutStage, Image, Stage
from variegate.executors.cpu.tiled.axes import axis_taps, axis_weights, resize_columns, resize_lines

Ints = npt.NDArray[Any]


class ResizedAxis(CutStage):
    """The image before it, resized along x (axis 1) or y (axis 0).

    ``start``, ``extent``: of the box along this axis, as a RESIZED_CROP has them; ``kind``: the filter.
    """

    most_made = most_read = 1 << 62

    def __init__(
        self, before: Stage, axis: int, start: float, extent: float, size: int, kind: int, mirrors: bool = False
    ) -> None:
        self.before, self.axis, self.channels = before, axis, before.channels
        self.height, self.width = (size, before.width) if axis == 0 else (before.height, size)
        self._in_size = before.height if axis == 0 else before.width
        self._box, self._size, self._kind, self._mirrors = (start, extent), size, kind, mirrors
        self._taps = axis_taps(start, extent, size, kind)
        self._weights = lru_cache(maxsize=4)(self._weigh)

    def reads(self, area: Area) -> Area:
        begin, end = self._outputs(area)
        bounds, _ = self._weights(begin, end)
        first, stop = int(bounds[:, 0].min()), int(bounds.sum(axis=1).max())
        if self.axis == 0:
            return Area(first, area.left, stop, area.right)
        return Area(area.top, first, area.bottom, stop)

    def make_from(self, area: Area, read: Area | None) -> Image:
        assert read is not None
        begin, end = self._outputs(area)
        bounds, weights = self._weights(begin, end)
        levels = self.before.make(read)
        made = np.empty((area.height, area.width, self.channels), np.uint8)
        if self.axis == 1:
            resize_columns(levels, bounds, weights, read.left, made)
            return np.ascontiguousarray(made[:, ::-1]) if self._mirrors else made
        length = area.width * self.channels
        totals = np.empty(length, np.int32)
        resize_lines(levels.reshape(-1, length), bounds, weights, read.top, totals, made.reshape(area.height, length))
        return made

    def _outputs(self, area: Area) -> tuple[int, int]:
        """Along the axis, as they are before a mirror."""
        begin, end = (area.top, area.bottom) if self.axis == 0 else (area.left, area.right)
        return (self._size - end, self._size - begin) if self._mirrors else (begin, end)

    def _weigh(self, begin: int, end: int) -> tuple[Ints, Ints]:
        bounds, weights = np.empty((end - begin, 2), np.int64), np.zeros((end - begin, self._taps), np.int32)
        axis_weights(
            self._in_size, *self._box, self._size, self._kind, begin, bounds, weights, np.empty(self._taps, np.float64)
        )
        return bounds, weights


def resized(before: Stage, args: Any, kind: int, size: tuple[int, int]) -> Stage:
    """``before`` through a RESIZED_CROP as lowering leaves it, with its arguments, to a height and width."""
    top, left, height, width, *_, mirrors, is_vertical_first = (float(value) for value in args)
    if is_vertical_first:
        lines = ResizedAxis(before, 0, top, height, size[0], kind)
        return ResizedAxis(lines, 1, left, width, size[1], kind, mirrors != 0.0)
    columns = ResizedAxis(before, 1, left, width, size[1], kind, mirrors != 0.0)
    return ResizedAxis(columns, 0, top, height, size[0], kind)
