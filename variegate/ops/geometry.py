"""Maps of coordinates by one number (rotate, shear, translate), and a stretch about the centre."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from variegate.checks import Refusal, refused
from variegate.ops.arguments import BLACK, Fill, InterpolationName, Number, checks
from variegate.ops.magnitude import MagnitudeOp, Resampled, between, span
from variegate.ops.matrices import stretch
from variegate.program.one_image import Images, Selection
from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling


class _Map(MagnitudeOp, Resampled):
    """A coordinate map with one number."""

    def emit_at(self, images: Images, value: Any, slot: int) -> None:
        self._add_map(images, self._op, value, *self.constants())


@dataclass(frozen=True)
class Rotate(_Map):
    """Rotate counter-clockwise about the centre by ``degrees`` (a number, or a range to draw from), size kept."""

    degrees: Number
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds = Op.ROTATE, "degrees", (-math.inf, math.inf)
    _constants = (math.nan, math.nan, 0.0)


@dataclass(frozen=True)
class ShearX(_Map):
    """Shift every row left by ``shear`` times its distance from the top edge (AutoAugment's ShearX)."""

    shear: Number
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds = Op.SHEAR_X, "shear", (-math.inf, math.inf)


@dataclass(frozen=True)
class ShearY(_Map):
    """Shift every column up by ``shear`` times its distance from the left edge (AutoAugment's ShearY)."""

    shear: Number
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds = Op.SHEAR_Y, "shear", (-math.inf, math.inf)


def _shares(name: str, value: object, *, error: Refusal = refused) -> bool:
    if not isinstance(value, bool):
        raise error(name, value, "True (a share of the side) or False (pixels)")
    return value


class _Translate(_Map):
    relative: bool
    _axis: ClassVar[int]
    _checks = checks(relative=_shares)

    def emit_at(self, images: Images, value: Any, slot: int) -> None:
        if self.relative:
            value = value * (images.width if self._axis else images.height)
        super().emit_at(images, value, slot)


@dataclass(frozen=True)
class TranslateX(_Translate):
    """Move the content right by ``translate`` pixels, or with ``relative`` by that share of the width."""

    translate: Number
    relative: bool = False
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds, _axis = Op.TRANSLATE_X, "translate", (-math.inf, math.inf), 1


@dataclass(frozen=True)
class TranslateY(_Translate):
    """Move the content down by ``translate`` pixels, or with ``relative`` by that share of the height."""

    translate: Number
    relative: bool = False
    interpolation: InterpolationName = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds, _axis = Op.TRANSLATE_Y, "translate", (-math.inf, math.inf), 0


@dataclass(frozen=True)
class Stretch(Resampled):
    """Make the content ``x`` times as wide and ``y`` times as high about the centre, size kept.

    Each is a number above 0 or a range, drawn independently: above 1 the edges leave the image, below 1 the freed
    border is ``fill``.
    """

    x: Number = (0.8, 1.25)
    y: Number = (0.8, 1.25)
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    num_slots = 1
    _checks = checks(x=span(1e-3, 1e3), y=span(1e-3, 1e3))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        center = sampling.size[rows, ::-1] / np.float64(2.0)
        matrix = stretch(center, between(self.x, unit[:, 0]), between(self.y, unit[:, 1]))
        self._add_map(Selection(sampling, rows), Op.AFFINE, *matrix.T)
