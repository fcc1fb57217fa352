"""Effects of lenses and glass: defocus, zoom blur, chromatic aberration, frosted glass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np

from variegate.ops.arguments import Integers, Number
from variegate.ops.base import Transform, TypicalRange
from variegate.ops.filters import emit_filters
from variegate.ops.magnitude import between, integers_between
from variegate.ops.schema import Range
from variegate.program.ops import MAX_DISTANCE, MAX_TIMES, MAX_ZOOMS, Op
from variegate.program.sampling import Floats, Rows, Sampling

# A disc with its blurred edge must fit into the largest non-separable kernel.
_MAX_RADIUS = 13


@dataclass(frozen=True)
class Defocus(Transform):
    """Blur as a lens out of focus does: every point becomes a disc.

    ``radius_range``: radius of the disc in pixels, an integer from 1 to 13, or a range of them, all equally likely.
    ``alias_blur_range``: standard deviation, in pixels, of the Gaussian that softens the disc's edge; a number or a
    range, in steps of 0.01. Edges of the image are replicated. Arguments are Albumentations'.
    """

    radius_range: Annotated[Integers, Range(1, _MAX_RADIUS)] = (3, 10)
    alias_blur_range: Annotated[Number, Range(0.0, 100.0)] = (0.1, 0.5)
    num_slots = 1
    _typical_range = TypicalRange(1, _MAX_RADIUS, None, lambda radius: Defocus(int(radius), 0.3))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        radius = integers_between(self.radius_range, unit[:, 0])
        hundredths = np.rint(100 * between(self.alias_blur_range, unit[:, 1]))
        drawn, which = np.unique(np.stack([radius, hundredths], axis=1), axis=0, return_inverse=True)
        for i, (size, blur) in enumerate(drawn.tolist()):
            at = rows[which.reshape(-1) == i]
            emit_filters(sampling, at, _disc(int(size), blur / 100)[None], np.full(len(at), size), "Defocus")


@lru_cache(maxsize=1024)
def _disc(radius: int, blur: float) -> Floats:
    """Return the kernel of a disc with a blurred edge, with sum 1."""
    soft = 1 if radius <= 8 else 2
    away = np.arange(-radius - soft, radius + soft + 1)
    disc = (away**2 + away[:, None] ** 2 <= radius**2).astype(np.float64)
    taps = np.exp(-0.5 * (np.arange(-soft, soft + 1) / max(blur, 1e-3)) ** 2)
    for axis in range(2):
        disc = sum(tap * np.roll(disc, i - soft, axis) for i, tap in enumerate(taps))
    return np.asarray(disc / disc.sum())


@dataclass(frozen=True)
class ZoomBlur(Transform):
    """Blur toward the center, as when zooming while a photo is exposed (Hendrycks and Dietterich 2019).

    The result is the mean of the image, counted twice, and of enlarged copies. Copy i is enlarged about the center by
    ``1 + i * step``, for i = 1, 2, ... while this is below the greatest factor.

    Args:
        max_factor_range: the greatest factor, 1 or more, a number or a range.
        step_factor_range: the step, a number or a range. It is increased if there would be more than 30 copies.
    """

    max_factor_range: Annotated[Number, Range(1.0, 10.0)] = (1.0, 1.31)
    step_factor_range: Annotated[Number, Range(1e-3, 10.0)] = (0.01, 0.03)
    num_slots = 1
    _typical_range = TypicalRange(1.0, 1.4, 1.0, lambda factor: ZoomBlur(factor, 0.02))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        most, step = between(self.max_factor_range, unit[:, 0]), between(self.step_factor_range, unit[:, 1])
        step = np.maximum(step, (most - 1.0) / (MAX_ZOOMS + 1))
        zooms = np.clip(np.ceil((most - 1.0) / step) - 1.0, 0.0, MAX_ZOOMS)
        sampling.emit(rows, Op.ZOOM_BLUR, zooms, step)


Fringes = Literal["green_purple", "red_blue", "random"]


@dataclass(frozen=True)
class ChromaticAberration(Transform):
    """Show red and blue in other sizes than green, as simple lenses do. Gray images do not change.

    At distance r from the center, red and blue show the pixel that is ``1 + k1 r^2 + k2 r^4`` times as far. Distances
    along x are in widths of the image, along y in heights. Interpolation is bilinear; edges are replicated. Arguments
    are Albumentations'.

    Args:
        primary_distortion_range: k1 of either channel, a number or a range from -1 to 1.
        secondary_distortion_range: k2, likewise; it gets the sign of k1.
        mode: "green_purple": red and blue move the same way. "red_blue": they move in opposite directions. "random":
            either.
    """

    primary_distortion_range: Annotated[Number, Range(-1.0, 1.0)] = (-0.02, 0.02)
    secondary_distortion_range: Annotated[Number, Range(-1.0, 1.0)] = (-0.05, 0.05)
    mode: Fringes = "green_purple"
    num_slots = 1
    _typical_range = TypicalRange(0.0, 0.1, 0.0, lambda most: ChromaticAberration(most, most, "red_blue"))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        rows = rows[sampling.channels[rows] > 1]
        unit = sampling.uniform(rows, slot)
        red, blue = (between(self.primary_distortion_range, unit[:, i]) for i in (0, 1))
        second_red, second_blue = (between(self.secondary_distortion_range, unit[:, i]) for i in (2, 3))
        if self.mode != "random":
            blue = np.copysign(blue, red if self.mode == "green_purple" else -red)
        second = np.copysign(second_red, red), np.copysign(second_blue, blue)
        sampling.emit(rows, Op.ABERRATION, red, second[0], blue, second[1])


@dataclass(frozen=True)
class GlassBlur(Transform):
    """Show the image through frosted glass: blur, replace each pixel by a random one nearby, blur again.

    Args:
        sigma: standard deviation of both Gaussian blurs, in pixels.
        max_delta: largest displacement of a pixel along either axis per iteration, in pixels, 1 to 1,024.
        iterations: number of times that pixels are displaced, 1 to 3.

    Arguments are Albumentations', which swaps pixels instead of reading them at random positions; the look is the same.
    Masks, boxes and key points do not change. (Hendrycks and Dietterich 2019, arXiv:1903.12261)
    """

    sigma: Annotated[float, Range(0.0, 100.0)] = 0.7
    max_delta: Annotated[int, Range(1, MAX_DISTANCE)] = 4
    iterations: Annotated[int, Range(1, MAX_TIMES)] = 2
    num_slots = 1
    _typical_range = TypicalRange(1, 9, None, lambda pixels: GlassBlur(max_delta=int(pixels)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        size = round(6.0 * self.sigma + 1.0) | 1
        blur: tuple[Any, ...] = (size, size, self.sigma, self.sigma)
        if size > 1:
            sampling.emit(rows, Op.GAUSSIAN_BLUR, *blur)
        sampling.emit(rows, Op.SCATTER, self.max_delta, self.iterations, slot)
        if size > 1:
            sampling.emit(rows, Op.GAUSSIAN_BLUR, *blur)
