"""Options of a training. No default depends on the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from variegate.options import check_options, option, same_option
from variegate.options.recipes import with_recipe
from variegate.options.rows import Row, parse_row
from variegate.options.search import Hyperparameters, TrainingOptions

Adapt = Literal["none", "entropy"]
TrainPrecision = Literal["float32", "bfloat16", "float16"]
TrainSchedule = Literal["cosine", "step", "linear"]
OptimizerName = Literal["sgd", "adamw"]

# Options that a resumed run may change, because they do not affect the weights.
FREE = {"out", "tensorboard", "checkpoint_every", "device", "threads", "compile"}
# Options that it may change as well if the number of ranks changes.
FREE_ON_OTHER_RANKS = {"batch_size", "accumulate"}
# Rows without --policy. Moved copies of an image have its class on nearly all data; mirrored ones often have not.
DEFAULT_POLICY = "crop"
DEFAULT_ADAPTED_POLICY = "randaugment+crop"


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of ``train``. None: chosen by the images. Raises ValueError naming the argument."""

    validation: str | None = option(
        None, "Validation data set to score the model on after each epoch.", "Main options", metavar="SRC2"
    )
    size: str = option(
        "auto",
        "Image size for the model. auto keeps images of one common size of up to 64 pixels and chooses a size for "
        "others; none keeps images of one size as they are.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    policy: str | None = option(
        None,
        "Augmentation: none, flip, crop, flip+crop, or a policy (a name, a timm string, a file or a schedule) and such "
        f"parts, as in randaugment-1-5+flip+crop4+cutout8. By default {DEFAULT_POLICY}; {DEFAULT_ADAPTED_POLICY} "
        "with --adapt.",
        "Main options",
        metavar="POLICY",
    )
    adapt: Adapt = option(
        "none",
        "Adapt the magnitudes of RandAugment to each image during training, by the model's confidence (entropy).",
        "Augmentation",
    )
    mixup: float = option(
        0.0,
        "MixUp alpha; 0 disables it. With --cutmix, each of the two is applied to half of the images.",
        "Augmentation",
        low=0.0,
    )
    cutmix: float = option(0.0, "CutMix alpha; 0 disables it.", "Augmentation", low=0.0)
    random_erasing: float = option(
        0.0, "Probability of erasing a rectangle, as the last step.", "Augmentation", low=0.0, high=1.0
    )
    model: str | None = same_option(
        TrainingOptions,
        "model",
        panel="Main options",
        help="Network: wrn-DEPTH-WIDTH, airbench-94xWIDTH, timm:NAME, or package.module:factory, which is called with "
        "num_classes. By default wrn-28-2, or wrn-16-1 for fewer than 2,000 images.",
    )
    pretrained: bool = option(
        False, "Start from timm's pretrained weights for the model.", "Model", flag="--pretrained/--no-pretrained"
    )
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
    lr: float = same_option(Hyperparameters, "lr", help="Learning rate after warm-up.")
    lr_schedule: TrainSchedule = same_option(
        Hyperparameters,
        "lr_schedule",
        help="Learning rate decay after warm-up: to 0 (cosine, linear), or by a factor of 10 at 1/2 and 3/4 of it "
        "(step).",
    )
    warmup: float = option(0.0, "Epochs of linear warm-up.", "Optimizer", low=0.0)
    weight_decay: float = same_option(Hyperparameters, "weight_decay", help="Weight decay.")
    momentum: float = same_option(Hyperparameters, "momentum", help="Nesterov momentum of sgd; first beta of adamw.")
    clip: float = same_option(Hyperparameters, "clip")
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
    precision: TrainPrecision = same_option(Hyperparameters, "precision", default="float32")
    seed: int = option(0, "Seed for weight initialization, shuffling and augmentation.", "Training", low=0)
    device: str = option(
        "auto",
        "Device: cpu, cuda, cuda:N, or auto (a GPU for each rank if there are any).",
        "Machine",
        metavar="DEVICE",
    )
    threads: int | None = option(None, "Threads of the loader. By default, all cores.", "Machine", low=1)
    compile: bool = option(False, "Compile the model with torch.compile.", "Machine")
    checkpoint_every: int | None = option(
        None, "Steps between checkpoints, in addition to those at the ends of epochs.", "Output", low=1
    )
    tensorboard: bool = option(False, "Write TensorBoard events to OUT/tensorboard as well.", "Output")
    out: Path = option(Path("train"), "Output folder for the log, checkpoints and model.", "Main options")

    def __post_init__(self) -> None:
        for name in ("label_smoothing", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: from 0 to below 1")
        check_options(self)
        if self.optimizer != "sgd" and not self.momentum < 1:
            raise ValueError(f"momentum: got {self.momentum!r} with {self.optimizer}; accepted: from 0 to below 1")
        if not self.warmup < self.epochs:
            raise ValueError(f"warmup: got {self.warmup!r}; accepted: fewer than the {self.epochs} epochs")
        object.__setattr__(self, "out", Path(self.out))
        # These raise for wrong values.
        self.row  # noqa: B018
        self.period  # noqa: B018
        self._schedule(1)

    @classmethod
    def from_recipe(cls, recipe: str, **passed: Any) -> TrainOptions:
        """Options of a recipe, replaced by those that are passed. Raises ValueError."""
        return cls(**with_recipe(recipe, passed))

    @property
    def policy_name(self) -> str:
        """The name of ``row``."""
        return self.row.name

    @property
    def row(self) -> Row:
        """The policy and its parts: those of ``policy``, or the default. Raises ValueError."""
        default = DEFAULT_POLICY if self.adapt == "none" else DEFAULT_ADAPTED_POLICY
        row = parse_row(default if self.policy is None else self.policy, "policy")
        if row.policy is not None and row.policy.startswith("adaptive:"):
            mode = row.policy.partition(":")[2]
            raise ValueError(f"policy: got {self.policy!r}; accepted: {DEFAULT_ADAPTED_POLICY} with adapt={mode!r}")
        return row

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
        return self._schedule(self.epochs).lr_at(progress)

    def _schedule(self, epochs: int) -> Hyperparameters:
        if self.lr_schedule == "linear":
            return Hyperparameters(epochs=epochs, lr=self.lr)
        return Hyperparameters(epochs=epochs, lr=self.lr, lr_schedule=self.lr_schedule)
