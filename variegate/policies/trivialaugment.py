"""TrivialAugment (Müller and Hutter 2021, arXiv 2103.10158), as torchvision defines its wide space."""

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
from variegate.transforms.arguments import MAX_BINS, Fill, InterpolationName, checks, optional
from variegate.transforms.base import Transform, set_field


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
        source = space("torchvision-trivialaugment")
        names = source.default if self.operations is None else self.operations
        entries = entries_of(self, "operations", names, source, self.num_magnitude_bins - 1)
        return self._table_of(entries, source.fill)

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.num_magnitude_bins))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        draw = sampling.uniform(rows, slot)
        # One number chooses both operation and sign.
        variant = (draw[:, 0] * len(self._grid)).astype(np.intp)
        level = (draw[:, 1] * self.num_magnitude_bins).astype(np.intp)
        self._table.emit(sampling, rows, variant >> 1, self._grid[variant, level], slot + 1)
