"""The operations that policies draw from, by name: how each is emitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.ops.arguments import Colour
from variegate.ops.base import Transform
from variegate.ops.color import (
    AutoContrast,
    Brightness,
    Color,
    Contrast,
    Equalize,
    Gamma,
    Hue,
    Invert,
    Posterize,
    Solarize,
    SolarizeAdd,
)
from variegate.ops.filters import JPEG, Sharpness
from variegate.ops.geometry import Rotate, ShearX, ShearY, TranslateX, TranslateY
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.output import Grayscale
from variegate.program.ops import SPECS, Kind, Op
from variegate.program.sampling import Floats, Rows, Sampling

Emitter = Callable[[Sampling, Rows, Floats, int, Colour], None]


@dataclass(frozen=True)
class Emission:
    """How a name is emitted: ``opcode`` with the parameter and then ``tail`` as arguments, all rows at once; or, for
    what does not fit that form, ``emitter`` for the operation's own rows, drawing from ``num_slots`` slots.
    """

    opcode: Op
    tail: tuple[float, ...] = ()
    emitter: Emitter | None = None
    num_slots: int = 0

    @property
    def is_geometry(self) -> bool:
        return self.opcode in SPECS and SPECS[self.opcode].kind is Kind.GEOMETRY


def _cutout(sampling: Sampling, rows: Rows, sides: Floats, slot: int, fill: Colour) -> None:
    """A square about a centre that is uniform over the pixels, clipped at the borders, as PBA and TF do it.

    Its side is ``sides`` rounded down to an even number, since they add half of it to both sides of the centre; under
    2 there is none. The transform ``T.Cutout`` allows odd sides and takes exactly what it is told.
    """
    half = sides.astype(np.int32) // 2
    rows, half = rows[half > 0], half[half > 0]
    if len(rows) == 0:
        return
    size = sampling.size[rows]
    centre = (sampling.uniform(rows, slot)[:, :2] * size).astype(np.int32)
    start = np.maximum(centre - half[:, None], 0)
    end = np.minimum(centre + half[:, None], size)
    first = sampling.add_rectangles(np.concatenate([start, end - start], axis=1))
    sampling.emit(rows, Op.ERASE, first + np.arange(len(rows)), 1, fill=fill, name="Cutout")


def emit_blur(sampling: Sampling, rows: Rows, sigmas: npt.ArrayLike) -> None:
    """A Gaussian blur of ``sigmas`` pixels with a kernel that reaches three of them to each side."""
    sigma = np.asarray(sigmas, dtype=np.float64)
    kernel = kernel_for(sigma)
    sampling.emit(rows, Op.GAUSSIAN_BLUR, kernel, kernel, sigma, sigma)


def kernel_for(sigma: Any) -> Any:
    """Pixels of a kernel that reaches three deviations to each side."""
    kernel = 2 * np.ceil(3 * sigma) + 1
    return kernel if np.ndim(kernel) else int(kernel)


def _blur(sampling: Sampling, rows: Rows, sigmas: Floats, slot: int, fill: Colour) -> None:
    emit_blur(sampling, rows, sigmas)


def _random_blur(sampling: Sampling, rows: Rows, widest: Floats, slot: int, fill: Colour) -> None:
    """A Gaussian blur of 0.1 to ``widest`` pixels, uniform, as timm's set of three draws it."""
    emit_blur(sampling, rows, 0.1 + (widest - 0.1) * sampling.uniform(rows, slot)[:, 0])


# Policies mean what these transforms declare: SolarizeAdd's threshold is 128 and Gamma's gain 1 wherever they are
# published, and T.Rotate turns about the image's centre.
_ONE_NUMBER: tuple[type[MagnitudeOp], ...] = (
    *(Rotate, ShearX, ShearY, TranslateX, TranslateY),
    *(Brightness, Color, Contrast, Hue, Gamma, Posterize, Solarize, SolarizeAdd, Sharpness, JPEG),
)
EMISSIONS: dict[str, Emission] = {
    "Identity": Emission(Op.NOP),
    "Cutout": Emission(Op.NOP, emitter=_cutout, num_slots=1),
    "GaussianBlur": Emission(Op.NOP, emitter=_blur),
    **{cls.__name__: Emission(cls._op, cls.constants()) for cls in _ONE_NUMBER},
    **{cls.__name__: Emission(cls._op) for cls in (AutoContrast, Equalize, Grayscale, Invert)},
    **{SPECS[op].name: Emission(op) for op in (Op.HFLIP, Op.VFLIP)},
}
# What only a magnitude space may name.
_WITHIN_SPACES = {"GaussianBlurRand": Emission(Op.NOP, emitter=_random_blur, num_slots=1)}


def takes_magnitude(transform: object) -> bool:
    """Can a policy drive this transform: does it have ``emit_magnitude(sampling, rows, values, slot)``?"""
    return isinstance(transform, Transform) and callable(getattr(transform, "emit_magnitude", None))


@dataclass(frozen=True)
class _Driven:
    """The emitter of a transform that takes a magnitude; a class, so that policies can be pickled."""

    transform: Any

    def __call__(self, sampling: Sampling, rows: Rows, values: Floats, slot: int, fill: Colour) -> None:
        self.transform.emit_magnitude(sampling, rows, values, slot)


def emission_of(op: str | Transform) -> Emission:
    """The emission of a catalogue name or of a transform with ``emit_magnitude``."""
    if isinstance(op, str):
        return EMISSIONS[op] if op in EMISSIONS else _WITHIN_SPACES[op]
    return Emission(Op.NOP, emitter=_Driven(op), num_slots=op.num_slots)
