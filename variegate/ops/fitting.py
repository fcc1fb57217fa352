"""Resizing by one side, into a frame, or down and up again (names, arguments and sizes: Albumentations)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_integer, as_numbers, refused
from variegate.ops.arguments import (
    BLACK,
    FLAG,
    MAX_LENGTH,
    Fill,
    FilterName,
    Number,
    check_colour,
    check_filter,
    check_size,
    checks,
)
from variegate.ops.base import Transform
from variegate.ops.crop import emit_pad
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.resize import emit_resized_crop
from variegate.program.sampling import Floats, Rows, Sampling

__all__ = ["Downscale", "LetterBox", "LongestMaxSize", "SmallestMaxSize"]

Sizes = npt.NDArray[np.int32]

MAX_LENGTHS = 256


def lengths(name: str, value: Any, *, error: Refusal = refused) -> int | tuple[int, ...]:
    """A side, or several to choose from."""
    single = as_integer(value)
    sides = as_numbers(value, whole=True) if single is None else (single,)
    if not sides or len(sides) > MAX_LENGTHS or not all(0 < side <= MAX_LENGTH for side in sides):
        raise error(name, value, f"a positive integer, or a list of 1 to {MAX_LENGTHS} of them, up to {MAX_LENGTH:,}")
    return tuple(sides) if single is None else single


def scaled(size: Sizes, factor: Floats) -> Sizes:
    """int[R, 2] times float[R], rounded half to even, at least one pixel."""
    return np.asarray(np.maximum(np.rint(size * factor[:, None]), 1), np.int64)


def emit_resize(sampling: Sampling, rows: Rows, wanted: Sizes, interpolation: FilterName) -> None:
    """Resize whole images to ``wanted[R, 2]``; those that have the size are left alone."""
    before = sampling.size[rows]
    changed = (wanted != before).any(axis=1)
    rows, before, wanted = rows[changed], before[changed], wanted[changed]
    if len(rows):
        emit_resized_crop(sampling, rows, (0, 0, *before.T), wanted, interpolation)


class _SideResize(Transform, abstract=True):
    """One side of the image becomes ``max_size``, aspect kept."""

    max_size: int | Sequence[int]
    interpolation: FilterName
    _side: ClassVar[str]
    num_slots = 1
    _checks = checks(max_size=lengths, interpolation=check_filter)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        choices = np.atleast_1d(np.array(self.max_size, np.float64))
        wanted = choices[(sampling.uniform(rows, slot)[:, 0] * len(choices)).astype(np.int64)]
        size = sampling.size[rows]
        emit_resize(sampling, rows, scaled(size, wanted / getattr(size, self._side)(axis=1)), self.interpolation)


@dataclass(frozen=True)
class LongestMaxSize(_SideResize):
    """Resize, antialiased, so that the longer side is ``max_size`` pixels: a number, or a list to choose from at
    random.

    Aspect is kept and sides are rounded to the nearest pixel. (``Resize(None, max_size=...)`` cuts fractions off, as
    torchvision does.)
    """

    max_size: int | Sequence[int] = 1024
    interpolation: FilterName = "bilinear"
    _side = "max"


@dataclass(frozen=True)
class SmallestMaxSize(_SideResize):
    """Resize, antialiased, so that the shorter side is ``max_size`` pixels: a number, or a list to choose from at
    random. Aspect is kept and sides are rounded to the nearest pixel.
    """

    max_size: int | Sequence[int] = 1024
    interpolation: FilterName = "bilinear"
    _side = "min"


@dataclass(frozen=True)
class LetterBox(Transform):
    """Resize the whole image into a frame of ``size``, aspect kept, and fill what is left of the frame.

    The image is in the middle; of an odd rest the larger half is below and to the right. ``upscale=False`` leaves
    images that are smaller than the frame at their size.
    """

    size: int | Sequence[int]
    interpolation: FilterName = "bilinear"
    fill: Fill = BLACK
    upscale: bool = True
    _checks = checks(size=check_size, interpolation=check_filter, fill=check_colour, upscale=FLAG)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        frame, size = np.array(self.size, np.int32), sampling.size[rows]
        factor = (frame / size).min(axis=1)
        if not self.upscale:
            factor = np.minimum(factor, 1.0)
        wanted = np.minimum(scaled(size, factor), frame)
        emit_resize(sampling, rows, wanted, self.interpolation)
        rest = frame - wanted
        emit_pad(sampling, rows, rest // 2, rest - rest // 2, self.fill, "constant")


@dataclass(frozen=True)
class Downscale(MagnitudeOp):
    """Lower the resolution: resize to ``scale_range`` times the sides, and back; a number or a range, 0.001 to 1.

    ``downscale``, ``upscale``: the interpolation of either step; bilinear and bicubic are antialiased.
    """

    scale_range: Number = (0.25, 0.25)
    downscale: FilterName = "nearest"
    upscale: FilterName = "nearest"
    _number, _bounds = "scale_range", (0.001, 1.0)
    _checks = checks(downscale=check_filter, upscale=check_filter)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        size = sampling.size[rows]
        # Albumentations cuts the fraction off.
        small = np.maximum((size * np.asarray(values)[:, None]).astype(np.int64), 1)
        emit_resize(sampling, rows, small, self.downscale)
        emit_resize(sampling, rows, size, self.upscale)
