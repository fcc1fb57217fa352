"""Options of trainings, of a search and of an evaluation of its result; the rest follows from the images."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from variegate.checks import number
from variegate.options import check_options, option, part_of, same_option
from variegate.options.fit import FitOptions, LrSchedule, Precision

Backend = Literal["local", "ray"]
Around = Literal["searched", "fixed"]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of both: images, a model and its training, crop, flip and cutout, and devices. None: fits the images."""

    size: str = option(
        "auto",
        "Resize all images to this. auto keeps images of one common size of up to 64 pixels and resizes others to "
        "32x32; none never resizes.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    padding: int | None = option(
        None, "Padding of the part crop in pixels. By default 1/8 of the image side.", "Crop and flip", low=0
    )
    flip: bool = option(True, "Let the search mirror images, or never (--no-flip).", "Crop and flip")
    cutout: int | None = option(
        None, "Side of the part cutout in pixels. By default half of the image side.", "Crop and flip", low=0
    )
    model: str | None = option(
        None,
        "Network: wrn-DEPTH-WIDTH, timm:NAME, or package.module:factory, which is called with num_classes. By "
        "default wrn-28-2, or wrn-16-1 for fewer than 2,000 images.",
        "Model",
    )
    batch_size: int | None = same_option(
        FitOptions,
        "batch_size",
        default=None,
        help="Images per training step. By default 128, or fewer where an epoch would have fewer than eight steps.",
    )
    epochs: int | None = same_option(
        FitOptions,
        "epochs",
        default=None,
        panel="Training",
        help="Epochs per training run; schedules are scaled to it. By default 200, or fewer with more than 50,000 "
        "training images.",
    )
    lr: float = same_option(FitOptions, "lr")
    lr_schedule: LrSchedule = same_option(FitOptions, "lr_schedule")
    weight_decay: float = same_option(FitOptions, "weight_decay")
    momentum: float = same_option(FitOptions, "momentum")
    clip: float = same_option(FitOptions, "clip")
    precision: Precision = same_option(FitOptions, "precision")
    seed: int = option(0, "Seed for splits, weight initialization, shuffling and policies.", "Training", low=0)
    devices: str = option(
        "auto",
        "Devices to use: auto (all GPUs, or else each CPU core), or a list such as cuda:0,cuda:1 or cpu:0,cpu:1.",
        "Machine",
    )

    def __post_init__(self) -> None:
        check_options(self)

    def fit_options(self, epochs: int, batch_size: int) -> FitOptions:
        """Options of the trainer, with sizes that fit the images. Raises ValueError."""
        return part_of(FitOptions, replace(self, epochs=epochs, batch_size=batch_size))


