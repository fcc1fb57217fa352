"""Colours: one class per operation, with exactly the value given or one drawn from a range (meaning: Pillow)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from variegate.checks import Refusal, as_integer, as_numbers, number, refused
from variegate.ops.arguments import LARGEST, Number, checks
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, PlainOp, integers_between, span
from variegate.program.one_image import Images
from variegate.program.ops import MAX_TILES, Op
from variegate.program.sampling import Rows, Sampling


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

    bits: int | Sequence[int]
    _op, _number, _bounds, _integral = Op.POSTERIZE, "bits", (0, 8), True


@dataclass(frozen=True)
class Solarize(MagnitudeOp):
    """Invert the values at and above ``threshold``: all of them at 0 and below, none at 256 and above."""

    threshold: Number
    _op, _number, _bounds = Op.SOLARIZE, "threshold", (-math.inf, math.inf)


@dataclass(frozen=True)
class SolarizeAdd(MagnitudeOp):
    """Add ``addition`` (whole levels, -255 to 255) to the values below ``threshold``, clipped to 0..255."""

    addition: int | Sequence[int]
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


def tile_counts(name: str, value: Any, *, error: Refusal = refused) -> tuple[int, int]:
    """Tiles along x and y; one number stands for both."""
    single = as_integer(value)
    tiles = as_numbers(value, whole=True) if single is None else (single, single)
    if tiles is None or len(tiles) != 2 or not all(1 <= count <= MAX_TILES for count in tiles):
        raise error(name, value, f"an integer from 1 to {MAX_TILES}, or a pair (x, y) of them")
    return tiles[0], tiles[1]


@dataclass(frozen=True)
class CLAHE(MagnitudeOp):
    """Contrast limited adaptive histogram equalisation (Zuiderveld 1994): every part of the image gets contrast of its
    own.

    The image is cut into ``tile_grid_size`` tiles, (x, y), 1 to 16 each. The luma is equalised in each of them, where a
    level counts for at most ``clip_limit`` times the average (1 to 256; a number or a range), and mixed between tiles.
    Images of one channel are OpenCV's ``createCLAHE`` to the bit. In colour, each channel is moved as far as the luma
    is, which keeps their differences; Albumentations equalises the lightness of LAB.
    """

    clip_limit: Number = (1.0, 4.0)
    tile_grid_size: int | Sequence[int] = (8, 8)
    _number, _bounds = "clip_limit", (1.0, 256.0)
    _checks = checks(tile_grid_size=tile_counts)

    def emit_at(self, images: Images, value: Any, slot: int) -> None:
        images.add(Op.CLAHE, value, *self.tile_grid_size)  # type: ignore[misc]


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

    order: Sequence[int] = (2, 1, 0)
    _checks = checks(order=channel_order)

    def draw(self, images: Images, slot: int) -> None:
        images.add(Op.PERMUTE, *self.order)


@dataclass(frozen=True)
class RGBShift(Transform):
    """Add whole levels to each channel, clipped: each a number or a range, -255 to 255, drawn independently."""

    red: int | Sequence[int] = (-20, 20)
    green: int | Sequence[int] = (-20, 20)
    blue: int | Sequence[int] = (-20, 20)
    num_slots = 1
    _checks = dict.fromkeys(("red", "green", "blue"), span(-255, 255, whole=True))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        shifts = [integers_between(r, unit[:, i]) for i, r in enumerate((self.red, self.green, self.blue))]
        sampling.emit(rows, Op.RGB_SHIFT, *shifts)
