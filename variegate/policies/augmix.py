"""AugMix as torchvision has it (Hendrycks et al. 2020, arXiv 1912.02781). timm's is in ``timm_augmix``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from variegate.checks import integer, number
from variegate.ops.arguments import FLAG, MAX_STEPS, Fill, InterpolationName, checks
from variegate.policies.augmentation import entries_of
from variegate.policies.mixture import WIDEST, ChainMixture
from variegate.policies.spaces import space
from variegate.policies.table import OperationTable
from variegate.program import rng
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

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
