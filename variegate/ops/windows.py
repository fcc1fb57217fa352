"""Windows: operations that stretch a range of values to black..white."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from variegate.ops.arguments import ArgumentError, Number
from variegate.ops.base import TypicalRange
from variegate.ops.magnitude import PlainOp, TableOp, between
from variegate.ops.schema import LARGEST, Range
from variegate.program.draws.recorder import DrawContext
from variegate.program.ops import Op

Percentage = Annotated[float, Range(0.0, 100.0)]


@dataclass(frozen=True)
class Window(TableOp, PlainOp, opcode=15, function="window"):
    """Stretch the values from ``center - width / 2`` to ``center + width / 2`` to black..white, clipped.

    Args:
        center: middle of the window in the image's own numbers, such as Hounsfield units of float32 images, or counts
            of uint16 images: a number, or a range for a random window.
        width: width of the window, above 0: a number or a range.
    """

    center: Annotated[Number, Range()]
    width: Annotated[Number, Range(1 / LARGEST)]
    num_slots = 1
    _typical_range = TypicalRange(64.0, 255.0, 255.0, lambda width: Window(127.5, width), np.geomspace)

    @staticmethod
    def level(x: float, center: float, width: float) -> float:
        return 255.0 * ((x - center) / width + 0.5) + 0.5

    def draw(self, image: DrawContext, slot: int) -> None:
        fields = enumerate((self.center, self.width))
        image.add(self._op, *(between(v, image.uniform(slot, i)) if isinstance(v, tuple) else v for i, v in fields))


@dataclass(frozen=True)
class PercentileStretch(PlainOp, function="percentile_stretch"):
    """Stretch every channel so that percentile ``low`` of its values is black and percentile ``high`` white, clipped.

    ``low``, ``high``: from 0 to 100, ``low`` below ``high``. On uint8, it is ``PIL.ImageOps.autocontrast`` with
    ``cutoff=(low, 100 - high)``. A channel whose two percentiles are equal does not change.
    """

    low: Percentage = 1.0
    high: Percentage = 99.0
    _op = Op.PERCENTILE_STRETCH
    _typical_range = TypicalRange(0.0, 20.0, None, lambda cutoff: PercentileStretch(cutoff, 100.0 - cutoff))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            raise ArgumentError(self, "low", self.low, f"a percentage below high={self.high:g}")

    def draw(self, image: DrawContext, slot: int) -> None:
        image.add(self._op, self.low, self.high)
