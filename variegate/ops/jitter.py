"""Several colour changes at once, and torchvision's single ones that happen with a probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_number, refused
from variegate.ops.arguments import PROBABILITY, Pair, checks, optional
from variegate.ops.base import Transform
from variegate.ops.color import AutoContrast, Equalize, Invert, Posterize, Solarize
from variegate.ops.filters import Sharpness
from variegate.ops.magnitude import WithProbability, between, span
from variegate.program.one_image import Images
from variegate.program.ops import Op
from variegate.program.sampling import CHOICE, Rows, Sampling

Jitter = float | Pair | None

_COMPONENTS = {"brightness": Op.BRIGHTNESS, "contrast": Op.CONTRAST, "saturation": Op.SATURATION, "hue": Op.HUE}


def _jitter(
    name: str, value: Any, *, low: float, high: float = math.inf, centre: float, error: Refusal = refused
) -> Pair | None:
    """A range, of which a number x is the one from ``centre`` - x to ``centre`` + x; None for one without a change."""
    around = as_number(value)
    if around is not None:
        if around < 0:
            raise error(name, value, "a number >= 0, or a pair (low, high)")
        value = (centre - around if low < 0 else max(centre - around, low), centre + around)
    jitter: Pair = span(low, high)(name, value, error=error)
    return None if jitter == (centre, centre) else jitter


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue, in an order drawn for every image.

    A number x draws the factor from [max(0, 1 - x), 1 + x] (hue: the turn from [-x, x], x up to 0.5); a pair is the
    range itself; None or 0 leaves the component alone.
    """

    brightness: Jitter = None
    contrast: Jitter = None
    saturation: Jitter = None
    hue: Jitter = None
    num_slots = 2
    _checks = checks(
        **dict.fromkeys(("brightness", "contrast", "saturation"), optional(partial(_jitter, low=0.0, centre=1.0))),
        hue=optional(partial(_jitter, low=-0.5, high=0.5, centre=0.0)),
    )

    def draw(self, images: Images, slot: int) -> None:
        ops, factors = [], []
        for i, (name, op) in enumerate(_COMPONENTS.items()):
            if (limits := getattr(self, name)) is not None:
                ops.append(op)
                factors.append(between(limits, images.unit(slot, i)))
        for k in images.order(slot + 1, len(ops)):
            images.add(images.choose(k, ops), images.choose(k, factors), title=CHOICE)


@dataclass(frozen=True)
class RandomPhotometricDistort(Transform):
    """Brightness, contrast, saturation, hue and channel order, each with probability ``p`` (Liu et al. 2016, SSD,
    arXiv:1512.02325). Contrast comes before saturation and hue, or after them, equally often.
    """

    brightness: Pair = (0.875, 1.125)
    contrast: Pair = (0.5, 1.5)
    saturation: Pair = (0.5, 1.5)
    hue: Pair = (-0.05, 0.05)
    p: float = 0.5
    num_slots = 4
    _checks = checks(
        **dict.fromkeys(("brightness", "contrast", "saturation"), span(0.0, math.inf)),
        hue=span(-0.5, 0.5),
        p=PROBABILITY,
    )

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        is_drawn = sampling.uniform(rows, slot) < self.p
        unit = sampling.uniform(rows, slot + 1)
        factors = {name: between(getattr(self, name), unit[:, i]) for i, name in enumerate(_COMPONENTS)}
        drawn = {name: is_drawn[:, i] for i, name in enumerate(_COMPONENTS)}
        last = sampling.uniform(rows, slot + 2)
        early = last[:, 0] < 0.5

        def emit(name: str, chosen: npt.NDArray[np.bool_]) -> None:
            sampling.emit(rows[chosen], _COMPONENTS[name], factors[name][chosen])

        emit("brightness", drawn["brightness"])
        emit("contrast", drawn["contrast"] & early)
        emit("saturation", drawn["saturation"])
        emit("hue", drawn["hue"])
        emit("contrast", drawn["contrast"] & ~early)
        _emit_permutation(sampling, rows[last[:, 1] < self.p], slot + 3)


@dataclass(frozen=True)
class RandomChannelPermutation(Transform):
    """The three channels in random order, all six orders equally likely. Grey images stay as they are."""

    num_slots = 1

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        _emit_permutation(sampling, rows, slot)


def _emit_permutation(sampling: Sampling, rows: Rows, slot: int) -> None:
    order = np.argsort(sampling.words(rows, slot)[:, 0, :3], axis=1, kind="stable")
    changed = (order != np.arange(3)).any(axis=1) & (sampling.channels[rows] == 3)
    sampling.emit(rows[changed], Op.PERMUTE, *order[changed].T)


@dataclass(frozen=True)
class RandomPosterize(WithProbability):
    """Keep the highest ``bits`` bits (0 to 8) of every value with probability ``p``."""

    bits: int
    p: float = 0.5
    _of, _at = Posterize, "bits"


@dataclass(frozen=True)
class RandomSolarize(WithProbability):
    """Invert the values at and above ``threshold`` with probability ``p``."""

    threshold: float
    p: float = 0.5
    _of, _at = Solarize, "threshold"


@dataclass(frozen=True)
class RandomInvert(WithProbability):
    """``255 - x`` with probability ``p``."""

    p: float = 0.5
    _op = Invert._op


@dataclass(frozen=True)
class RandomAutocontrast(WithProbability):
    """``AutoContrast`` with probability ``p``."""

    p: float = 0.5
    _op = AutoContrast._op


@dataclass(frozen=True)
class RandomEqualize(WithProbability):
    """``Equalize`` with probability ``p``."""

    p: float = 0.5
    _op = Equalize._op


@dataclass(frozen=True)
class RandomGrayscale(WithProbability):
    """Grey levels in all channels with probability ``p``."""

    p: float = 0.1
    _op = Op.GRAYSCALE


@dataclass(frozen=True)
class RandomAdjustSharpness(WithProbability):
    """Sharpen (``sharpness_factor`` above 1) or smooth (below 1) with probability ``p``; 0 is Pillow's SMOOTH."""

    sharpness_factor: float
    p: float = 0.5
    _of, _at = Sharpness, "sharpness_factor"
