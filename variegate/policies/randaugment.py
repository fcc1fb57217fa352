"""RandAugment (Cubuk et al. 2020, arXiv 1909.13719), as torchvision defines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from variegate.checks import integer
from variegate.policies.augmentation import check_operations, entries_of
from variegate.policies.spaces import space
from variegate.policies.table import OperationTable, Policy
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once
from variegate.transforms.arguments import MAX_BINS, MAX_STEPS, ArgumentError, Fill, InterpolationName, checks, optional
from variegate.transforms.base import Transform, set_field


@dataclass(frozen=True)
class RandAugment(Policy):
    """``num_ops`` operations one after another, drawn uniformly with replacement, all at one magnitude.

    ``magnitude`` is a bin, 0 to ``num_magnitude_bins`` - 1; the last bin is the end of every operation's range (rotate
    30 degrees, shear 0.3, enhance 1 +- 0.9), so 9 of 31 is three tenths of it; the sign is drawn where an operation has
    one. ``operations``: names (such as "Rotate", "Invert"), Augmentations and custom operations
    in place of torchvision's fourteen.
    ``fill``: None (black), a level or (red, green, blue). For timm's magnitudes use ``TimmRandAugment``.

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
        source = space("torchvision-randaugment")
        names = source.default if self.operations is None else self.operations
        entries = entries_of(self, "operations", names, source, self.num_magnitude_bins - 1)
        return self._table_of(entries, source.fill)

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
