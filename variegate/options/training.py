"""How a classifier is trained: numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from variegate.options import check_options, option

LrSchedule = Literal["cosine", "step"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Hyperparameters:
    """Stochastic gradient descent with Nesterov's momentum, as Population Based Augmentation searches and trains.

    The rest of an epoch that fills no batch is left out, as the reference does. ``lr_schedule``: "cosine" falls to 0 at
    the end (arXiv 1608.03983), "step" to a tenth from the half on, and to a hundredth from three quarters on.
    Convolutions in "float32" use TF32 where torch does; "bfloat16" is torch's autocast.

    Raises ValueError naming the argument.
    """

    epochs: int = option(..., "How many epochs each training takes.", "Training", low=1)
    batch_size: int = option(128, "Images per training step.", "Training", low=1)
    lr: float = option(0.1, "The learning rate at the beginning.", "Training")
    lr_schedule: LrSchedule = option("cosine", "How the learning rate falls.", "Training", metavar="cosine|step")
    weight_decay: float = option(5e-4, "The L2 penalty, of all parameters.", "Training", low=0.0)
    momentum: float = option(0.9, "Nesterov's momentum, of the gradient descent.", "Training", low=0.0)
    clip: float = option(5.0, "The norm that gradients are cut to; 0 leaves them as they are.", "Training", low=0.0)
    precision: Precision = option(
        "float32",
        "The numbers that products and convolutions are computed in; weights stay float32.",
        "Training",
        metavar="float32|bfloat16",
    )

    def __post_init__(self) -> None:
        check_options(self, "lr_schedule", "precision", "epochs", "batch_size", "weight_decay", "momentum", "clip")
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr: got {self.lr!r}; accepted: more than 0, and finite")

    def steps_in(self, images: int) -> int:
        """Steps of an epoch over so many images. Raises ValueError for fewer than a batch has."""
        if self.batch_size > images:
            raise ValueError(
                f"batch_size: got {self.batch_size}, with {images} images to train; accepted: no more than that"
            )
        return images // self.batch_size

    def lr_at(self, progress: float) -> float:
        """``progress``: how much of all epochs is done, 0 to 1."""
        if self.lr_schedule == "cosine":
            return self.lr * 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.lr * (1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01)
