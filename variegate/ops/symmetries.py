"""Symmetries of the square: exact, without resampling (names: Albumentations)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate.ops.magnitude import WithProbability
from variegate.program.one_image import Images
from variegate.program.ops import Op


@dataclass(frozen=True)
class Transpose(WithProbability):
    """With probability ``p``, swap lines and columns."""

    p: float = 0.5

    def _apply(self, images: Images, slot: int) -> None:
        images.add(Op.ROT90, 1, size=(images.width, images.height))
        images.add(Op.VFLIP)


@dataclass(frozen=True)
class D4(WithProbability):
    """With probability ``p``, one of the eight symmetries of the square, all equally likely: counter-clockwise quarter
    turns, mirrored or not. One of the eight is the image as it is.
    """

    p: float = 1.0

    def _apply(self, images: Images, slot: int) -> None:
        sampling, rows = images.sampling, images.rows
        element = (sampling.uniform(rows, slot)[:, 1] * 8).astype(np.int64)
        turned, mirrored = element % 4 > 0, element >= 4
        sampling.emit(rows[mirrored], Op.HFLIP)
        turns, size = element[turned] % 4, sampling.size[rows[turned]]
        size = np.where((turns % 2 == 1)[:, None], size[:, ::-1], size)
        sampling.emit(rows[turned], Op.ROT90, turns, size=size)
