"""Noise drawn for every pixel, inside the fused pass, from its own slot of the sample's randomness.

The first slot draws the strength; the second is handed to the instruction and is the noise's own, since both count
from the sample's first block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from variegate.checks import Refusal, number, refused
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.arguments import LARGEST, PROBABILITY, Number, checks
from variegate.transforms.magnitude import MagnitudeOp


def clipped(name: str, value: object, *, error: Refusal = refused) -> bool:
    if value is not True:
        raise error(name, value, "True (images are uint8 at this stage)")
    return value


@dataclass(frozen=True)
class GaussianNoise(MagnitudeOp):
    """Add normal noise of ``mean`` and ``sigma`` (on the 0..1 scale; sigma a number or a range), clipped to 0..255."""

    mean: float = 0.0
    sigma: Number = 0.1
    clip: bool = True
    num_slots = 2
    _number, _bounds = "sigma", (0.0, math.inf)
    _checks = checks(mean=partial(number, low=-LARGEST, high=LARGEST), clip=clipped)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        sampling.emit(rows, Op.GAUSSIAN_NOISE, self.mean, values, slot + 1)


@dataclass(frozen=True)
class SaltAndPepper(MagnitudeOp):
    """Replace a share ``amount`` of the pixels (0 to 1; a number or a range), a share ``salt`` of them by white, the
    others by black.
    """

    amount: Number = 0.05
    salt: float = 0.5
    num_slots = 2
    _number, _bounds = "amount", (0.0, 1.0)
    _checks = checks(salt=PROBABILITY)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        sampling.emit(rows, Op.SALT_AND_PEPPER, values, self.salt, slot + 1)


@dataclass(frozen=True)
class ShotNoise(MagnitudeOp):
    """Photon noise: a level x is seen as ``x / scale`` photons, so its variance is ``x * scale`` (levels per photon, a
    number or a range). Poisson by its normal approximation.
    """

    scale: Number = (1.0, 8.0)
    num_slots = 2
    _number, _bounds = "scale", (0.0, 255.0)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        sampling.emit(rows, Op.SHOT_NOISE, values, slot + 1)
