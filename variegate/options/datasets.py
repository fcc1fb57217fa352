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
        "Devices to use: auto (all GPUs, or else the CPU), or a list such as cuda:0,cuda:1 or "
        "cpu:0,cpu:1 (parts of the CPU).",
        "Devices",
        metavar="DEVICES",
    )
    workers: Literal["process", "thread", "ray"] = option(
        "process", "Type of worker that runs each device; ray uses actors on a Ray cluster.", "Devices"
    )
    address: str | None = option(
        None, "Address of the Ray cluster. Without it, a new one starts on this machine.", "Devices", metavar="ADDRESS"
    )
    threads: int | None = option(None, "Threads per device. By default, the devices share all cores.", "Devices", low=1)
    allocation: Literal["next_idle", "round_robin", "random"] = option(
        "next_idle", "Strategy that assigns tasks to devices.", "Devices"
    )
    steal: bool = option(True, "Let idle devices take tasks from the longest queue (work stealing).", "Devices")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Targets to read (``annotations``: as ``open_source`` takes it), and how they are augmented."""

    annotations: str | None = option(
        None,
        "Boxes, masks and key points for a folder SRC: a COCO .json file, voc, yolo or masks, and options after "
        "commas (instances.json,mask=each or yolo,split=train,unoutlined=ignore). By default, voc and yolo layouts are "
        "detected.",
        "Images",
        metavar="FILE|LAYOUT",
    )
    min_area: float = option(
        0.0, "Drop boxes whose remaining area is smaller than this.", "Augmentation", low=0, metavar="PIXELS"
    )
    min_visibility: float = option(
        0.0, "Drop boxes of which less than this share remains.", "Augmentation", low=0, high=1, metavar="SHARE"
    )
    mask_fill: int = option(
        0, "Mask value where the image shows its fill color. Losses often ignore 255.", "Augmentation"
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Treatment of earlier runs, and of images that cannot be read."""

    resume: bool = option(True, "Resume an earlier run, or start over with --no-resume.", "Running")
    on_error: Literal["raise", "skip"] = option(
        "skip", "Skip an image that failed three times, or stop with an error (raise).", "Running"
    )


@dataclass(frozen=True, kw_only=True)
class PackingOptions(ResumeOptions, DeviceOptions):
    """Raises ValueError naming the argument."""

    size: int | None = option(
        None,
        "Shrink larger images to this length of the shorter side. By default, all images keep their size.",
        "Images",
        low=1,
        metavar="SIDE",
    )
    quality: int | None = option(None, "JPEG quality. By default 90.", "Images", low=1, high=100)
    keep_jpeg: bool = option(False, "Copy JPEG files unchanged; encode other formats only.", "Images")
    format: Literal["webdataset", "parquet", "raw"] = option(
        "webdataset",
        "Output format: .tar shards (webdataset), Hugging Face .parquet files, or memory-mapped pixels (raw).",
        "Output",
    )
    shard_size: int = option(1000, "Number of images per shard.", "Output", low=1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class CleaningOptions:
    """Raises ValueError naming the argument."""

    findings: Path | None = option(
        None, "Findings file that variegate check wrote for SRC.", "Images", flag="--from", metavar="FINDINGS.PARQUET"
    )
    drop: str = option(
        "",
        "Findings to drop, separated by commas, such as corrupt,duplicates,leaks, or all. Without it, the findings "
        "are listed.",
        "Images",
        metavar="NAMES",
    )
    split: Literal["train", "test"] = option(
        "train", "Split of the checked images that SRC holds. Leaks are dropped from it.", "Images"
    )
    out: Path = option(
        Path("excluded.txt"),
        "List to write, for --exclude and vg.open_source(SRC, exclude=...). Only an earlier list is replaced.",
        "Output",
        metavar="FILE",
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class IndexingOptions:
    """Raises ValueError naming the argument."""

    out: Path | None = option(
        None,
        "Index file. By default, one in the user's cache folder, where Loader(index='auto') finds it.",
        "Output",
        metavar="FILE",
    )
    threads: int | None = option(None, "Number of threads. By default, all cores.", "Machine", low=1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """Thresholds; None follows from the data set. Raises ValueError naming the argument."""

    dark: float | None = option(
        None, "Dark: 95% of the pixels have a luminance below this, from 0 to 1.", "Thresholds", low=0, high=1
    )
    bright: float | None = option(
        None, "Bright: 95% of the pixels have a luminance above this, from 0 to 1.", "Thresholds", low=0, high=1
    )
    low_contrast: float | None = option(
        None,
        "Low contrast: the standard deviation of the luminance is below this, from 0 to 0.5.",
        "Thresholds",
        low=0,
        high=0.5,
    )
    blurred: float | None = option(
        None, "Blurred: the sharpness is below this. Edges blurred by a one-pixel Gaussian have 1.", "Thresholds", low=0
    )
    tiny: float | None = option(
        None, "Tiny: the image has fewer pixels than a square of this side.", "Thresholds", low=0, metavar="SIDE"
    )
    huge: float | None = option(
        None, "Huge: the image has more pixels than a square of this side.", "Thresholds", low=1, metavar="SIDE"
    )
    aspect: float | None = option(
        None, "Extreme aspect: the ratio of the longer side to the shorter side is above this.", "Thresholds", low=1
    )
    imbalance: float | None = option(
        None,
        "Imbalance: the ratio of the largest class to the smallest, in images, is above this.",
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
        "Parquet file of measures and findings, one row per image. Progress is saved next to it.",
        "Output",
        metavar="FILE",
    )
    report: Path | None = option(None, "HTML report of all results, in one file.", "Output", metavar="FILE")
    labels: bool = option(
        False,
        "Find likely label errors with short training runs and cleanlab. Takes minutes; requires 'variegate[labels]'.",
        "Training",
    )
    seed: int | None = option(None, "Seed for the training runs of --labels. By default 0.", "Training", low=0)
    near_distance: int | None = option(
        None,
        "Near duplicates: the perceptual hashes differ in at most this number of 64 bits, from 0 to 15.",
        "Thresholds",
        low=0,
        high=15,
        metavar="BITS",
    )
    threads: int | None = option(None, "Number of threads. By default, all cores.", "Machine", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is not None and not self.labels:
            raise ValueError("seed: got it without labels, for which alone anything is trained; accepted: with labels")
