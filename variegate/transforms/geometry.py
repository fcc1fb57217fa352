"""The one-number members of the affine family: rotate, shear, translate, and a stretch about the centre."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from variegate.program.ops import Interpolation, Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.base import ArgumentError, Transform, as_fill, as_interpolation
from variegate.transforms.magnitude import BLACK, Fill, MagnitudeOp, Number, between, check_range
from variegate.transforms.matrices import stretch


class _Map(MagnitudeOp):
    """A coordinate map with one number, an interpolation and a fill."""

    interpolation: str
    fill: Fill
    _op: ClassVar[Op]
    _extra: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        as_interpolation(self)
        as_fill(self)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        flags = int(Interpolation[self.interpolation.upper()])
        sampling.emit(rows, self._op, values, *self._extra, flags=flags, fill=self.fill)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Rotate(_Map):
    """Rotate counter-clockwise about the centre by ``degrees`` (a number, or a range to draw from), size kept."""

    degrees: Number
    interpolation: str = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds = Op.ROTATE, "degrees", (-math.inf, math.inf)
    _extra = (math.nan, math.nan, 0.0)


@dataclass(frozen=True)
class ShearX(_Map):
    """Shift every row left by ``shear`` times its distance from the top edge (AutoAugment's ShearX)."""

    shear: Number
    interpolation: str = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds = Op.SHEAR_X, "shear", (-math.inf, math.inf)


@dataclass(frozen=True)
class ShearY(_Map):
    """Shift every column up by ``shear`` times its distance from the left edge (AutoAugment's ShearY)."""

    shear: Number
    interpolation: str = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds = Op.SHEAR_Y, "shear", (-math.inf, math.inf)


class _Translate(_Map):
    relative: bool
    _axis: ClassVar[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.relative, bool):
            raise ArgumentError(self, "relative", self.relative, "True (a share of the side) or False (pixels)")

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        pixels = values * sampling.size[rows, self._axis] if self.relative else values
        super().emit_magnitude(sampling, rows, pixels, slot)


@dataclass(frozen=True)
class TranslateX(_Translate):
    """Move the content right by ``translate`` pixels, or with ``relative`` by that share of the width."""

    translate: Number
    relative: bool = False
    interpolation: str = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds, _axis = Op.TRANSLATE_X, "translate", (-math.inf, math.inf), 1


@dataclass(frozen=True)
class TranslateY(_Translate):
    """Move the content down by ``translate`` pixels, or with ``relative`` by that share of the height."""

    translate: Number
    relative: bool = False
    interpolation: str = "nearest"
    fill: Fill = BLACK
    _op, _number, _bounds, _axis = Op.TRANSLATE_Y, "translate", (-math.inf, math.inf), 0


@dataclass(frozen=True)
class Stretch(Transform):
    """Make the content ``x`` times as wide and ``y`` times as high about the centre, size kept.

    Each is a number above 0 or a range, drawn independently: above 1 the edges leave the image, below 1 the freed
    border is ``fill``.
    """

    x: Number = (0.8, 1.25)
    y: Number = (0.8, 1.25)
    interpolation: str = "bilinear"
    fill: Fill = BLACK
    num_slots = 1

    def __post_init__(self) -> None:
        for axis in ("x", "y"):
            check_range(self, axis, 1e-3, 1e3)
        as_interpolation(self)
        as_fill(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        center = sampling.size[rows, ::-1] / np.float64(2.0)
        matrix = stretch(center, between(self.x, unit[:, 0]), between(self.y, unit[:, 1]))
        flags = int(Interpolation[self.interpolation.upper()])
        sampling.emit(rows, Op.AFFINE, *matrix.T, flags=flags, fill=self.fill)  # type: ignore[arg-type]
