"""Options of a training, and of a study of its feeds. No default depends on the machine."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from variegate.options import check_options, option, same_option
from variegate.options.recipes import RECIPES, WithRecipe
from variegate.options.rows import Row, parse_row
from variegate.options.search import Hyperparameters, TrainingOptions

Adapt = Literal["none", "gap", "entropy"]
TrainPrecision = Literal["float32", "bfloat16", "float16"]
TrainSchedule = Literal["cosine", "step", "linear"]
LrScale = Literal["none", "linear", "sqrt"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]
OptimizerName = Literal["sgd", "adamw", "lamb"]
LossName = Literal["cross-entropy", "bce"]
TestViews = Literal["none", "flip", "flip-shift"]

# What a run may go on with: none of these decides what becomes of the weights, but for batches on other ranks.
FREE = {"out", "tensorboard", "index", "keep", "checkpoint_every", "timeout", "device", "threads", "compile"}
FREE_ON_OTHER_RANKS = {"batch_size", "accumulate"}
# Rows without --policy. Moved copies of an image have its class on nearly all data; mirrored ones often have not.
DEFAULT_POLICY, DEFAULT_ADAPTED_POLICY = "crop", "randaugment+crop"


@dataclass(frozen=True, kw_only=True)
class TrainOptions(metaclass=WithRecipe):
    """Options of ``train``. None: what fits the images. A ``recipe`` has values for arguments that are not given;
    ``dataclasses.replace`` keeps all that is there.

    Raises ValueError naming the argument.
    """

    recipe: str | None = option(
        None, f"Recipe that sets the defaults of other options: {', '.join(RECIPES)}.", "Training", metavar="NAME"
    )
    validation: str | None = option(
        None, "Validation data set to score the model on during training.", "Main options", metavar="SRC2"
    )
    size: str = option(
        "auto",
        "Image size for the model. auto keeps images of one common size of up to 64 pixels and uses 224x224 for "
        "others; none keeps images of one size as they are.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    index: str = option(
        "none",
        "Read crops of JPEGs through an index, with identical pixels: the one that variegate index wrote (auto), or "
        "a file. Missing entries are added during training.",
        "Images",
        metavar="auto|FILE|none",
    )
    progressive: int | None = option(
        None,
        "Longer side of the images in the first epochs (progressive resizing). It grows to --size over the first 4/5 "
        "of the epochs.",
        "Images",
        low=4,
        metavar="FROM",
    )
    policy: str | None = option(
        None,
        "Augmentation: none, flip, crop, flip+crop, or a policy (a name, a timm string, a file or a schedule) and such "
        f"parts, as in randaugment-1-5+flip+crop+cutout8. By default {DEFAULT_POLICY}; {DEFAULT_ADAPTED_POLICY} "
        "with --adapt.",
        "Main options",
        metavar="POLICY",
    )
    adapt: Adapt = option(
        "none",
        "Adapt magnitudes during training: from the gap between training and validation loss (gap), or for each "
        "image from the model's confidence (entropy).",
        "Augmentation",
    )
    adapt_target: float | None = option(
        None,
        "With gap: relative gap of validation to training loss above which the magnitude rises. By default 0.5.",
        "Augmentation",
        low=0.0,
        high=1.0,
    )
    adapt_step: float | None = option(
        None,
        "With gap: change of the magnitude per epoch, from 0 to 1. By default 0.05.",
        "Augmentation",
        low=0.0,
        high=1.0,
    )
    adapt_from: str | None = option(
        None, "Reuse the magnitudes of another training run, by its folder or log.", "Augmentation", metavar="LOG"
    )
    padding: int | None = option(
        None,
        "Padding of the part crop in pixels, for images that keep their size. By default 1/8 of the side.",
        "Crop and flip",
        low=0,
    )
    padding_mode: PaddingMode = option(
        "constant", "Content of the padding: constant is black, reflect mirrors the image.", "Crop and flip"
    )
    flip: bool = same_option(TrainingOptions, "flip", help="Refuse a --policy with the part flip (--no-flip).")
    alternate_flip: bool = option(
        False,
        "Mirror each image in every other epoch instead of at random. Half of the images start mirrored.",
        "Crop and flip",
        flag="--alternate-flip/--no-alternate-flip",
    )
    cutout: int | None = same_option(
        TrainingOptions, "cutout", help="Side of the part cutout in pixels. By default half of the image side."
    )
    random_erasing: float = option(
        0.0, "Probability of erasing a rectangle, as the last step.", "Crop and flip", low=0.0, high=1.0
    )
    mixup: float = option(
        0.0,
        "MixUp alpha; 0 disables it. With --cutmix, each of the two is applied to half of the images.",
        "Augmentation",
        low=0.0,
    )
    cutmix: float = option(0.0, "CutMix alpha; 0 disables it.", "Augmentation", low=0.0)
    copies: int = option(1, "Times each image is drawn per epoch (repeated augmentation).", "Augmentation", low=1)
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
    drop_path: float = option(
        0.0,
        "Stochastic depth of timm models: the drop rate of the last block; earlier blocks have lower rates.",
        "Model",
        low=0.0,
        high=1.0,
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
    shard: bool = option(
        False,
        "Shard weights, gradients and optimizer state across ranks (FSDP2), for models that do not fit.",
        "Training",
    )
    optimizer: OptimizerName = option(
        "sgd", "Optimizer: SGD with Nesterov momentum, AdamW, or timm's LAMB for large batches.", "Optimizer"
    )
    lr: float = same_option(Hyperparameters, "lr", help="Learning rate after warm-up.")
    lr_schedule: TrainSchedule = same_option(
        Hyperparameters,
        "lr_schedule",
        help="Learning rate decay after warm-up: to 0 (cosine, linear), or by a factor of 10 at 1/2 and 3/4 of it "
        "(step).",
    )
    lr_scale: LrScale = option(
        "none",
        "Scale --lr by the total batch size over --lr-base-size: linear, or its square root (sqrt). The total counts "
        "all ranks and accumulated batches.",
        "Optimizer",
    )
    lr_base_size: int = option(128, "Total batch size that --lr is meant for, with --lr-scale.", "Optimizer", low=1)
    warmup: float = option(0.0, "Epochs of linear warm-up.", "Optimizer", low=0.0)
    weight_decay: float = same_option(Hyperparameters, "weight_decay", help="Weight decay.")
    decay_norms: bool = option(True, "Apply weight decay to biases and normalization layers as well.", "Optimizer")
    momentum: float = same_option(
        Hyperparameters, "momentum", help="Nesterov momentum of sgd; first beta of adamw and lamb."
    )
    clip: float = same_option(Hyperparameters, "clip")
    loss: LossName = option(
        "cross-entropy",
        "Loss: softmax cross-entropy, or binary cross-entropy per class (bce). In mixed images, bce counts classes "
        "with more than 1/5 of the image as present.",
        "Training",
    )
    label_smoothing: float = option(
        0.0, "Label smoothing: the share of each label spread evenly over all classes.", "Training", low=0.0, high=1.0
    )
    entropy_loss: float = option(
        0.0,
        "Weight of the entropy of predictions in the loss (EntLoss), relative to the maximum entropy. Its authors "
        "use 1; 0 disables it.",
        "Training",
        low=0.0,
    )
    ema: float = option(
        0.0,
        "Decay of an exponential moving average of the weights, such as 0.999, which is scored and saved. 0 disables "
        "it.",
        "Training",
        low=0.0,
        high=1.0,
    )
    score_every: int = option(
        1, "Epochs between scorings on --validation. The last epoch is always scored.", "Training", low=1
    )
    tta: TestViews = option(
        "none",
        "Test-time augmentation: average predictions over the image and its mirror image (flip), also moved by a "
        "pixel (flip-shift).",
        "Training",
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
    timeout: float = option(600.0, "Seconds that ranks wait for each other.", "Machine", low=1.0)
    keep: int = option(2, "Number of most recent checkpoints to keep.", "Output", low=1)
    checkpoint_every: int | None = option(
        None, "Steps between checkpoints, in addition to those at the ends of epochs.", "Output", low=1
    )
    tensorboard: bool = option(False, "Write TensorBoard events to OUT/tensorboard as well.", "Output")
    out: Path = option(Path("train"), "Output folder for the log, checkpoints and model.", "Main options")

    def __post_init__(self) -> None:
        self._check_adapt()
        for name in ("label_smoothing", "ema", "drop_path"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: from 0 to below 1")
        if not 0 <= self.random_erasing <= 1:
            raise ValueError(f"random_erasing: got {self.random_erasing!r}; accepted: a probability, from 0 to 1")
        check_options(self)
        if self.row.flip and not self.flip:
            raise ValueError(f"flip: got False with policy {self.policy_name!r}; accepted: a policy without flip")
        if self.optimizer != "sgd" and not self.momentum < 1:
            raise ValueError(f"momentum: got {self.momentum!r} with {self.optimizer}; accepted: from 0 to below 1")
        if not self.warmup < self.epochs:
            raise ValueError(f"warmup: got {self.warmup!r}; accepted: fewer than the {self.epochs} epochs")
        object.__setattr__(self, "out", Path(self.out))
        self.period  # noqa: B018
        self._schedule(1)
        if self.shard:
            for name, accepted in (("averaging", "sync"), ("compile", False)):
                if getattr(self, name) != accepted:
                    raise ValueError(f"{name}: got {getattr(self, name)!r} with shard; accepted: {accepted!r}")
            if self.precision == "float16":
                raise ValueError("precision: got 'float16' with shard; accepted: 'float32', 'bfloat16'")

    def _check_adapt(self) -> None:
        """Raises ValueError, also for options without an effect."""
        for name, low in (("adapt_target", "0"), ("adapt_step", "more than 0")):
            if (value := getattr(self, name)) is None:
                continue
            if self.adapt != "gap":
                raise ValueError(f"{name}: got {value!r} with adapt={self.adapt!r}; accepted: with adapt='gap'")
            if not (0 <= value <= 1 and (value > 0 or name == "adapt_target")):
                raise ValueError(f"{name}: got {value!r}; accepted: from {low} to 1")
        if self.adapt_from is not None and self.adapt != "none":
            raise ValueError(
                f"adapt_from: got {self.adapt_from!r} with adapt={self.adapt!r}; accepted: either of the two"
            )

    @property
    def policy_name(self) -> str:
        """The row that trains, by name: ``policy``, or else the default."""
        return self.row.name

    @property
    def row(self) -> Row:
        """Raises ValueError for a ``policy`` that is no row."""
        is_adapted = self.adapt != "none" or self.adapt_from is not None
        default = DEFAULT_ADAPTED_POLICY if is_adapted else DEFAULT_POLICY
        row = parse_row(default if self.policy is None else self.policy, "policy")
        if row.policy is not None and row.policy.startswith("adaptive:"):
            mode = row.policy.partition(":")[2]
            raise ValueError(f"policy: got {self.policy!r}; accepted: {DEFAULT_ADAPTED_POLICY} with adapt={mode!r}")
        return row

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
        progress = (epoch - self.warmup) / (self.epochs - self.warmup)
        if self.lr_schedule == "linear":
            return self.lr * (1.0 - progress)
        return self._schedule(self.epochs).lr_at(progress)

    def lr_factor(self, images: int) -> float:
        """Of the learning rate in steps of so many images (arXiv 1706.02677)."""
        ratio = images / self.lr_base_size
        return {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[self.lr_scale]

    def _schedule(self, epochs: int) -> Hyperparameters:
        if self.lr_schedule == "linear":
            return Hyperparameters(epochs=epochs, lr=self.lr)
        return Hyperparameters(epochs=epochs, lr=self.lr, lr_schedule=self.lr_schedule)


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Options of ``train --study`` besides those of the training. Raises ValueError naming the argument."""

    study: bool = option(
        False,
        "Time training steps instead of training: with one repeated batch, then with the loader. Writes OUT/study.",
        "Measurement",
    )
    study_seconds: float = option(10.0, "Seconds to time each feed.", "Measurement", low=0.01)

    def __post_init__(self) -> None:
        check_options(self)
        if self.study_seconds > 3600:
            raise ValueError(f"study_seconds: got {self.study_seconds!r}; accepted: 3600 or less")
