"""Options of training, searches and evaluations; the other settings follow from the images."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from variegate.checks import number
from variegate.options import Opt, Options, project
from variegate.options.fit import (
    BatchSize,
    Clip,
    Decay,
    FitOptions,
    Lr,
    Model,
    Momentum,
    TrainingSeed,
    TrainPrecision,
    WeightDecay,
)
from variegate.options.shared import TrainReadOptions, ray_address

EpochsToFit: TypeAlias = Annotated[
    int | None,
    Opt(
        "Epochs per training run; schedules are scaled to it. By default 200, or fewer with more than 50,000 training "
        "images.",
        "Training",
        ge=1,
        is_main=True,
    ),
]
Backend = Literal["local", "ray"]
Around = Literal["searched", "fixed"]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(TrainReadOptions):
    """Options of both: images, a model and its training, crop, flip and cutout, and devices. None: fits the images."""

    size: Annotated[
        str,
        Opt(
            "Resize all images to this. auto keeps images of one common size of up to 64 pixels and resizes others to "
            "at most 32x32; none never resizes.",
            "Images",
            metavar="SIDE|HxW|auto|none",
            is_main=True,
        ),
    ] = "auto"
    padding: Annotated[
        int | None, Opt("Padding of the part crop in pixels. By default 1/8 of the image side.", "Crop and flip", ge=0)
    ] = None
    flip: Annotated[bool, Opt("Let the search mirror images, or never (--no-flip).", "Crop and flip")] = True
    cutout: Annotated[
        int | None, Opt("Side of the part cutout in pixels. By default half of the image side.", "Crop and flip", ge=0)
    ] = None
    model: Model = None
    batch_size: BatchSize = None
    epochs: EpochsToFit = None
    lr: Lr = 0.1
    lr_schedule: Decay = "cosine"
    weight_decay: WeightDecay = 5e-4
    momentum: Momentum = 0.9
    clip: Clip = 5.0
    precision: TrainPrecision = "float32"
    seed: TrainingSeed = 0
    devices: Annotated[
        str,
        Opt(
            "Devices to use: auto (all GPUs, or else each CPU core), or a list such as cuda:0,cuda:1 or cpu:0,cpu:1.",
            "Machine",
            metavar="DEVICES",
            is_main=True,
            needs=("backend", "local"),
        ),
    ] = "auto"

    def fit_options(self, epochs: int, batch_size: int) -> FitOptions:
        """Options of the trainer, with sizes that fit the images. Raises ValueError."""
        return project(FitOptions, replace(self, epochs=epochs, batch_size=batch_size))


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

    train: Annotated[
        int | None,
        Opt("Number of training images, drawn again for each round. By default 4/5, at most 4,000.", "Images", ge=1),
    ] = None
    policies: Annotated[
        str | None,
        Opt(
            "Candidates of a race, separated by commas: none, flip, crop, policy names and files, and such parts, as "
            "in randaugment-1-5+flip+crop2+cutout8. By default nine of them.",
            "Search",
            needs=("method", "race"),
            is_main=True,
        ),
    ] = None
    rounds: Annotated[
        int,
        Opt(
            "Most rounds of a race; in each, every remaining candidate trains once. More rounds resume a race.",
            "Search",
            ge=2,
            le=1000,
            needs=("method", "race"),
            is_main=True,
        ),
    ] = 12
    budget: Annotated[
        str,
        Opt(
            "Wall-clock time of a race, such as 90s, 30m or 2h.",
            "Search",
            metavar="TIME",
            needs=("method", "race"),
            is_main=True,
        ),
    ] = "30m"

    def __post_init__(self) -> None:
        super().__post_init__()
        seconds_in("budget", self.budget)


@dataclass(frozen=True, kw_only=True)
class PopulationOptions(Options):
    """Options of a population and of what trains its members."""

    population: Annotated[int, Opt("Number of members in the population.", "Search", ge=2, needs=("method", "pba"))] = (
        16
    )
    interval: Annotated[
        int,
        Opt("Epochs between rounds in which the worst members copy the best.", "Search", ge=1, needs=("method", "pba")),
    ] = 3
    space: Annotated[
        str | None,
        Opt(
            "Magnitude space, which maps magnitudes to arguments. By default pba for 32x32 images and pba-relative for "
            "others.",
            "Search",
            needs=("method", "pba"),
        ),
    ] = None
    backend: Annotated[
        Backend,
        Opt(
            "Train the members on this machine (local), or as Ray Tune trials on a cluster (ray).",
            "Machine",
            needs=("method", "pba"),
        ),
    ] = "local"
    address: Annotated[str | None, ray_address("backend", "Machine")] = None
    gpus_per_member: Annotated[
        float | None,
        Opt(
            "GPUs per member with --backend ray: 1, a fraction, or 0 for CPUs. By default 1 if the cluster has GPUs.",
            "Machine",
            needs=("backend", "ray"),
        ),
    ] = None
    out: Annotated[Path, Opt("Output folder for the result, log, plots and checkpoint.", "Output", is_main=True)] = (
        Path("search")
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions(PopulationOptions, RaceOptions):
    """Options of a search: its method, its population, its images and its policies."""

    method: Annotated[
        Method,
        Opt(
            "Race whole policies (race), or evolve a schedule in a population (pba). auto resumes the method of --out, "
            f"and starts a {DEFAULT_METHOD}.",
            "Search",
            is_main=True,
        ),
    ] = "auto"
    train: Annotated[
        int | None,
        Opt(
            "Number of training images. By default 4/5 of the images in a race, half of them with pba, at most 4,000.",
            "Images",
            ge=1,
        ),
    ] = None
    validation: Annotated[
        int | None,
        Opt(
            "Number of held-out images to score the members on. By default all remaining images, at most 46,000.",
            "Images",
            ge=1,
            needs=("method", "pba"),
        ),
    ] = None
    test: Annotated[
        str | None,
        Opt(
            "Data set to compare the schedule with none, crop and flip+crop+cutout on. By default 1/5 of the images, "
            "which the search does not use.",
            "Images",
            metavar="SRC2",
            needs=("method", "pba"),
        ),
    ] = None
    repeats: Annotated[
        int,
        Opt(
            "Training runs with the schedule, none, crop and flip+crop+cutout after the search; 0 skips them.",
            "Comparison",
            ge=0,
            needs=("method", "pba"),
        ),
    ] = 5
    operations: Annotated[
        str | None,
        Opt(
            "Operations to search, separated by commas: Name, Name:low..high, Name:low..high:signed, or module:Class "
            "of a custom one. By default the 15 of the paper.",
            "Search",
            needs=("method", "pba"),
        ),
    ] = None
    around: Annotated[
        Around,
        Opt(
            "Search crop, flip and cutout along with the operations (searched), or apply them to all images, as in the "
            "paper (fixed).",
            "Search",
            needs=("method", "pba"),
        ),
    ] = "searched"


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions(PopulationOptions):
    """Options of a search by a training that users supply, which trains ``epochs`` epochs for each member."""

    epochs: Annotated[int, Opt("Epochs per member.", "Training", ge=1)]
    seed: TrainingSeed = 0
    workers: Annotated[
        int, Opt("Members to train at a time, in threads.", "Machine", ge=1, needs=("backend", "local"))
    ] = 1


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(TrainingOptions):
    """Options of an evaluation: the policies to compare, repeats and images."""

    policies: Annotated[
        str,
        Opt(
            "Policies to compare, separated by commas: none, flip, crop, policy names, files, adaptive:entropy, "
            "and such parts, as in randaugment-1-5+flip+crop2+cutout8.",
            "Comparison",
            is_main=True,
        ),
    ] = "none,crop,flip+crop,randaugment+flip+crop,trivialaugment+flip+crop"
    test: Annotated[
        str | None,
        Opt(
            "Test data set. By default the images of SRC that are not used for training.",
            "Images",
            metavar="SRC2",
            is_main=True,
        ),
    ] = None
    train: Annotated[
        int | None,
        Opt("Number of training images, drawn again for each repeat. By default 4/5 of the images.", "Images", ge=1),
    ] = None
    repeats: Annotated[
        int, Opt("Training runs per policy. Two or more give confidence intervals.", "Comparison", ge=1, is_main=True)
    ] = 5
    out: Annotated[
        Path,
        Opt("File for the plot, a PNG. The results get the same name with .json and .jsonl.", "Output", is_main=True),
    ] = Path("evaluate.png")
