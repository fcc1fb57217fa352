"""Policies that draw their operations uniformly: RandAugment, TrivialAugment and AugMix (torchvision's), 3-Augment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from variegate.checks import integer, number
from variegate.policies.augmentation import check_operations, entries_of
from variegate.policies.spaces import space
from variegate.policies.table import OperationTable, Policy, emit_blur
from variegate.program import rng
from variegate.program.one_image import OneImage
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once
from variegate.transforms.arguments import (
    FLAG,
    MAX_BINS,
    MAX_STEPS,
    ArgumentError,
    Fill,
    InterpolationName,
    checks,
    optional,
)
from variegate.transforms.base import Transform, set_field
from variegate.transforms.color import Solarize
from variegate.transforms.magnitude import between, limits, span

DEEPEST = 3
# Every chain is an image of its own until they are joined.
WIDEST = 16
# The enhancements overlap with ImageNet-C's corruptions; the paper leaves them out.
_ONLY_WITH_ALL = ("Brightness", "Color", "Contrast", "Sharpness")


@dataclass(frozen=True)
class RandAugment(Policy):
    """``num_ops`` operations one after another, drawn uniformly with replacement, all at one magnitude.

    ``magnitude`` is a bin, 0 to ``num_magnitude_bins`` - 1; the last bin is the end of every operation's range (rotate
    30 degrees, shear 0.3, enhance 1 +- 0.9), so 9 of 31 is three tenths of it; the sign is drawn where an operation has
    one. ``operations``: names (such as "Rotate", "Invert"), Augmentations and custom operations
    in place of torchvision's fourteen. ``fill``: None (black), a level or (red, green, blue). For timm's magnitudes use
    ``TimmRandAugment``.

    Raises ArgumentError for arguments out of range. Paper: arXiv 1909.13719.
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill = None
    operations: Sequence[str | Transform | type[Transform]] | None = None
    _checks = checks(
        num_ops=partial(integer, low=0, high=MAX_STEPS),
        num_magnitude_bins=partial(integer, low=2, high=MAX_BINS),
        operations=optional(check_operations),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        last, error = self.num_magnitude_bins - 1, partial(ArgumentError, self)
        set_field(self, "magnitude", integer("magnitude", self.magnitude, 0, last, error=error))
        set_field(self, "num_slots", self.num_ops * (1 + self._table.num_slots))

    @computed_once
    def _table(self) -> OperationTable:
        return _table_of_space(self, "torchvision-randaugment")

    @computed_once
    def _parameter(self) -> Floats:
        """float64[2M]: of every operation with either sign, the argument at this magnitude."""
        return self._table.grid([self.magnitude])[:, 0].copy()

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        parameter = self._parameter
        for step in range(slot, slot + self.num_slots, 1 + self._table.num_slots):
            # One draw chooses both operation and sign.
            variant = (sampling.uniform(rows, step)[:, 0] * len(parameter)).astype(np.intp)
            self._table.emit(sampling, rows, variant >> 1, parameter[variant], step + 1)

    def sample_one(self, image: OneImage, slot: int) -> None:
        table, parameter = self._table, self._parameter
        for step in range(slot, slot + self.num_slots, 1 + table.num_slots):
            variant = int(image.unit(step) * len(parameter))
            table.emit_one(image, variant >> 1, parameter.item(variant), step + 1)


@dataclass(frozen=True)
class TrivialAugmentWide(Policy):
    """Exactly one operation, drawn uniformly, at a uniformly drawn magnitude (Müller and Hutter 2021).

    The wide ranges of torchvision: rotate to 135 degrees, shear to 0.99, translate to 32 pixels, enhance 1 +- 0.99,
    posterize to 2 bits, in ``num_magnitude_bins`` steps. ``operations``: names, Augmentations and custom operations in
    place of torchvision's fourteen. ``fill``: None (black), a level or (red, green, blue).

    Raises ArgumentError for arguments out of range. Paper: arXiv 2103.10158.
    """

    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill = None
    operations: Sequence[str | Transform | type[Transform]] | None = None
    _checks = checks(num_magnitude_bins=partial(integer, low=2, high=MAX_BINS), operations=optional(check_operations))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 1 + self._table.num_slots)

    @computed_once
    def _table(self) -> OperationTable:
        return _table_of_space(self, "torchvision-trivialaugment")

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.num_magnitude_bins))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        draw = sampling.uniform(rows, slot)
        # One number chooses both operation and sign.
        variant = (draw[:, 0] * len(self._grid)).astype(np.intp)
        level = (draw[:, 1] * self.num_magnitude_bins).astype(np.intp)
        self._table.emit(sampling, rows, variant >> 1, self._grid[variant, level], slot + 1)

    def sample_one(self, image: OneImage, slot: int) -> None:
        variant = int(image.unit(slot) * len(self._grid))
        level = int(image.unit(slot, 1) * self.num_magnitude_bins)
        self._table.emit_one(image, variant >> 1, self._grid.item(variant, level), slot + 1)


