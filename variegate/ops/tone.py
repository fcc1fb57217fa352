"""Operations that are a lookup table of 256 values, see ``TableOp``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from variegate.ops.arguments import AnyMagnitude, Finite, Integers, Number, Probability
from variegate.ops.base import TypicalRange
from variegate.ops.magnitude import MagnitudeOp, PlainOp, TableOp, WithProbability, integers_between
from variegate.ops.schema import MagnitudeRange, Range
from variegate.program.draws.recorder import DrawContext

_BRIGHTNESS = {"factor": "brightness_factor"}


@dataclass(frozen=True)
class Brightness(TableOp, MagnitudeOp, opcode=20, neutral=1, function="adjust_brightness", called=_BRIGHTNESS):
    """Blend with black: ``factor`` 0 is black, 1 the image, 2 twice as bright (``PIL.ImageEnhance.Brightness``)."""

    factor: AnyMagnitude

    @staticmethod
    def level(x: int, factor: float) -> np.float32:
        return np.float32(factor) * np.float32(x)


@dataclass(frozen=True)
class Gamma(TableOp, MagnitudeOp, opcode=23, function="adjust_gamma"):
    """Correct gamma: ``255 * gain * (x / 255) ** gamma``; above 1 darkens (torchvision's ``adjust_gamma``)."""

    gamma: Annotated[Number, MagnitudeRange(0.0)]
    gain: Finite = 1.0
    # Geometric spacing: equal steps look equally darker or lighter.
    _typical_range = TypicalRange(0.4, 2.5, 1.0, spacing=np.geomspace)

    @staticmethod
    def level(x: int, gamma: float, gain: float) -> float:
        return (255.0 + 1.0 - 1e-3) * gain * (x / 255.0) ** gamma


@dataclass(frozen=True)
class Posterize(TableOp, MagnitudeOp, opcode=24, neutral=8, function="posterize"):
    """Keep the highest ``bits`` bits of every value, 1 to 8. As by Pillow, 0 is refused: the image would be black."""

    bits: Annotated[Integers, MagnitudeRange(1, 8)]

    @staticmethod
    def level(x: int, bits: float) -> int:
        return x & ~((1 << (8 - int(bits))) - 1)


@dataclass(frozen=True)
class RandomPosterize(WithProbability, of=Posterize):
    """Keep the highest ``bits`` bits (1 to 8) of every value with probability ``p``."""

    bits: Annotated[int, Range(1, 8)]
    p: Probability = 0.5


@dataclass(frozen=True)
class Solarize(
    TableOp, MagnitudeOp, opcode=25, neutral=(math.nextafter(255.0, math.inf), math.inf), function="solarize"
):
    """Invert the values at and above ``threshold``: all at 0 and below, none at 256 and above."""

    threshold: AnyMagnitude

    @staticmethod
    def level(x: int, threshold: float) -> int:
        return x if x < threshold else 255 - x


@dataclass(frozen=True)
class RandomSolarize(WithProbability, of=Solarize):
    """Invert the values at and above ``threshold`` with probability ``p``."""

    threshold: Finite
    p: Probability = 0.5


@dataclass(frozen=True)
class SolarizeAdd(TableOp, MagnitudeOp, opcode=26, function="solarize_add"):
    """Add ``addition`` (-255 to 255) to the values below ``threshold``, clipped to 0..255."""

    addition: Annotated[Integers, MagnitudeRange(-255, 255)]
    threshold: Finite = 128
    _allows_fractions = True
    _typical_range = TypicalRange(0, 110, 0.0)

    @staticmethod
    def level(x: int, addition: float, threshold: float) -> float:
        return x + addition if x < threshold else x


@dataclass(frozen=True)
class Invert(TableOp, PlainOp, opcode=27, function="invert"):
    """Invert every value: ``255 - x``."""

    @staticmethod
    def level(x: int) -> int:
        return 255 - x


@dataclass(frozen=True)
class RandomInvert(WithProbability, of=Invert):
    """Invert every value, ``255 - x``, with probability ``p``."""

    p: Probability = 0.5


Shift = Annotated[Integers, Range(-255, 255)]


@dataclass(frozen=True)
class RGBShift(TableOp, opcode=30, per_channel=True):
    """Add integers from -255 to 255 to ``red``, ``green`` and ``blue``, drawn independently; clipped to 0..255."""

    red: Shift = (-20, 20)
    green: Shift = (-20, 20)
    blue: Shift = (-20, 20)
    num_slots = 1

    @staticmethod
    def level(x: int, shift: float) -> int:
        return x + int(shift)

    def draw(self, image: DrawContext, slot: int) -> None:
        ranges = (self.red, self.green, self.blue)
        image.add(self._op, *(integers_between(each, image.uniform(slot, i)) for i, each in enumerate(ranges)))
