"""TrivialAugment (Müller and Hutter 2021, arXiv 2103.10158), as torchvision defines its wide space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from variegate.policies.augmentation import (
    Fill,
    check_count,
    check_operations,
    check_policy_arguments,
    entries_of,
    fill_of,
)
from variegate.policies.spaces import space
from variegate.policies.table import OperationTable
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once
from variegate.transforms.base import Transform, set_field
from variegate.transforms.limits import MAX_BINS


@dataclass(frozen=True)
class TrivialAugmentWide(Transform):
    """Exactly one operation, drawn uniformly, at a uniformly drawn magnitude (Müller and Hutter 2021).

    The wide ranges of torchvision: rotate to 135 degrees, shear to 0.99, translate to 32 pixels, enhance 1 +- 0.99,
    posterize to 2 bits, in ``num_magnitude_bins`` steps. ``operations``: names, Augmentations and custom operations in
    place of torchvision's fourteen. ``fill``: None (black), a level or (red, green, blue).

    Raises ArgumentError for arguments out of range. Paper: arXiv 2103.10158.
    """

    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = None
    operations: Sequence[str | Transform | type[Transform]] | None = None

    def __post_init__(self) -> None:
        check_count(self, "num_magnitude_bins", 2, MAX_BINS)
        check_policy_arguments(self)
        check_operations(self)
        set_field(self, "num_slots", 1 + self._table.num_slots)

    @computed_once
    def _table(self) -> OperationTable:
        source = space("torchvision-trivialaugment")
        names = source.default if self.operations is None else self.operations
        entries = entries_of(self, "operations", names, source, self.num_magnitude_bins - 1)
        return OperationTable(entries, self.interpolation, fill_of(self.fill, source.fill))

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.num_magnitude_bins))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        draw = sampling.uniform(rows, slot)
        # One number chooses both operation and sign.
        variant = (draw[:, 0] * len(self._grid)).astype(np.intp)
        level = (draw[:, 1] * self.num_magnitude_bins).astype(np.intp)
        self._table.emit(sampling, rows, variant >> 1, self._grid[variant, level], slot + 1)
