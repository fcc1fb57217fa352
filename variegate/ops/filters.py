"""Sharpening, blurs, other filters, JPEG, and noise.

Noise operations have two slots of random numbers. The first draws the strength. The number of the second is an argument
of the instruction, whose kernel draws from it per pixel. They are separate because both would otherwise use the slot's
first random block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from variegate.checks import as_numbers
from variegate.ops.arguments import (
    MAX_KERNEL,
    AnyMagnitude,
    Finite,
    Integers,
    Number,
    Probability,
    ShareMagnitude,
    ShareRange,
    two_integers,
)
from variegate.ops.base import Transform, TypicalRange
from variegate.ops.magnitude import MagnitudeOp, between, integers_between, limits
from variegate.ops.schema import Converted, Exactly, MagnitudeRange, Range
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import select
from variegate.program.ops import MAX_ELEMENT, Op
from variegate.program.sampling import Floats, Rows, Sampling


@dataclass(frozen=True)
class Sharpness(MagnitudeOp, function="adjust_sharpness", called={"factor": "sharpness_factor"}):
    """Blend with Pillow's SMOOTH filter: ``factor`` 0 is smooth, 1 the image (``PIL.ImageEnhance.Sharpness``)."""

    factor: AnyMagnitude
    _op = Op.SHARPNESS


# Kernel size in pixels along x and y.
KernelSizes = Annotated[
    int | Sequence[int],
    Converted(
        partial(two_integers, high=MAX_KERNEL, step=2),
        f"an odd positive integer up to {MAX_KERNEL:,}, or a pair (x, y) of them",
    ),
]


def odd_sizes(low: float, high: float, count: int) -> Floats:
    """Return ``count`` odd kernel sizes from ``low`` to ``high``, for ``TypicalRange.spacing``."""
    return np.asarray(2.0 * np.floor(np.linspace(low, high, count) / 2) + 1.0)


