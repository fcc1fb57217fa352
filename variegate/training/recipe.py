"""How a classifier is trained: numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

LR_SCHEDULES = ("cosine", "step")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent with Nesterov's momentum, as Population Based Augmentation searches and trains.

    Args:
        epochs: how long, which the learning rate's schedule is spread over.
        batch_size: images in a step; the rest of an epoch that fills none is left out, as the reference does.
        lr: the learning rate at the beginning.
        lr_schedule: "cosine" (to 0 at the end, arXiv 1608.03983) or "step" (a tenth from the half on, a hundredth from
            three quarters on).
        weight_decay: L2, of all parameters.
        momentum, clip: of the updates; the gradient's norm is cut to ``clip`` (0: not at all).
        precision: "float32", or "bfloat16" for products and convolutions in that (torch's autocast); weights stay
            float32. Convolutions in "float32" use TF32 where torch does.

    Raises ValueError naming the argument.
    """

    epochs: int
    batch_size: int = 128
    lr: float = 0.1
    lr_schedule: str = "cosine"
    weight_decay: float = 5e-4
    momentum: float = 0.9
    clip: float = 5.0
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.lr_schedule not in LR_SCHEDULES:
            raise ValueError(f"lr_schedule: got {self.lr_schedule!r}; accepted: {', '.join(map(repr, LR_SCHEDULES))}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision: got {self.precision!r}; accepted: {', '.join(map(repr, PRECISIONS))}")
        for name, least in (("epochs", 1), ("batch_size", 1), ("weight_decay", 0), ("momentum", 0), ("clip", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: {least} or more")
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
