"""Instructions as operations of the reference executor take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, Interpolation, PadMode
from variegate.program.program import Tables

Image = npt.NDArray[np.uint8]  # HWC, C = 1 (gray, Pillow mode "L") or 3 (RGB); of deeper images int64


@dataclass(frozen=True)
class Instruction:
    """One slot of a program: arguments, and what they point into."""

    args: npt.NDArray[np.float64]  # [8], named in SPECS
    flags: int = 0  # interpolation and border of a geometry, mode of a pad
    fill: npt.NDArray[np.uint8] | tuple[int, ...] = (0, 0, 0)
    out_size: tuple[int, int] = (0, 0)  # height, width after the instruction
    tables: Tables | None = None
    sample_id: int = 0
    key: npt.NDArray[np.uint32] | None = None  # [2], the stream key of per-pixel noise

    @property
    def interpolation(self) -> Interpolation:
        """Of a map."""
        return Interpolation(self.flags & INTERPOLATION_MASK)

    @property
    def border(self) -> PadMode:
        """Continuation of the image that a map reads."""
        return PadMode(self.flags >> INTERPOLATION_BITS)

    def colour(self, channels: int) -> Image:
        """The fill colour for an image of so many channels; gray images use the first value."""
        return to_pixels(np.asarray(self.fill, np.int64)[:channels] * (white() // 255))

    def integers(self, count: int) -> list[int]:
        """The first ``count`` arguments as ints."""
        return [int(value) for value in self.args[:count]]

    def side_tables(self) -> Tables:
        if self.tables is None:
            raise ValueError("this instruction points into side tables, but tables=None was given")
        return self.tables


Operation = Callable[[Image, Instruction], Image]


_white = 255


def white() -> int:
    """The greatest value of a pixel."""
    return _white


@contextmanager
def deep_pixels(greatest: int) -> Iterator[None]:
    """Pixels are int64 up to ``greatest``, a multiple of 255, instead of uint8. For what does not need 256 levels."""
    global _white
    _white = greatest
    try:
        yield
    finally:
        _white = 255


def to_pixels(values: npt.NDArray[np.floating] | npt.NDArray[np.integer]) -> Image:
    """Truncate toward zero and clip to 0..255: how Pillow turns a computed value into a pixel."""
    clipped: Image = np.clip(values, 0, _white).astype(np.uint8 if _white == 255 else np.int64)
    return clipped
