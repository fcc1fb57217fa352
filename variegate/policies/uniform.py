"""Policies that draw their operations uniformly: RandAugment and TrivialAugment (torchvision's, DALI's), 3-Augment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from variegate.checks import integer, one_of
from variegate.ops.arguments import MAX_BINS, MAX_STEPS, ArgumentError, Fill, InterpolationName, checks, optional
from variegate.ops.base import Transform, set_field
from variegate.ops.color import Solarize
from variegate.ops.magnitude import between, limits, span
from variegate.policies.augmentation import check_operations, entries_of
from variegate.policies.emissions import emit_blur
from variegate.policies.spaces import space
from variegate.policies.table import OperationTable, Policy
from variegate.program.one_image import Images
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

# Of both policies. In "dali" translations end at so many pixels, in "dali-relative" at a share of the image's size.
SPACES = ("torchvision", "dali", "dali-relative")
SPACE = partial(one_of, choices=SPACES)
SpaceName = Literal["torchvision", "dali", "dali-relative"]


@dataclass(frozen=True)
class RandAugment(Policy):
    """``num_ops`` operations one after another, drawn uniformly with replacement, all at one magnitude.

    ``magnitude`` is a bin, 0 to ``num_magnitude_bins`` - 1; the last bin is the end of every operation's range (rotate
    30 degrees, shear 0.3, enhance 1 +- 0.9), so 9 of 31 is three tenths of it; the sign is drawn where an operation has
    one. ``operations``: names (such as "Rotate", "Invert"), Augmentations and custom operations
    in place of torchvision's fourteen. ``space``: the ranges and the fill of "torchvision" or "dali" (translate 100
    pixels, or in "dali-relative" 100/224 of the size; Solarize from 256). ``fill``: None is the space's own (black;
    gray for dali), else a level or (red, green, blue). For timm's magnitudes use ``TimmRandAugment``.

    Raises ArgumentError for arguments out of range. Paper: arXiv 1909.13719.
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill = None
    operations: Sequence[str | Transform | type[Transform]] | None = None
    space: SpaceName = "torchvision"
    _checks = checks(
        num_ops=partial(integer, low=0, high=MAX_STEPS),
        num_magnitude_bins=partial(integer, low=2, high=MAX_BINS),
        operations=optional(check_operations),
        space=SPACE,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        last, error = self.num_magnitude_bins - 1, partial(ArgumentError, self)
        set_field(self, "magnitude", integer("magnitude", self.magnitude, 0, last, error=error))
        set_field(self, "num_slots", self.num_ops * (1 + self._table.num_slots))

    @computed_once
    def _table(self) -> OperationTable:
        return table_of_space(self, "randaugment")

    @computed_once
    def _parameter(self) -> Floats:
        """float64[2M]: of every operation with either sign, the argument at this magnitude."""
        return self._table.grid([self.magnitude])[:, 0].copy()

    def draw(self, images: Images, slot: int) -> None:
        table, parameter = self._table, self._parameter
        for step in range(slot, slot + self.num_slots, 1 + table.num_slots):
            # One draw chooses both operation and sign.
            variant = images.whole(images.unit(step) * len(parameter))
            table.add(images, variant >> 1, parameter[variant], step + 1)


@dataclass(frozen=True)
class TrivialAugmentWide(Policy):
    """Exactly one operation, drawn uniformly, at a uniformly drawn magnitude (Müller and Hutter 2021).

    The wide ranges of torchvision: rotate to 135 degrees, shear to 0.99, translate to 32 pixels, enhance 1 +- 0.99,
    posterize to 2 bits, in ``num_magnitude_bins`` steps. ``operations``: names, Augmentations and custom operations in
    place of torchvision's fourteen. ``space``: the ranges and the fill of "torchvision" or "dali" (enhance 1 +- 0.01 to
    0.99, Solarize from 256; in "dali-relative" translate as far as the image is large). ``fill``: None is the space's
    own (black; gray for dali), else a level or (red, green, blue).

    Raises ArgumentError for arguments out of range. Paper: arXiv 2103.10158.
    """

    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill = None
    operations: Sequence[str | Transform | type[Transform]] | None = None
    space: SpaceName = "torchvision"
    _checks = checks(
        num_magnitude_bins=partial(integer, low=2, high=MAX_BINS), operations=optional(check_operations), space=SPACE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 1 + self._table.num_slots)

    @computed_once
    def _table(self) -> OperationTable:
        return table_of_space(self, "trivialaugment")

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.num_magnitude_bins))

    def draw(self, images: Images, slot: int) -> None:
        # One number chooses both operation and sign.
        variant = images.whole(images.unit(slot) * len(self._grid))
        level = images.whole(images.unit(slot, 1) * self.num_magnitude_bins)
        self._table.add(images, variant >> 1, self._grid[variant, level], slot + 1)


def table_of_space(policy: Any, name: str) -> OperationTable:
    """Of the operations of a policy such as these, or of all that the magnitude space has; its ranges end at the
    policy's last bin."""
    library, _, relative = policy.space.partition("-")
    source = space(f"{library}-{name}" + (f"-{relative}" if relative else ""))
    names = source.default if policy.operations is None else policy.operations
    entries = entries_of(policy, "operations", names, source, policy.num_magnitude_bins - 1)
    found: OperationTable = policy._table_of(entries, source.fill)
    return found


@dataclass(frozen=True)
class ThreeAugment(Transform):
    """Exactly one of grayscale, solarize and Gaussian blur, each equally likely.

    ``threshold``: values from it on are inverted; any number. ``sigma``: the blur's range in pixels; its kernel reaches
    three sigma to each side, where DeiT uses Pillow's approximation by box blurs. DeiT III's recipe has a flip before
    and ``ColorJitter(0.3, 0.3, 0.3)`` behind; those are transforms of their own.

    Raises ArgumentError for arguments out of range. Paper: arXiv 2204.07118.
    """

    threshold: float = 128
    sigma: Sequence[float] = (0.1, 2.0)
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