@dataclass(frozen=True)
class GaussianBlur(MagnitudeOp):
    """Blur with a Gaussian, as torchvision does: weights normalized within the kernel, reflected edges.

    ``kernel_size``: odd pixels, or a pair (x, y) of them; ``sigma``: in pixels, a number or a range.
    """

    kernel_size: KernelSizes
    sigma: Annotated[Number, MagnitudeRange(1e-6, 1000.0)] = (0.1, 2.0)
    _typical_range = TypicalRange(0.5, 5.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        image.add(Op.GAUSSIAN_BLUR, *self.kernel_size, value, value)  # type: ignore[misc]


@dataclass(frozen=True)
class MotionBlur(Transform):
    """Blur along a straight line.

    ``kernel_size``: length of the line in pixels, odd, or a range (low, high) of odd numbers, all equally likely.
    ``angle``: degrees counter-clockwise, a number or a range. ``direction``: position of the weight along the line, a
    number or a range: -1 and 1 are its ends, 0 is uniform.
    """

    kernel_size: Annotated[Integers, Range(1, 255, step=2)] = 7
    angle: Annotated[Number, Range()] = (-180.0, 180.0)
    direction: Annotated[Number, Range(-1.0, 1.0)] = (-1.0, 1.0)
    num_slots = 1
    _typical_range = TypicalRange(1, 31, 1.0, lambda length: MotionBlur(int(length) | 1), odd_sizes)

    def draw(self, image: DrawContext, slot: int) -> None:
        low, high = limits(self.kernel_size)
        kernel = 2 * integers_between(((low - 1) // 2, (high - 1) // 2), image.uniform(slot)) + 1
        angle, direction = between(self.angle, image.uniform(slot, 1)), between(self.direction, image.uniform(slot, 2))
        if changed := image.where(kernel > 1):
            changed.add(Op.MOTION_BLUR, kernel, angle, direction)


@dataclass(frozen=True)
class JPEG(MagnitudeOp, function="jpeg"):
    """Compress the image as a JPEG of ``quality`` and decode it.

    ``quality``: 1 to 100. Color is stored at half resolution (4:2:0). Pixels are Pillow's and torchvision's to the bit.
    The compression runs between fused passes. CPU only.
    """

    quality: Annotated[Integers, MagnitudeRange(1, 100)]
    _op = Op.JPEG
    _typical_range = TypicalRange(95, 5)


@dataclass(frozen=True)
class MedianBlur(Transform):
    """Replace each value by the median of its neighborhood, which removes spots and keeps edges.

    ``kernel_size``: side of the square around a pixel, 3, 5 or 7, or a range (low, high) of them, all equally likely.
    Edges are replicated (Pillow's ``MedianFilter``, OpenCV's ``medianBlur``).
    """

    kernel_size: Annotated[Integers, Range(3, 7, step=2)] = (3, 7)
    num_slots = 1
    _typical_range = TypicalRange(3, 7, None, lambda size: MedianBlur(int(size) | 1), odd_sizes)

    def draw(self, image: DrawContext, slot: int) -> None:
        low, high = limits(self.kernel_size)
        image.add(Op.MEDIAN, 2 * integers_between((low // 2, high // 2), image.uniform(slot)) + 1)


_ELEMENT = Converted(
    partial(two_integers, high=MAX_ELEMENT), f"an integer from 1 to {MAX_ELEMENT}, or a pair (width, height) of them"
)
MorphologyName = Literal["erosion", "dilation"]


@dataclass(frozen=True)
class Morphological(Transform):
    """Replace each value by the greatest ("dilation") or the least ("erosion") value in an ellipse around it.

    Results and the ellipse are OpenCV's. Arguments are Albumentations', where masks and boxes change as well.

    Args:
        scale: width and height of the ellipse in pixels, 1 to 31 each, or one number for both.
        operation: "dilation" or "erosion".
    """

    scale: Annotated[int | Sequence[int], _ELEMENT] = (2, 3)
    operation: MorphologyName = "dilation"
    _typical_range = TypicalRange(1, 13, 1.0, lambda size: Morphological(int(size)), odd_sizes)

    def draw(self, image: DrawContext, slot: int) -> None:
        if self.scale != (1, 1):
            image.add(Op.MORPHOLOGY, *self.scale, float(self.operation == "dilation"))  # type: ignore[misc]


Clip = Annotated[bool, Exactly(True, "True (images are uint8 at this stage)")]


@dataclass(frozen=True)
class GaussianNoise(MagnitudeOp):
    """Add normal noise of ``mean`` and standard deviation ``sigma``, on the 0..1 scale.

    ``sigma`` is a number or a range. Results are clipped to 0..255; ``clip`` is for torchvision's signature.
    """

    mean: Finite = 0.0
    sigma: Annotated[Number, MagnitudeRange(0.0)] = 0.1
    clip: Clip = True
    num_slots = 2
    _typical_range = TypicalRange(0.0, 0.4, 0.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        image.add(Op.GAUSSIAN_NOISE, self.mean, value, image.slot(slot + 1))


@dataclass(frozen=True)
class SaltAndPepper(MagnitudeOp):
    """Replace a share ``amount`` of the pixels, 0 to 1: a share ``salt`` of these by white, the others by black."""

    amount: ShareMagnitude = 0.05
    salt: Probability = 0.5
    num_slots = 2
    _typical_range = TypicalRange(0.0, 0.5, 0.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        image.add(Op.SALT_AND_PEPPER, value, self.salt, image.slot(slot + 1))


@dataclass(frozen=True)
class PixelDropout(MagnitudeOp):
    """Set pixels to ``drop_value``, 0 or 255 in all channels, with probability ``dropout_prob`` (Albumentations)."""

    dropout_prob: ShareMagnitude = 0.01
    drop_value: Literal[0, 255] = 0
    num_slots = 2
    _typical_range = TypicalRange(0.0, 0.5, 0.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        image.add(Op.SALT_AND_PEPPER, value, float(self.drop_value == 255), image.slot(slot + 1), name="PixelDropout")


@dataclass(frozen=True)
class ShotNoise(MagnitudeOp):
    """Add photon noise of ``scale`` levels per photon: variance ``x * scale`` for a value x (approximately Poisson)."""

    scale: Annotated[Number, MagnitudeRange(0.0, 255.0)] = (1.0, 8.0)
    num_slots = 2
    _typical_range = TypicalRange(0.0, 60.0, 0.0)

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        image.add(Op.SHOT_NOISE, value, image.slot(slot + 1))


MAX_FULL_KERNEL = 31
# Largest sum of a kernel's absolute weights, so that sums of products with values fit into 32 bits.
MAX_WEIGHT = 256
Kernel = tuple[tuple[float, ...], ...]
EdgeKind = Literal["laplacian", "sobel"]

_IDENTITY = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], np.float64)
_LAPLACIAN = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], np.float64)
_SOBEL = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float64)
# Kernels per kind. Results are clipped to 0..255 before they are added, so a kernel and its negative yield an absolute
# value.
_EDGES = {
    "laplacian": np.stack([_LAPLACIAN, -_LAPLACIAN]),
    "sobel": np.stack([_SOBEL, -_SOBEL, _SOBEL.T, -_SOBEL.T]),
}


def emit_filters(
    sampling: Sampling, rows: Rows, kernels: Floats, values: Floats | None = None, name: str | None = None
) -> None:
    """Filter ``rows`` with ``kernels[M, height, width]``. ``values``: magnitude of each row, for descriptions."""
    count, height, width = kernels.shape
    told = () if values is None else (values,)
    sampling.emit(rows, Op.CONVOLVE_FLOAT, sampling.add_filters(kernels), width, height, count, *told, name=name)


_KERNEL_WEIGHTS = (
    f"rows of weights, as many in each, both numbers odd and up to {MAX_FULL_KERNEL}; without their signs, "
    f"{MAX_WEIGHT} at most in all"
)


def _kernel_weights(value: Any) -> Kernel | None:
    """Parse a list of rows of equal length. None if invalid."""
    is_list = hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (str, bytes, dict))
    lines = None
    if is_list and not isinstance(value, type) and getattr(value, "ndim", 2) == 2 and len(value) <= MAX_FULL_KERNEL:
        lines = [as_numbers(value[i]) for i in range(len(value))]
    odd = lines is not None and len(lines) % 2 == 1 and None not in lines
    sides = {len(line) for line in lines} if odd else {0}  # type: ignore[union-attr, arg-type]
    width = sides.pop()
    if sides or width % 2 == 0 or width > MAX_FULL_KERNEL or _total(lines) > MAX_WEIGHT:
        return None
    return tuple(tuple(float(weight) for weight in line) for line in lines)  # type: ignore[union-attr]


def _total(lines: Any) -> float:
    return sum(min(abs(weight), 2.0 * MAX_WEIGHT) for line in lines for weight in line)


@dataclass(frozen=True)
class Convolve(Transform):
    """Convolve each channel with ``kernel``, a list of rows of odd length.

    For example, ``[[0, -1, 0], [-1, 5, -1], [0, -1, 0]]`` sharpens. The kernel is not flipped (its first weight is for
    the neighbor above and to the left), as in PyTorch and OpenCV. Edges are replicated. Weights have steps of 2**-14;
    results are rounded to the nearest level and clipped to 0..255, except for float32 images.
    """

    kernel: Annotated[Sequence[Sequence[float]], Converted(_kernel_weights, _KERNEL_WEIGHTS)]

    def draw(self, image: DrawContext, slot: int) -> None:
        kernel = np.array(self.kernel)
        height, width = kernel.shape
        image.add(Op.CONVOLVE_FLOAT, image.table("filters", kernel.reshape(-1)), width, height, 1)


@dataclass(frozen=True)
class Edges(MagnitudeOp):
    """Detect edges in each channel; flat areas become black.

    ``kind``: "laplacian", the absolute second derivative (kernel 0 1 0, 1 -4 1, 0 1 0); or "sobel", the sum of the
    absolute values of Sobel's two first derivatives (-1 0 1, -2 0 2, -1 0 1 and its transpose). ``scale`` multiplies
    the result, a number or a range, clipped to 0..255. Edges of the image are replicated.
    """

    kind: EdgeKind = "laplacian"
    scale: Annotated[Number, MagnitudeRange(0.0, 16.0)] = 1.0
    _typical_range = TypicalRange(0.0, 4.0)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        for scale in np.unique(values):
            at = np.flatnonzero(values == scale)
            emit_filters(sampling, rows[at], scale * _EDGES[self.kind], values[at], "Edges")


@dataclass(frozen=True)
class Emboss(Transform):
    """Blend a share ``alpha``, 0 to 1, of a relief of depth ``strength`` with the image (as in Albumentations)."""

    alpha: ShareRange = (0.2, 0.5)
    strength: Annotated[Number, Range(0.0, 16.0)] = (0.2, 0.7)
    num_slots = 1
    _typical_range = TypicalRange(0.0, 1.0, 0.0, lambda alpha: Emboss(alpha, 0.7))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        alphas, strengths = between(self.alpha, unit[:, 0]), between(self.strength, unit[:, 1])
        for i, (alpha, deep) in enumerate(zip(alphas.tolist(), strengths.tolist(), strict=True)):
            relief = np.array([[-1 - deep, -deep, 0], [-deep, 1, deep], [0, deep, 1 + deep]])
            kernel = (1.0 - alpha) * _IDENTITY + alpha * relief
            emit_filters(sampling, rows[i : i + 1], kernel[None], alphas[i : i + 1], "Emboss")


@dataclass(frozen=True)
class UnsharpMask(Transform):
    """Sharpen: add ``alpha`` times the difference from the Gaussian blur where it exceeds ``threshold`` levels.

    ``blur_limit``: kernel of the blur in pixels, odd, or a range (low, high) of odd numbers; ``sigma_limit``: its
    deviation, a number or a range, 0 for ``0.3 ((kernel - 1) / 2 - 1) + 0.8``; ``alpha``: a number or a range. This is
    Pillow's ``UnsharpMask``, with Albumentations' arguments.
    """

    blur_limit: Annotated[Integers, Range(3, 255, step=2)] = (3, 7)
    sigma_limit: Annotated[Number, Range(0.0, 1000.0)] = 0.0
    alpha: Annotated[Number, Range(0.0, 64.0)] = (0.2, 0.5)
    threshold: Annotated[int, Range(0, 255)] = 10
    num_slots = 1
    _typical_range = TypicalRange(0.0, 1.0, 0.0, lambda alpha: UnsharpMask(7, 0.0, alpha, threshold=0))

    def draw(self, image: DrawContext, slot: int) -> None:
        low, high = limits(self.blur_limit)
        kernel = 2 * integers_between(((low - 1) // 2, (high - 1) // 2), image.uniform(slot)) + 1
        sigma = between(self.sigma_limit, image.uniform(slot, 1))
        sigma = select(sigma < 1e-6, 0.3 * ((kernel - 1) / 2 - 1) + 0.8, sigma)
        alpha = between(self.alpha, image.uniform(slot, 2))
        image.add(Op.UNSHARP_MASK, kernel, kernel, sigma, sigma, alpha, self.threshold)
