"""Options of trainings, of a search and of an evaluation of its result; the rest follows from the images."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from variegate.options import check_options, option, part_of, same_option

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
    lr_schedule: LrSchedule = option("cosine", "How the learning rate falls.", "Training")
    weight_decay: float = option(5e-4, "The L2 penalty, of all parameters.", "Training", low=0.0)
    momentum: float = option(0.9, "Nesterov's momentum, of the gradient descent.", "Training", low=0.0)
    clip: float = option(5.0, "The norm that gradients are cut to; 0 leaves them as they are.", "Training", low=0.0)
    precision: Precision = option(
        "float32", "The numbers that products and convolutions are computed in; weights stay float32.", "Training"
    )

    def __post_init__(self) -> None:
        check_options(self)
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


Backend = Literal["local", "ray"]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of both: images, a model and its training, crop, flip and cutout, and devices. None: fits the images."""

    size: str = option(
        "auto",
        "All images are resized to this. auto keeps images that have one size of up to 64 pixels, and resizes others "
        "to 32x32; none never resizes.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    padding: int | None = option(
        None, "The border of the random crop, in pixels. By default an eighth of the side.", "Around the policy", low=0
    )
    flip: bool = option(True, "Half of the images are mirrored.", "Around the policy")
    cutout: int | None = option(
        None,
        "The side of the square that is cut out, in pixels. By default half of the image's.",
        "Around the policy",
        low=0,
    )
    model: str | None = option(
        None,
        "The network: wrn-DEPTH-WIDTH, timm:NAME, or package.module:factory, which is called with num_classes. By "
        "default wrn-28-2, and wrn-16-1 for fewer than 2,000 images.",
        "Training",
    )
    batch_size: int | None = same_option(
        Hyperparameters,
        "batch_size",
        default=None,
        help="Images per training step. By default 128, and fewer where an epoch would have fewer than eight steps.",
    )
    epochs: int | None = same_option(
        Hyperparameters,
        "epochs",
        default=None,
        help="How many epochs each training takes; schedules are scaled to them. By default 200, and fewer where more "
        "than 50,000 images train.",
    )
    lr: float = same_option(Hyperparameters, "lr")
    lr_schedule: LrSchedule = same_option(Hyperparameters, "lr_schedule")
    weight_decay: float = same_option(Hyperparameters, "weight_decay")
    momentum: float = same_option(Hyperparameters, "momentum")
    clip: float = same_option(Hyperparameters, "clip")
    precision: Precision = same_option(Hyperparameters, "precision")
    seed: int = option(0, "It decides splits, weights, orders and policies.", "Training", low=0)
    devices: str = option(
        "auto",
        "auto takes all GPUs, and without one every core of the CPU; or a list such as cuda:0,cuda:1 or cpu:0,cpu:1.",
        "Machine",
    )
    capture: bool = option(True, "On GPUs, training steps are recorded as CUDA graphs.", "Machine")

    def hyperparameters(self, epochs: int, batch_size: int) -> Hyperparameters:
        """With sizes that fit the images. Raises ValueError."""
        return part_of(Hyperparameters, replace(self, epochs=epochs, batch_size=batch_size))


@dataclass(frozen=True, kw_only=True)
class SearchOptions(TrainingOptions):
    """Options of a search: its population, its images and its policies."""

    train: int | None = option(
        None, "So many images train the members. By default half of them, at most 4,000.", "Images", low=1
    )
    validation: int | None = option(
        None, "So many other images score the members. By default all others, at most 46,000.", "Images", low=1
    )
    population: int = option(16, "How many members to train.", "Search", low=2)
    epochs: int | None = option(
        None,
        "How many epochs each member trains. By default 200, and fewer where more than 50,000 images train.",
        "Search",
        low=1,
    )
    interval: int = option(3, "Epochs between two rounds of copying the best members.", "Search", low=1)
    operations: str | None = option(
        None, "Only these are searched: names with commas, such as Rotate,Invert. By default the paper's 15.", "Search"
    )
    space: str | None = option(
        None, "What magnitudes mean. By default pba for 32x32 images, and pba-relative for others.", "Search"
    )
    backend: Backend = option(
        "local", "local uses this machine's devices; ray makes the members trials of Ray Tune on a cluster.", "Machine"
    )
    address: str | None = option(
        None,
        "With ray: the cluster's address. By default this machine's cluster, or a new one.",
        "Machine",
        metavar="HOST:PORT|auto",
    )
    gpus_per_member: float | None = option(
        None, "With ray: a part of a GPU, 1, or 0 for CPUs. By default 1 where the cluster has GPUs.", "Machine"
    )
    out: Path = option(
        Path("search"), "The folder for the schedule, the log, the pictures and the checkpoint.", "Output"
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(TrainingOptions):
    """Options of trainings that are compared: their policies, repeats and images."""

    policies: str = option(
        "none,flip-crop,randaugment,trivialaugment",
        "These are compared, with commas: none (no augmentation), flip-crop (no policy), names of policies in whatever "
        "case, files; adaptive:gap and adaptive:entropy, randaugment at magnitudes that follow the training.",
        "Comparison",
    )
    test: str | None = option(
        None, "Other images score the trainings. By default those of SRC that do not train.", "Images", metavar="SRC2"
    )
    train: int | None = option(
        None, "So many images train, another random part in every repeat. By default four fifths.", "Images", low=1
    )
    repeats: int = option(5, "So many trainings with each policy; two or more give intervals.", "Comparison", low=1)
    out: Path = option(Path("evaluate.png"), "The plot is written to this PNG file.", "Output")
