"""AugMix as torchvision has it (Hendrycks et al. 2020, arXiv 1912.02781). timm's is in ``timm_augmix``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from variegate.checks import integer, number
from variegate.ops.arguments import FLAG, MAX_STEPS, ArgumentError, Fill, InterpolationName, checks
from variegate.ops.base import set_field
from variegate.policies.augmentation import entries_of
from variegate.policies.spaces import Rule, space
from variegate.policies.table import OperationTable, Policy
from variegate.policies.timm import (
    AnyInterpolation,
    check_any_interpolation,
    check_deviation,
    drawn_interpolation,
    noisy,
)
from variegate.program import rng
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

# A chain without a depth of its own has one to so many operations, uniformly.
DEEPEST = 3
# Every chain is an image of its own until they are joined.
WIDEST = 16


class ChainMixture(Policy, abstract=True):
    """``mixture_width`` chains of ``chain_depth`` operations, -1 for one to three; weights by ``alpha``."""

    mixture_width: int
    chain_depth: int
    alpha: float
    _step_slots = 1
    _forks = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chain_depth == 0:
            raise ArgumentError(self, "chain_depth", 0, f"an integer from 1 to {MAX_STEPS}, or -1 for one to three")
        set_field(self, "num_slots", self._weight_slots + self.mixture_width * self._chain_slots)

    def emit_step(self, sampling: Sampling, rows: Rows, words: npt.NDArray[np.uint32], slot: int) -> None:
        """Append one operation to each of ``rows``, by its own ``words[R, step slots, 4]``."""
        raise NotImplementedError(f"{type(self).__name__} does not define emit_step()")

    @property
    def _weight_slots(self) -> int:
        numbers = 2 + self.mixture_width
        return -(-numbers // 4) if self.alpha == 1.0 else numbers * rng.GAMMA_SLOTS

    @property
    def _chain_slots(self) -> int:
        return 1 + self._deepest * self._step_slots

    @property
    def _deepest(self) -> int:
        return DEEPEST if self.chain_depth < 0 else self.chain_depth

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if len(rows) == 0:
            return
        sampling = sampling.as_batch()
        original, chains = self._weights(sampling, rows, slot)
        forks = sampling.fork(rows, self.mixture_width)
        self._run_chains(sampling, forks, slot + self._weight_slots)
        sampling.blend(rows, original)
        sampling.blend(forks.ravel(), chains.T.ravel())

    def _weights(self, sampling: Sampling, rows: Rows, slot: int) -> tuple[Floats, Floats]:
        """float64[R] of the images and [R, width] of their chains: Dirichlet weights are normalised gamma numbers."""
        words = sampling.words(rows, slot, self._weight_slots)
        if self.alpha == 1.0:
            # Gamma(1) is the exponential distribution: one number each, and no rejections.
            gamma = -np.log(rng.to_unit(words.reshape(len(rows), -1)[:, : 2 + self.mixture_width]) + 2.0**-33)
        else:
            gamma = rng.to_gamma(words.reshape(len(rows), -1, rng.GAMMA_SLOTS, 4), self.alpha)
        mixed = gamma[:, 1] / gamma[:, :2].sum(axis=1)
        shares = gamma[:, 2:] / gamma[:, 2:].sum(axis=1, keepdims=True)
        return 1.0 - mixed, shares * mixed[:, None]

    def _run_chains(self, sampling: Sampling, forks: npt.NDArray[np.intp], slot: int) -> None:
        """All chains of all images side by side, step by step; a chain's own slots make it differ from the others."""
        first = [slot + chain * self._chain_slots for chain in range(self.mixture_width)]
        depth = np.full(forks.shape, self._deepest)
        if self.chain_depth < 0:
            drawn = [sampling.uniform(row, begin)[:, 0] for row, begin in zip(forks, first, strict=True)]
            depth = 1 + (np.stack(drawn) * DEEPEST).astype(np.intp)
        for step in range(self._deepest):
            own = 1 + step * self._step_slots
            words = np.concatenate(
                [sampling.words(row, begin + own, self._step_slots) for row, begin in zip(forks, first, strict=True)]
            )
            alive = np.flatnonzero(depth.ravel() > step)
            self.emit_step(sampling, forks.ravel()[alive], words[alive], slot)


# The enhancements overlap with ImageNet-C's corruptions; the paper leaves them out.
_ONLY_WITH_ALL = ("Brightness", "Color", "Contrast", "Sharpness")


