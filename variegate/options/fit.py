"""Options of the trainer: all settings of a training run apart from its data, its model and its seed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from variegate.options import Opt, Options

Precision = Literal["float32", "bfloat16", "float16"]
LrSchedule = Literal["cosine", "step", "linear"]
OptimizerName = Literal["sgd", "adamw"]
BatchSize: TypeAlias = Annotated[
    int | None,
    Opt(
        "Images per training step and rank. By default 128, or fewer where an epoch would have fewer than eight steps.",
        "Training",
        ge=1,
        is_main=True,
    ),
]
Lr: TypeAlias = Annotated[float, Opt("Learning rate, after the warm-up if there is one.", "Optimizer", is_main=True)]
Decay: TypeAlias = Annotated[
    LrSchedule,
    Opt(
        "Learning rate decay after warm-up: to 0 (cosine, linear), or by a factor of 10 at 1/2 and 3/4 of it (step).",
        "Optimizer",
    ),
]
WeightDecay: TypeAlias = Annotated[float, Opt("Weight decay (L2 penalty).", "Optimizer", ge=0.0)]
Momentum: TypeAlias = Annotated[
    float, Opt("Nesterov momentum of sgd; first beta of adamw, if there is a choice.", "Optimizer", ge=0.0)
]
Clip: TypeAlias = Annotated[float, Opt("Maximum gradient norm; 0 disables clipping.", "Optimizer", ge=0.0)]
TrainPrecision: TypeAlias = Annotated[
    Precision, Opt("Precision of convolutions and matrix products; weights stay float32.", "Training")
]
Model: TypeAlias = Annotated[
    str | None,
    Opt(
        "Network: wrn-DEPTH-WIDTH, airbench-94xWIDTH, timm:NAME, or package.module:factory, which is called with "
        "num_classes. By default wrn-28-2, or wrn-16-1 for fewer than 2,000 images.",
        "Model",
        is_main=True,
    ),
]
TrainingSeed: TypeAlias = Annotated[
    int, Opt("Seed for splits, weight initialization, shuffling and augmentation.", "Training", ge=0)
]


@dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    """Options of a training run.

    ``lr_schedule``: after the warm-up, "cosine" (arXiv 1608.03983) and "linear" fall to 0. "step" falls to 1/10 at half
    and to 1/100 at three quarters. Convolutions in "float32" use TF32 where torch does. "bfloat16" and
    "float16" are torch's autocast, the latter with a loss scaler.

    Raises ValueError naming the argument.
    """

    epochs: Annotated[
        int | None,
        Opt("Number of epochs. By default 10 million images in all, from 30 to 200.", "Training", ge=1, is_main=True),
    ] = None
    batch_size: BatchSize = None
    accumulate: Annotated[
        int, Opt("Batches to accumulate gradients over before each optimizer step.", "Training", ge=1)
    ] = 1
    averaging: Annotated[
        str,
        Opt(
            "Averaging across ranks: gradients in every step (sync), weights every K steps (periodic:K), or weights in "
            "the background of the next step (async).",
            "Training",
            metavar="sync|periodic:K|async",
        ),
    ] = "sync"
    optimizer: Annotated[
        OptimizerName,
        Opt(
            "Optimizer: SGD with Nesterov momentum, or AdamW, which does not decay biases and normalization layers.",
            "Optimizer",
        ),
    ] = "sgd"
    lr: Lr = 0.1
    lr_schedule: Decay = "cosine"
    warmup: Annotated[float, Opt("Epochs of linear warm-up.", "Optimizer", ge=0.0)] = 0.0
    weight_decay: WeightDecay = 5e-4
    momentum: Momentum = 0.9
    clip: Clip = 5.0
    label_smoothing: Annotated[
        float,
        Opt("Label smoothing: the share of each label spread evenly over all classes.", "Training", ge=0.0, le=1.0),
    ] = 0.0
    ema: Annotated[
        float,
        Opt(
            "Decay of an exponential moving average of the weights, such as 0.999, which is scored and saved. 0 "
            "disables it.",
            "Training",
            ge=0.0,
            le=1.0,
        ),
    ] = 0.0
    precision: TrainPrecision = "float32"
    pretrained: Annotated[
        bool, Opt("Start from timm's pretrained weights for the model.", "Model", flag="--pretrained/--no-pretrained")
    ] = False
    compile: Annotated[bool, Opt("Compile the model with torch.compile.", "Machine")] = False

    def __post_init__(self) -> None:
        for name in ("label_smoothing", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: from 0 to below 1")
        super().__post_init__()
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr: got {self.lr!r}; accepted: more than 0, and finite")
        if self.optimizer != "sgd" and not self.momentum < 1:
            raise ValueError(f"momentum: got {self.momentum!r} with {self.optimizer}; accepted: from 0 to below 1")
        if self.epochs is not None and not self.warmup < self.epochs:
            raise ValueError(f"warmup: got {self.warmup!r}; accepted: fewer than the {self.epochs} epochs")
        self.period  # noqa: B018  raises for wrong values

    @property
    def num_epochs(self) -> int:
        """Number of epochs, once it is known."""
        assert self.epochs is not None
        return self.epochs

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
        progress = (epoch - self.warmup) / (self.num_epochs - self.warmup)
        if self.lr_schedule == "linear":
            return self.lr * (1.0 - progress)
        if self.lr_schedule == "cosine":
            return self.lr * 0.5 * (1.0 + math.cos(math.pi * progress))
        return self.lr * (1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01)
