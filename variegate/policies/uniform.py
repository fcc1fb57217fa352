"""Policies that draw their operations uniformly: RandAugment and TrivialAugment (torchvision's, DALI's), 3-Augment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from variegate.checks import integer
from variegate.ops.arguments import (
    MAX_BINS,
    MAX_STEPS,
    ArgumentError,
    Fill,
    Finite,
    InterpolationName,
)
from variegate.ops.base import Transform, set_field
from variegate.ops.container import Verbatim
from variegate.ops.description import substituted, walk
from variegate.ops.magnitude import between
from variegate.ops.schema import Range
from variegate.ops.tone import Solarize
from variegate.policies.augmentation import OperationList, entries_of, with_defaults
from variegate.policies.spaces import space_of
from variegate.policies.table import OperationTable, Policy, emit_blur
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, floor
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Sampling
from variegate.threads import computed_once

# In "dali" translations end at this many pixels, in "dali-relative" at a share of the image's size.
SpaceName = Literal["torchvision", "dali", "dali-relative"]


Operations = Annotated[Sequence[str | Transform | type[Transform]], OperationList()]


class UniformPolicy(Policy, abstract=True):
    """``num_ops`` operations, drawn uniformly with their signs, of a list or a magnitude space's own."""

    num_ops: Annotated[int, Range(0, MAX_STEPS)]
    num_magnitude_bins: Annotated[int, Range(2, MAX_BINS)]
    operations: Operations | None
    space: SpaceName
    _ranges = "randaugment"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", self.num_ops * (1 + self._table.num_slots))

    @computed_once
    def _table(self) -> OperationTable:
        """The policy's last bin is the end of every range."""
        source = space_of(self.space, self._ranges)
        names = source.default if self.operations is None else with_defaults(self.operations, source)
        return self._table_of(entries_of(self, "operations", names, source, self.num_magnitude_bins - 1), source.fill)

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.num_magnitude_bins))

    def _column(self, image: DrawContext, slot: int) -> Number | None:
        """The column of ``_grid`` for the image; None where it has one axis alone."""
        return None

    def draw(self, image: DrawContext, slot: int) -> None:
        table, grid, column = self._table, self._grid, self._column(image, slot)
        for step in range(slot, slot + self.num_slots, 1 + table.num_slots):
            # One number chooses both operation and sign.
            table.draw(image, grid, floor(image.uniform(step) * len(grid)), column, step + 1)


