"""Affine and perspective transforms: operations with a magnitude (rotate, shear, translate), and random ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from variegate.ops.arguments import (
    BLACK,
    AnyMagnitude,
    Center,
    Fill,
    InterpolationName,
    Number,
    PaddingMode,
    Pair,
    Probability,
    two_numbers,
)
from variegate.ops.base import TypicalRange
from variegate.ops.magnitude import MagnitudeOp, Resampled, between
from variegate.ops.matrices import (
    inverse_affine_of,
    inverse_rotated_then_sheared_of,
    perspective_coefficients,
    rotated_size,
    stretch,
)
from variegate.ops.schema import Around, Converted, Range
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import floor, rint
from variegate.program.ops import Op


class _Map(MagnitudeOp, Resampled):
    """Base class of coordinate maps with a magnitude."""

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        self._add_map(image, self._op, value, *self.constants())


@dataclass(frozen=True)
class Rotate(_Map):
    """Rotate counter-clockwise about the center by ``degrees``; the size does not change."""

    degrees: AnyMagnitude
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op = Op.ROTATE
    _constants = (math.nan, math.nan, 0.0)


@dataclass(frozen=True)
class ShearX(_Map, function="shear_x"):
    """Shift each row left by ``shear`` times its distance from the top edge (AutoAugment's ShearX)."""

    shear: AnyMagnitude
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op = Op.SHEAR_X


@dataclass(frozen=True)
class ShearY(_Map, function="shear_y"):
    """Shift each column up by ``shear`` times its distance from the left edge (AutoAugment's ShearY)."""

    shear: AnyMagnitude
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op = Op.SHEAR_Y


class _Translate(_Map):
    relative: bool
    _axis: ClassVar[int]

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        if self.relative:
            value = value * (image.width if self._axis else image.height)
        super().emit_at(image, value, slot)


@dataclass(frozen=True)
class TranslateX(_Translate, function="translate_x", called={"translate": "pixels", "relative": None}):
    """Move the content right by ``translate`` pixels. With ``relative``, move it by that share of the width."""

    translate: AnyMagnitude
    relative: bool = False
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _axis = Op.TRANSLATE_X, 1


@dataclass(frozen=True)
class TranslateY(_Translate, function="translate_y", called={"translate": "pixels", "relative": None}):
    """Move the content down by ``translate`` pixels. With ``relative``, move it by that share of the height."""

    translate: AnyMagnitude
    relative: bool = False
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _axis = Op.TRANSLATE_Y, 0


@dataclass(frozen=True)
class Stretch(Resampled):
    """Scale the content ``x`` times in width and ``y`` times in height about the center; the size does not change.

    Each is a number above 0 or a range, drawn independently. Above 1, the edges leave the image; below 1, the border is
    ``fill``.
    """

    x: Annotated[Number, Range(1e-3, 1e3)] = (0.8, 1.25)
    y: Annotated[Number, Range(1e-3, 1e3)] = (0.8, 1.25)
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        center = (image.width / 2.0, image.height / 2.0)
        matrix = stretch(center, between(self.x, image.uniform(slot, 0)), between(self.y, image.uniform(slot, 1)))
        self._add_map(image, Op.AFFINE, *matrix)


AffineOrder = Literal["shear_rotate", "rotate_shear"]
_SHARES = Converted(partial(two_numbers, low=0.0, high=1.0), "a pair (horizontal, vertical) of shares from 0 to 1")


@dataclass(frozen=True)
class RandomRotation(Resampled):
    """Rotate counter-clockwise by an angle uniform in ``degrees``: a pair, or a number d for (-d, d).

    ``expand`` enlarges the output to hold the whole image. ``center`` is (x, y) in pixels from the top left; None for
    the center of the image.
    """

    degrees: Annotated[Number, Around(0)]
    interpolation: InterpolationName = "nearest"
    expand: bool = False
    center: Center | None = None
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        angle, size = between(self.degrees, image.uniform(slot)), None
        if self.expand:
            size = rotated_size(image.height, image.width, angle, self.center)
        self._add_map(image, Op.ROTATE, angle, *(self.center or (math.nan, math.nan)), float(self.expand), size=size)


@dataclass(frozen=True)
class RandomAffine(Resampled):
    """Rotate, shear and scale about ``center``, then translate; the size does not change.

    Args:
        degrees: range of the angle, clockwise as torchvision's: a pair, or d for (-d, d).
        translate: largest shares (horizontal, vertical) of the sides, 0 to 1; whole pixels are drawn.
        scale: range of factors above 0.
        shear: degrees along x: s for (-s, s), or a pair; four numbers add a range along y.
        center: (x, y) in pixels from the top left; None for the center of the image.
        order: "shear_rotate" shears along x, then along y, then rotates (torchvision); "rotate_shear" rotates, then
            shears along both axes at once (Albumentations).
        padding_mode: pixels beyond the image's edges, as for ``Pad``; "constant" is ``fill``.
    """

    degrees: Annotated[Number, Around(0)]
    translate: Annotated[Pair, _SHARES] | None = None
    scale: Annotated[Pair, Range(1e-6, 1e6)] | None = None
    shear: Annotated[float | Sequence[float], Around(0, pairs=2)] | None = None
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    center: Center | None = None
    order: AffineOrder = "shear_rotate"
    padding_mode: PaddingMode = "constant"
    num_slots = 2

    def draw(self, image: DrawContext, slot: int) -> None:
        width, height = image.width, image.height
        shift, scale, shear = (0.0, 0.0), 1.0, [0.0, 0.0]
        if self.translate is not None:
            x, y = 2.0 * image.uniform(slot, 1) - 1.0, 2.0 * image.uniform(slot, 2) - 1.0
            shift = rint(width * self.translate[0] * x), rint(height * self.translate[1] * y)
        if self.scale is not None:
            scale = between(self.scale, image.uniform(slot, 3))
        if isinstance(self.shear, tuple):
            for i in range(len(self.shear) // 2):
                shear[i] = between(self.shear[2 * i : 2 * i + 2], image.uniform(slot + 1, i))
        center = (width * 0.5, height * 0.5) if self.center is None else self.center
        inverse = inverse_affine_of if self.order == "shear_rotate" else inverse_rotated_then_sheared_of
        angle = between(self.degrees, image.uniform(slot))
        self._add_map(image, Op.AFFINE, *inverse(center, angle, shift, scale, shear))


@dataclass(frozen=True)
class RandomPerspective(Resampled):
    """Move every corner inward by up to ``distortion_scale`` (0 to 1) of half the side, with probability ``p``.

    Images one pixel wide or high do not change.
    """

    distortion_scale: Probability = 0.5
    p: Probability = 0.5
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 3
    _typical_range = TypicalRange(0.0, 0.9, 0.0, lambda scale: RandomPerspective(scale, 1.0))

    def draw(self, image: DrawContext, slot: int) -> None:
        chosen = image.by_chance(self.p, slot)
        if not chosen:
            return
        far = (chosen.width - 1, chosen.height - 1)
        bounds = [floor(self.distortion_scale * ((side + 1) // 2)) + 1 for side in far]
        start, end = [], []
        for corner, is_far in enumerate(((0, 0), (1, 0), (1, 1), (0, 1))):
            x, y = (is_far[axis] * far[axis] for axis in (0, 1))
            inwards = [floor(chosen.uniform(slot + 1 + axis, corner) * bounds[axis]) for axis in (0, 1)]
            start.append((x, y))
            end.append((x + (1 - 2 * is_far[0]) * inwards[0], y + (1 - 2 * is_far[1]) * inwards[1]))
        coefficients, is_valid = perspective_coefficients(start, end)
        if valid := chosen.where(is_valid):
            self._add_map(valid, Op.PERSPECTIVE, *coefficients)
