"""Crops, pads, flips and quarter turns, without resampling. Names, arguments and positions follow torchvision v2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate.ops.arguments import (
    BLACK,
    Fill,
    Padding,
    PaddingMode,
    Probability,
    Size,
    padding_sides,
)
from variegate.ops.base import Transform
from variegate.ops.magnitude import WithProbability
from variegate.ops.resize import Sides
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, floor, logical_not, maximum, minimum, rint, select
from variegate.program.ops import Op, PadMode
from variegate.program.sampling import Rows, Sampling


@dataclass(frozen=True)
class CenterCrop(Transform, function="center_crop", called={"size": "output_size"}):
    """Crop the central ``size`` pixels; smaller images are padded with black."""

    size: Size

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = self.size  # type: ignore[misc]
        add_crop(image, _central(image.height - height), _central(image.width - width), (height, width), BLACK)


@dataclass(frozen=True)
class RandomCrop(Transform):
    """Crop ``size`` pixels at a random position, after padding.

    ``padding`` (None: no padding) and ``padding_mode``: see ``Pad``. ``pad_if_needed`` pads sides that are still too
    small, by the missing pixels, on both ends. Without it, sampling raises ValueError for an image smaller than
    ``size``.
    """

    size: Size
    padding: Padding | None = None
    pad_if_needed: bool = False
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = size = self.size  # type: ignore[misc]
        left, top, right, bottom = padding_sides(self.padding or 0)
        lines, columns = image.height + (top + bottom), image.width + (left + right)
        before: tuple[Any, Any] = (top, left)
        if self.pad_if_needed:
            missing = (height - lines) * (lines < height), (width - columns) * (columns < width)
            before = top + missing[0], left + missing[1]
            lines, columns = lines + 2 * missing[0], columns + 2 * missing[1]
        image.check((lines >= height) & (columns >= width), self._too_small, lines, columns)
        y = floor(image.uniform(slot) * (lines - height + 1))
        x = floor(image.uniform(slot, 1) * (columns - width + 1))
        if self.padding_mode == "constant":
            add_crop(image, y - before[0], x - before[1], size, self.fill)  # type: ignore[arg-type]
        else:
            after = lines - image.height - before[0], columns - image.width - before[1]
            add_pad(image, before, after, self.fill, self.padding_mode)
            add_crop(image, y, x, size, self.fill)  # type: ignore[arg-type]

    def _too_small(self, lines: float, columns: float) -> ValueError:
        return ValueError(
            f"RandomCrop: size={self.size} (height, width) is larger than an image of {int(lines), int(columns)} after "
            "padding; pass pad_if_needed=True, a larger padding, or resize first"
        )


@dataclass(frozen=True)
class Pad(Transform, function="pad"):
    """Pad the border of the image.

    Args:
        padding: pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom). Negative values
            crop.
        padding_mode: "constant" (``fill``), "edge" (the outermost pixel), "reflect" (mirrored without it),
            "symmetric" (mirrored with it) or "wrap" (the opposite side).
    """

    padding: Padding
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"

    def draw(self, image: DrawContext, slot: int) -> None:
        left, top, right, bottom = padding_sides(self.padding)
        add_pad(image, (top, left), (bottom, right), self.fill, self.padding_mode)


@dataclass(frozen=True)
class RandomHorizontalFlip(WithProbability, function="horizontal_flip hflip", called={"p": None}):
    """Mirror left-right. An image is mirrored with probability ``p``."""

    p: Probability = 0.5
    _op = Op.HFLIP


@dataclass(frozen=True)
class AlternatingHorizontalFlip(Transform):
    """Mirror left-right in every other epoch (Jordan 2024, arXiv:2404.00498).

    Half of the samples, by a hash of (seed, id, copy), are mirrored in even epochs, the others in odd ones: two
    successive epochs show both sides of every sample. The epoch must be set, as ``Loader`` does.
    """

    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        first = sampling.epoch_invariant_words(rows, slot)[:, 0] >> np.uint32(31)
        sampling.emit(rows[first != sampling.epoch % 2], Op.HFLIP)


@dataclass(frozen=True)
class RandomVerticalFlip(WithProbability, function="vertical_flip vflip", called={"p": None}):
    """Mirror top-bottom. An image is mirrored with probability ``p``."""

    p: Probability = 0.5
    _op = Op.VFLIP


@dataclass(frozen=True)
class RandomRotate90(WithProbability):
    """Rotate counter-clockwise by 90, 180 or 270 degrees, each equally likely, with probability ``p``."""

    p: Probability = 0.5

    def _apply(self, image: DrawContext, slot: int) -> None:
        turns = 1 + floor(image.uniform(slot, 1) * 3)
        add_turns(image, turns)


def _central(spare: Number) -> Number:
    """Return the start of a central crop of a side with ``spare`` excess pixels; negative if the side is padded."""
    # For an odd number, torchvision rounds half to even when cropping, and pads one pixel more at the end.
    return select(spare < 0, -((-spare) // 2), rint(spare / 2.0))


def add_crop(image: DrawContext, top: Number, left: Number, size: tuple[int, int], fill: Any) -> None:
    """Add a crop of ``size``, except to images that it would not change."""
    if chosen := image.where((top != 0) | (left != 0) | (image.height != size[0]) | (image.width != size[1])):
        chosen.add(Op.CROP, top, left, *size, fill=fill, size=size)


def add_shift(image: DrawContext, share: float, slot: int, fill: Any = BLACK) -> None:
    """Add a random crop of the image's size, after padding by a ``share`` of its shorter side."""
    height, width = image.height, image.width
    padding = rint(share * minimum(height, width))
    top, left = (floor(image.uniform(slot, word) * (2 * padding + 1)) - padding for word in (0, 1))
    if moved := image.where((top != 0) | (left != 0)):
        moved.add(Op.CROP, top, left, height, width, fill=fill, size=(height, width))


