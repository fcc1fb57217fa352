"""Operations on colors: saturation, hue, channels, histograms, and combinations such as ColorJitter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from variegate.checks import as_numbers
from variegate.ops.arguments import (
    BLACK,
    AnyMagnitude,
    Fill,
    Finite,
    Integers,
    Number,
    Probability,
    two_integers,
)
from variegate.ops.base import Transform, TypicalRange, set_field
from variegate.ops.filters import Sharpness
from variegate.ops.magnitude import MagnitudeOp, PlainOp, WithProbability, between, limits
from variegate.ops.schema import Around, Converted, MagnitudeRange, Range
from variegate.ops.tone import Brightness
from variegate.program.channels import per_channel, split_channels
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number as Drawn
from variegate.program.draws.values import floor, logical_not, select
from variegate.program.ops import MAX_TILES, Op
from variegate.program.rng import to_normal
from variegate.program.sampling import CHOICE, Floats, Rows, Sampling


@dataclass(frozen=True)
class Contrast(MagnitudeOp, function="adjust_contrast", called={"factor": "contrast_factor"}):
    """Blend with the mean gray level: ``factor`` 0 is gray, 1 the image, -1 inverts (``PIL.ImageEnhance.Contrast``)."""

    factor: AnyMagnitude
    _op = Op.CONTRAST


@dataclass(frozen=True)
class Color(MagnitudeOp, function="adjust_saturation", called={"factor": "saturation_factor"}):
    """Change saturation: ``factor`` 0 is gray, 1 the image (``PIL.ImageEnhance.Color``)."""

    factor: AnyMagnitude
    _op = Op.SATURATION


@dataclass(frozen=True)
class Hue(MagnitudeOp, function="adjust_hue", called={"factor": "hue_factor"}):
    """Rotate the hue by ``factor`` of a full circle, -0.5 to 0.5, in Pillow's 8-bit HSV."""

    factor: Annotated[Number, MagnitudeRange(-0.5, 0.5)]
    _op = Op.HUE
    _typical_range = TypicalRange(-0.5, 0.5)  # no identity: 0 also rounds to 8-bit hues


@dataclass(frozen=True)
class AutoContrast(PlainOp, function="autocontrast"):
    """Stretch every channel so that its darkest value is 0 and its lightest 255 (``PIL.ImageOps.autocontrast``)."""

    _op = Op.AUTOCONTRAST


_TILES = Converted(partial(two_integers, high=MAX_TILES), f"an integer from 1 to {MAX_TILES}, or a pair (x, y) of them")


