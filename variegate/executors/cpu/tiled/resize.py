"""Stages that are no passes: a resize, one axis at a time, and a JPEG, by whole blocks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.jpeg import through_jpeg
from variegate.executors.cpu.resize_weights import PRECISION, filter_radius, fixed_weight, weigh_output
from variegate.executors.cpu.tiled.areas import Area, CutStage, Image, Stage
from variegate.program.compiled import pixel_kernel


@pixel_kernel
def axis_taps(start: Any, extent: Any, out_size: Any, kind: Any) -> int:
    """The greatest number of weights of an output."""
    scale = np.float64(np.float32(np.float32(max(start, 0.0) + extent) - np.float32(max(start, 0.0)))) / out_size
    return int(np.ceil(filter_radius(kind) * max(scale, 1.0))) * 2 + 2


@pixel_kernel
def axis_weights(
    in_size: Any, start: Any, extent: Any, out_size: Any, kind: Any, begin: Any, bounds: Any, weights: Any, real: Any
) -> None:
    """Of the outputs from ``begin`` on: first source index and number of weights, bounds int64[N, 2], and the weights,
    int32[N, taps]. See ``resize_weights.coefficients``."""
    skipped = np.int64(0)
    if start < 0.0:
        skipped, in_size, start = np.int64(-1.0 - start), np.int64(extent), 0.0
    first = np.float32(start)
    scale = np.float64(np.float32(np.float32(start + extent) - first)) / out_size
    filter_scale = max(scale, 1.0)
    support, inverse = filter_radius(kind) * filter_scale, 1.0 / filter_scale
    for i in range(bounds.shape[0]):
        centre = np.float64(first) + (begin + i + 0.5) * scale
        low, count = weigh_output(centre, support, inverse, in_size, kind, real)
        for j in range(count):
            weights[i, j] = fixed_weight(real[j])
        bounds[i, 0], bounds[i, 1] = skipped + low, count


@pixel_kernel
def resize_columns(levels: Any, bounds: Any, weights: Any, left: Any, out: Any) -> None:
    """Levels uint8[H, W, C], which begin at column ``left``, into out uint8[H, N, C]."""
    channels = levels.shape[2]
    for y in range(levels.shape[0]):
        for x in range(out.shape[1]):
            first, count = bounds[x, 0] - left, bounds[x, 1]
            for c in range(channels):
                total: Any = np.int32(1 << (PRECISION - 1))
                for j in range(count):
                    total += np.int32(levels[y, first + j, c]) * weights[x, j]
                out[y, x, c] = np.uint8(min(max(total >> PRECISION, 0), 255))


@pixel_kernel
def resize_lines(levels: Any, bounds: Any, weights: Any, top: Any, totals: Any, out: Any) -> None:
    """Levels uint8[H, W C], which begin at line ``top``, into out uint8[N, W C]. ``totals``: room, int32[W C]."""
    for y in range(out.shape[0]):
        first, count = bounds[y, 0] - top, bounds[y, 1]
        totals[:] = np.int32(1 << (PRECISION - 1))
        for j in range(count):
            weight, line = weights[y, j], levels[first + j]
            for x in range(totals.shape[0]):
                totals[x] += np.int32(line[x]) * weight
        for x in range(totals.shape[0]):
            out[y, x] = np.uint8(min(max(totals[x] >> PRECISION, 0), 255))


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


# Chroma blocks of 4:2:0 cover so many pixels. Upsampling looks at the chroma beside a pixel's own, which lies in the
# block beside; what blocks are made of begins and ends with them.
_BLOCK = 16


class CodedStage(CutStage):
    def __init__(self, before: Stage, quality: int) -> None:
        self.before, self._quality = before, quality
        self.height, self.width, self.channels = before.height, before.width, before.channels

    def reads(self, area: Area) -> Area:
        top, left = area.top // _BLOCK * _BLOCK - _BLOCK, area.left // _BLOCK * _BLOCK - _BLOCK
        bottom, right = -(-area.bottom // _BLOCK) * _BLOCK + _BLOCK, -(-area.right // _BLOCK) * _BLOCK + _BLOCK
        return Area(top, left, bottom, right).meet(self.whole)

    def make_from(self, area: Area, read: Area | None) -> Image:
        assert read is not None
        coded = through_jpeg(np.ascontiguousarray(self.before.make(read)), self._quality)
        return np.ascontiguousarray(coded[area.within(read)])
