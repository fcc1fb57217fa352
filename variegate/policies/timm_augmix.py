"""AugMix as timm defines it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from variegate.checks import integer, number
from variegate.ops.arguments import MAX_STEPS, Fill, checks
from variegate.policies.augmentation import entries_of
from variegate.policies.mixture import WIDEST, ChainMixture
from variegate.policies.noise import (
    AnyInterpolation,
    check_any_interpolation,
    check_deviation,
    drawn_interpolation,
    noisy,
)
from variegate.policies.spaces import Rule, space
from variegate.policies.table import OperationTable
from variegate.program import rng
from variegate.program.sampling import Rows, Sampling
from variegate.threads import computed_once

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
