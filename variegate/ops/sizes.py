"""Random resizes as in torchvision. Resizes by one side, into a frame, and down and up, as in Albumentations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from variegate.ops.arguments import (
    BLACK,
    MAX_ENTRIES,
    MAX_LENGTH,
    ArgumentError,
    FactorRange,
    Fill,
    FilterName,
    Integers,
    Length,
    Number,
    Pair,
    Probability,
    Size,
    several_integers,
)
from variegate.ops.base import Transform, TypicalRange
from variegate.ops.crop import add_pad
from variegate.ops.magnitude import MagnitudeOp, between
from variegate.ops.resize import Sides, add_resize, resized_size
from variegate.ops.schema import Converted, MagnitudeRange, Range
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number as Drawn
from variegate.program.draws.values import clip, floor, maximum, minimum, rint, trunc
from variegate.program.ops import Op


def _scaled(image: DrawContext, factor: Drawn) -> Sides:
    """Return height and width times ``factor``, truncated, at least one pixel."""
    height, width = (clip(trunc(side * factor), 1, MAX_LENGTH) for side in (image.height, image.width))
    return height, width


@dataclass(frozen=True)
class RandomResize(Transform):
    """Resize the shorter side to an integer drawn from ``min_size`` .. ``max_size - 1``, keeping the aspect ratio."""

    min_size: Length
    max_size: Length
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_size <= self.min_size:
            raise ArgumentError(self, "max_size", self.max_size, f"an integer above min_size ({self.min_size})")

    def draw(self, image: DrawContext, slot: int) -> None:
        short = self.min_size + floor((self.max_size - self.min_size) * image.uniform(slot))
        add_resize(image, resized_size(image.height, image.width, short, None), self.interpolation)


def _one_of(image: DrawContext, slot: int, lengths: int | Sequence[int]) -> Drawn:
    """Draw one of ``lengths``, all equally likely."""
    choices = np.atleast_1d(np.array(lengths, np.float64))
    return image.lookup(choices, floor(image.uniform(slot) * len(choices)))


def _lengths(most: int, listed: str) -> Converted:
    """Return an argument that accepts a side, or a list of up to ``most``."""
    return Converted(
        partial(several_integers, counts=range(1, most + 1), low=1, high=MAX_LENGTH),
        f"a positive integer, or a list of {listed}them, up to {MAX_LENGTH:,}",
    )


@dataclass(frozen=True)
class RandomShortestSize(Transform):
    """Resize the shorter side to ``min_size``, keeping the aspect ratio: a number, or a list to draw from.

    If the longer side would exceed ``max_size``, it is resized to that instead.
    """

    min_size: Annotated[Integers, _lengths(MAX_ENTRIES, "")]
    max_size: Length | None = None
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = image.height, image.width
        factor = _one_of(image, slot, self.min_size) / minimum(height, width)
        if self.max_size is not None:
            factor = minimum(factor, self.max_size / maximum(height, width))
        add_resize(image, _scaled(image, factor), self.interpolation)


@dataclass(frozen=True)
class ScaleJitter(Transform):
    """Resize to fit into ``target_size`` times a random factor, keeping the aspect ratio.

    The factor is uniform in ``scale_range`` (Ghiasi et al. 2021, arXiv:2012.07177). "Fit" is torchvision's: the smaller
    of ``target_size[1] / height`` and ``target_size[0] / width``.
    """

    target_size: Size
    scale_range: FactorRange = (0.1, 2.0)
    interpolation: FilterName = "bilinear"
    antialias: bool | None = True
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = self.target_size  # type: ignore[misc]
        fitting = minimum(width / image.height, height / image.width)
        factor = fitting * between(self.scale_range, image.uniform(slot))
        add_resize(image, _scaled(image, factor), self.interpolation)


@dataclass(frozen=True)
class RandomZoomOut(Transform):
    """Place the image at a random position of a larger canvas of ``fill``, with probability ``p``.

    Width and height of the canvas are the image's times a number uniform in ``side_range``, 1 or more (Liu et al. 2016,
    SSD, arXiv:1512.02325).
    """

    fill: Fill = BLACK
    side_range: Annotated[Pair, Range(1.0)] = (1.0, 4.0)
    p: Probability = 0.5
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        if not (chosen := image.by_chance(self.p, slot)):
            return
        canvas = _scaled(chosen, between(self.side_range, chosen.uniform(slot, 1)))
        spare = canvas[0] - chosen.height, canvas[1] - chosen.width
        top, left = floor(spare[0] * chosen.uniform(slot, 3)), floor(spare[1] * chosen.uniform(slot, 2))
        if grown := chosen.where((spare[0] > 0) | (spare[1] > 0)):
            grown.add(Op.PAD, left, top, spare[1] - left, spare[0] - top, fill=self.fill, size=canvas)  # type: ignore[arg-type]


MAX_LENGTHS = 256
Lengths = Annotated[Integers, _lengths(MAX_LENGTHS, f"1 to {MAX_LENGTHS} of ")]


def _rounded(image: DrawContext, factor: Drawn) -> Sides:
    """Return height and width times ``factor``, rounded half to even, at least one pixel."""
    return maximum(rint(image.height * factor), 1), maximum(rint(image.width * factor), 1)


class _SideResize(Transform, abstract=True):
    """Base class: resize one side of the image to ``max_size``, keeping the aspect ratio."""

    max_size: Lengths
    interpolation: FilterName
    _is_longer: ClassVar[bool]
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        side = (maximum if self._is_longer else minimum)(image.height, image.width)
        factor = _one_of(image, slot, self.max_size) / side
        add_resize(image, _rounded(image, factor), self.interpolation)


@dataclass(frozen=True)
class LongestMaxSize(_SideResize):
    """Resize so that the longer side has ``max_size`` pixels: a number, or a list to draw from.

    The aspect ratio is kept, and sides are rounded to the nearest pixel. (``Resize(None, max_size=...)`` truncates, as
    torchvision does.)
    """

    max_size: Lengths = 1024
    interpolation: FilterName = "bilinear"
    _is_longer = True


@dataclass(frozen=True)
class SmallestMaxSize(_SideResize):
    """Resize the shorter side to ``max_size`` pixels, a number or a list to draw from; see ``LongestMaxSize``."""

    max_size: Lengths = 1024
    interpolation: FilterName = "bilinear"
    _is_longer = False


@dataclass(frozen=True)
class LetterBox(Transform):
    """Resize the whole image to fit into ``size``, keeping the aspect ratio, and fill the rest.

    The image is centered; if the rest is odd, the larger half is below and to the right. ``upscale=False`` keeps the
    size of smaller images.
    """

    size: Size
    interpolation: FilterName = "bilinear"
    fill: Fill = BLACK
    upscale: bool = True

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = self.size  # type: ignore[misc]
        factor = minimum(height / image.height, width / image.width)
        if not self.upscale:
            factor = minimum(factor, 1.0)
        lines, columns = _rounded(image, factor)
        wanted = minimum(lines, height), minimum(columns, width)
        add_resize(image, wanted, self.interpolation)
        rest = height - wanted[0], width - wanted[1]
        before = rest[0] // 2, rest[1] // 2
        add_pad(image, before, (rest[0] - before[0], rest[1] - before[1]), self.fill, "constant")


@dataclass(frozen=True)
class Downscale(MagnitudeOp):
    """Lower the resolution: resize to ``scale_range`` times the sides, and back.

    ``scale_range``: 0.001 to 1, a number or a range. ``downscale`` and ``upscale``: the interpolation of either step;
    bilinear and bicubic are antialiased.
    """

    scale_range: Annotated[Number, MagnitudeRange(0.001, 1.0)] = (0.25, 0.25)
    downscale: FilterName = "nearest"
    upscale: FilterName = "nearest"
    _typical_range = TypicalRange(0.1, 1.0, 1.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        height, width = image.height, image.width
        # Truncated as in Albumentations.
        add_resize(image, (maximum(trunc(height * value), 1), maximum(trunc(width * value), 1)), self.downscale)
        add_resize(image, (height, width), self.upscale)
