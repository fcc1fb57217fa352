"""Operations on a pixel's neighbourhood: sharpen, blur, motion blur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.base import ArgumentError, Transform, is_number, set_field
from variegate.transforms.limits import MAX_KERNEL
from variegate.transforms.magnitude import MagnitudeOp, Number, between, check_range, integers_between, limits


@dataclass(frozen=True)
class Sharpness(MagnitudeOp):
    """Blend with Pillow's SMOOTH filter: ``factor`` 0 is smooth, 1 the image, 2 sharper.

    The outermost pixels stay as they are (``PIL.ImageEnhance.Sharpness``).
    """

    factor: Number
    _number, _bounds = "factor", (0.0, math.inf)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        sampling.emit(rows, Op.SHARPNESS, values)


@dataclass(frozen=True)
class GaussianBlur(MagnitudeOp):
    """Gaussian blur; ``kernel_size`` odd pixels, or a pair (x, y) of them; ``sigma`` in pixels, a number or a range.

    Means torchvision's: weights cut off at the kernel's end and normalised, reflected edges.
    """

    kernel_size: int | Sequence[int]
    sigma: Number = (0.1, 2.0)
    _number, _bounds = "sigma", (1e-6, 1000.0)

    def __post_init__(self) -> None:
        value = self.kernel_size
        pair = tuple(value) if isinstance(value, (list, tuple)) else (value, value)
        if len(pair) == 1:
            pair *= 2
        if len(pair) != 2 or not all(is_number(k, True) and 0 < k <= MAX_KERNEL and k % 2 == 1 for k in pair):
            accepted = f"an odd positive integer up to {MAX_KERNEL:,}, or a pair (x, y) of them"
            raise ArgumentError(self, "kernel_size", value, accepted)
        set_field(self, "kernel_size", pair)
        super().__post_init__()

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        kernel_x, kernel_y = self.kernel_size  # type: ignore[misc]
        sampling.emit(rows, Op.GAUSSIAN_BLUR, kernel_x, kernel_y, values, values)


@dataclass(frozen=True)
class MotionBlur(Transform):
    """Smear along a straight line.

    ``kernel_size``: length in pixels, odd, or a range (low, high) of odd numbers, all equally likely. ``angle``:
    degrees counter-clockwise. ``direction``: where along the line the weight is, from -1 to 1; 0 is even. Each of the
    latter is a number or a range.
    """

    kernel_size: int | tuple[int, int] = 7
    angle: Number = (-180.0, 180.0)
    direction: Number = (-1.0, 1.0)
    num_slots = 1

    def __post_init__(self) -> None:
        check_range(self, "kernel_size", 1, 255, integral=True)
        if any(k % 2 == 0 for k in limits(self.kernel_size)):
            raise ArgumentError(self, "kernel_size", self.kernel_size, "an odd integer, or a pair (low, high) of them")
        check_range(self, "angle", -math.inf, math.inf)
        check_range(self, "direction", -1.0, 1.0)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        low, high = limits(self.kernel_size)
        kernel = 2 * integers_between(((low - 1) // 2, (high - 1) // 2), unit[:, 0]) + 1
        angle, direction = between(self.angle, unit[:, 1]), between(self.direction, unit[:, 2])
        changed = np.flatnonzero(kernel > 1)
        sampling.emit(rows[changed], Op.MOTION_BLUR, kernel[changed], angle[changed], direction[changed])
