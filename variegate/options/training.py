"""What a training can be told. Nothing that is not given depends on the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from variegate.options import check_options, option, same_option
from variegate.options.search import Hyperparameters, LrSchedule, TrainingOptions

TrainPrecision = Literal["float32", "bfloat16", "float16"]

# What a run may go on with: none of these decides what becomes of the weights, but for batches on other ranks.
FREE = {"out", "tensorboard", "keep", "checkpoint_every", "timeout", "device", "threads", "compile"}
FREE_ON_OTHER_RANKS = {"batch_size", "accumulate"}


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Of ``train``. None: what fits the images.

    Raises ValueError naming the argument.
    """

    validation: str | None = option(None, "Other images score the model after each epoch.", "Images", metavar="SRC2")
    size: str = option(
        "auto",
        "What the model sees. auto keeps images that have one size of up to 64 pixels, and takes 224x224 of others; "
        "none takes images of one size as they are.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    policy: str = option(
        "randaugment",
        "What is done to an image besides a crop and a flip: a name, a string of timm's or a file as augment takes "
        "them, a schedule (by the epoch), a file with MixUp or CutMix, or none.",
        "Augmentation",
        metavar="POLICY",
    )
    padding: int | None = option(
        None,
        "Of images that keep their size: the border of the random crop. By default an eighth of the side.",
        "Around the policy",
        low=0,
    )
    flip: bool = same_option(TrainingOptions, "flip")
    cutout: int = option(
        0, "Of images that keep their size: the side of the square that is cut out.", "Around the policy", low=0
    )
    model: str | None = same_option(TrainingOptions, "model")
    epochs: int = option(100, "How many epochs to train.", "Training", low=1)
    batch_size: int | None = option(
        None,
        "Images of a batch on each rank. By default 128, and fewer where an epoch would have fewer than eight steps.",
        "Training",
        low=1,
    )
    accumulate: int = option(1, "A step adds up the gradients of so many batches.", "Training", low=1)
    averaging: str = option(
        "sync",
        "How ranks keep together: sync averages gradients in every step, periodic:K weights in every K-th step, async "
        "weights behind the step that comes next.",
        "Training",
        metavar="sync|periodic:K|async",
    )
    lr: float = same_option(Hyperparameters, "lr")
    lr_schedule: LrSchedule = same_option(Hyperparameters, "lr_schedule")
    warmup: float = option(0.0, "So many epochs at first in which the learning rate rises.", "Training", low=0.0)
    weight_decay: float = same_option(Hyperparameters, "weight_decay")
    momentum: float = same_option(Hyperparameters, "momentum")
    clip: float = same_option(Hyperparameters, "clip")
    label_smoothing: float = option(
        0.0, "This share of each label goes to all classes alike.", "Training", low=0.0, high=1.0
    )
    ema: float = option(
        0.0,
        "Score and keep a moving average of the weights that has so much of itself left after a step, such as 0.999; "
        "0 for none.",
        "Training",
        low=0.0,
        high=1.0,
    )
    precision: TrainPrecision = same_option(
        Hyperparameters, "precision", default="float32", metavar="float32|bfloat16|float16"
    )
    seed: int = option(0, "It decides weights, orders and augmentations.", "Training", low=0)
    device: str = option(
        "auto", "cpu, cuda, cuda:N, or auto: a GPU for each rank if there are any.", "Machine", metavar="DEVICE"
    )
    threads: int | None = option(None, "The loader's threads. Without it, all cores.", "Machine", low=1)
    compile: bool = option(False, "The model goes through torch.compile.", "Machine")
    timeout: float = option(600.0, "How many seconds ranks wait for each other.", "Machine", low=1.0)
    keep: int = option(2, "How many checkpoints stay, the latest ones.", "Output", low=1)
    checkpoint_every: int | None = option(
        None, "So many steps between checkpoints, besides those at the ends of epochs.", "Output", low=1
    )
    tensorboard: bool = option(False, "Write TensorBoard's events to OUT/tensorboard, too.", "Output")
    out: Path = option(Path("train"), "The folder for the log, the checkpoints and the model.", "Output")

    def __post_init__(self) -> None:
        names = ("epochs", "batch_size", "accumulate", "padding", "cutout", "threads", "keep", "checkpoint_every")
        check_options(self, *names, "lr_schedule", "precision", "weight_decay", "momentum", "clip", "warmup", "timeout")
        for name in ("label_smoothing", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: from 0 to below 1")
        if not self.warmup < self.epochs:
            raise ValueError(f"warmup: got {self.warmup!r}; accepted: fewer than the {self.epochs} epochs")
        object.__setattr__(self, "out", Path(self.out))
        self.period  # noqa: B018
        self._schedule(1)

    @property
    def period(self) -> int:
        """Steps between averages of weights; 0 where gradients are averaged, -1 for "async". Raises ValueError."""
        found = re.fullmatch(r"sync|async|periodic:([1-9]\d{0,8})", self.averaging)
        if found is None:
            accepted = "'sync', 'async', or 'periodic:K' with a number of steps, such as periodic:8"
            raise ValueError(f"averaging: got {self.averaging!r}; accepted: {accepted}")
        return int(found[1]) if found[1] else 0 if self.averaging == "sync" else -1

    def lr_at(self, epoch: float) -> float:
        """The learning rate, after so many epochs and parts of one."""
        if epoch < self.warmup:
            return self.lr * (0.01 + 0.99 * epoch / self.warmup)
        return self._schedule(self.epochs).lr_at((epoch - self.warmup) / (self.epochs - self.warmup))

    def _schedule(self, epochs: int) -> Hyperparameters:
        return Hyperparameters(epochs=epochs, lr=self.lr, lr_schedule=self.lr_schedule)
