"""Flips, quarter turns and the affine family, one class per operation (meaning: torchvision v2 on PIL images)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from variegate.program.ops import Interpolation, Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.base import (
    Transform,
    as_fill,
    as_interpolation,
    as_range,
    check_probability,
)

Pair = tuple[float, float]
Fill = int | float | tuple[int, ...] | None


@dataclass(frozen=True)
class RandomHorizontalFlip(Transform):
    """Mirror left-right with probability ``p``."""

    p: float = 0.5
    num_slots = 1
    _op: ClassVar[Op] = Op.HFLIP

    def __post_init__(self) -> None:
        check_probability(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling.emit(rows[sampling.uniform(rows, slot)[:, 0] < self.p], self._op)


@dataclass(frozen=True)
class RandomVerticalFlip(RandomHorizontalFlip):
    """Mirror top-bottom with probability ``p``."""

    _op: ClassVar[Op] = Op.VFLIP


@dataclass(frozen=True)
class RandomRotate90(Transform):
    """With probability ``p``, a counter-clockwise turn by 90, 180 or 270 degrees, each equally likely."""

    p: float = 0.5
    num_slots = 1

    def __post_init__(self) -> None:
        check_probability(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        draw = sampling.uniform(rows, slot)
        chosen = draw[:, 0] < self.p
        turns = 1 + (draw[chosen, 1] * 3).astype(np.int64)
        emit_quarter_turns(sampling, rows[chosen], turns)


def emit_quarter_turns(sampling: Sampling, rows: Rows, turns: np.ndarray) -> None:
    size = sampling.size[rows]
    turned = np.where((turns % 2 == 1)[:, None], size[:, ::-1], size)
    sampling.emit(rows, Op.ROT90, turns, size=turned)


@dataclass(frozen=True)
class _OneNumberMap(Transform):
    """A geometric operation with one number, drawn uniformly from a range."""

    _op: ClassVar[Op]
    num_slots = 1

    def _emit(self, sampling: Sampling, rows: Rows, slot: int, limits: Pair, interpolation: str, fill: Fill) -> None:
        low, high = limits
        value = low + (high - low) * sampling.uniform(rows, slot)[:, 0]
        extra = (np.nan, np.nan, 0) if self._op is Op.ROTATE else ()
        flags = Interpolation[interpolation.upper()]
        sampling.emit(rows, self._op, value, *extra, flags=flags, fill=fill)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Rotate(_OneNumberMap):
    """Rotate counter-clockwise about the centre by ``degrees`` (a number, or a range to draw from), size kept."""

    degrees: float | Pair
    interpolation: str = "nearest"
    fill: Fill = 0
    _op: ClassVar[Op] = Op.ROTATE

    def __post_init__(self) -> None:
        as_range(self, "degrees", -360.0 * 100, 360.0 * 100)
        as_interpolation(self)
        as_fill(self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._emit(sampling, rows, slot, self.degrees, self.interpolation, self.fill)  # type: ignore[arg-type]
