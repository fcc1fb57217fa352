"""Options of a check: the thresholds of findings, and what else it looks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from variegate.options import check_options, option


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """Thresholds; None follows from the data set. Raises ValueError naming the argument."""

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
        check_options(self)
        if self.tiny is not None and self.huge is not None and self.tiny >= self.huge:
            raise ValueError(f"tiny: got {self.tiny!r} with huge {self.huge!r}; accepted: less than that")


@dataclass(frozen=True, kw_only=True)
class CheckingOptions(ThresholdOptions):
    """Raises ValueError naming the argument."""

    out: Path | None = option(
        None,
        "The Parquet file of measures and findings, a row per image. While it is made, what is done so far lies beside "
        "it, so that the same command goes on.",
        "Output",
        metavar="FILE",
    )
    report: Path | None = option(None, "An HTML report of it all, in one file.", "Output", metavar="FILE")
    labels: bool = option(
        False,
        "Find labels that are likely to be wrong, by short trainings and cleanlab. Takes minutes, and the extra "
        "'variegate[labels]'.",
        "Training",
    )
    seed: int | None = option(None, "What the trainings of --labels follow from; 0 without it.", "Training", low=0)
    near_distance: int | None = option(
        None,
        "Near duplicates: their perceptual hashes differ in at most so many of 64 bits, 0 to 15.",
        "Thresholds",
        low=0,
        high=15,
        metavar="BITS",
    )
    threads: int | None = option(None, "How many threads. Without it, all cores.", "Machine", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is not None and not self.labels:
            raise ValueError("seed: got it without labels, for which alone anything is trained; accepted: with labels")
