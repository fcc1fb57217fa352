"""What a study of feeds can be told."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.options import check_options, option


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Of ``train --study``, besides those of the training that is studied.

    Raises ValueError naming the argument.
    """

    study: bool = option(
        False,
        "Train nothing: time the training's step, fed by one batch repeated, by Variegate, and by DataLoader with "
        "torchvision and DALI where they are installed. Writes OUT/study.",
        "Measurement",
    )
    study_seconds: float = option(
        10.0, "How long the step is timed with each feed.", "Measurement", low=0.01, high=3600
    )

    def __post_init__(self) -> None:
        check_options(self, "study_seconds")
        if self.study_seconds > 3600:
            raise ValueError(f"study_seconds: got {self.study_seconds!r}; accepted: 3600 or less")
