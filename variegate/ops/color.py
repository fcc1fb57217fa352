"""Colours: one class per operation, with exactly the value given or one drawn from a range (meaning: Pillow)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_integer, as_numbers, number, refused
from variegate.ops.arguments import BLACK, LARGEST, Fill, Number, check_colour, checks
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, PlainOp, WithProbability, integers_between, span
from variegate.program.one_image import Images
from variegate.program.ops import MAX_TILES, Op
from variegate.program.sampling import Floats, Rows, Sampling


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


WHITE_KELVIN = 6500.0
_IDENTITY = np.arange(256, dtype=np.uint8)

# Chromaticity of black bodies, cubic in 1000 / T: coefficients of x below and above 4,000 K, and of y, cubic in x,
# below 2,222 K, below 4,000 K and above (Kim et al., US patent 7,024,034; good from 1,667 K to 25,000 K).
_X_OF_T = ((-0.2661239, -0.2343589, 0.8776956, 0.179910), (-3.0258469, 2.1070379, 0.2226347, 0.240390))
_Y_OF_X = (
    (-1.1063814, -1.34811020, 2.18555832, -0.20219683),
    (-0.9549476, -1.37418593, 2.09137015, -0.16748867),
    (3.0817580, -5.87338670, 3.75112997, -0.37001483),
)
# CIE XYZ to linear sRGB (IEC 61966-2-1).
_LINEAR_RGB = np.array(
    [[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]]
)


def chromaticity(kelvin: float) -> tuple[float, float]:
    """CIE 1931 x and y of a black body of that temperature."""
    x = float(np.polyval(_X_OF_T[kelvin > 4000.0], 1000.0 / kelvin))
    return x, float(np.polyval(_Y_OF_X[int(kelvin > 2222.0) + int(kelvin > 4000.0)], x))


def light(kelvin: float) -> Floats:
    """float64[3]: red, green and blue of that light, green being 1."""
    x, y = chromaticity(kelvin)
    rgb = _LINEAR_RGB @ np.array([x / y, 1.0, (1.0 - x - y) / y])
    return np.asarray(np.maximum(rgb, 0.0) / rgb[1])


def temperature_table(kelvin: float) -> npt.NDArray[np.uint8]:
    """uint8[3, 256]: levels of sRGB under the light at ``kelvin``, if those that come in were seen under 6,500 K."""
    x = np.arange(256) / 255.0
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    lit = np.minimum((light(kelvin) / light(WHITE_KELVIN))[:, None] * linear, 1.0)
    encoded = np.where(lit <= 0.0031308, 12.92 * lit, 1.055 * lit ** (1.0 / 2.4) - 0.055)
    return np.floor(255.0 * encoded + 0.5).astype(np.uint8)


@dataclass(frozen=True)
class ColorTemperature(MagnitudeOp):
    """As if the light's colour temperature were ``kelvin``, a number or a range, 1,667 to 25,000, and had been 6,500.

    In linear light, red and blue are multiplied by what a black body of that temperature has of them beside one of
    6,500 K, green being as bright: below 6,500 the image becomes warmer, above it bluer. Grey images stay as they are.
    """

    kelvin: Number = (3000.0, 15000.0)
    _number, _bounds = "kelvin", (1667.0, 25000.0)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        is_colour = sampling.channels[rows] > 1
        distinct, which = np.unique(values[is_colour], return_inverse=True)
        tables = [sampling.add_lut(temperature_table(kelvin)) for kelvin in distinct.tolist()]
        index = np.array(tables, np.float64)[which.reshape(-1)]
        sampling.emit(rows[is_colour], Op.LUT, index, values[is_colour], name="ColorTemperature")


def dropped_counts(name: str, value: Any, *, error: Refusal = refused) -> tuple[int, int]:
    """A range of how many channels are dropped; one number stands for both ends."""
    single = as_integer(value)
    ends = as_numbers(value, whole=True) if single is None else (single, single)
    if ends is None or len(ends) != 2 or not 1 <= ends[0] <= ends[1] <= 2:
        raise error(name, value, "1 or 2, or a pair (low, high) of them")
    return ends[0], ends[1]


@lru_cache(maxsize=1)
def _drops() -> tuple[tuple[int, ...], ...]:
    """The ways to drop one channel of three, then those to drop two."""
    return tuple(of for count in (1, 2) for of in combinations(range(3), count))


@dataclass(frozen=True)
class ChannelDropout(WithProbability):
    """With probability ``p``, set one or more of the three channels, chosen at random, to ``fill``.

    ``channel_drop_range``: how many, (low, high) both included (Albumentations' names). Grey images stay as they are.
    """

    channel_drop_range: int | Sequence[int] = (1, 1)
    fill: Fill = BLACK
    p: float = 0.5
    _checks = checks(channel_drop_range=dropped_counts, fill=check_colour)

    def _apply(self, images: Images, slot: int) -> None:
        sampling = images.sampling
        rows = images.rows[sampling.channels[images.rows] > 1]
        unit = sampling.uniform(rows, slot)
        low, high = self.channel_drop_range  # type: ignore[misc]
        count = low + (unit[:, 1] * (high - low + 1)).astype(np.int64)
        chosen = 3 * (count - 1) + (unit[:, 2] * 3).astype(np.int64)
        distinct, which = np.unique(chosen, return_inverse=True)
        index = np.array([sampling.add_lut(self._table(_drops()[i])) for i in distinct.tolist()], np.float64)
        sampling.emit(rows, Op.LUT, index[which.reshape(-1)], count, name="ChannelDropout")

    def _table(self, dropped: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        table = np.tile(_IDENTITY, (3, 1))
        for channel in dropped:
            table[channel] = self.fill[channel]  # type: ignore[index, assignment]
        return table