@dataclass(frozen=True)
class AugMix(ChainMixture):
    """The image mixed with ``mixture_width`` chains of operations, all over the same image.

    Every chain has ``chain_depth`` operations (-1: one to three, uniform), each drawn uniformly, at a bin drawn
    uniformly below ``severity`` (1 to 10 of 10 bins). The image's and the mixture's weight are Dirichlet(``alpha``,
    ``alpha``), the chains share the mixture's by Dirichlet(``alpha``, ...). ``all_ops``: brightness, color, contrast
    and sharpness as well. The sum is truncated to uint8; afterwards only flips, crops, pads, erasing and Normalize may
    follow. Bins 8 and 9 of Posterize keep 0 bits: an all-zero image.

    The weights of an image and its chains add up to 1. Raises ArgumentError for arguments out of range. Paper: arXiv
    1912.02781.
    """

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: InterpolationName = "bilinear"
    fill: Fill = None
    _checks = checks(
        severity=partial(integer, low=1, high=space("torchvision-augmix").bins),
        mixture_width=partial(integer, low=1, high=WIDEST),
        chain_depth=partial(integer, low=-1, high=MAX_STEPS),
        alpha=partial(number, low=0.05, high=1e6),
        all_ops=FLAG,
    )

    @computed_once
    def _table(self) -> OperationTable:
        source = space("torchvision-augmix")
        names = [name for name in source.default if self.all_ops or name not in _ONLY_WITH_ALL]
        return self._table_of(entries_of(self, "all_ops", names, source), source.fill)

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.severity))

    def emit_step(self, sampling: Sampling, rows: Rows, words: npt.NDArray[np.uint32], slot: int) -> None:
        draw = rng.to_unit(words[:, 0])
        variant = (draw[:, 0] * len(self._grid)).astype(np.intp)
        level = (draw[:, 1] * self.severity).astype(np.intp)
        self._table.emit(sampling, rows, variant >> 1, self._grid[variant, level], slot)


# timm's thirteen: those of the paper and the enhancements, in the set that grows stronger with the magnitude.
_NAMES = (
    *("AutoContrast", "Color", "Contrast", "Brightness", "Sharpness", "Equalize", "Rotate", "Posterize", "Solarize"),
    *("ShearX", "ShearY", "TranslateX", "TranslateY"),
)


@dataclass(frozen=True)
class TimmAugMix(ChainMixture):
    """The image mixed with ``mixture_width`` chains of operations, all over the same image, on timm's scale of 0 to 10.

    Every chain has ``chain_depth`` operations (-1: one to three, uniform), each drawn uniformly of thirteen, at a
    magnitude that is uniform from 0 to ``magnitude``; with a finite ``magnitude_std`` it is ``magnitude`` with Gaussian
    noise of that deviation, within 0 to 10. The mixture's weight is Beta(``alpha``, ``alpha``), the chains share it by
    Dirichlet(``alpha``, ...). ``translate_pct``: the translation at level 10 as a fraction of the size.
    ``interpolation``: "random" (bilinear or bicubic per operation) or a fixed one. ``fill``: timm passes the mean of
    the data set, here 128 unless given. The sum is truncated to uint8 once, where timm truncates the mixture as well:
    up to one level lower. Afterwards only flips, crops, pads, erasing and Normalize may follow.

    Raises ArgumentError for arguments out of range. Source: huggingface/pytorch-image-models timm/data/auto_augment.py.
    """

    magnitude: float = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    magnitude_std: float = math.inf
    translate_pct: float = 0.3
    interpolation: AnyInterpolation = "random"
    fill: Fill = None
    # The operation, its sign and its interpolation; its level.
    _step_slots = 2
    _checks = checks(
        magnitude=partial(number, low=0, high=10),
        mixture_width=partial(integer, low=1, high=WIDEST),
        chain_depth=partial(integer, low=-1, high=MAX_STEPS),
        alpha=partial(number, low=0.05, high=1e6),
        magnitude_std=check_deviation,
        translate_pct=partial(number, low=0, high=10),
        interpolation=check_any_interpolation,
    )

    @computed_once
    def _table(self) -> OperationTable:
        source = space("timm-increasing")
        scaled = [
            replace(entry, parameters=replace(entry.parameters, high=self.translate_pct))  # type: ignore[type-var]
            if entry.name.startswith("Translate")
            else entry
            for entry in entries_of(self, "operations", _NAMES, source)
        ]
        return self._table_of(scaled, source.fill)

    @computed_once
    def _rules(self) -> Rule:
        return Rule.stack([entry.parameters for entry in self._table.entries])  # type: ignore[misc]

    def emit_step(self, sampling: Sampling, rows: Rows, words: npt.NDArray[np.uint32], slot: int) -> None:
        draw = rng.to_unit(words[:, 0])
        index = (draw[:, 0] * len(_NAMES)).astype(np.intp)
        level = noisy(self.magnitude, self.magnitude_std, words[:, 1], 10.0)
        parameter = self._rules.take(index).parameters(level, draw[:, 1] < 0.5)
        interpolation = drawn_interpolation(draw[:, 2]) if self.interpolation == "random" else None
        self._table.emit(sampling, rows, index, parameter, slot, interpolation)
