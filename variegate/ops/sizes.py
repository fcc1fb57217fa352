"""Sizes drawn at random, as in torchvision; by one side, into a frame, or down and up again, as in Albumentations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_integer, as_numbers, integer, pair, refused
from variegate.ops.arguments import (
    BLACK,
    FLAG,
    LARGEST,
    MAX_ENTRIES,
    MAX_LENGTH,
    POSITIVE_PAIR,
    PROBABILITY,
    ArgumentError,
    Fill,
    FilterName,
    Number,
    Pair,
    check_colour,
    check_filter,
    check_size,
    checks,
    optional,
)
from variegate.ops.base import Transform, UsefulRange
from variegate.ops.crop import emit_pad
from variegate.ops.magnitude import MagnitudeOp, between
from variegate.ops.resize import ANTIALIAS, emit_resize, resized_size
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling

_LENGTH = partial(integer, low=1, high=MAX_LENGTH)


def _scaled(size: npt.NDArray[np.int32], factor: Floats) -> npt.NDArray[np.int32]:
    """int32[R, 2]: both sides times the factor, fractions cut off, at least one pixel."""
    return np.asarray(np.clip(np.trunc(size * factor[:, None]), 1, MAX_LENGTH), np.int32)


@dataclass(frozen=True)
class RandomResize(Transform):
    """Resize the shorter side to an integer drawn from ``min_size`` .. ``max_size - 1``, keeping the aspect ratio."""

    min_size: int
    max_size: int
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1
    _checks = checks(min_size=_LENGTH, max_size=_LENGTH, interpolation=check_filter, antialias=ANTIALIAS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_size <= self.min_size:
            raise ArgumentError(self, "max_size", self.max_size, f"an integer above min_size ({self.min_size})")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        drawn = self.min_size + np.floor((self.max_size - self.min_size) * sampling.uniform(rows, slot)[:, 0])
        emit_resize(sampling, rows, resized_size(sampling.size[rows], drawn, None), self.interpolation)


def _lengths(name: str, value: Any, *, most: int, listed: str, error: Refusal = refused) -> int | tuple[int, ...]:
    """A side, or up to ``most`` to choose from."""
    single = as_integer(value)
    every = as_numbers(value, whole=True) if single is None else (single,)
    if not every or len(every) > most or not all(0 < length <= MAX_LENGTH for length in every):
        raise error(name, value, f"a positive integer, or a list of {listed}them, up to {MAX_LENGTH:,}")
    return every if single is None else single


def _drawn(sampling: Sampling, rows: Rows, slot: int, lengths: int | Sequence[int]) -> Floats:
    """float64[R]: one of them for each row, all equally likely."""
    choices = np.atleast_1d(np.array(lengths, np.float64))
    return np.asarray(choices[(sampling.uniform(rows, slot)[:, 0] * len(choices)).astype(np.intp)])


@dataclass(frozen=True)
class RandomShortestSize(Transform):
    """Resize the shorter side to ``min_size``, keeping the aspect ratio: a number, or a list to draw from.

    If the longer side would exceed ``max_size``, it is resized to that instead.
    """

    min_size: int | Sequence[int]
    max_size: int | None = None
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1
    _checks = checks(
        min_size=partial(_lengths, most=MAX_ENTRIES, listed=""),
        max_size=optional(_LENGTH),
        interpolation=check_filter,
        antialias=ANTIALIAS,
    )

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        size = sampling.size[rows]
        factor = _drawn(sampling, rows, slot, self.min_size) / size.min(axis=1)
        if self.max_size is not None:
            factor = np.minimum(factor, self.max_size / size.max(axis=1))
        emit_resize(sampling, rows, _scaled(size, factor), self.interpolation)


@dataclass(frozen=True)
class ScaleJitter(Transform):
    """Resize to fit into ``target_size`` times a random factor, keeping the aspect ratio.

    The factor is uniform in ``scale_range`` (Ghiasi et al. 2021, arXiv:2012.07177). "Fit" is torchvision's: the smaller
    of ``target_size[1] / height`` and ``target_size[0] / width``.
    """

    target_size: Sequence[int]
    scale_range: Pair = (0.1, 2.0)
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1
    _checks = checks(target_size=check_size, scale_range=POSITIVE_PAIR, interpolation=check_filter, antialias=ANTIALIAS)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        size = sampling.size[rows]
        fitting = (np.array(self.target_size[::-1], np.float64) / size).min(axis=1)
        factor = fitting * between(self.scale_range, sampling.uniform(rows, slot)[:, 0])
        emit_resize(sampling, rows, _scaled(size, factor), self.interpolation)


@dataclass(frozen=True)
class RandomZoomOut(Transform):
    """With probability ``p``, place the image at random on a larger canvas of ``fill``.

    Width and height of the canvas are those of the image times a number uniform in ``side_range``, 1 or more (Liu et
    al. 2016, SSD, arXiv:1512.02325).
    """

    fill: Fill = BLACK
    side_range: Pair = (1.0, 4.0)
    p: float = 0.5
    num_slots = 1
    _checks = checks(
        fill=check_colour,
        side_range=partial(
            pair, low=1.0, high=LARGEST, ordered=True, accepted="a pair (low, high) of factors of 1 or more"
        ),
        p=PROBABILITY,
    )

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        chosen = unit[:, 0] < self.p
        rows, unit = rows[chosen], unit[chosen]
        size = sampling.size[rows]
        canvas = _scaled(size, between(self.side_range, unit[:, 1]))
        top, left = np.floor((canvas - size) * unit[:, :1:-1]).astype(np.int32).T
        grown = ((canvas - size) > 0).any(axis=1)
        bottom, right = (canvas - size).T - (top, left)
        sides = (side[grown] for side in (left, top, right, bottom))
        sampling.emit(rows[grown], Op.PAD, *sides, fill=self.fill, size=canvas[grown])  # type: ignore[arg-type]


MAX_LENGTHS = 256


def _rounded(size: npt.NDArray[np.int32], factor: Floats) -> npt.NDArray[np.int64]:
    """int[R, 2] times float[R], rounded half to even, at least one pixel."""
    return np.asarray(np.maximum(np.rint(size * factor[:, None]), 1), np.int64)


class _SideResize(Transform, abstract=True):
    """One side of the image becomes ``max_size``, aspect kept."""

    max_size: int | Sequence[int]
    interpolation: FilterName
    _side: ClassVar[str]
    num_slots = 1
    _checks = checks(
        max_size=partial(_lengths, most=MAX_LENGTHS, listed=f"1 to {MAX_LENGTHS} of "), interpolation=check_filter
    )

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        size, wanted = sampling.size[rows], _drawn(sampling, rows, slot, self.max_size)
        emit_resize(sampling, rows, _rounded(size, wanted / getattr(size, self._side)(axis=1)), self.interpolation)


@dataclass(frozen=True)
class LongestMaxSize(_SideResize):
    """Resize so that the longer side has ``max_size`` pixels: a number, or a list to draw from.

    The aspect ratio is kept, and sides are rounded to the nearest pixel. (``Resize(None, max_size=...)`` truncates, as
    torchvision does.)
    """

    max_size: int | Sequence[int] = 1024
    interpolation: FilterName = "bilinear"
    _side = "max"


@dataclass(frozen=True)
class SmallestMaxSize(_SideResize):
    """Resize the shorter side to ``max_size`` pixels, a number or a list to draw from; see ``LongestMaxSize``."""

    max_size: int | Sequence[int] = 1024
    interpolation: FilterName = "bilinear"
    _side = "min"


@dataclass(frozen=True)
class LetterBox(Transform):
    """Resize the whole image to fit into ``size``, keeping the aspect ratio, and fill the rest.

    The image is centered; if the rest is odd, the larger half is below and to the right. ``upscale=False`` keeps the
    size of smaller images.
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
        wanted = np.minimum(_rounded(size, factor), frame)
        emit_resize(sampling, rows, wanted, self.interpolation)
        rest = frame - wanted
        emit_pad(sampling, rows, rest // 2, rest - rest // 2, self.fill, "constant")


@dataclass(frozen=True)
class Downscale(MagnitudeOp):
    """Lower the resolution: resize to ``scale_range`` times the sides, and back.

    ``scale_range``: 0.001 to 1, a number or a range. ``downscale`` and ``upscale``: the interpolation of either step;
    bilinear and bicubic are antialiased.
    """

    scale_range: Number = (0.25, 0.25)
    downscale: FilterName = "nearest"
    upscale: FilterName = "nearest"
    _number, _bounds, _useful = "scale_range", (0.001, 1.0), UsefulRange(0.1, 1.0, 1.0)
    _checks = checks(downscale=check_filter, upscale=check_filter)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        size = sampling.size[rows]
        # Albumentations cuts the fraction off.
        small = np.maximum((size * np.asarray(values)[:, None]).astype(np.int64), 1)
        emit_resize(sampling, rows, small, self.downscale)
        emit_resize(sampling, rows, size, self.upscale)
