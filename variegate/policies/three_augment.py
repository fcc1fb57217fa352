"""3-Augment (Touvron et al. 2022, "DeiT III", arXiv 2204.07118)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate.policies.catalogue import emit_blur
from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.arguments import checks
from variegate.transforms.base import Transform, set_field
from variegate.transforms.color import Solarize
from variegate.transforms.magnitude import limits, span


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
        low, high = self.sigma
        blurred = np.flatnonzero(choice == 2)
        sampling.emit(rows[choice == 0], Op.GRAYSCALE)
        sampling.emit(rows[choice == 1], Op.SOLARIZE, self.threshold)
        emit_blur(sampling, rows[blurred], low + (high - low) * draw[blurred, 1])