@dataclass(frozen=True)
class CLAHE(MagnitudeOp):
    """Equalize contrast locally: contrast limited adaptive histogram equalization (Zuiderveld 1994).

    Args:
        clip_limit: limit of a histogram bin, as a multiple of the average; 1 to 256, a number or a range.
        tile_grid_size: number of tiles along (x, y), 1 to 16 each.

    The luma is equalized in each tile and interpolated between tiles. Images of one channel are OpenCV's
    ``createCLAHE`` to the bit. In color images, each channel is shifted by as much as the luma, which keeps their
    differences; Albumentations equalizes the lightness of LAB.
    """

    clip_limit: Annotated[Number, MagnitudeRange(1.0, 256.0)] = (1.0, 4.0)
    tile_grid_size: Annotated[int | Sequence[int], _TILES] = (8, 8)
    _typical_range = TypicalRange(1.0, 20.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        image.add(Op.CLAHE, value, *self.tile_grid_size)  # type: ignore[misc]


@dataclass(frozen=True)
class Equalize(PlainOp, function="equalize"):
    """Equalize the histogram of every channel (``PIL.ImageOps.equalize``)."""

    _op = Op.EQUALIZE


def _channel_order(value: Any) -> tuple[int, ...] | None:
    order = as_numbers(value, whole=True)
    return None if order is None or sorted(order) != [0, 1, 2] else order


@dataclass(frozen=True)
class ChannelPermutation(Transform):
    """Reorder channels: output channel i is input channel ``order[i]``. Gray images do not change."""

    order: Annotated[Sequence[int], Converted(_channel_order, "the channels 0, 1 and 2 in some order")] = (2, 1, 0)

    def draw(self, image: DrawContext, slot: int) -> None:
        image.add(Op.PERMUTE, *self.order)


WHITE_KELVIN = 6500.0
_IDENTITY = np.arange(256.0)

# Chromaticity of black bodies from 1,667 K to 25,000 K (Kim et al., US patent 7,024,034). Coefficients of x, cubic in
# 1000 / T, below and above 4,000 K. Coefficients of y, cubic in x, below 2,222 K, below 4,000 K, and above.
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
    """Return CIE 1931 x and y of a black body at ``kelvin``."""
    x = float(np.polyval(_X_OF_T[kelvin > 4000.0], 1000.0 / kelvin))
    return x, float(np.polyval(_Y_OF_X[int(kelvin > 2222.0) + int(kelvin > 4000.0)], x))


def light(kelvin: float) -> Floats:
    """Return linear red, green and blue of the light of a black body, relative to green, float64[3]."""
    x, y = chromaticity(kelvin)
    rgb = _LINEAR_RGB @ np.array([x / y, 1.0, (1.0 - x - y) / y])
    return np.asarray(np.maximum(rgb, 0.0) / rgb[1])


def temperature_curves(kelvin: float) -> Floats:
    """Return the sRGB curves that change the light from 6,500 K to ``kelvin``, float64[3, 256]."""
    x = np.arange(256) / 255.0
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    lit = np.minimum((light(kelvin) / light(WHITE_KELVIN))[:, None] * linear, 1.0)
    encoded = np.where(lit <= 0.0031308, 12.92 * lit, 1.055 * lit ** (1.0 / 2.4) - 0.055)
    return np.asarray(255.0 * encoded)


@dataclass(frozen=True)
class ColorTemperature(MagnitudeOp):
    """Change the color temperature of the light from 6,500 K to ``kelvin``.

    ``kelvin``: 1,667 to 25,000, a number or a range. In linear light, red and blue are multiplied by their share in the
    light of a black body relative to 6,500 K, at equal green: lower temperatures are warmer, higher ones bluer. Gray
    images do not change.
    """

    kelvin: Annotated[Number, MagnitudeRange(1667.0, 25000.0)] = (3000.0, 15000.0)
    # Geometric spacing: equal steps look equally warmer or colder.
    _typical_range = TypicalRange(2000.0, 20000.0, 6500.0, spacing=np.geomspace)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        is_color = sampling.channels[rows] > 1
        distinct, which = np.unique(values[is_color], return_inverse=True)
        curves = [sampling.add_curve(temperature_curves(kelvin), "ColorTemperature") for kelvin in distinct.tolist()]
        index = np.array(curves, np.float64)[which.reshape(-1)]
        sampling.emit(rows[is_color], Op.LUT, index, values[is_color], name="ColorTemperature")


_SEPIA = np.array([[0.393, 0.769, 0.189, 0], [0.349, 0.686, 0.168, 0], [0.272, 0.534, 0.131, 0]], np.float32)


@dataclass(frozen=True)
class ToSepia(Transform):
    """Tint the image brown, as an old photo (Albumentations). Gray images do not change."""

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        rows = rows[sampling.channels[rows] > 1]
        if len(rows):
            sampling.emit(rows, Op.COLOR_MATRIX, sampling.add_matrix(_SEPIA), 1.0, name="ToSepia")


# Cubic Bezier basis at each of 256 values: weights of the two inner points, and of white.
_ALONG = np.arange(256) / 255.0
_INNER = np.stack([3 * (1 - _ALONG) ** 2 * _ALONG, 3 * (1 - _ALONG) * _ALONG**2])


@dataclass(frozen=True)
class RandomToneCurve(Transform):
    """Apply a random smooth curve from black to white to all values (Albumentations).

    ``scale``: standard deviation of the heights of its two inner points around a quarter and three quarters of white.
    ``per_channel``: draw separate curves for red, green and blue.
    """

    scale: Probability = 0.1
    per_channel: bool = False
    _typical_range = TypicalRange(0.0, 0.5, None, lambda scale: RandomToneCurve(scale))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 3 if self.per_channel else 1)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        drawn = to_normal(sampling.words(rows, slot, self.num_slots))
        heights = np.clip(np.array([0.25, 0.75]) + self.scale * drawn, 0.0, 1.0)
        curves = 255.0 * (heights @ _INNER + _ALONG**3)
        if self.per_channel:
            groups = split_channels(sampling.num_channels)
            curves = curves[:, np.concatenate([np.arange(group.begin, group.end) for group in groups])]
        index = [sampling.add_curve(curve, "RandomToneCurve") for curve in curves]
        sampling.emit(rows, Op.LUT, np.array(index, np.float64), self.scale, name="RandomToneCurve")


@lru_cache(maxsize=8)
def _drops(channels: int) -> tuple[tuple[int, ...], ...]:
    """List the subsets of one channel, then of two channels, to drop."""
    return tuple(of for count in (1, 2) for of in combinations(range(channels), count))


@dataclass(frozen=True)
class ChannelDropout(WithProbability):
    """Set one or two random channels to ``fill``, with probability ``p``.

    ``channel_drop_range``: number of channels, (low, high), both included (Albumentations). Gray images do not change.
    """

    channel_drop_range: Annotated[Integers, Range(1, 2)] = (1, 1)
    fill: Fill = BLACK
    p: Probability = 0.5

    def _apply(self, image: DrawContext, slot: int) -> None:
        low, high = limits(self.channel_drop_range)
        chosen = image.where(image.channels > 1)
        if not chosen:
            return
        count = low + floor(image.uniform(slot, 1) * (high - low + 1))
        channels = image.num_channels
        drops = _drops(channels)
        ways = select(count == 1, channels, len(drops) - channels)
        number = channels * (count - 1) + floor(image.uniform(slot, 2) * ways)
        curves = np.stack([self._curves(dropped, channels) for dropped in drops])
        chosen.add(Op.LUT, chosen.table("curves", curves) + number, count, name="ChannelDropout")

    def _curves(self, dropped: tuple[int, ...], channels: int) -> Floats:
        fill = per_channel("ChannelDropout: fill", self.fill, channels)
        curves = np.tile(_IDENTITY, (channels, 1))
        for channel in dropped:
            curves[channel] = fill[channel]
        return curves


