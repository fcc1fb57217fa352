"""Options of a training, and of a study of its feeds. No default depends on the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from variegate.options import check_options, option, same_option
from variegate.options.recipes import RECIPES, WithRecipe
from variegate.options.search import Hyperparameters, TrainingOptions

Adapt = Literal["none", "gap", "entropy"]
TrainPrecision = Literal["float32", "bfloat16", "float16"]
TrainSchedule = Literal["cosine", "step", "linear"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]
OptimizerName = Literal["sgd", "adamw", "lamb"]
LossName = Literal["cross-entropy", "bce"]
TestViews = Literal["none", "flip", "flip-shift"]

# What a run may go on with: none of these decides what becomes of the weights, but for batches on other ranks.
FREE = {"out", "tensorboard", "index", "keep", "checkpoint_every", "timeout", "device", "threads", "compile"}
FREE_ON_OTHER_RANKS = {"batch_size", "accumulate"}


@dataclass(frozen=True, kw_only=True)
class TrainOptions(metaclass=WithRecipe):
    """Options of ``train``. None: what fits the images. A ``recipe`` has values for arguments that are not given;
    ``dataclasses.replace`` keeps all that is there.

    Raises ValueError naming the argument.
    """

    recipe: str | None = option(
        None, f"Other defaults for all that is not given: {', '.join(RECIPES)}.", "Training", metavar="NAME"
    )
    validation: str | None = option(None, "Other images score the model after each epoch.", "Images", metavar="SRC2")
    size: str = option(
        "auto",
        "What the model sees. auto keeps images that have one size of up to 64 pixels, and takes 224x224 of others; "
        "none takes images of one size as they are.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    index: str = option(
        "none",
        "Cut crops out of coded JPEGs by an index, with the same pixels: auto for the one of variegate index, or FILE. "
        "What it lacks is added beside the epochs.",
        "Images",
        metavar="auto|FILE|none",
    )
    progressive: int | None = option(
        None,
        "The longer side in the first epochs: it grows to --size within the first four fifths of them, in steps of 32 "
        "pixels, of images below 128 pixels of 4.",
        "Images",
        low=4,
        metavar="FROM",
    )
    policy: str = option(
        "randaugment",
        "What is done to an image besides a crop and a flip: a name, a string of timm's or a file as augment takes "
        "them, a schedule (by the epoch), a file with MixUp or CutMix, or none.",
        "Augmentation",
        metavar="POLICY",
    )
    adapt: Adapt = option(
        "none",
        "How the magnitude of RandAugment, or of what a file has at given magnitudes, follows the training: gap moves "
        "it by the loss of validation images beside that of images that train, entropy gives each image its own by the "
        "model's confidence.",
        "Augmentation",
    )
    adapt_target: float | None = option(
        None,
        "With gap: the magnitude rises while more than this share of the validation loss is not there for images that "
        "train, and falls otherwise. By default 0.5.",
        "Augmentation",
        low=0.0,
        high=1.0,
    )
    adapt_step: float | None = option(
        None, "With gap: so much of the range, an epoch. By default 0.05.", "Augmentation", low=0.0, high=1.0
    )
    adapt_from: str | None = option(
        None, "Use the magnitudes that another training recorded, by its folder or log.", "Augmentation", metavar="LOG"
    )
    padding: int | None = option(
        None,
        "Of images that keep their size: the border of the random crop. By default an eighth of the side.",
        "Around the policy",
        low=0,
    )
    padding_mode: PaddingMode = option(
        "constant", "What is in that border: constant is black, reflect mirrors the image.", "Around the policy"
    )
    flip: bool = same_option(TrainingOptions, "flip")
    alternate_flip: bool = option(
        False,
        "Every image is mirrored in every other epoch, half of them in the first, instead of by chance.",
        "Around the policy",
        flag="--alternate-flip/--no-alternate-flip",
    )
    cutout: int = option(
        0, "Of images that keep their size: the side of the square that is cut out.", "Around the policy", low=0
    )
    random_erasing: float = option(
        0.0,
        "The probability that a rectangle of an image is erased, last of all.",
        "Around the policy",
        low=0.0,
        high=1.0,
    )
    mixup: float = option(
        0.0,
        "Images are mixed with others, by shares of a beta distribution with this alpha; with --cutmix, half of them.",
        "Augmentation",
        low=0.0,
    )
    cutmix: float = option(
        0.0, "A rectangle of another image is put into each, of a size by this alpha.", "Augmentation", low=0.0
    )
    copies: int = option(
        1,
        "Each image comes so often in an epoch, augmented anew each time: repeated augmentation.",
        "Augmentation",
        low=1,
    )
    model: str | None = same_option(
        TrainingOptions,
        "model",
        help="The network: wrn-DEPTH-WIDTH, airbench-94xWIDTH, timm:NAME, or package.module:factory, which is called "
        "with num_classes. By default wrn-28-2, and wrn-16-1 for fewer than 2,000 images.",
    )
    pretrained: bool = option(
        False, "Begin with the weights that timm has for the model.", "Training", flag="--pretrained/--no-pretrained"
    )
    drop_path: float = option(
        0.0,
        "Of timm's models: the share of images that skip the last block, of others fewer.",
        "Training",
        low=0.0,
        high=1.0,
    )
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
    shard: bool = option(
        False,
        "Ranks split weights, gradients and the optimiser's numbers between them (FSDP2), for models that do not fit.",
        "Training",
    )
    optimizer: OptimizerName = option(
        "sgd", "sgd by Nesterov's momentum, adamw, or timm's lamb, for large batches.", "Training"
    )
    lr: float = same_option(Hyperparameters, "lr")
    lr_schedule: TrainSchedule = same_option(Hyperparameters, "lr_schedule")
    warmup: float = option(0.0, "So many epochs at first in which the learning rate rises.", "Training", low=0.0)
    weight_decay: float = same_option(Hyperparameters, "weight_decay")
    decay_norms: bool = option(True, "Weight decay is for biases and the weights of norms, too.", "Training")
    momentum: float = same_option(
        Hyperparameters, "momentum", help="Nesterov's momentum; of adamw and lamb, the first of their betas."
    )
    clip: float = same_option(Hyperparameters, "clip")
    loss: LossName = option(
        "cross-entropy",
        "bce asks of each class by itself whether it is there; of mixed images, those with more than a fifth are.",
        "Training",
    )
    label_smoothing: float = option(
        0.0, "This share of each label goes to all classes alike.", "Training", low=0.0, high=1.0
    )
    entropy_loss: float = option(
        0.0,
        "The weight in the loss of the entropy of the model's probabilities, as a share of the highest there is "
        "(EntLoss); 1 is what its authors use, 0 none.",
        "Training",
        low=0.0,
    )
    ema: float = option(
        0.0,
        "Score and keep a moving average of the weights that has so much of itself left after a step, such as 0.999; "
        "0 for none.",
        "Training",
        low=0.0,
        high=1.0,
    )
    score_every: int = option(
        1,
        "The images of --validation score the model after every so many epochs, and after the last.",
        "Training",
        low=1,
    )
    tta: TestViews = option(
        "none",
        "Score by the mean over several views of each image: with its mirror image, and moved by a pixel.",
        "Training",
    )
    precision: TrainPrecision = same_option(Hyperparameters, "precision", default="float32")
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
        self._check_adapt()
        for name in ("label_smoothing", "ema", "drop_path"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; accepted: from 0 to below 1")
        if not 0 <= self.random_erasing <= 1:
            raise ValueError(f"random_erasing: got {self.random_erasing!r}; accepted: a probability, from 0 to 1")
        check_options(self)
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

    def _schedule(self, epochs: int) -> Hyperparameters:
        if self.lr_schedule == "linear":
            return Hyperparameters(epochs=epochs, lr=self.lr)
        return Hyperparameters(epochs=epochs, lr=self.lr, lr_schedule=self.lr_schedule)


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Options of ``train --study`` besides those of the training. Raises ValueError naming the argument."""

    study: bool = option(
        False,
        "Train nothing: time the training's step, fed by one batch repeated, and by Variegate. Writes OUT/study.",
        "Measurement",
    )
    study_seconds: float = option(10.0, "How long the step is timed with each feed.", "Measurement", low=0.01)

    def __post_init__(self) -> None:
        check_options(self)
        if self.study_seconds > 3600:
            raise ValueError(f"study_seconds: got {self.study_seconds!r}; accepted: 3600 or less")