@dataclass(frozen=True)
class RandAugment(UniformPolicy):
    """Apply ``num_ops`` operations in sequence, drawn uniformly with replacement, at one magnitude.

    Args:
        magnitude: a bin, 0 to ``num_magnitude_bins`` - 1. The last bin is the end of every operation's range (rotate 30
            degrees, shear 0.3, enhance 1 +- 0.9). Bin 9 of 31 is three tenths of it. Signs are random. For timm's
            magnitudes use ``TimmRandAugment``.
        operations: names (such as "Rotate", "Invert"), Augmentations and custom operations that replace torchvision's
            fourteen.
        space: ranges and fill of "torchvision", "dali" (translate 100 pixels; Solarize from 256) or "dali-relative"
            (translate 100/224 of the size).
        fill: None is the space's own: black, gray for dali.

    Paper: arXiv:1909.13719 (Cubuk et al. 2019).
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill | None = None
    operations: Operations | None = None
    space: SpaceName = "torchvision"

    def __post_init__(self) -> None:
        super().__post_init__()
        last, error = self.num_magnitude_bins - 1, partial(ArgumentError, self)
        set_field(self, "magnitude", integer("magnitude", self.magnitude, 0, last, error=error))

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid([self.magnitude])[:, 0].copy()


@dataclass(frozen=True)
class TrivialAugmentWide(UniformPolicy):
    """Apply exactly one operation, drawn uniformly, at a uniform magnitude (Müller and Hutter 2021, arXiv:2103.10158).

    The ranges are torchvision's wide ones: rotate to 135 degrees, shear to 0.99, translate to 32 pixels, enhance 1 +-
    0.99, posterize to 2 bits.

    Args:
        num_magnitude_bins: number of magnitudes.
        operations: names, Augmentations and custom operations that replace torchvision's fourteen.
        space: ranges and fill of "torchvision", "dali" (enhance 1 +- 0.01 to 0.99, Solarize from 256) or
            "dali-relative" (translate by the size of the image).
        fill: None is the space's own: black, gray for dali.
    """

    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill | None = None
    operations: Operations | None = None
    space: SpaceName = "torchvision"
    num_ops = 1
    _ranges = "trivialaugment"

    def _column(self, image: DrawContext, slot: int) -> Number:
        return floor(image.uniform(slot, 1) * self.num_magnitude_bins)


@dataclass(frozen=True)
class ThreeAugment(Transform):
    """Apply exactly one of grayscale, solarize and Gaussian blur, each equally likely.

    ``threshold``: solarize inverts values from it on; any number. ``sigma``: range of the blur in pixels; its kernel
    extends three sigma to each side, where DeiT uses Pillow's approximation by box blurs. DeiT III's recipe has a flip
    before this and ``ColorJitter(0.3, 0.3, 0.3)`` after it, as separate transforms. Paper: arXiv:2204.07118.
    """

    threshold: Finite = 128
    sigma: Annotated[float | Sequence[float], Range(1e-3, 100.0)] = (0.1, 2.0)
    num_slots = 1

    def draw(self, image: DrawContext, slot: int) -> None:
        choice = floor(image.uniform(slot) * 3)
        with image.alternatives() as alternative:
            if gray := image.where(choice == 0):
                with alternative():
                    gray.add(Op.GRAYSCALE)
            if solarized := image.where(choice == 1):
                with alternative():
                    solarized.add(Solarize._op, self.threshold)
            if blurred := image.where(choice == 2):
                with alternative():
                    emit_blur(blurred, between(self.sigma, image.uniform(slot, 1)))


MAGNITUDE = "magnitude"


@dataclass(frozen=True)
class AdaptiveRandAugment(UniformPolicy):
    """Apply ``RandAugment`` at a magnitude given with each image: ``conditions={"magnitude": magnitudes}``.

    Magnitudes are numbers from 0 to 1 of every operation's range, rounded to the nearest of ``num_magnitude_bins``. For
    the other arguments see ``RandAugment``.

    An image is a function of (seed, epoch, id, magnitude). At b / (``num_magnitude_bins`` - 1) it is the image of
    ``RandAugment(num_ops, b)``. At 0, only operations without a magnitude change it: AutoContrast and Equalize. One
    operation, with magnitudes by a model's confidence, is EntAugment (arXiv:2409.06290).

    Raises ArgumentError while sampling if a magnitude from 0 to 1 is not given.
    """

    num_ops: int = 2
    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill | None = None
    operations: Operations | None = None
    space: SpaceName = "torchvision"

    def _column(self, image: DrawContext, slot: int) -> Number:
        return image.column(self._bins)

    def _bins(self, sampling: Sampling) -> Floats:
        accepted = 'conditions={"magnitude": magnitudes}, one number from 0 to 1 per image'
        if MAGNITUDE not in sampling.given:
            raise ArgumentError(self, MAGNITUDE, Verbatim("none given with this batch"), accepted)
        given = np.asarray(sampling.given[MAGNITUDE])
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            got = Verbatim(f"an array of {given.dtype} with shape {given.shape}")
            raise ArgumentError(self, MAGNITUDE, got, accepted)
        magnitude = given[sampling.source].astype(np.float64)
        if not (is_good := (magnitude >= 0) & (magnitude <= 1)).all():
            raise ArgumentError(self, MAGNITUDE, Verbatim(f"{magnitude[~is_good][0]:g}"), accepted)
        return np.rint(magnitude * (self.num_magnitude_bins - 1))


def at_given_magnitude(policy: Transform) -> Transform:
    """The policy with ``AdaptiveRandAugment`` for every ``RandAugment``."""

    def change(part: Any) -> Any:
        if type(part) is not RandAugment:
            return None
        return AdaptiveRandAugment(**{one.name: getattr(part, one.name) for one in fields(AdaptiveRandAugment)})

    changed: Transform = substituted(policy, change)
    return changed


def needs_magnitude(transform: Any) -> bool:
    """True if there is an ``AdaptiveRandAugment`` in it."""
    return any(isinstance(part, AdaptiveRandAugment) for part in walk(transform))


def refuse_given_magnitude(transform: Any, argument: str, accepted: str) -> None:
    """Raises ValueError for a policy that needs magnitudes per sample without a source of them."""
    if needs_magnitude(transform):
        got = "an AdaptiveRandAugment, whose magnitude is given with each image"
        raise ValueError(f"{argument}: got {got}; accepted here: {accepted}")
