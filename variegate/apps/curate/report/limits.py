"""The thresholds that images were judged by, as a report shows them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Limit(NamedTuple):
    """``column``: of ``charts.MEASURES``, whose values beyond ``value`` are the finding."""

    finding: str
    column: str
    value: float


# Of each threshold, the finding that begins there and the measure it is of. Sizes are given as sides of squares.
_MEANT = {
    "tiny": ("tiny", "pixels"),
    "huge": ("huge", "pixels"),
    "aspect": ("extreme_aspect", "aspect"),
    "dark": ("dark", "bright_end"),
    "bright": ("bright", "dark_end"),
    "low_contrast": ("low_contrast", "contrast"),
    "blurred": ("blurred", "sharpness"),
}


def limits_of(thresholds: Any) -> list[Limit]:
    """``thresholds``: numbers by the names of ``_MEANT``; None where images were not judged."""
    found = []
    for name, (finding, column) in _MEANT.items():
        value = getattr(thresholds, name, None)
        if value is not None and math.isfinite(value):
            found.append(Limit(finding, column, value * value if column == "pixels" else value))
    return found
