"""Weather and dirt: fog, rain, snow, gravel, drops on the lens.

Names and arguments are AlbumentationsX's; docs/migration/albumentations.md says where results differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from variegate.arrays import Int16Array
from variegate.ops import brushes, layers
from variegate.ops.arguments import Fill, Integers, Length, Number, Probability, RgbColor, ShareMagnitude, ShareRange
from variegate.ops.base import TypicalRange, set_field
from variegate.ops.fields import blurred_noise, by_size, gaussian_taps
from variegate.ops.layers import MAX_SHAPES, Overlaid, Region
from variegate.ops.magnitude import between, limits
from variegate.ops.schema import MagnitudeRange, Range
from variegate.ops.tone import Brightness
from variegate.program.ops import LAYER_PLANES, LIGHTNESSES, LayerMode, Op
from variegate.program.rng import to_unit
from variegate.program.sampling import Floats, Rows, Sampling


@dataclass(frozen=True)
class RandomFog(Overlaid):
    """Add soft clouds of fog, denser toward the center of the image.

    Args:
        alpha_coef: opacity of a single cloud in its middle, 0 to 1.
        fog_coef_range: density of the fog, 0 to 1, a number or a range.
    """

    alpha_coef: Probability = 0.08
    fog_coef_range: ShareMagnitude = (0.3, 1.0)
    p: Probability = 0.5
    _typical_range = TypicalRange(0.0, 1.0, 0.0, lambda density: RandomFog(fog_coef_range=density, p=1.0))
    _color: ClassVar[RgbColor] = (228, 231, 234)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        unit = layers.units(sampling, rows, slot + 2, 260)
        # Distributed like the mean of two uniform numbers, scaled to extend beyond the image.
        places = 1.5 * np.where(unit < 0.5, np.sqrt(unit / 2.0), 1.0 - np.sqrt((1.0 - unit) / 2.0)) - 0.25
        radii, alphas = 0.08 + 0.42 * unit[2] * unit[2], self.alpha_coef * values[:, None] * (0.4 + 0.6 * unit[3])
        for at, size in by_size(sampling, rows):
            over, _ = layers.canvas(size, 40)
            drawn = layers.blank(len(at), 1, over)
            x, y, radius = places[0, at] * over.columns, places[1, at] * over.lines, radii[at] * min(drawn.shape[2:])
            puffs = layers.joined(x, y, radius, alphas[at])
            brushes.draw_puffs(puffs, np.zeros(len(at), np.float32), drawn)
            layers.emit_layers(sampling, rows[at], over, drawn, 1.0, "RandomFog", color=self._color)


RainType = Literal["drizzle", "heavy", "torrential", "default"]
# Pixels of the image per streak.
_PER_STREAK: dict[str, int] = {"drizzle": 770, "default": 600, "heavy": 260, "torrential": 180}


@dataclass(frozen=True)
class RandomRain(Overlaid):
    """Blur and darken the image, and draw streaks of rain on it.

    Args:
        slant_range: degrees from the vertical, positive to the right at the bottom, a number or a range.
        drop_length: length of streaks in pixels, by up to 30 % more or less; None for an eighth of the height.
        drop_width: of streaks, in pixels.
        drop_color: color of streaks.
        blur_value: side of the box that blurs streaks, and whose deviation the image's Gaussian blur has, in pixels;
            1 for none.
        brightness_coefficient: factor of all levels.
        rain_type: number of streaks: "drizzle", "default", "heavy" or "torrential".
    """

    slant_range: Annotated[Number, MagnitudeRange(-60.0, 60.0)] = (-10.0, 10.0)
    drop_length: Length | None = None
    drop_width: Annotated[int, Range(1, 255)] = 1
    drop_color: Fill = (200, 200, 200)
    blur_value: Annotated[int, Range(1, 255)] = 7
    brightness_coefficient: Probability = 0.7
    rain_type: RainType = "default"
    p: Probability = 0.5
    _typical_range = TypicalRange(-30.0, 30.0, None, lambda slant: RandomRain(slant, p=1.0))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        light = self.brightness_coefficient
        if self.blur_value > 1:
            # The box's standard deviation; the kernel truncates the tails.
            sigma = math.sqrt((self.blur_value**2 - 1) / 12.0)
            sampling.emit(rows, Op.GAUSSIAN_BLUR, *(2 * round(1.5 * sigma) + 1,) * 2, sigma, sigma, 1.0 - light)
        else:
            sampling.emit(rows, Brightness._op, light)
        color = np.rint(light * np.array(self.drop_color)).astype(np.uint8).tolist()
        slopes = (np.rint(np.tan(np.radians(values)) * 2.0**20) * 2.0**-20).astype(np.float32)
        for at, size in by_size(sampling, rows):
            # Fewer nodes suffice for blurred streaks.
            over, scale = layers.canvas(size, apart=max(1.0, self.blur_value / 2.0))
            drawn = layers.blank(len(at), 1, over)
            x, y, u, v = layers.units(sampling, rows[at], slot + 2, size[0] * size[1] // _PER_STREAK[self.rain_type])
            length, blur = (self.drop_length or size[0] // 8) * scale, max(self.blur_value * scale, 1.0)
            tall = 0.5 * (length * (0.7 + 0.6 * u) + blur)
            streaks = layers.joined(x * over.columns, y * over.lines, tall, 0.6 + 0.4 * v)
            brushes.draw_streaks(streaks, slopes[at], self.drop_width * scale, blur, drawn)
            layers.emit_layers(sampling, rows[at], over, drawn, 1.0, "RandomRain", color=color)


@dataclass(frozen=True)
class RandomSnow(Overlaid):
    """Cover dark parts with snow, or draw falling snow.

    Args:
        brightness_coeff: of "bleach", the factor of lightness; of "texture", by how much the image becomes lighter.
        snow_point_range: amount of snow, 0 to 1, a number or a range.
        method: "bleach" multiplies the HLS lightness of pixels that are darker than ``85 + 127 * snow_point`` by
            ``brightness_coeff``. "texture" multiplies levels by ``1 + brightness_coeff * snow_point / 4`` and draws
            haze and flakes.
    """

    brightness_coeff: Annotated[float, Range(0.0, 255.0)] = 2.5
    snow_point_range: ShareMagnitude = (0.1, 0.3)
    method: Literal["bleach", "texture"] = "bleach"
    p: Probability = 0.5
    _typical_range = TypicalRange(0.0, 0.8, None, lambda point: RandomSnow(2.5, point, "texture", p=1.0))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        if self.method == "bleach":
            first = sampling.add_grids(_bleached(values, self.brightness_coeff))
            args = (first + np.arange(len(rows)) * 2 * LIGHTNESSES, 0, 0, 0, 0, 0, 0, values)
            sampling.emit(rows, Op.OVERLAY, *args, flags=int(LayerMode.CURVE) + LAYER_PLANES, name="RandomSnow")
            return
        sampling.emit(rows, Brightness._op, 1.0 + self.brightness_coeff * values / 4.0)
        for at, size in by_size(sampling, rows):
            over, scale = layers.canvas(size)
            drawn = layers.blank(len(at), 1, over)
            x, y, u, v = layers.units(sampling, rows[at], slot + 2, size[0] * size[1] // 180)
            # A few flakes are large and out of focus.
            far = np.square(np.square(u))
            radius = scale * max(min(size) / 240.0, 0.9) * (1.3 + 0.7 * u + 4.4 * far * far)
            flakes = layers.joined(x * over.columns, y * over.lines, radius, (0.55 + 0.45 * v) * (1.0 - 0.6 * far))
            brushes.draw_puffs(flakes, (0.9 * values[at]).astype(np.float32), drawn)
            layers.emit_layers(sampling, rows[at], over, drawn, 1.0, "RandomSnow", color=(246, 249, 255))


def _bleached(points: Floats, factor: float) -> Int16Array:
    """Return the tables of "bleach" by lightness, int16[R, 511, 2].

    Entries are the new lightness times 64, and the factor of the channels' differences from it times 2048.
    """
    lightness = np.arange(LIGHTNESSES) / 2.0
    moved = np.minimum(lightness * factor, 255.0)
    moved = np.where(lightness < 85.0 + 127.0 * points[:, None], moved, lightness)
    # HLS saturation is kept: differences between channels scale with their maximum at the new lightness.
    room, now = 255.0 - abs(2.0 * lightness - 255.0), 255.0 - abs(2.0 * moved - 255.0)
    spread = np.where(room > 0, now / np.maximum(room, 0.5), 1.0)
    table = np.stack([64.0 * moved, 2048.0 * spread], axis=-1)
    return np.rint(np.clip(table, 0, 32767)).astype(np.int16)


@dataclass(frozen=True)
class RandomGravel(Overlaid):
    """Scatter small gray stones over patches of the image.

    Args:
        gravel_roi: where patches may be, in shares of the sides: (x_min, y_min, x_max, y_max).
        number_of_patches: 0 to 64, an integer or a range.
    """

    gravel_roi: Region = (0.1, 0.4, 0.9, 0.9)
    number_of_patches: Annotated[Integers, MagnitudeRange(0, MAX_SHAPES)] = 2
    p: Probability = 0.5
    _typical_range = TypicalRange(0, 8, 0, lambda patches: RandomGravel(number_of_patches=int(patches), p=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 3 + int(limits(self.number_of_patches)[1]))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        most = int(values.max(initial=0))
        unit = to_unit(sampling.words(rows, slot + 3, min(most, self.num_slots - 3)))
        for at, size in by_size(sampling, rows):
            begin, roi = layers.pixels_of(self.gravel_roi, size)
            over, scale = layers.canvas(roi)
            drawn = layers.blank(len(at), 2, over)
            whole = np.array(roi) * scale
            sides = whole * (0.25 + 0.45 * unit[at, :, 2:])
            patches = np.concatenate([unit[at, :, :2] * (whole - sides), sides], axis=-1).astype(np.float32)
            counts = (sides.prod(axis=-1) / (100.0 * scale**2)).astype(np.int64)
            counts[np.arange(unit.shape[1]) >= values[at, None]] = 0
            stones = layers.joined(*layers.units(sampling, rows[at], slot + 2, int(counts.sum(axis=1).max(initial=0))))
            radius = scale * max(min(size) / 224.0, 0.9)
            brushes.draw_stones(stones, patches, counts, radius, drawn)
            layers.emit_layers(sampling, rows[at], over, drawn, 1.0, "RandomGravel", place=begin)


# Units of a noise field per standard deviation. int16 holds eight standard deviations.
_PER_DEVIATION = 4096.0


@dataclass(frozen=True)
class Spatter(Overlaid):
    """Spatter drops of rain or mud on the lens (Hendrycks and Dietterich 2019, arXiv:1903.12261).

    Drops are where noise of ``mean_range`` and ``std_range``, blurred by ``gauss_sigma_range`` pixels, is above
    ``cutout_threshold_range``: numbers or ranges each. ``intensity_range`` is their opacity, ``mode`` "rain" or "mud",
    ``color`` None for that of the paper: (175, 238, 238) or (63, 42, 20).
    """

    mean_range: ShareRange = (0.65, 0.65)
    std_range: Annotated[Number, Range(1e-3, 1.0)] = (0.3, 0.3)
    gauss_sigma_range: Annotated[Number, Range(0.5, 32.0)] = (2.0, 2.0)
    cutout_threshold_range: ShareRange = (0.68, 0.68)
    intensity_range: ShareMagnitude = (0.6, 0.6)
    mode: Literal["rain", "mud"] = "rain"
    color: Fill | None = None
    p: Probability = 0.5
    _typical_range = TypicalRange(0.0, 1.0, 0.0, lambda share: Spatter(intensity_range=share, p=1.0))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        unit = sampling.uniform(rows, slot + 1)
        mean, deviation = between(self.mean_range, unit[:, 0]), between(self.std_range, unit[:, 1])
        limit = between(self.cutout_threshold_range, unit[:, 2])
        # Rounded to quarters of a pixel, because each sigma needs separate taps.
        sigmas = np.maximum(np.rint(4.0 * between(self.gauss_sigma_range, unit[:, 3])), 2.0) / 4.0
        rain = self.mode == "rain"
        color = np.array(self.color or ((175, 238, 238) if rain else (63, 42, 20)), np.float32)
        slope, relief = (0.9, 0.2) if rain else (1.8, 0.125)
        for sigma in np.unique(sigmas).tolist():
            same = np.flatnonzero(sigmas == sigma)
            # A blur of this standard deviation in nodes is smooth enough to interpolate linearly between them.
            in_nodes = min(sigma, 1.25)
            taps, coarse = (gaussian_taps(s, math.ceil(3.0 * s)) for s in (sigma, in_nodes))
            gain = _PER_DEVIATION * math.sqrt(3.0) / float((coarse**2).sum())
            thresholds = (_PER_DEVIATION / float((taps**2).sum()) * (limit - mean) / deviation).astype(np.float32)
            for where, size in by_size(sampling, rows[same]):
                at = same[where]
                over, _ = layers.canvas(size, 256, sigma / in_nodes)
                drawn, gains = layers.blank(len(at), 4, over), np.full((len(at), 1), gain, np.float32)
                field, _ = blurred_noise(sampling, rows[at], slot + 2, over, [coarse.astype(np.float32)] * 2, gains)
                rise, shade = slope / _PER_DEVIATION, relief * in_nodes / _PER_DEVIATION
                brushes.draw_drops(field[..., 0], thresholds[at], rise, color, shade, drawn)
                layers.emit_layers(sampling, rows[at], over, drawn, values[at], "Spatter")
