"""Colours of the light, and channels that fail: tables per channel, so that they fuse with whatever is beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_integer, as_numbers, refused
from variegate.ops.arguments import BLACK, Fill, Number, check_colour, checks
from variegate.ops.magnitude import MagnitudeOp, WithProbability
from variegate.program.one_image import Images
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling

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
