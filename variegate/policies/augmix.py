"""AugMix (Hendrycks et al. 2020, arXiv 1912.02781): the mixture, which timm's shares, and torchvision's policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from variegate.ops.arguments import MAX_STEPS, ArgumentError, Fill, InterpolationName
from variegate.ops.base import Transform, set_field
from variegate.ops.schema import Range
from variegate.policies.augmentation import entries_of
from variegate.policies.spaces import space
from variegate.policies.table import OperationTable, Policy
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, floor, log
from variegate.program.rng import GAMMA_SLOTS
from variegate.program.sampling import Floats, Rows, Sampling, after_blend
from variegate.threads import computed_once

# A chain without a set depth has 1 to this many operations, uniformly.
DEEPEST = 3
# Every chain is an image of its own until they are joined.
WIDEST = 16
MAX_SEVERITY = space("torchvision-augmix").bins


class ChainMixture(Policy, abstract=True):
    """``mixture_width`` chains of ``chain_depth`` operations, -1 for one to three; weights by ``alpha``."""

    mixture_width: Annotated[int, Range(1, WIDEST)]
    chain_depth: Annotated[int, Range(-1, MAX_STEPS)]
    alpha: Annotated[float, Range(0.05, 1e6)]
    _step_slots = 1
    _makes_rows = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chain_depth == 0:
            raise ArgumentError(self, "chain_depth", 0, f"an integer from 1 to {MAX_STEPS}, or -1 for one to three")
        set_field(self, "num_slots", self._weight_slots + self.mixture_width * self._chain_slots)

    def draw_step(self, image: DrawContext, slot: int) -> None:
        """Append one operation."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw_step()")

    @property
    def _weight_slots(self) -> int:
        numbers = 2 + self.mixture_width
        return -(-numbers // 4) if self.alpha == 1.0 else numbers * GAMMA_SLOTS

    @property
    def _chain_slots(self) -> int:
        return 1 + self._deepest * self._step_slots

    @property
    def _deepest(self) -> int:
        return DEEPEST if self.chain_depth < 0 else self.chain_depth

    def draw(self, image: DrawContext, slot: int) -> None:
        gamma = [self._gamma(image, slot, i) for i in range(2 + self.mixture_width)]
        mixed = gamma[1] / (gamma[0] + gamma[1])
        total = sum(gamma[2:])
        # Normalized gamma numbers are Dirichlet's.
        weights = [1.0 - mixed, *(share / total * mixed for share in gamma[2:])]
        first = slot + self._weight_slots
        number = image.copy(self.mixture_width)
        if number is None:
            image.call_back(self._add_chains, first, *weights)
            return
        if copies := image.where(number > 0):
            with image.slots_after((number - 1) * self._chain_slots):
                copies.run(self._chain, first)
        image.blend(image.choose(number, weights))

    def _gamma(self, image: DrawContext, slot: int, number: int) -> Number:
        if self.alpha == 1.0:
            # Gamma(1) is the exponential distribution: one number each, and no rejections.
            return -log(image.uniform(slot, number) + 2.0**-33)
        return image.gamma(slot + number * GAMMA_SLOTS, self.alpha)

    def _add_chains(self, sampling: Sampling, rows: Rows, slot: int, original: Floats, *chains: Floats) -> None:
        """Chains as rows of their own, with the weights of the image and of its chains."""
        if sampling.are_blended(rows):
            raise after_blend(type(self).__name__)
        forks = sampling.fork(rows, self.mixture_width)
        for i, fork in enumerate(forks):
            self._chain.sample(sampling, fork, slot + i * self._chain_slots)
        sampling.blend(rows, original)
        sampling.blend(forks.ravel(), np.concatenate(chains))

    @computed_once
    def _chain(self) -> _Chain:
        return _Chain(self)


@dataclass(frozen=True)
class _Chain(Transform):
    """A chain of a mixture: its depth, then its steps."""

    mixture: ChainMixture

    def draw(self, image: DrawContext, slot: int) -> None:
        mixture = self.mixture
        depth = mixture.chain_depth if mixture.chain_depth > 0 else 1 + floor(image.uniform(slot) * DEEPEST)
        for step in range(mixture._deepest):
            if deep_enough := image.where(depth > step):
                mixture.draw_step(deep_enough, slot + 1 + step * mixture._step_slots)


# The enhancements overlap with ImageNet-C's corruptions; the paper leaves them out.
_ONLY_WITH_ALL = ("Brightness", "Color", "Contrast", "Sharpness")


@dataclass(frozen=True)
class AugMix(ChainMixture):
    """Blend the image with chains of operations (Hendrycks et al. 2019, arXiv:1912.02781).

    Args:
        severity: 1 to 10; the bin of an operation, of 10, is drawn uniformly below it.
        mixture_width: number of chains, each applied to the same image.
        chain_depth: operations per chain, each drawn uniformly; -1 for one to three, uniform.
        alpha: the image and the mixture have weights Dirichlet(``alpha``, ``alpha``); the chains share the mixture's by
            Dirichlet(``alpha``, ...). All weights add up to 1.
        all_ops: also use brightness, color, contrast and sharpness.

    The sum is truncated to uint8; only flips, crops, pads, erasing and Normalize may follow. Bins 8 and 9 of Posterize
    keep 1 bit, where torchvision asks for 0 bits: with Pillow 13 an error, with earlier versions a black image.
    """

    severity: Annotated[int, Range(1, MAX_SEVERITY)] = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: InterpolationName = "bilinear"
    fill: Fill | None = None

    @computed_once
    def _table(self) -> OperationTable:
        source = space("torchvision-augmix")
        names = [name for name in source.default if self.all_ops or name not in _ONLY_WITH_ALL]
        return self._table_of(entries_of(self, "all_ops", names, source), source.fill)

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.severity))

    def draw_step(self, image: DrawContext, slot: int) -> None:
        variant = floor(image.uniform(slot) * len(self._grid))
        level = floor(image.uniform(slot, 1) * self.severity)
        self._table.draw(image, self._grid, variant, level, slot + self._step_slots)
