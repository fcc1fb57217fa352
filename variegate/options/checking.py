"""What a check of a data set can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from variegate.options import check_options, option
from variegate.options.thresholds import ThresholdOptions


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
        check_options(self, "seed", "near_distance", "threads")
        if self.seed is not None and not self.labels:
            raise ValueError("seed: got it without labels, for which alone anything is trained; accepted: with labels")
        # Not found out when all images are measured.
        if self.near_distance is not None and self.near_distance > 15:
            raise ValueError(f"near_distance: got {self.near_distance}; accepted: an integer from 0 to 15")
