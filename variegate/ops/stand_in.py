"""In the place of an image of which no more than the shape is known: functions tell it what they would have done."""

from __future__ import annotations

from typing import Any

from variegate.program.one_image import OneImage
from variegate.program.program import Output


class StandIn:
    """Given to a function of ``variegate.transforms.functional`` as an image, it keeps the instructions."""

    dtype = "uint8"

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape, self.ndim = shape, 3
        self.told: OneImage | None = None

    def take(self, program: OneImage, output: Output) -> Any:
        """Instead of running ``program``."""
        if self.told is not None or output.is_float or program.sampling is not program or program.has_tables:
            raise TypeError("it is more than instructions on one uint8 image")
        self.told = program
        return self