def _table_of_space(policy: RandAugment | TrivialAugmentWide, name: str) -> OperationTable:
    """Of the policy's operations, or of all that the magnitude space has; its ranges end at the policy's last bin."""
    source = space(name)
    names = source.default if policy.operations is None else policy.operations
    entries = entries_of(policy, "operations", names, source, policy.num_magnitude_bins - 1)
    return policy._table_of(entries, source.fill)


@dataclass(frozen=True)
class AugMix(Policy):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chain_depth == 0:
            raise ArgumentError(self, "chain_depth", 0, f"an integer from 1 to {MAX_STEPS}, or -1 for one to three")
        set_field(self, "num_slots", self._weight_slots + self.mixture_width * (1 + self._deepest))

    @property
    def _weight_slots(self) -> int:
        numbers = 2 + self.mixture_width
        return -(-numbers // 4) if self.alpha == 1.0 else numbers * rng.GAMMA_SLOTS

    @property
    def _deepest(self) -> int:
        return DEEPEST if self.chain_depth < 0 else self.chain_depth

    @computed_once
    def _table(self) -> OperationTable:
        source = space("torchvision-augmix")
        names = [name for name in source.default if self.all_ops or name not in _ONLY_WITH_ALL]
        return self._table_of(entries_of(self, "all_ops", names, source), source.fill)

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.severity))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if len(rows) == 0:
            return
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
        first = [slot + chain * (1 + self._deepest) for chain in range(self.mixture_width)]
        depth = np.full(forks.shape, self._deepest)
        if self.chain_depth < 0:
            drawn = [sampling.uniform(row, begin)[:, 0] for row, begin in zip(forks, first, strict=True)]
            depth = 1 + (np.stack(drawn) * DEEPEST).astype(np.intp)
        for step in range(self._deepest):
            draw = np.concatenate(
                [sampling.uniform(row, begin + 1 + step) for row, begin in zip(forks, first, strict=True)]
            )
            alive = np.flatnonzero(depth.ravel() > step)
            draw, rows = draw[alive], forks.ravel()[alive]
            variant = (draw[:, 0] * len(self._grid)).astype(np.intp)
            level = (draw[:, 1] * self.severity).astype(np.intp)
            self._table.emit(sampling, rows, variant >> 1, self._grid[variant, level], slot)


@dataclass(frozen=True)
class ThreeAugment(Transform):
    """Exactly one of grayscale, solarize and Gaussian blur, each equally likely.

    ``threshold``: values from it on are inverted, 0 to 256. ``sigma``: the blur's range in pixels; its kernel reaches
    three sigma to each side, where DeiT uses Pillow's approximation by box blurs. DeiT III's recipe has a flip before
    and ``ColorJitter(0.3, 0.3, 0.3)`` behind; those are transforms of their own.

    Raises ArgumentError for arguments out of range. Paper: arXiv 2204.07118.
    """

    threshold: float = 128
    sigma: tuple[float, float] = (0.1, 2.0)
    num_slots = 1
    _checks = checks(threshold=Solarize.check_number, sigma=span(1e-3, 100.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "sigma", limits(self.sigma))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        draw = sampling.uniform(rows, slot)
        choice = (draw[:, 0] * 3).astype(np.intp)
        blurred = np.flatnonzero(choice == 2)
        sampling.emit(rows[choice == 0], Op.GRAYSCALE)
        sampling.emit(rows[choice == 1], Op.SOLARIZE, self.threshold)
        emit_blur(sampling, rows[blurred], between(self.sigma, draw[blurred, 1]))
