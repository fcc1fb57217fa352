"""Crops, borders, flips and quarter turns: exact, without resampling (names, arguments and places: torchvision v2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.ops.arguments import (
    BLACK,
    FLAG,
    PADDING_MODE,
    Fill,
    PaddingMode,
    check_colour,
    check_padding,
    check_size,
    checks,
    optional,
    padding_sides,
)
from variegate.ops.base import Transform
from variegate.ops.magnitude import WithProbability
from variegate.program.one_image import Images, Selection
from variegate.program.ops import Op, PadMode
from variegate.program.sampling import Rows, Sampling

Sizes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class CenterCrop(Transform, function="center_crop", called={"size": "output_size"}):
    """Crop the central ``size`` pixels; smaller images are padded with black."""

    size: int | Sequence[int]
    _checks = checks(size=check_size)

    def draw(self, images: Images, slot: int) -> None:
        height, width = self.size  # type: ignore[misc]
        add_crop(images, _central(images.height - height), _central(images.width - width), (height, width), BLACK)


@dataclass(frozen=True)
class RandomCrop(Transform):
    """Crop ``size`` pixels at a random place, after padding.

    ``padding`` (None: no padding) and ``padding_mode`` are those of ``Pad``. ``pad_if_needed`` pads sides that are
    still too small, by what they lack, on both ends. Without it, sampling raises ValueError for an image smaller than
    ``size``.
    """

    size: int | Sequence[int]
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = False
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1
    _checks = checks(
        size=check_size,
        padding=optional(check_padding),
        pad_if_needed=FLAG,
        fill=check_colour,
        padding_mode=PADDING_MODE,
    )

    def draw(self, images: Images, slot: int) -> None:
        height, width = size = self.size  # type: ignore[misc]
        left, top, right, bottom = padding_sides(self.padding or 0)
        lines, columns = images.height + (top + bottom), images.width + (left + right)
        before: tuple[Any, Any] = (top, left)
        if self.pad_if_needed:
            missing = (height - lines) * (lines < height), (width - columns) * (columns < width)
            before = top + missing[0], left + missing[1]
            lines, columns = lines + 2 * missing[0], columns + 2 * missing[1]
        too_small, *sides = images.filtered((lines < height) | (columns < width), lines, columns)
        if too_small:
            worst = tuple(int(np.ravel(side)[0]) for side in sides)
            raise ValueError(
                f"RandomCrop: size={self.size} (height, width) is larger than an image of {worst} after padding; "
                "pass pad_if_needed=True, a larger padding, or resize first"
            )
        y = images.whole(images.unit(slot) * (lines - height + 1))
        x = images.whole(images.unit(slot, 1) * (columns - width + 1))
        if self.padding_mode == "constant":
            add_crop(images, y - before[0], x - before[1], size, self.fill)  # type: ignore[arg-type]
        else:
            after = lines - images.height - before[0], columns - images.width - before[1]
            first, last = (np.stack(np.broadcast_arrays(*ends, images.rows)[:2], axis=-1) for ends in (before, after))
            emit_pad(images.sampling, images.rows, first, last, self.fill, self.padding_mode)
            add_crop(images, y, x, size, self.fill)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Pad(Transform, function="pad"):
    """Pad the border of the image.

    Args:
        padding: pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom). Negative values
            crop.
        padding_mode: "constant" (``fill``), "edge" (the outermost pixel), "reflect" (mirrored without it),
            "symmetric" (mirrored with it) or "wrap" (the opposite side).
    """

    padding: int | Sequence[int]
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _checks = checks(padding=check_padding, fill=check_colour, padding_mode=PADDING_MODE)

    def draw(self, images: Images, slot: int) -> None:
        left, top, right, bottom = sides = padding_sides(self.padding)
        if min(sides) < 0:
            before = np.broadcast_to(np.array([top, left], np.int32), (len(images.rows), 2))
            after = np.broadcast_to(np.array([bottom, right], np.int32), (len(images.rows), 2))
            emit_pad(images.sampling, images.rows, before, after, self.fill, self.padding_mode)
        elif any(sides):
            size = images.height + top + bottom, images.width + left + right
            images.add(Op.PAD, *sides, flags=int(PadMode[self.padding_mode.upper()]), fill=self.fill, size=size)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RandomHorizontalFlip(WithProbability):
    """Mirror left-right with probability ``p``."""

    p: float = 0.5
    _op = Op.HFLIP


@dataclass(frozen=True)
class AlternatingHorizontalFlip(Transform):
    """Mirror left-right in every other epoch (Jordan 2024, arXiv:2404.00498).

    Half of the samples, by a hash of (seed, id, copy), are mirrored in even epochs, the others in odd ones: two
    successive epochs show both sides of every sample. The epoch must be set, as ``Loader`` does.
    """

    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        first = sampling.lasting_words(rows, slot)[:, 0] >> np.uint32(31)
        sampling.emit(rows[first != sampling.epoch % 2], Op.HFLIP)


@dataclass(frozen=True)
class RandomVerticalFlip(WithProbability):
    """Mirror top-bottom with probability ``p``."""

    p: float = 0.5
    _op = Op.VFLIP


@dataclass(frozen=True)
class RandomRotate90(WithProbability):
    """With probability ``p``, rotate counter-clockwise by 90, 180 or 270 degrees, each equally likely."""

    p: float = 0.5

    def _apply(self, images: Images, slot: int) -> None:
        turns = 1 + images.whole(images.unit(slot, 1) * 3)
        height, width = images.height, images.width
        spare = turns % 2 * (width - height)
        images.add(Op.ROT90, turns, size=(height + spare, width - spare))


def _central(spare: Any) -> Any:
    """Start of the crop that leaves ``spare`` pixels (or fewer than none) of a side."""
    # torchvision rounds an odd rest half to even when it cuts, and puts it last when it pads.
    if isinstance(spare, int):
        return -(-spare // 2) if spare < 0 else round(spare / 2.0)
    return np.where(spare < 0, -((-spare) // 2), np.rint(spare / 2.0).astype(np.int32))


def emit_crop(sampling: Sampling, rows: Rows, origin: Sizes, size: Sizes, fill: Fill) -> None:
    """``add_crop`` at ``origin[R, 2]`` (top, left)."""
    height, width = size.tolist()
    add_crop(Selection(sampling, rows), origin[:, 0], origin[:, 1], (height, width), fill)


def add_crop(images: Images, top: Any, left: Any, size: tuple[int, int], fill: Fill) -> None:
    """Crop boxes of one size; images that would not change are left alone."""
    changed = (top != 0) | (left != 0) | (images.height != size[0]) | (images.width != size[1])
    chosen, top, left = images.filtered(changed, top, left)
    if chosen:
        chosen.add(Op.CROP, top, left, *size, fill=fill, size=size)


def emit_shifts(sampling: Sampling, rows: Rows, share: float, slot: int, fill: Fill = BLACK) -> None:
    """A random crop of the image's own size, after padding by a ``share`` of its shorter side."""
    size, unit = sampling.size[rows], sampling.uniform(rows, slot)[:, :2]
    padding = np.rint(share * size.min(axis=1)).astype(np.int32)[:, None]
    origin = (unit * (2 * padding + 1)).astype(np.int32) - padding
    moved = origin.any(axis=1)
    sampling.emit(rows[moved], Op.CROP, *origin[moved].T, *size[moved].T, fill=fill, size=size[moved])  # type: ignore[arg-type]