Method = Literal["auto", "race", "pba"]
# The method of ``variegate search`` in a new folder.
DEFAULT_METHOD: Method = "race"
# Seconds of a unit of ``--budget``.
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_in(name: str, text: float | str) -> float:
    """A length of time: seconds, or a text such as "90s", "30m" and "1.5h". Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([smhd]?)", text.strip()) if isinstance(text, str) else None
    seconds: Any = text if match is None else float(match[1]) * _UNITS[match[2] or "s"]
    return number(name, seconds, 1e-9, 1e9, accepted='seconds, or a number with a unit, such as "90s", "30m" and "2h"')


@dataclass(frozen=True, kw_only=True)
class RaceOptions(TrainingOptions):
    """Options of a race on images, besides its training: candidates, images and its end."""

    train: int | None = option(
        None, "Number of training images, drawn again for each round. By default 4/5, at most 4,000.", "Images", low=1
    )
    policies: str | None = option(
        None,
        "Candidates of a race, separated by commas: none, flip, crop, policy names and files, and such parts, as in "
        "randaugment-1-5+flip+crop2+cutout8. By default nine of them.",
        "Search",
    )
    rounds: int = option(
        12,
        "Most rounds of a race; in each, every remaining candidate trains once. More rounds resume a race.",
        "Search",
        low=2,
        high=1000,
    )
    budget: str = option("30m", "Wall-clock time of a race, such as 90s, 30m or 2h.", "Search", metavar="TIME")

    def __post_init__(self) -> None:
        super().__post_init__()
        seconds_in("budget", self.budget)


@dataclass(frozen=True, kw_only=True)
class SearchOptions(RaceOptions):
    """Options of a search: its method, its population, its images and its policies."""

    method: Method = option(
        "auto",
        "Race whole policies (race), or evolve a schedule in a population (pba). auto resumes the method of --out, and "
        f"starts a {DEFAULT_METHOD}.",
        "Search",
    )
    train: int | None = option(
        None,
        "Number of training images. By default 4/5 of the images in a race, half of them with pba, at most 4,000.",
        "Images",
        low=1,
    )
    validation: int | None = option(
        None,
        "Number of held-out images to score the members on. By default all remaining images, at most 46,000.",
        "Images",
        low=1,
    )
    test: str | None = option(
        None,
        "Data set to compare the schedule with none, crop and flip+crop+cutout on. By default 1/5 of the images, which "
        "the search does not use.",
        "Images",
        metavar="SRC2",
    )
    repeats: int = option(
        5,
        "Training runs with the schedule, none, crop and flip+crop+cutout after the search; 0 skips them.",
        "Comparison",
        low=0,
    )
    population: int = option(16, "Number of members in the population.", "Search", low=2)
    epochs: int | None = option(
        None, "Epochs per member. By default 200, or fewer with more than 50,000 training images.", "Search", low=1
    )
    interval: int = option(3, "Epochs between rounds in which the worst members copy the best.", "Search", low=1)
    operations: str | None = option(
        None,
        "Operations to search, separated by commas: Name, Name:low..high, Name:low..high:signed, or module:Class of a "
        "custom one. By default the 15 of the paper.",
        "Search",
    )
    around: Around = option(
        "searched",
        "Search crop, flip and cutout along with the operations (searched), or apply them to all images, as in the "
        "paper (fixed).",
        "Search",
    )
    space: str | None = option(
        None,
        "Magnitude space, which maps magnitudes to arguments. By default pba for 32x32 images and pba-relative for "
        "others.",
        "Search",
    )
    backend: Backend = option(
        "local", "Train the members on this machine (local), or as Ray Tune trials on a cluster (ray).", "Machine"
    )
    address: str | None = option(
        None,
        "Address of the Ray cluster. By default the cluster on this machine, or a new one.",
        "Machine",
        metavar="HOST:PORT|auto",
    )
    gpus_per_member: float | None = option(
        None,
        "GPUs per member with --backend ray: 1, a fraction, or 0 for CPUs. By default 1 if the cluster has GPUs.",
        "Machine",
    )
    out: Path = option(Path("search"), "Output folder for the result, log, plots and checkpoint.", "Output")


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions:
    """Options of a search by a training that users supply, which trains ``epochs`` epochs for each member."""

    population: int = same_option(SearchOptions, "population")
    epochs: int = same_option(FitOptions, "epochs", help="Epochs per member.")
    interval: int = same_option(SearchOptions, "interval")
    space: str | None = same_option(SearchOptions, "space", help="Magnitude space. By default pba-relative.")
    seed: int = same_option(SearchOptions, "seed", help="Seed for policies and the seeds of members.")
    workers: int = option(1, "Members to train at a time, in threads.", "Machine", low=1)
    backend: Backend = same_option(SearchOptions, "backend")
    address: str | None = same_option(SearchOptions, "address")
    gpus_per_member: float | None = same_option(SearchOptions, "gpus_per_member")
    out: Path = same_option(SearchOptions, "out", help="Output folder for the schedule, log and checkpoints.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(TrainingOptions):
    """Options of trainings that are compared: their policies, repeats and images."""

    policies: str = option(
        "none,crop,flip+crop,randaugment+flip+crop,trivialaugment+flip+crop",
        "Policies to compare, separated by commas: none, flip, crop, policy names, files, adaptive:entropy, "
        "and such parts, as in randaugment-1-5+flip+crop2+cutout8.",
        "Comparison",
    )
    test: str | None = option(
        None, "Test data set. By default the images of SRC that are not used for training.", "Images", metavar="SRC2"
    )
    train: int | None = option(
        None, "Number of training images, drawn again for each repeat. By default 4/5 of the images.", "Images", low=1
    )
    repeats: int = option(5, "Training runs per policy. Two or more give confidence intervals.", "Comparison", low=1)
    out: Path = option(
        Path("evaluate.png"), "File for the plot, a PNG. The results get the same name with .json and .jsonl.", "Output"
    )
