"""Options of the commands that check, write and index data sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from variegate.options import check_options, option


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Devices, and the workers that run them."""

    devices: str = option(
        "auto",
        "All GPUs, else the CPU (auto), or a list such as cuda:0,cuda:1 or cpu:0,cpu:1 (parts of the CPU).",
        "Devices",
        metavar="DEVICES",
    )
    workers: Literal["process", "thread", "ray"] = option(
        "process", "What runs a device; ray uses actors on a cluster.", "Devices"
    )
    address: str | None = option(
        None, "Where the Ray cluster is. Without it, a new one runs on this machine.", "Devices", metavar="ADDRESS"
    )
    threads: int | None = option(
        None, "Threads for each device. Without it, the devices share the cores.", "Devices", low=1
    )
    allocation: Literal["least_loaded", "round_robin", "random"] = option(
        "least_loaded", "How a task's device is chosen.", "Devices"
    )
    steal: bool = option(True, "Let an idle device take a task from the longest queue.", "Devices")


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Targets to read (``annotations``: as ``open_source`` takes it), and how they are augmented."""

    annotations: str | None = option(
        None,
        "Boxes, masks and key points of the images in the folder SRC: a COCO .json file, voc, yolo or masks, and "
        "options after commas, as in instances.json,mask=each or yolo,split=train. Without it, SRC is looked at for "
        "the layouts of voc and yolo.",
        "Images",
        metavar="FILE|LAYOUT[,OPTION=VALUE]",
    )
    min_area: float = option(
        0.0, "Leave out boxes of which less than so many pixels are left.", "Augmentation", low=0, metavar="PIXELS"
    )
    min_visibility: float = option(
        0.0, "Leave out boxes of which less than this share is left.", "Augmentation", low=0, high=1, metavar="SHARE"
    )
    mask_fill: int = option(
        0, "What masks show where images show their fill colour; 255 is often not counted.", "Augmentation"
    )


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Treatment of earlier runs, and of images that cannot be read."""

    resume: bool = option(True, "Go on where an earlier run ended, or make everything anew.", "Running")
    on_error: Literal["raise", "skip"] = option(
        "skip", "Go on without an image that failed three times (skip), or stop there (raise).", "Running"
    )
    changed: Literal["refuse", "same", "remake"] = option(
        "refuse",
        "What to do about files of SRC that have changed since outputs were made of them: refuse names them and stops, "
        "same says that only their times differ, remake makes their outputs again.",
        "Running",
    )


@dataclass(frozen=True, kw_only=True)
class PackingOptions(ResumeOptions, DeviceOptions):
    """Raises ValueError naming the argument."""

    size: int | None = option(
        None,
        "Reduce larger images so that their shorter side has this many pixels; smaller ones stay as they are. Without "
        "it, all do.",
        "Images",
        low=1,
        metavar="SIDE",
    )
    quality: int | None = option(None, "The quality of the JPEGs; 90 without it.", "Images", low=1, high=100)
    keep_jpeg: bool = option(False, "Copy JPEG files as they are; only images of other kinds are encoded.", "Images")
    format: Literal["webdataset", "parquet", "raw"] = option(
        "webdataset",
        "What to write: .tar shards (webdataset), .parquet files in Hugging Face's layout, or pixels that are mapped "
        "to memory (raw).",
        "Output",
    )
    shard_size: str = option("256MB", "About how large a shard is to be: 256MB, 1GB, 512MiB.", "Output", metavar="SIZE")
    measure: bool = option(True, "At the end, measure how fast a loader reads SRC and DST.", "Running")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class CleaningOptions:
    """Raises ValueError naming the argument."""

    findings: Path | None = option(
        None, "The table that variegate check wrote of SRC.", "Images", flag="--from", metavar="FINDINGS.PARQUET"
    )
    drop: str = option(
        "",
        "What to leave out: names of findings with commas between them, such as corrupt,duplicates,leaks, or all. "
        "Without it, the command says what there is.",
        "Images",
        metavar="NAMES",
    )
    split: Literal["train", "test"] = option(
        "train", "Which of the images that were checked SRC holds. Leaks are dropped of these.", "Images"
    )
    exclude_list: Path | None = option(
        None, "Write no copy, but a list for --exclude and vg.open_source(SRC, exclude=...).", "Output", metavar="FILE"
    )
    resume: bool = option(True, "Go on where an earlier run ended, or copy everything anew.", "Running")
    threads: int | None = option(None, "How many files to copy at a time. Without it, 4.", "Running", low=1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class IndexingOptions:
    """Raises ValueError naming the argument."""

    out: Path | None = option(
        None, "The file of the index. By default one in the user's cache folder, where Loader(index='auto') looks.",
        "Output", metavar="FILE",
    )  # fmt: skip
    threads: int | None = option(None, "How many threads. Without it, all cores.", "Machine", low=1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """Thresholds; None follows from the data set. Raises ValueError naming the argument."""

    dark: float | None = option(
        None, "Dark: 95 % of the pixels are below this luminance, 0 to 1.", "Thresholds", low=0, high=1
    )
    bright: float | None = option(
        None, "Bright: 95 % of the pixels are above this luminance, 0 to 1.", "Thresholds", low=0, high=1
    )
    low_contrast: float | None = option(
        None,
        "Low contrast: the standard deviation of luminance is below this, 0 to 0.5.",
        "Thresholds",
        low=0,
        high=0.5,
    )
    blurred: float | None = option(
        None,
        "Blurred: sharpness is below this; 1 is that of edges blurred by a Gaussian of one pixel.",
        "Thresholds",
        low=0,
    )
    tiny: float | None = option(
        None, "Tiny: fewer pixels than a square of this side.", "Thresholds", low=0, metavar="SIDE"
    )
    huge: float | None = option(
        None, "Huge: more pixels than a square of this side.", "Thresholds", low=1, metavar="SIDE"
    )
    aspect: float | None = option(
        None, "Extreme aspect: the longer side is more than so many times the shorter.", "Thresholds", low=1
    )
    imbalance: float | None = option(
        None,
        "Imbalance: the largest class has more than so many times the images of the smallest.",
        "Thresholds",
        low=1,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.tiny is not None and self.huge is not None and self.tiny >= self.huge:
            raise ValueError(f"tiny: got {self.tiny!r} with huge {self.huge!r}; accepted: less than that")


@dataclass(frozen=True, kw_only=True)
class CheckingOptions(ThresholdOptions):
    """Raises ValueError naming the argument."""

    out: Path | None = option(
        None,
        "The Parquet file of measures and findings, a row per image. While it is made, what is done so far lies beside "
        "it, so that the same command goes on.",
        "Output",
        metavar="FILE",
    )
    report: Path | None = option(None, "An HTML report of it all, in one file.", "Output", metavar="FILE")
    labels: bool = option(
        False,
        "Find labels that are likely to be wrong, by short trainings and cleanlab. Takes minutes, and the extra "
        "'variegate[labels]'.",
        "Training",
    )
    seed: int | None = option(None, "What the trainings of --labels follow from; 0 without it.", "Training", low=0)
    near_distance: int | None = option(
        None,
        "Near duplicates: their perceptual hashes differ in at most so many of 64 bits, 0 to 15.",
        "Thresholds",
        low=0,
        high=15,
        metavar="BITS",
    )
    threads: int | None = option(None, "How many threads. Without it, all cores.", "Machine", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is not None and not self.labels:
            raise ValueError("seed: got it without labels, for which alone anything is trained; accepted: with labels")
