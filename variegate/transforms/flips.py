"""Flips and quarter turns: exact, and never a pass of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.magnitude import WithProbability


@dataclass(frozen=True)
class RandomHorizontalFlip(WithProbability):
    """Mirror left-right with probability ``p``."""

    p: float = 0.5
    _op = Op.HFLIP


@dataclass(frozen=True)
class RandomVerticalFlip(WithProbability):
    """Mirror top-bottom with probability ``p``."""

    p: float = 0.5
    _op = Op.VFLIP


@dataclass(frozen=True)
class RandomRotate90(WithProbability):
    """With probability ``p``, a counter-clockwise turn by 90, 180 or 270 degrees, each equally likely."""

    p: float = 0.5

    def _apply(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        turns = 1 + (sampling.uniform(rows, slot)[:, 1] * 3).astype(np.int64)
        size = sampling.size[rows]
        turned = np.where((turns % 2 == 1)[:, None], size[:, ::-1], size)
        sampling.emit(rows, Op.ROT90, turns, size=turned)
