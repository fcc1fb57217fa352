"""Colours: one class per operation, with exactly the value given or one drawn from a range (meaning: Pillow)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from variegate.checks import Refusal, as_numbers, number, refused
from variegate.program.one_image import OneImage
from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.arguments import LARGEST, Number, checks
from variegate.transforms.base import Transform
from variegate.transforms.magnitude import MagnitudeOp, PlainOp, integers_between, span


@dataclass(frozen=True)
class Brightness(MagnitudeOp):
    """Blend with black: ``factor`` 0 is black, 1 the image, 2 twice as bright (``PIL.ImageEnhance.Brightness``)."""

    factor: Number
    _op, _number, _bounds = Op.BRIGHTNESS, "factor", (-math.inf, math.inf)


@dataclass(frozen=True)
class Contrast(MagnitudeOp):
    """Blend with the mean grey level: ``factor`` 0 is flat grey, 1 the image, -1 its negative about that level
    (``PIL.ImageEnhance.Contrast``)."""

    factor: Number
    _op, _number, _bounds = Op.CONTRAST, "factor", (-math.inf, math.inf)


@dataclass(frozen=True)
class Color(MagnitudeOp):
    """Saturation, a blend with the grey image: ``factor`` 0 is grey, 1 the image (``PIL.ImageEnhance.Color``)."""

    factor: Number
    _op, _number, _bounds = Op.SATURATION, "factor", (-math.inf, math.inf)


@dataclass(frozen=True)
class Hue(MagnitudeOp):
    """Turn the hue by ``factor`` of a full circle, -0.5 to 0.5, through Pillow's 8-bit HSV."""

    factor: Number
    _op, _number, _bounds = Op.HUE, "factor", (-0.5, 0.5)


@dataclass(frozen=True)
class Gamma(MagnitudeOp):
    """``255 * gain * (x / 255) ** gamma``: above 1 darkens, below 1 brightens (torchvision ``adjust_gamma``)."""

    gamma: Number
    gain: float = 1.0
    _op, _number, _bounds, _constants = Op.GAMMA, "gamma", (0.0, math.inf), ("gain",)
    _checks = checks(gain=partial(number, low=-LARGEST, high=LARGEST))


@dataclass(frozen=True)
class Posterize(MagnitudeOp):
    """Keep the highest ``bits`` bits of every value, 0 to 8 whole bits; 0 gives an all-zero image."""

    bits: int | tuple[int, int]
    _op, _number, _bounds, _integral = Op.POSTERIZE, "bits", (0, 8), True


@dataclass(frozen=True)
class Solarize(MagnitudeOp):
    """Invert the values at and above ``threshold``: all of them at 0 and below, none at 256 and above."""

    threshold: Number
    _op, _number, _bounds = Op.SOLARIZE, "threshold", (-math.inf, math.inf)


@dataclass(frozen=True)
class SolarizeAdd(MagnitudeOp):
    """Add ``addition`` (whole levels, -255 to 255) to the values below ``threshold``, clipped to 0..255."""

    addition: int | tuple[int, int]
    threshold: float = 128
    _op, _number, _bounds, _integral, _constants = Op.SOLARIZE_ADD, "addition", (-255, 255), True, ("threshold",)
    _checks = checks(threshold=partial(number, low=-LARGEST, high=LARGEST))


@dataclass(frozen=True)
class Invert(PlainOp):
    """``255 - x``."""

    _op = Op.INVERT


@dataclass(frozen=True)
class AutoContrast(PlainOp):
    """Stretch every channel so that its darkest value is 0 and its lightest 255 (``PIL.ImageOps.autocontrast``)."""

    _op = Op.AUTOCONTRAST


@dataclass(frozen=True)
class Equalize(PlainOp):
    """Make every channel's histogram flat (``PIL.ImageOps.equalize``)."""

    _op = Op.EQUALIZE


def channel_order(name: str, value: Any, *, error: Refusal = refused) -> tuple[int, int, int]:
    order = as_numbers(value, whole=True)
    if order is None or sorted(order) != [0, 1, 2]:
        raise error(name, value, "the channels 0, 1 and 2 in some order")
    return order[0], order[1], order[2]


@dataclass(frozen=True)
class ChannelPermutation(Transform):
    """Output channel i is input channel ``order[i]``; (2, 1, 0) swaps red and blue. Grey images stay as they are."""

    order: tuple[int, int, int] = (2, 1, 0)
    _checks = checks(order=channel_order)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling.emit(rows, Op.PERMUTE, *self.order)

    def sample_one(self, image: OneImage, slot: int) -> None:
        image.emit_one(Op.PERMUTE, *self.order)


@dataclass(frozen=True)
class RGBShift(Transform):
    """Add whole levels to each channel, clipped: each a number or a range, -255 to 255, drawn independently."""

    red: int | tuple[int, int] = (-20, 20)
    green: int | tuple[int, int] = (-20, 20)
    blue: int | tuple[int, int] = (-20, 20)
    num_slots = 1
    _checks = dict.fromkeys(("red", "green", "blue"), span(-255, 255, whole=True))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        shifts = [integers_between(r, unit[:, i]) for i, r in enumerate((self.red, self.green, self.blue))]
        sampling.emit(rows, Op.RGB_SHIFT, *shifts)
