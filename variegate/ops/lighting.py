"""Lighting effects: sun flares, shadows, uneven illumination.

Names and arguments are AlbumentationsX's; docs/migration/albumentations.md says where results differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from variegate.checks import as_numbers
from variegate.ops import brushes, layers
from variegate.ops.arguments import Fill, Integers, Length, Number, Probability, ShareMagnitude, ShareRange
from variegate.ops.base import TypicalRange, set_field
from variegate.ops.fields import by_size, lattice
from variegate.ops.layers import MAX_SHAPES, WHITE, Overlaid, Region
from variegate.ops.magnitude import between, integers_between, limits
from variegate.ops.schema import Converted, Range
from variegate.program.ops import LayerMode
from variegate.program.rng import to_unit
from variegate.program.sampling import Floats, Rows, Sampling


@dataclass(frozen=True)
class RandomSunFlare(Overlaid):
    """Add a sun with its glow, and reflections in the lens along a line through it.

    Args:
        flare_roi: where the sun may be, in shares of the sides: (x_min, y_min, x_max, y_max).
        src_radius: of the glow, in pixels.
        src_color: color of the light.
        angle_range: direction of the line, in turns, a number or a range.
        num_flare_circles_range: number of reflections, 0 to 64, an integer or a range.
        method: "overlay": glow and reflections. "physics_based" adds rays and colored fringes.
    """

    flare_roi: Region = (0.0, 0.0, 1.0, 0.5)
    src_radius: Length = 400
    src_color: Fill = WHITE
    angle_range: ShareMagnitude = (0.0, 1.0)
    num_flare_circles_range: Annotated[Integers, Range(0, MAX_SHAPES)] = (6, 10)
    method: Literal["overlay", "physics_based"] = "overlay"
    p: Probability = 0.5
    _typical_range = TypicalRange(0.0, 0.9, None, lambda turn: RandomSunFlare(angle_range=turn, p=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 2 + 2 * int(limits(self.num_flare_circles_range)[1]))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        most = int(limits(self.num_flare_circles_range)[1])
        where, physical = sampling.uniform(rows, slot + 1), self.method == "physics_based"
        unit = to_unit(sampling.words(rows, slot + 2, 2 * most)).reshape(len(rows), most, 8)
        counts = integers_between(self.num_flare_circles_range, where[:, 2]).astype(np.int64)
        left, top, right, bottom = self.flare_roi
        turns = 2.0 * np.pi * (values[:, None] + np.arange(_RAYS) / (2.0 * _RAYS))
        normals = np.stack([-np.sin(turns), np.cos(turns)], axis=-1)
        light = np.array(self.src_color) / 255.0
        for at, size in by_size(sampling, rows):
            over, scale = layers.canvas(size, 112)
            drawn, shorter, n = layers.blank(len(at), 3, over), min(size) * scale, len(at)
            x = (left + (right - left) * where[at, 0]) * size[1] * scale
            y = (top + (bottom - top) * where[at, 1]) * size[0] * scale
            suns = np.column_stack([x, y, np.full(n, self.src_radius * scale), normals[at].reshape(n, -1)])
            # Reflections are on both sides of the sun. Larger ones are farther away.
            far = 2.0 * unit[at, :, 0] - 1.0
            away = np.hypot(*size) * scale * 0.75 * far
            rings = np.empty((n, most, 7))
            rings[..., 0] = x[:, None] + away * normals[at, 0, 1, None]
            rings[..., 1] = y[:, None] - away * normals[at, 0, 0, None]
            rings[..., 2] = shorter * (0.015 + 0.1 * unit[at, :, 1] * (0.3 + 0.7 * abs(far)))
            rings[..., 3] = 0.08 + 0.25 * unit[at, :, 2]
            rings[..., 4:] = light * (1.0 - (0.65 if physical else 0.25) * unit[at, :, 3:6])
            color = light.astype(np.float32)
            rays, spread = (_RAYS, _SPREAD) if physical else (0, (1.0, 1.0, 1.0))
            apart = np.array(spread, np.float32)
            brushes.draw_flare(suns.astype(np.float32), rings.astype(np.float32), counts[at], rays, color, apart, drawn)
            layers.emit_layers(sampling, rows[at], over, drawn, 1.0, "RandomSunFlare")


# Number of rays through the sun, and scale of the light in red, green and blue.
_RAYS, _SPREAD = 5, (1.03, 1.0, 0.97)


@dataclass(frozen=True)
class RandomShadow(Overlaid):
    """Cast shadows: darken polygons.

    Args:
        shadow_roi: where shadows may be, in shares of the sides: (x_min, y_min, x_max, y_max).
        num_shadows_range: number of shadows, 0 to 64, an integer or a range.
        shadow_dimension: corners of each, 3 to 64.
        shadow_intensity_range: share of the light that they take, 0 to 1, a number or a range.
    """

    shadow_roi: Region = (0.0, 0.5, 1.0, 1.0)
    num_shadows_range: Annotated[Integers, Range(0, MAX_SHAPES)] = (1, 2)
    shadow_dimension: Annotated[int, Range(3, MAX_SHAPES)] = 5
    shadow_intensity_range: ShareMagnitude = (0.5, 0.5)
    p: Probability = 0.5
    _typical_range = TypicalRange(0.0, 0.9, 0.0, lambda share: RandomShadow(shadow_intensity_range=share, p=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        corners = int(limits(self.num_shadows_range)[1]) * self.shadow_dimension
        set_field(self, "num_slots", 2 + -(-corners // 2))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        most, sides = int(limits(self.num_shadows_range)[1]), self.shadow_dimension
        counts = integers_between(self.num_shadows_range, sampling.uniform(rows, slot + 1)[:, 0]).astype(np.int64)
        unit = to_unit(sampling.words(rows, slot + 2, self.num_slots - 2)).reshape(len(rows), -1)
        places = unit[:, : 2 * most * sides].reshape(len(rows), most, sides, 2)
        # Corners are sorted by angle around their mean, so that sides do not cross.
        off = places - places.mean(axis=2, keepdims=True)
        order = np.argsort(np.arctan2(off[..., 1], off[..., 0]), axis=2, kind="stable")[..., None]
        places = np.take_along_axis(places, order, axis=2)
        for at, size in by_size(sampling, rows):
            begin, roi = layers.pixels_of(self.shadow_roi, size)
            # A coarse grid: its interpolation blurs the edges of shadows.
            over, scale = layers.canvas(roi, 128)
            drawn = layers.blank(len(at), 1, over)
            corners = (places[at] * np.array(roi[::-1]) * scale - 0.5).astype(np.float32)
            alphas = np.broadcast_to(values[at, None], (len(at), most)).astype(np.float32)
            brushes.draw_polygons(corners, counts[at], alphas, drawn)
            layers.emit_layers(sampling, rows[at], over, drawn, 1.0, "RandomShadow", color=(0, 0, 0), place=begin)


def _spots(value: Any) -> tuple[tuple[float, ...], ...] | None:
    spots = [as_numbers(spot) or () for spot in value] if isinstance(value, (list, tuple)) else []
    if not 0 < len(spots) <= MAX_SHAPES or not all(len(s) == 4 and s[2] > 0 and abs(s[3]) <= 1 for s in spots):
        return None
    return tuple(spots)


Spots = Annotated[
    Sequence[Sequence[float]],
    Converted(_spots, f"1 to {MAX_SHAPES} spots (center_x, center_y, sigma above 0, intensity from -1 to 1)"),
]


@dataclass(frozen=True)
class Illumination(Overlaid):
    """Light the image unevenly: add a gradient, or multiply levels by a pattern.

    Args:
        mode: "linear" adds ``255 * intensity`` at one side, and nothing at the other. "corner" and "gaussian" multiply
            by 1 plus or minus the intensity in a corner, fading towards the one opposite, or in the middle of spots.
        intensity_range: strength, 0 to 1, a number or a range.
        effect_type: "brighten", "darken" or, for each image or spot, "both" alike.
        angle_range: of "linear", degrees clockwise from the right, where the light grows; a number or a range.
        center_range: of "gaussian", place of spots along x and along y, in shares of the sides.
        sigma_range: of "gaussian", deviation of spots in shares of the longer side.
        num_spots_range: of "gaussian", number of spots, 1 to 64, an integer or a range.
        gaussian_spots: fixed spots (center_x, center_y, sigma, intensity) instead of random spots; negative intensities
            darken.
    """

    mode: Literal["linear", "corner", "gaussian"] = "linear"
    intensity_range: ShareMagnitude = (0.01, 0.2)
    effect_type: Literal["brighten", "darken", "both"] = "both"
    angle_range: Annotated[Number, Range()] = (0.0, 360.0)
    center_range: ShareRange = (0.1, 0.9)
    sigma_range: Annotated[Number, Range(1e-3, 1000.0)] = (0.2, 1.0)
    p: Probability = 0.5
    num_spots_range: Annotated[Integers, Range(1, MAX_SHAPES)] = (1, 1)
    gaussian_spots: Spots | None = None
    _typical_range = TypicalRange(0.0, 0.6, 0.0, lambda share: Illumination(intensity_range=share, p=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 2 + int(limits(self.num_spots_range)[1]))

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        unit = sampling.uniform(rows, slot + 1)
        if self.mode == "gaussian":
            self._emit_spots(sampling, rows, values, unit, slot)
            return
        signs = self._signs(unit[:, 0])
        for at, size in by_size(sampling, rows):
            is_linear, drawn = self.mode == "linear", unit[at, 1]
            # A linear gradient needs only nodes at the corners.
            over = lattice(size, (size[0] - 1.0, size[1] - 1.0)) if is_linear else layers.canvas(size, 24)[0]
            x, y = layers.gradient(over, size)
            if is_linear:
                turn = np.radians(between(self.angle_range, drawn[:, None, None]))
                # Scaled to -1 to 1 between the two extreme corners along the angle.
                along = (2 * x - 1) * np.cos(turn) + (2 * y - 1) * np.sin(turn)
                shape = 0.5 + 0.5 * along / (abs(np.cos(turn)) + abs(np.sin(turn)))
            else:
                corner = np.arange(4)[:, None, None]
                shape = 1.0 - np.sqrt(((x - corner % 2) ** 2 + (y - corner // 2) ** 2) / 2.0)
            nodes = np.rint(255.0 * np.clip(shape, 0.0, 1.0)).astype(np.uint8)[:, None]
            nodes = nodes if is_linear else nodes[(4.0 * drawn).astype(np.intp)]
            mode = LayerMode.ADD if is_linear else LayerMode.SCALE
            layers.emit_layers(sampling, rows[at], over, nodes, signs[at] * values[at], "Illumination", mode)

    def _emit_spots(self, sampling: Sampling, rows: Rows, values: Floats, unit: Floats, slot: int) -> None:
        if self.gaussian_spots is not None:
            spots = np.broadcast_to(np.array(self.gaussian_spots)[:, None], (len(self.gaussian_spots), len(rows), 4))
            counts = np.full(len(rows), len(spots))
        else:
            most = int(limits(self.num_spots_range)[1])
            own = np.moveaxis(to_unit(sampling.words(rows, slot + 2, most)), 1, 0)
            centers, sigmas = between(self.center_range, own[..., :2]), between(self.sigma_range, own[..., 2])
            spots = np.concatenate([centers, np.stack([sigmas, self._signs(own[..., 3]) * values], axis=-1)], axis=-1)
            counts = integers_between(self.num_spots_range, unit[:, 0])
        for number_of, spot in enumerate(spots):
            shown = np.flatnonzero(counts > number_of)
            for where, size in by_size(sampling, rows[shown]):
                at = shown[where]
                over, _ = layers.canvas(size, 24)
                x, y = layers.gradient(over, size)
                column, line, sigma, strength = spot[at].T[..., None, None]
                away_x, away_y = (x - column) * size[1] / max(size) / sigma, (y - line) * size[0] / max(size) / sigma
                nodes = np.rint(255.0 * np.exp(-0.5 * away_x**2) * np.exp(-0.5 * away_y**2)).astype(np.uint8)[:, None]
                layers.emit_layers(sampling, rows[at], over, nodes, strength[:, 0, 0], "Illumination", LayerMode.SCALE)

    def _signs(self, unit: Floats) -> Floats:
        if self.effect_type == "both":
            return np.where(unit < 0.5, 1.0, -1.0)
        return np.full(unit.shape, 1.0 if self.effect_type == "brighten" else -1.0)
