"""From where on an image is dark, tiny, blurred, ...: what a user says, else what follows from the data set itself.

A bound that no ordinary photo is beyond is a start. Where more than a quarter of the data set is beyond it, such images
are what the set is of, and the bound moves out to where an image is odd among these: four standard deviations, taken
from the middle half of the images, from their median. So night photos are not dark as a whole, and a clean set has no
share of its images called odd by construction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variegate.options.thresholds import ThresholdOptions

Values = npt.NDArray[np.float64]

DARK, BRIGHT, LOW_CONTRAST, ASPECT, IMBALANCE = 0.25, 0.75, 0.05, 4.0, 10.0
# Of a data set that is sharp throughout, what is odd in it is a little sharper than what is blurred elsewhere.
_BLURRED = (1.2, 1.5)
# Sides of squares as large as an image are compared with those of the median: a sixteenth of its pixels, or 16 times.
_SIZE_RATIO = 4.0
_FEW, _MANY_BEYOND = 20, 0.25
_SIGMAS = 4.0
# The middle half of a normal distribution is this many standard deviations to either side of its median.
_QUARTILE = 0.6745


@dataclass(frozen=True)
class Thresholds:
    """An image is found fault with that lies beyond: below ``dark`` (with ``bright_end``), ``low_contrast``
    (``contrast``), ``blurred`` (``sharpness``) and ``tiny``, above ``bright`` (``dark_end``), ``huge`` and ``aspect``.
    ``tiny`` and ``huge``: pixels, as the side of a square; ``aspect``: the longer side by the shorter. ``imbalance``:
    the images of the largest class by those of the smallest."""

    dark: float
    bright: float
    low_contrast: float
    blurred: float
    tiny: float
    huge: float
    aspect: float
    imbalance: float


def thresholds_for(table: pa.Table, given: ThresholdOptions | None = None) -> Thresholds:
    """From the train split, for all. ``table``: of ``SCHEMA``, findings apart."""
    columns = table.select(["height", "width", "dark_end", "bright_end", "contrast", "sharpness"])
    train = columns.filter(pc.and_(pc.equal(table["split"], "train"), pc.is_null(table["error"])))
    given = given or ThresholdOptions()
    sides = np.log(np.maximum(side_of(train), 1))
    sharpness = _column(train, "sharpness")
    found: dict[str, float] = {
        "dark": _below(_column(train, "bright_end"), DARK, _logit, _from_logit),
        "bright": 1 - _below(1 - _column(train, "dark_end"), 1 - BRIGHT, _logit, _from_logit),
        "low_contrast": _below(_column(train, "contrast"), LOW_CONTRAST, _log, math.exp),
        "blurred": _below(sharpness, _blur_start(sharpness), _log, math.exp),
        "tiny": math.exp(_size_fence(sides, -1)),
        "huge": math.exp(_size_fence(sides, 1)),
        "aspect": 1 / _below(1 / aspect_of(train), 1 / ASPECT, _log, math.exp),
        "imbalance": IMBALANCE,
    }
    set_by_user = {name: getattr(given, name) for name in found if getattr(given, name) is not None}
    return Thresholds(**(found | set_by_user))


def side_of(table: pa.Table) -> Values:
    """Of the square with as many pixels; NaN where an image has none."""
    return np.sqrt(_raw(table, "height") * _raw(table, "width"))


def aspect_of(table: pa.Table) -> Values:
    """The longer side by the shorter."""
    height, width = _raw(table, "height"), _raw(table, "width")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(height, width) / np.minimum(height, width)


def _raw(table: pa.Table, name: str) -> Values:
    return np.asarray(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _column(table: pa.Table, name: str) -> Values:
    values = _raw(table, name)
    return values[np.isfinite(values)]


def _below(values: Values, bound: float, to_line: Any, from_line: Any) -> float:
    """``bound``, or where many are below it, a fence further down on the scale ``to_line``, on which the values are
    about normal."""
    values = values[np.isfinite(values)]
    if len(values) < _FEW or np.mean(values < bound) <= _MANY_BEYOND:
        return bound
    return float(min(bound, from_line(_fence(to_line(values), -1))))


def _fence(values: Values, sign: int) -> float:
    quarter, middle = np.quantile(values, [0.25 if sign < 0 else 0.75, 0.5])
    return float(middle + sign * _SIGMAS * abs(middle - quarter) / _QUARTILE)


def _size_fence(sides: Values, sign: int) -> float:
    """Of logarithms of sides."""
    sides = sides[np.isfinite(sides)]
    if not len(sides):
        return -math.inf if sign < 0 else math.inf
    ratio = sign * math.log(_SIZE_RATIO if len(sides) >= _FEW else 2 * _SIZE_RATIO)
    furthest = max if sign > 0 else min
    return furthest(float(np.median(sides)) + ratio, _fence(sides, sign))


def _blur_start(sharpness: Values) -> float:
    """Four standard deviations below the median, taken from the quarter above it, which blurred images change least."""
    least, most = _BLURRED
    if len(sharpness) < _FEW:
        return least
    values = _log(sharpness)
    return float(np.clip(math.exp(2 * float(np.median(values)) - _fence(values, 1)), least, most))


def _log(values: Values) -> Values:
    return np.log(np.maximum(values, 1e-4))


def _logit(values: Values) -> Values:
    inside = np.clip(values, 1e-3, 1 - 1e-3)
    return np.log(inside / (1 - inside))


def _from_logit(value: float) -> float:
    return 1 / (1 + math.exp(-value))
