"""What is odd about the size and the pixels of an image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.curate.judging.thresholds import Thresholds, aspect_of, side_of
from variegate.apps.curate.judging.verdicts import Verdicts

# One colour, but for a level or so of a byte, as JPEG's rounding leaves it.
_BLANK = 1.0 / 255
# With more contrast a dark or bright image has lines on its white, or lights in its night, and is meant so.
_DRAWN = 0.12
# Smaller ones have too few edges for a verdict on their sharpness.
_LEAST_SIDE = 16


def look_findings(verdicts: Verdicts, thresholds: Thresholds) -> None:
    """tiny, huge, extreme_aspect, blank, dark, bright, low_contrast, blurred.

    An image has the first of blank, dark or bright, low_contrast, blurred that holds: what is blank has no contrast,
    and of what is hardly seen nobody can say whether it is sharp.
    """
    decodes = verdicts.table["error"].is_null().to_numpy(zero_copy_only=False)
    side = np.where(decodes, side_of(verdicts.table), np.nan)
    aspect = np.where(decodes, aspect_of(verdicts.table), np.nan)
    limits = thresholds
    with np.errstate(invalid="ignore"):
        verdicts.add(
            "tiny", side < limits.tiny, lambda row: _size(verdicts, row) + f"fewer than {limits.tiny:.0f} squared", side
        )
        verdicts.add(
            "huge", side > limits.huge, lambda row: _size(verdicts, row) + f"more than {limits.huge:.0f} squared", side
        )
        verdicts.add(
            "extreme_aspect",
            aspect > limits.aspect,
            lambda row: f"one side is {aspect[row]:.1f} times the other, more than {limits.aspect:.1f}",
            aspect,
        )
        spread = _largest(verdicts.table["std"])
        is_blank = spread <= _BLANK
        verdicts.add("blank", is_blank, lambda row: "all pixels have one colour", spread)
        light, shade = verdicts.column("bright_end"), verdicts.column("dark_end")
        contrast, sharpness = verdicts.column("contrast"), verdicts.column("sharpness")
        is_faint = ~is_blank & (contrast < _DRAWN)
        is_dark, is_bright = (light < limits.dark) & is_faint, (shade > limits.bright) & is_faint
        verdicts.add(
            "dark",
            is_dark,
            lambda row: f"95 % of it has luminance up to {light[row]:.3f}, below {limits.dark:.3f}",
            light,
        )
        verdicts.add(
            "bright",
            is_bright,
            lambda row: f"95 % of it has luminance from {shade[row]:.3f} on, above {limits.bright:.3f}",
            shade,
        )
        is_flat = (contrast < limits.low_contrast) & ~is_blank & ~is_dark & ~is_bright
        verdicts.add(
            "low_contrast",
            is_flat,
            lambda row: f"luminance has a standard deviation of {contrast[row]:.3f}, below {limits.low_contrast:.3f}",
            contrast,
        )
        shorter = np.minimum(verdicts.column("height"), verdicts.column("width"))
        is_seen = ~is_blank & ~is_dark & ~is_bright & ~is_flat & (shorter >= _LEAST_SIDE)
        verdicts.add(
            "blurred",
            (sharpness < limits.blurred) & is_seen,
            lambda row: f"sharpness is {sharpness[row]:.3f}, below {limits.blurred:.3f}",
            sharpness,
        )


def _size(verdicts: Verdicts, row: int) -> str:
    height, width = (verdicts.table[name][row].as_py() for name in ("height", "width"))
    return f"{width} x {height} pixels, "


def _largest(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Of each list; NaN where there is none."""
    largest = np.full(len(column), np.nan)
    lists = column.is_valid().to_numpy(zero_copy_only=False)
    if lists.any():
        largest[lists] = pc.list_flatten(column).to_numpy().reshape(int(lists.sum()), -1).max(1)
    return largest
