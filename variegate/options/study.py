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

    keras: str | None = option(
        None,
        "With --study: a model of Keras on TensorFlow instead, made by factory(shape, classes). Its fit is timed under "
        "MirroredStrategy, fed by one batch repeated, by Variegate, and by tf.data with Keras' layers.",
        "Measurement",
        metavar="package.module:factory",
    )

    def __post_init__(self) -> None:
        check_options(self, "study_seconds")
        if self.study_seconds > 3600:
            raise ValueError(f"study_seconds: got {self.study_seconds!r}; accepted: 3600 or less")
        if self.keras is not None and not self.study:
            raise ValueError(f"keras: got {self.keras!r} without --study; accepted: together with it")
