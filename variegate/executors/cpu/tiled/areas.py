"""Rectangles of images, what makes the pixels of one, and their lines from and to files in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt
from numba.core import types

from variegate.program.compiled import pixel_kernel

Image = npt.NDArray[Any]

# A rectangle that is more than this, or reads more than this of the image before it, is made in parts. Kernels hold
# coordinates of rectangles in 16.16 fixed point, and sides in 15 bits.
MOST_BYTES, MOST_SIDE = 16 << 20, 32_000


class Area(NamedTuple):
    """Of an image, in whole pixels."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def is_empty(self) -> bool:
        return self.bottom <= self.top or self.right <= self.left

    def meet(self, other: Area) -> Area:
        return Area(
            max(self.top, other.top),
            max(self.left, other.left),
            min(self.bottom, other.bottom),
            min(self.right, other.right),
        )

    def grown(self, lines: int, columns: int) -> Area:
        return Area(self.top - lines, self.left - columns, self.bottom + lines, self.right + columns)

    def halves(self, across: bool) -> tuple[Area, Area]:
        """Left and right, or with ``across`` upper and lower."""
        top, left, bottom, right = self
        if across:
            middle = (top + bottom) // 2
            return Area(top, left, middle, right), Area(middle, left, bottom, right)
        middle = (left + right) // 2
        return Area(top, left, bottom, middle), Area(top, middle, bottom, right)

    def within(self, outer: Area) -> tuple[slice, slice]:
        """Place in the pixels of ``outer``."""
        return (
            slice(self.top - outer.top, self.bottom - outer.top),
            slice(self.left - outer.left, self.right - outer.left),
        )

    def blocks(self, side: int) -> Blocks:
        """Cut at multiples of ``side``, line by line."""
        return Blocks(self, side)


@dataclass(frozen=True)
class Blocks(Sequence[Area]):
    """Made as they are asked for: of an image that says it is huge there may be more than memory holds."""

    area: Area
    side: int

    def __len__(self) -> int:
        return self._down * self._across

    @overload
    def __getitem__(self, number: int) -> Area: ...

    @overload
    def __getitem__(self, number: slice) -> list[Area]: ...

    def __getitem__(self, number: int | slice) -> Area | list[Area]:
        if isinstance(number, slice):
            return [self[k] for k in range(len(self))[number]]
        row, column = divmod(range(len(self))[number], self._across)
        top, left = (self.area.top // self.side + row) * self.side, (self.area.left // self.side + column) * self.side
        return Area(top, left, top + self.side, left + self.side).meet(self.area)

    @property
    def _down(self) -> int:
        return max(0, -(-self.area.bottom // self.side) - self.area.top // self.side)

    @property
    def _across(self) -> int:
        return max(0, -(-self.area.right // self.side) - self.area.left // self.side)


class Stage(Protocol):
    """An image of which any rectangle can be asked for."""

    height: int
    width: int
    channels: int

    def make(self, area: Area) -> Image:
        """Contiguous [H, W, C], uint8 (or float32, of a last pass that normalises)."""


class CutStage:
    """A stage that knows what it reads of the one before it, and is made in parts where that is much."""

    height: int
    width: int
    channels: int
    dtype: Any = np.uint8
    on: Any  # a ``HostPixels``: where rectangles lie, and who works on them
    # Of a rectangle that is made at once, and of one that it reads.
    most_made = most_read = MOST_SIDE

    def reads(self, area: Area) -> Area | None:
        """The rectangle of the stage before that ``area`` is made of; None where it is made of nothing."""
        raise NotImplementedError

    def make_from(self, area: Area, read: Area | None) -> Image:
        raise NotImplementedError

    @property
    def whole(self) -> Area:
        return Area(0, 0, self.height, self.width)

    def make(self, area: Area) -> Image:
        if not self._fits(area, self.most_made):
            return self._in_parts(area, area)
        read = self.reads(area)
        if read is not None and not self._fits(read, self.most_read) and area.height * area.width > 1:
            return self._in_parts(area, read)
        return self.make_from(area, read)

    def _fits(self, area: Area, most_side: int) -> bool:
        is_small = area.height * area.width * self.channels <= MOST_BYTES
        return is_small and max(area.height, area.width) <= most_side

    def _in_parts(self, area: Area, read: Area) -> Image:
        made: Image = self.on.empty((area.height, area.width, self.channels), self.dtype)
        is_tall = read.height > read.width if min(area.height, area.width) > 1 else area.width == 1
        for half in area.halves(is_tall):
            made[half.within(area)] = self.make(half)
        return made


# A rectangle of a picture in rows is a thousand short stretches: threads that ask for each, by ``os.pread``, would wait
# for Python's lock as often.
# Of the C library. Addresses are numbers.
_KIND = types.intp(types.int32, types.intp, types.uintp, types.int64)
_pread: Any = types.ExternalFunction("pread", _KIND)
_pwrite: Any = types.ExternalFunction("pwrite", _KIND)


@pixel_kernel
def read_lines(descriptor: Any, address: Any, lines: Any, size: Any, at: Any, step: Any) -> int:
    """``lines`` times ``size`` bytes to ``address``, from byte ``at`` of a file on, ``step`` bytes apart -> how many
    lines were read as a whole; fewer where the file ends, or the system refuses."""
    for i in range(lines):
        done = 0
        while done < size:
            number = _pread(np.int32(descriptor), address + i * size + done, size - done, at + i * step + done)
            if number <= 0:
                return i
            done += number
    return lines


@pixel_kernel
def write_lines(descriptor: Any, address: Any, lines: Any, size: Any, at: Any, step: Any) -> int:
    """The same to a file -> how many lines were written as a whole."""
    for i in range(lines):
        done = 0
        while done < size:
            number = _pwrite(np.int32(descriptor), address + i * size + done, size - done, at + i * step + done)
            if number <= 0:
                return i
            done += number
    return lines
