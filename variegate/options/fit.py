"""Options of the trainer: all settings of a training run apart from its data, its model and its seed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from variegate.options import check_options, option

Precision = Literal["float32", "bfloat16", "float16"]
LrSchedule = Literal["cosine", "step", "linear"]
OptimizerName = Literal["sgd", "adamw"]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of a training run.

    ``lr_schedule``: after the warm-up, "cosine" falls to 0 (arXiv 1608.03983), "linear" too, and "step" to a tenth from
    the half on, and to a hundredth from three quarters on. Convolutions in "float32" use TF32 where torch does.
    "bfloat16" and "float16" are torch's autocast, the latter with a loss scaler.

    Raises ValueError naming the argument.
    """

    epochs: int = option(100, "Number of epochs.", "Main options", low=1)
    batch_size: int | None = option(
        None,
        "Batch size per rank. By default 128, or less where an epoch would have fewer than eight steps.",
        "Training",
        low=1,
    )
    accumulate: int = option(1, "Batches to accumulate gradients over before each optimizer step.", "Training", low=1)
    averaging: str = option(
        "sync",
        "Averaging across ranks: gradients in every step (sync), weights every K steps (periodic:K), or weights in "
        "the background of the next step (async).",
        "Training",
        metavar="sync|periodic:K|async",
    )
    optimizer: OptimizerName = option(
        "sgd",
        "Optimizer: SGD with Nesterov momentum, or AdamW, which does not decay biases and normalization layers.",
        "Optimizer",
    )
    lr: float = option(0.1, "Learning rate after warm-up.", "Optimizer")
    lr_schedule: LrSchedule = option(
        "cosine",
        "Learning rate decay after warm-up: to 0 (cosine, linear), or by a factor of 10 at 1/2 and 3/4 of it (step).",
        "Optimizer",
    )
    warmup: float = option(0.0, "Epochs of linear warm-up.", "Optimizer", low=0.0)
    weight_decay: float = option(5e-4, "Weight decay.", "Optimizer", low=0.0)
    momentum: float = option(0.9, "Nesterov momentum of sgd; first beta of adamw.", "Optimizer", low=0.0)
    clip: float = option(5.0, "Maximum gradient norm; 0 disables clipping.", "Optimizer", low=0.0)
    label_smoothing: float = option(
        0.0, "Label smoothing: the share of each label spread evenly over all classes.", "Training", low=0.0, high=1.0
    )
    ema: float = option(
        0.0,
        "Decay of an exponential moving average of the weights, such as 0.999, which is scored and saved. 0 disables "
        "it.",
        "Training",
        low=0.0,
        high=1.0,
    )
    precision: Precision = option(
        "float32", "Precision of convolutions and matrix products; weights stay float32.", "Training"
    )
    pretrained: bool = option(
        False, "Start from timm's pretrained weights for the model.", "Model", flag="--pretrained/--no-pretrained"
    )
    compile: bool = option(False, "Compile the model with torch.compile.", "Machine")

    def __post_init__(self) -> None:
        for name in ("label_smoothing", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: from 0 to below 1")
        check_options(self)
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr: got {self.lr!r}; accepted: more than 0, and finite")
        if self.optimizer != "sgd" and not self.momentum < 1:
            raise ValueError(f"momentum: got {self.momentum!r} with {self.optimizer}; accepted: from 0 to below 1")
        if not self.warmup < self.epochs:
            raise ValueError(f"warmup: got {self.warmup!r}; accepted: fewer than the {self.epochs} epochs")
        self.period  # noqa: B018  raises for wrong values

    @property
    def period(self) -> int:
        """Steps between averages of weights; 0 where gradients are averaged, -1 for "async". Raises ValueError."""
        if self.averaging in ("sync", "async"):
            return 0 if self.averaging == "sync" else -1
        match = re.fullmatch(r"periodic:([1-9]\d{0,8})", self.averaging)
        if match is None:
            accepted = "'sync', 'async', or 'periodic:K' with a number of steps, such as periodic:8"
            raise ValueError(f"averaging: got {self.averaging!r}; accepted: {accepted}")
        return int(match[1])

    def lr_at(self, epoch: float) -> float:
        """The learning rate after ``epoch`` epochs, which may be a fraction."""
        if epoch < self.warmup:
            return self.lr * (0.01 + 0.99 * epoch / self.warmup)
        progress = (epoch - self.warmup) / (self.epochs - self.warmup)
        if self.lr_schedule == "linear":
            return self.lr * (1.0 - progress)
        if self.lr_schedule == "cosine":
            return self.lr * 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.lr * (1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01)