def add_pad(image: DrawContext, before: Sides, after: Sides, fill: Any, mode: str) -> None:
    """Add a pad by ``before`` and ``after``, (vertical, horizontal), except to images without padding.

    Negative values crop: in the same instruction as a constant border, else in a crop before the pad.
    """
    is_constant = mode == "constant"
    is_cut: Number = False
    for side in (*before, *after):
        is_cut = (side < 0) | is_cut
    if cut := image.where(is_cut):
        first, last = (before, after) if is_constant else (_below_zero(before), _below_zero(after))
        size = (image.height + first[0] + last[0], image.width + first[1] + last[1])
        numbers = (image.height, image.width, *size)
        cut.check((size[0] >= 1) & (size[1] >= 1), _cuts_all, *numbers)
        cut.add(Op.CROP, -first[0], -first[1], *size, fill=fill, size=size)
    before, after = _above_zero(before), _above_zero(after)
    is_padded: Number = False
    for side in (*before, *after):
        is_padded = (side > 0) | is_padded
    if is_constant:
        is_padded = is_padded & logical_not(is_cut)
    if padded := image.where(is_padded):
        size = (image.height + before[0] + after[0], image.width + before[1] + after[1])
        flags = int(PadMode[mode.upper()])
        padded.add(Op.PAD, before[1], before[0], after[1], after[0], flags=flags, fill=fill, size=size)


def _below_zero(sides: Sides) -> Sides:
    return minimum(sides[0], 0), minimum(sides[1], 0)


def _above_zero(sides: Sides) -> Sides:
    return maximum(sides[0], 0), maximum(sides[1], 0)


def _cuts_all(height: float, width: float, new_height: float, new_width: float) -> ValueError:
    cut = int(height - new_height), int(width - new_width)
    return ValueError(
        f"padding: cuts {cut} pixels off an image of {int(height), int(width)} (height, width); accepted: paddings "
        "that leave at least one pixel"
    )


@dataclass(frozen=True)
class Transpose(WithProbability):
    """Swap rows and columns, with probability ``p``."""

    p: Probability = 0.5

    def _apply(self, image: DrawContext, slot: int) -> None:
        image.add(Op.ROT90, 1, size=(image.width, image.height))
        image.add(Op.VFLIP)


@dataclass(frozen=True)
class D4(WithProbability):
    """Apply a random symmetry of the square, one of four quarter turns, mirrored or not, with probability ``p``."""

    p: Probability = 1.0

    def _apply(self, image: DrawContext, slot: int) -> None:
        element = floor(image.uniform(slot, 1) * 8)
        turns = element % 4
        if mirrored := image.where(element >= 4):
            mirrored.add(Op.HFLIP)
        if turned := image.where(turns > 0):
            add_turns(turned, turns)


def add_turns(image: DrawContext, turns: Number) -> None:
    """Add one to three counter-clockwise quarter turns."""
    height, width = image.height, image.width
    spare = turns % 2 * (width - height)
    image.add(Op.ROT90, turns, size=(height + spare, width - spare))