Factor = Annotated[Number, Range(0.0)]
Jitter = Annotated[Number, Around(1.0, 0.0)]

_COMPONENTS = {"brightness": Brightness._op, "contrast": Op.CONTRAST, "saturation": Op.SATURATION, "hue": Op.HUE}
_UNCHANGED = {**dict.fromkeys(_COMPONENTS, (1.0, 1.0)), "hue": (0.0, 0.0)}


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Change ``brightness``, ``contrast``, ``saturation`` and ``hue``, in random order.

    A number x draws the factor from [max(0, 1 - x), 1 + x] (for hue, the rotation from [-x, x], x up to 0.5). A pair is
    the range itself. None or 0 skips the component.
    """

    brightness: Jitter | None = None
    contrast: Jitter | None = None
    saturation: Jitter | None = None
    hue: Annotated[Number, Around(0, -0.5, 0.5)] | None = None
    num_slots = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, unchanged in _UNCHANGED.items():
            if getattr(self, name) == unchanged:
                set_field(self, name, None)

    def draw(self, image: DrawContext, slot: int) -> None:
        ops, factors = [], []
        for i, (name, op) in enumerate(_COMPONENTS.items()):
            if (limits := getattr(self, name)) is not None:
                ops.append(op)
                factors.append(between(limits, image.uniform(slot, i)))
        for k in image.order(slot + 1, len(ops)):
            image.add(image.choose(k, ops), image.choose(k, factors), title=CHOICE, among=ops)


@dataclass(frozen=True)
class RandomPhotometricDistort(Transform):
    """Change brightness, contrast, saturation, hue and channel order, each with probability ``p``.

    Each of ``brightness``, ``contrast``, ``saturation`` and ``hue`` is the range of its factor (of the rotation for
    hue). Contrast comes before saturation and hue, or after them, equally often (Liu et al. 2016, SSD,
    arXiv:1512.02325).
    """

    brightness: Factor = (0.875, 1.125)
    contrast: Factor = (0.5, 1.5)
    saturation: Factor = (0.5, 1.5)
    hue: Annotated[Number, Range(-0.5, 0.5)] = (-0.05, 0.05)
    p: Probability = 0.5
    num_slots = 4

    def draw(self, image: DrawContext, slot: int) -> None:
        drawn = {name: image.uniform(slot, i) < self.p for i, name in enumerate(_COMPONENTS)}
        is_early = image.uniform(slot + 2) < 0.5

        def add(name: str, condition: Drawn) -> None:
            factor = between(getattr(self, name), image.uniform(slot + 1, list(_COMPONENTS).index(name)))
            if chosen := image.where(condition):
                chosen.add(_COMPONENTS[name], factor)

        add("brightness", drawn["brightness"])
        add("contrast", drawn["contrast"] & is_early)
        add("saturation", drawn["saturation"])
        add("hue", drawn["hue"])
        add("contrast", drawn["contrast"] & logical_not(is_early))
        if permuted := image.by_chance(self.p, slot + 2, 1):
            _add_permutation(permuted, slot + 3)


@dataclass(frozen=True)
class RandomChannelPermutation(Transform):
    """Permute the three channels at random, all six orders equally likely. Gray images do not change."""

    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        _add_permutation(image, slot)


def _add_permutation(image: DrawContext, slot: int) -> None:
    order = image.order(slot, 3)
    is_changed = (order[0] != 0) | (order[1] != 1)
    if changed := image.where(is_changed & (image.channels == 3)):
        changed.add(Op.PERMUTE, *order)


@dataclass(frozen=True)
class RandomAutocontrast(WithProbability, of=AutoContrast):
    """Apply ``AutoContrast`` with probability ``p``."""

    p: Probability = 0.5


@dataclass(frozen=True)
class RandomEqualize(WithProbability, of=Equalize):
    """Apply ``Equalize`` with probability ``p``."""

    p: Probability = 0.5


@dataclass(frozen=True)
class RandomGrayscale(WithProbability):
    """Convert to gray levels in all channels with probability ``p``."""

    p: Probability = 0.1
    _op = Op.GRAYSCALE


@dataclass(frozen=True)
class RandomAdjustSharpness(WithProbability, of=Sharpness):
    """Sharpen (``sharpness_factor`` above 1) or smooth (below 1) with probability ``p``; 0 is Pillow's SMOOTH."""

    sharpness_factor: Finite
    p: Probability = 0.5
