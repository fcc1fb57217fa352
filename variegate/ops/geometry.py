"""Maps of coordinates by one number (rotate, shear, translate), and a stretch about the centre."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

from variegate.checks import Refusal, one_of, pair, refused
from variegate.ops.arguments import (
    BLACK,
    CENTER,
    FLAG,
    PROBABILITY,
    Fill,
    InterpolationName,
    Number,
    PaddingMode,
    Pair,
    angles,
    checks,
    optional,
)
from variegate.ops.base import UsefulRange
from variegate.ops.magnitude import MagnitudeOp, Resampled, between, span
from variegate.ops.matrices import (
    inverse_affine_of,
    inverse_rotated_then_sheared_of,
    perspective_coefficients,
    rotated_size,
    stretch,
)
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import floor, rint
from variegate.program.ops import Op


class _Map(MagnitudeOp, Resampled):
    """A coordinate map with one number."""

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        self._add_map(image, self._op, value, *self.constants())


@dataclass(frozen=True)
class Rotate(_Map, function="rotate", called={"degrees": "angle"}):
    """Rotate counter-clockwise about the center by ``degrees``; the size does not change."""

    degrees: Number
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _number = Op.ROTATE, "degrees"
    _constants = (math.nan, math.nan, 0.0)


@dataclass(frozen=True)
class ShearX(_Map, function="shear_x"):
    """Shift each row left by ``shear`` times its distance from the top edge (AutoAugment's ShearX)."""

    shear: Number
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _number = Op.SHEAR_X, "shear"


@dataclass(frozen=True)
class ShearY(_Map, function="shear_y"):
    """Shift each column up by ``shear`` times its distance from the left edge (AutoAugment's ShearY)."""

    shear: Number
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _number = Op.SHEAR_Y, "shear"


def _shares(name: str, value: object, *, error: Refusal = refused) -> bool:
    if not isinstance(value, bool):
        raise error(name, value, "True (a share of the side) or False (pixels)")
    return value


class _Translate(_Map):
    relative: bool
    _axis: ClassVar[int]
    _checks = checks(relative=_shares)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        if self.relative:
            value = value * (image.width if self._axis else image.height)
        super().emit_at(image, value, slot)


@dataclass(frozen=True)
class TranslateX(_Translate, function="translate_x", called={"translate": "pixels"}):
    """Move the content right by ``translate`` pixels, or with ``relative`` by that share of the width."""

    translate: Number
    relative: bool = False
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _number, _axis = Op.TRANSLATE_X, "translate", 1


@dataclass(frozen=True)
class TranslateY(_Translate, function="translate_y", called={"translate": "pixels"}):
    """Move the content down by ``translate`` pixels, or with ``relative`` by that share of the height."""

    translate: Number
    relative: bool = False
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _op, _number, _axis = Op.TRANSLATE_Y, "translate", 0


@dataclass(frozen=True)
class Stretch(Resampled):
    """Scale the content ``x`` times in width and ``y`` times in height about the center; the size does not change.

    Each is a number above 0 or a range, drawn independently. Above 1, the edges leave the image; below 1, the border is
    ``fill``.
    """

    x: Number = (0.8, 1.25)
    y: Number = (0.8, 1.25)
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1
    _checks = checks(x=span(1e-3, 1e3), y=span(1e-3, 1e3))

    def draw(self, image: DrawContext, slot: int) -> None:
        center = (image.width / 2.0, image.height / 2.0)
        matrix = stretch(center, between(self.x, image.unit(slot, 0)), between(self.y, image.unit(slot, 1)))
        self._add_map(image, Op.AFFINE, *matrix)


AffineOrder = Literal["shear_rotate", "rotate_shear"]


@dataclass(frozen=True)
class RandomRotation(Resampled):
    """Rotate counter-clockwise by an angle uniform in ``degrees``: a pair, or a number d for (-d, d).

    ``expand`` enlarges the output to hold the whole image. ``center`` is (x, y) in pixels from the top left; None for
    the center of the image.
    """

    degrees: Number
    interpolation: InterpolationName = "nearest"
    expand: bool = False
    center: Pair | None = None
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1
    _checks = checks(degrees=angles, expand=FLAG, center=CENTER)

    def draw(self, image: DrawContext, slot: int) -> None:
        angle, size = between(self.degrees, image.unit(slot)), None
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
        padding_mode: what lies beyond the image's edges, as for ``Pad``; with "constant" it is ``fill``.
    """

    degrees: Number
    translate: Pair | None = None
    scale: Pair | None = None
    shear: float | Sequence[float] | None = None
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    center: Pair | None = None
    order: AffineOrder = "shear_rotate"
    padding_mode: PaddingMode = "constant"
    num_slots = 2
    _checks = checks(
        degrees=angles,
        translate=optional(
            partial(pair, low=0.0, high=1.0, accepted="a pair (horizontal, vertical) of shares from 0 to 1")
        ),
        scale=optional(
            partial(pair, low=1e-6, high=1e6, ordered=True, accepted="a pair (low, high) of factors above 0")
        ),
        shear=optional(partial(angles, pairs=2)),
        center=CENTER,
        order=partial(one_of, choices=get_args(AffineOrder)),
    )

    def draw(self, image: DrawContext, slot: int) -> None:
        width, height = image.width, image.height
        shift, scale, shear = (0.0, 0.0), 1.0, [0.0, 0.0]
        if self.translate is not None:
            x, y = 2.0 * image.unit(slot, 1) - 1.0, 2.0 * image.unit(slot, 2) - 1.0
            shift = rint(width * self.translate[0] * x), rint(height * self.translate[1] * y)
        if self.scale is not None:
            scale = between(self.scale, image.unit(slot, 3))
        if isinstance(self.shear, tuple):
            for i in range(len(self.shear) // 2):
                shear[i] = between(self.shear[2 * i : 2 * i + 2], image.unit(slot + 1, i))
        center = (width * 0.5, height * 0.5) if self.center is None else self.center
        inverse = inverse_affine_of if self.order == "shear_rotate" else inverse_rotated_then_sheared_of
        angle = between(self.degrees, image.unit(slot))
        self._add_map(image, Op.AFFINE, *inverse(center, angle, shift, scale, shear))


@dataclass(frozen=True)
class RandomPerspective(Resampled):
    """With probability ``p``, move every corner inwards by up to ``distortion_scale`` (0 to 1) of half the side.

    Images one pixel wide or high do not change.
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 3
    _useful = UsefulRange(0.0, 0.9, 0.0, lambda scale: RandomPerspective(scale, 1.0))
    _checks = checks(distortion_scale=PROBABILITY, p=PROBABILITY)

    def draw(self, image: DrawContext, slot: int) -> None:
        chosen = image.by_chance(self.p, slot)
        if not chosen:
            return
        far = (chosen.width - 1, chosen.height - 1)
        bounds = [floor(self.distortion_scale * ((side + 1) // 2)) + 1 for side in far]
        start, end = [], []
        for corner, is_far in enumerate(((0, 0), (1, 0), (1, 1), (0, 1))):
            x, y = (is_far[axis] * far[axis] for axis in (0, 1))
            inwards = [floor(chosen.unit(slot + 1 + axis, corner) * bounds[axis]) for axis in (0, 1)]
            start.append((x, y))
            end.append((x + (1 - 2 * is_far[0]) * inwards[0], y + (1 - 2 * is_far[1]) * inwards[1]))
        coefficients, is_valid = perspective_coefficients(start, end)
        if valid := chosen.where(is_valid):
            self._add_map(valid, Op.PERSPECTIVE, *coefficients)
