"""From where on a check finds fault with an image."""

from __future__ import annotations

import math
from dataclasses import dataclass

from variegate.options import option


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """What is None follows from the data set. Raises ValueError naming the argument."""

    dark: float | None = option(
        None, "Dark: 95 % of the pixels are below this luminance, 0 to 1.", "Thresholds", low=0, high=1
    )
    bright: float | None = option(
        None, "Bright: 95 % of the pixels are above this luminance, 0 to 1.", "Thresholds", low=0, high=1
    )
    low_contrast: float | None = option(
        None,
        "Low contrast: the standard deviation of luminance is below this, 0 to 0.5.",
        "Thresholds",
        low=0,
        high=0.5,
    )
    blurred: float | None = option(
        None,
        "Blurred: sharpness is below this; 1 is that of edges blurred by a Gaussian of one pixel.",
        "Thresholds",
        low=0,
    )
    tiny: float | None = option(
        None, "Tiny: fewer pixels than a square of this side.", "Thresholds", low=0, metavar="SIDE"
    )
    huge: float | None = option(
        None, "Huge: more pixels than a square of this side.", "Thresholds", low=1, metavar="SIDE"
    )
    aspect: float | None = option(
        None, "Extreme aspect: the longer side is more than so many times the shorter.", "Thresholds", low=1
    )
    imbalance: float | None = option(
        None,
        "Imbalance: the largest class has more than so many times the images of the smallest.",
        "Thresholds",
        low=1,
    )

    def __post_init__(self) -> None:
        for name in ThresholdOptions.__dataclass_fields__:
            value = getattr(self, name)
            low = 1.0 if name in ("huge", "aspect", "imbalance") else 0.0
            high = {"dark": 1.0, "bright": 1.0, "low_contrast": 0.5}.get(name, math.inf)
            if value is not None and not low <= value <= high:
                accepted = f"{low:g} or more" if high == math.inf else f"{low:g} to {high:g}"
                raise ValueError(f"{name}: got {value!r}; accepted: {accepted}, or nothing")
        if self.tiny is not None and self.huge is not None and self.tiny >= self.huge:
            raise ValueError(f"tiny: got {self.tiny!r} with huge {self.huge!r}; accepted: less than that")
