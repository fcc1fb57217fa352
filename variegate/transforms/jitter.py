"""Several colour changes at once, and torchvision's single ones that happen with a probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.base import ArgumentError, Transform, check_number, check_probability, is_number, set_field
from variegate.transforms.magnitude import Pair, WithProbability, between, check_range

Jitter = float | Pair | None

_COMPONENTS = {
    "brightness": Op.BRIGHTNESS,
    "contrast": Op.CONTRAST,
    "saturation": Op.SATURATION,
    "hue": Op.HUE,
}


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

    def __post_init__(self) -> None:
        for name in _COMPONENTS:
            if getattr(self, name) is not None:
                _as_jitter(self, name)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        ops, factors = [], []
        for i, (name, op) in enumerate(_COMPONENTS.items()):
            if (limits := getattr(self, name)) is not None:
                ops.append(op)
                factors.append(between(limits, unit[:, i]))
        if not ops:
            return
        order = np.argsort(sampling.words(rows, slot + 1)[:, 0, : len(ops)], axis=1, kind="stable")
        ordered_ops = np.array(ops, np.int16)[order]
        ordered_factors = np.take_along_axis(np.stack(factors, axis=1), order, axis=1)
        for k in range(len(ops)):
            sampling.emit(rows, ordered_ops[:, k], ordered_factors[:, k])


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

    def __post_init__(self) -> None:
        check_probability(self)
        for name in _COMPONENTS:
            check_range(self, name, *((-0.5, 0.5) if name == "hue" else (0.0, np.inf)))

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


class _RandomPlain(WithProbability):
    """An operation with fixed arguments, done with probability ``p``."""

    _op: Op

    def _arguments(self) -> tuple[float, ...]:
        return ()

    def _apply(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sampling.emit(rows, self._op, *self._arguments())


@dataclass(frozen=True)
class RandomPosterize(_RandomPlain):
    """Keep the highest ``bits`` bits (0 to 8) of every value with probability ``p``."""

    bits: int
    p: float = 0.5
    _op = Op.POSTERIZE

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.bits, True) or not 0 <= self.bits <= 8:
            raise ArgumentError(self, "bits", self.bits, "an integer from 0 to 8")

    def _arguments(self) -> tuple[float, ...]:
        return (self.bits,)


@dataclass(frozen=True)
class RandomSolarize(_RandomPlain):
    """Invert the values at and above ``threshold`` (0 to 256) with probability ``p``."""

    threshold: float
    p: float = 0.5
    _op = Op.SOLARIZE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "threshold", 0.0, 256.0)

    def _arguments(self) -> tuple[float, ...]:
        return (self.threshold,)


@dataclass(frozen=True)
class RandomInvert(_RandomPlain):
    """``255 - x`` with probability ``p``."""

    p: float = 0.5
    _op = Op.INVERT


@dataclass(frozen=True)
class RandomAutocontrast(_RandomPlain):
    """``AutoContrast`` with probability ``p``."""

    p: float = 0.5
    _op = Op.AUTOCONTRAST


@dataclass(frozen=True)
class RandomEqualize(_RandomPlain):
    """``Equalize`` with probability ``p``."""

    p: float = 0.5
    _op = Op.EQUALIZE


@dataclass(frozen=True)
class RandomGrayscale(_RandomPlain):
    """Grey levels in all channels with probability ``p``."""

    p: float = 0.1
    _op = Op.GRAYSCALE


@dataclass(frozen=True)
class RandomAdjustSharpness(_RandomPlain):
    """Sharpen (``sharpness_factor`` above 1) or smooth (below 1) with probability ``p``; 0 is Pillow's SMOOTH."""

    sharpness_factor: float
    p: float = 0.5
    _op = Op.SHARPNESS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "sharpness_factor", 0.0, np.inf)

    def _arguments(self) -> tuple[float, ...]:
        return (self.sharpness_factor,)


def _as_jitter(owner: Transform, name: str) -> None:
    """Normalise a number to the range about "no change", and a range of no change to None."""
    value = getattr(owner, name)
    low, high, center = (-0.5, 0.5, 0.0) if name == "hue" else (0.0, np.inf, 1.0)
    if is_number(value) and value >= 0:
        around = (center - value, center + value)
        set_field(owner, name, around if name == "hue" else (max(around[0], 0.0), around[1]))
    elif is_number(value):
        raise ArgumentError(owner, name, value, "a number >= 0, or a pair (low, high)")
    check_range(owner, name, low, high)
    if getattr(owner, name) == (center, center):
        set_field(owner, name, None)