def emit_pad(sampling: Sampling, rows: Rows, before: Sizes, after: Sizes, fill: Fill, mode: str) -> None:
    """Pad by ``before`` and ``after``, int[R, 2] of (vertical, horizontal); rows without padding are left alone.

    What is negative cuts off: together with the border where that is one colour, else before there is a border.
    """
    cut = ((before < 0) | (after < 0)).any(axis=1)
    if cut.any():
        first, last = (before, after) if mode == "constant" else (np.minimum(before, 0), np.minimum(after, 0))
        origin, size = -first[cut], sampling.size[rows[cut]] + first[cut] + last[cut]
        if (size < 1).any():
            raise ValueError(
                f"padding: cuts {-first[cut][0] - last[cut][0]} pixels off an image of {sampling.size[rows[cut]][0]} "
                "(height, width); accepted: paddings that leave at least one pixel"
            )
        sampling.emit(rows[cut], Op.CROP, *origin.T, *size.T, fill=fill, size=size)  # type: ignore[arg-type]
        kept = ~cut if mode == "constant" else np.ones(len(rows), np.bool_)
        rows, before, after = rows[kept], np.maximum(before[kept], 0), np.maximum(after[kept], 0)
    changed = ((before > 0) | (after > 0)).any(axis=1)
    rows, before, after = rows[changed], before[changed], after[changed]
    sampling.emit(
        rows,
        Op.PAD,
        before[:, 1],
        before[:, 0],
        after[:, 1],
        after[:, 0],
        flags=int(PadMode[mode.upper()]),
        fill=fill,  # type: ignore[arg-type]
        size=sampling.size[rows] + before + after,
    )


@dataclass(frozen=True)
class Transpose(WithProbability):
    """With probability ``p``, swap rows and columns."""

    p: float = 0.5

    def _apply(self, images: Images, slot: int) -> None:
        images.add(Op.ROT90, 1, size=(images.width, images.height))
        images.add(Op.VFLIP)


@dataclass(frozen=True)
class D4(WithProbability):
    """With probability ``p``, apply a random symmetry of the square: one of four quarter turns, mirrored or not."""

    p: float = 1.0

    def _apply(self, images: Images, slot: int) -> None:
        sampling, rows = images.sampling, images.rows
        element = (sampling.uniform(rows, slot)[:, 1] * 8).astype(np.int64)
        turned, mirrored = element % 4 > 0, element >= 4
        sampling.emit(rows[mirrored], Op.HFLIP)
        turns, size = element[turned] % 4, sampling.size[rows[turned]]
        size = np.where((turns % 2 == 1)[:, None], size[:, ::-1], size)
        sampling.emit(rows[turned], Op.ROT90, turns, size=size)
