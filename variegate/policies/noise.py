"""timm's noise on magnitudes, and its interpolation drawn for every operation."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, number, one_of, refused
from variegate.ops.arguments import INTERPOLATIONS, InterpolationName
from variegate.program import rng
from variegate.program.ops import Interpolation
from variegate.program.sampling import Floats

AnyInterpolation = InterpolationName | Literal["random"]


def check_deviation(name: str, value: Any, *, error: Refusal = refused) -> float:
    """A standard deviation, or infinity for "uniform", as timm writes it."""
    return float(value) if isinstance(value, float) and value == np.inf else _finite(name, value, error=error)


_finite = partial(number, low=0, high=1e6)


def check_any_interpolation(name: str, value: Any, *, error: Refusal = refused) -> str:
    """An interpolation's name, or "random": bilinear or bicubic, drawn for every operation."""
    return one_of(name, getattr(value, "value", value), ("random", *INTERPOLATIONS), error=error)


def noisy(level: npt.ArrayLike, deviation: float, words: npt.NDArray[np.uint32], most: float) -> Floats:
    """``level`` with Gaussian noise of ``deviation``, within 0 .. ``most``; infinity: uniform from 0 to ``level``.

    Draws from ``words[R, 4]``.
    """
    level = np.asarray(level, np.float64)
    if np.isinf(deviation):
        level = level * rng.to_unit(words)[:, 0]
    elif deviation > 0:
        level = level + deviation * rng.to_normal(words)[:, 0]
    return np.asarray(np.clip(np.broadcast_to(level, len(words)), 0.0, most))


def drawn_interpolation(unit: Floats) -> npt.NDArray[np.int16]:
    """Bicubic where ``unit[R]`` is below a half, else bilinear."""
    return np.where(unit < 0.5, Interpolation.BICUBIC, Interpolation.BILINEAR).astype(np.int16)
