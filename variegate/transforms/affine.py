"""torchvision's RandomRotation, RandomAffine and RandomPerspective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from variegate.program.ops import Interpolation, Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.base import (
    ArgumentError,
    Transform,
    as_fill,
    as_interpolation,
    check_flag,
    check_number,
    check_probability,
    is_number,
    set_field,
)
from variegate.transforms.limits import LARGEST
from variegate.transforms.magnitude import BLACK, Fill, Number, Pair, between
from variegate.transforms.matrices import inverse_affine, perspective_coefficients, rotated_size


@dataclass(frozen=True)
class RandomRotation(Transform):
    """Rotate counter-clockwise by an angle uniform in ``degrees``: a pair, or a number d for (-d, d).

    ``expand`` makes the output large enough to hold all of the image. ``center`` is (x, y) in pixels from the top
    left, by default the centre.
    """

    degrees: Number
    interpolation: str = "nearest"
    expand: bool = False
    center: Pair | None = None
    fill: Fill = BLACK
    num_slots = 1

    def __post_init__(self) -> None:
        _as_angles(self, "degrees", (2,))
        as_interpolation(self)
        check_flag(self, "expand")
        _as_center(self)
        as_fill(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        angle = between(self.degrees, sampling.uniform(rows, slot)[:, 0])
        cx, cy = self.center or (math.nan, math.nan)
        size = rotated_size(sampling.size[rows], angle, self.center) if self.expand else None
        flags = int(Interpolation[self.interpolation.upper()])
        args = (angle, cx, cy, float(self.expand))
        sampling.emit(rows, Op.ROTATE, *args, flags=flags, fill=self.fill, size=size)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RandomAffine(Transform):
    """Rotate, shear and scale about ``center``, then translate; size kept.

    ``degrees``: a pair, or d for (-d, d), turning clockwise as torchvision's does. ``translate``: the largest shares
    (horizontal, vertical) of the sides, 0 to 1; whole pixels are drawn. ``scale``: a range of factors above 0.
    ``shear``: degrees along x: a number s for (-s, s) or a pair; four numbers add a range along y.
    """

    degrees: Number
    translate: Pair | None = None
    scale: Pair | None = None
    shear: float | Sequence[float] | None = None
    interpolation: str = "nearest"
    fill: Fill = BLACK
    center: Pair | None = None
    num_slots = 2

    def __post_init__(self) -> None:
        _as_angles(self, "degrees", (2,))
        if self.translate is not None:
            _as_pair(self, "translate", 0.0, 1.0, "a pair (horizontal, vertical) of shares from 0 to 1")
        if self.scale is not None:
            _as_pair(self, "scale", 1e-6, 1e6, "a pair (low, high) of factors above 0")
        if self.shear is not None:
            _as_angles(self, "shear", (2, 4))
        as_interpolation(self)
        as_fill(self)
        _as_center(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = np.concatenate([sampling.uniform(rows, slot), sampling.uniform(rows, slot + 1)], axis=1)
        size_xy = sampling.size[rows, ::-1].astype(np.float64)
        shift = np.zeros_like(size_xy)
        if self.translate is not None:
            largest = size_xy * np.array(self.translate)
            shift = np.rint(largest * (2.0 * unit[:, 1:3] - 1.0))
        scale = between(self.scale, unit[:, 3]) if self.scale is not None else 1.0
        shear = np.zeros_like(size_xy)
        if isinstance(self.shear, tuple):
            shear[:, 0] = between(self.shear[:2], unit[:, 4])
            if len(self.shear) == 4:
                shear[:, 1] = between(self.shear[2:], unit[:, 5])
        center = size_xy * 0.5 if self.center is None else np.array(self.center)
        matrix = inverse_affine(center, between(self.degrees, unit[:, 0]), shift, scale, shear)
        flags = int(Interpolation[self.interpolation.upper()])
        sampling.emit(rows, Op.AFFINE, *matrix.T, flags=flags, fill=self.fill)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RandomPerspective(Transform):
    """With probability ``p``, move every corner inwards by up to ``distortion_scale`` (0 to 1) of half the side.

    Images without an area to distort (one pixel wide or high) stay as they are.
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: str = "bilinear"
    fill: Fill = BLACK
    num_slots = 3

    def __post_init__(self) -> None:
        check_number(self, "distortion_scale", 0.0, 1.0)
        check_probability(self)
        as_interpolation(self)
        as_fill(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        rows = rows[sampling.uniform(rows, slot)[:, 0] < self.p]
        far = sampling.size[rows, ::-1].astype(np.int64) - 1
        bound = (self.distortion_scale * ((far + 1) // 2)).astype(np.int64) + 1
        unit = np.stack([sampling.uniform(rows, slot + 1), sampling.uniform(rows, slot + 2)], axis=-1)
        inwards = np.floor(unit * bound[:, None, :])
        is_far = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        start = is_far * far[:, None, :]
        coefficients, valid = perspective_coefficients(start, start + np.where(is_far == 1, -inwards, inwards))
        flags = int(Interpolation[self.interpolation.upper()])
        moved = coefficients[valid].T
        sampling.emit(rows[valid], Op.PERSPECTIVE, *moved, flags=flags, fill=self.fill)  # type: ignore[arg-type]


# -- arguments ---------------------------------------------------------------------------------------------------


def _as_angles(owner: Transform, argument: str, lengths: tuple[int, ...]) -> None:
    """Normalise d >= 0 to (-d, d); check that ranges are in order."""
    value = getattr(owner, argument)
    if is_number(value) and value >= 0:
        value = (-value, value)
    angles = tuple(value) if isinstance(value, (list, tuple)) else ()
    in_order = all(is_number(v) and abs(v) <= LARGEST for v in angles)
    in_order = in_order and all(low <= high for low, high in zip(angles[::2], angles[1::2], strict=False))
    if len(angles) not in lengths or not in_order:
        more = ", or two such pairs" if 4 in lengths else ""
        raise ArgumentError(owner, argument, getattr(owner, argument), f"a number >= 0, or a pair (low, high){more}")
    set_field(owner, argument, angles)


def _as_pair(owner: Transform, argument: str, low: float, high: float, accepted: str) -> None:
    value = getattr(owner, argument)
    pair = tuple(value) if isinstance(value, (list, tuple)) else ()
    is_pair = len(pair) == 2 and all(is_number(v) and low <= v <= high for v in pair)
    if not is_pair or (argument == "scale" and pair[0] > pair[1]):
        raise ArgumentError(owner, argument, value, accepted)
    set_field(owner, argument, pair)


def _as_center(owner: RandomRotation | RandomAffine) -> None:
    center = owner.center
    if center is None:
        return
    pair = tuple(center) if isinstance(center, (list, tuple)) else ()
    if len(pair) != 2 or not all(is_number(v) and abs(v) <= LARGEST for v in pair):
        raise ArgumentError(owner, "center", center, "None, or a pair (x, y) in pixels from the top left")
    set_field(owner, "center", pair)
