"""Options of the commands that check, write and index data sets. All raise ValueError naming the argument."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from variegate.options import Opt, Options
from variegate.options.shared import (
    Copies,
    DeviceOptions,
    DicomOptions,
    Epoch,
    PolicyOptions,
    ReadOptions,
    Seed,
    ShardSize,
    TargetOptions,
    Threads,
)

# Bounds beyond which an image or a class is odd, unless more than a quarter of the data set is.
DARK, BRIGHT, CLIPPED, LOW_CONTRAST, ASPECT, IMBALANCE = 0.25, 0.75, 0.5, 0.05, 4.0, 10.0
NEAR_DISTANCE = 5


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Options):
    """Treatment of earlier runs, and of images that cannot be read."""

    resume: Annotated[bool, Opt("Resume an earlier run, or start over with --no-resume.", "Running")] = True
    on_error: Annotated[
        Literal["raise", "skip"],
        Opt("Skip an image that failed three times, or stop with an error (raise).", "Running"),
    ] = "skip"


@dataclass(frozen=True, kw_only=True)
class ExpansionOptions(ResumeOptions, DeviceOptions, TargetOptions, PolicyOptions, ReadOptions):
    """Options of ``variegate augment``."""

    copies: Copies = 1
    seed: Seed = 0
    epoch: Epoch = 0
    layout: Annotated[
        Literal["auto", "folder", "webdataset", "parquet"],
        Opt(
            "Output layout: class folders, .tar shards (webdataset) or .parquet shards. auto keeps the layout of "
            "annotated data and writes class folders otherwise.",
            "Output",
            is_main=True,
        ),
    ] = "auto"
    shard_size: ShardSize = 1000
    format: Annotated[
        Literal["jpg", "png", "webp", "tif", "npy"],
        Opt(
            "Image file format. tif and npy hold any number of channels and every --depth; png holds gray images of "
            "--depth uint16.",
            "Output",
            is_main=True,
        ),
    ] = "jpg"
    quality: Annotated[int, Opt("JPEG or WebP quality.", "Output", ge=1, le=100, needs=("format", "jpg", "webp"))] = 95
    index: Annotated[
        str,
        Opt(
            "Read crops of JPEGs through an index if --copies is 1: the one that variegate index wrote, if any (auto), "
            "none, or a file.",
            "Devices",
            metavar="auto|none|FILE",
        ),
    ] = "auto"
    ordered: Annotated[bool, Opt("Write images in the order of SRC. Shards are always in order.", "Running")] = False


@dataclass(frozen=True, kw_only=True)
class PackingOptions(ResumeOptions, DeviceOptions, ReadOptions):
    size: Annotated[
        int | None,
        Opt(
            "Shrink larger images to this length of the shorter side. By default, all images keep their size.",
            "Images",
            ge=1,
            metavar="SIDE",
            needs=("keep_jpeg", False),
        ),
    ] = None
    quality: Annotated[int, Opt("JPEG quality.", "Images", ge=1, le=100, needs=("format", "webdataset", "parquet"))] = (
        90
    )
    keep_jpeg: Annotated[
        bool,
        Opt(
            "Copy JPEG files unchanged; encode other formats only.", "Images", needs=("format", "webdataset", "parquet")
        ),
    ] = False
    format: Annotated[
        Literal["webdataset", "parquet", "raw"],
        Opt(
            "Output format: .tar shards (webdataset), Hugging Face .parquet files, or memory-mapped pixels (raw), "
            "which alone hold every --depth and number of channels.",
            "Output",
        ),
    ] = "webdataset"
    shard_size: ShardSize = 1000


@dataclass(frozen=True, kw_only=True)
class CleaningOptions(Options):
    findings: Annotated[
        Path | None,
        Opt("Findings file that variegate check wrote for SRC.", "Images", flag="--from", metavar="FINDINGS.PARQUET"),
    ] = None
    drop: Annotated[
        str,
        Opt(
            "Findings to drop, separated by commas, such as corrupt,duplicates,leaks, or all. Without it, the findings "
            "are listed.",
            "Images",
            metavar="NAMES",
        ),
    ] = ""
    split: Annotated[
        Literal["train", "test"],
        Opt("Split of the checked images that SRC holds. Leaks are dropped from it.", "Images"),
    ] = "train"
    out: Annotated[
        Path,
        Opt(
            "List to write, for --exclude and vg.open_source(SRC, exclude=...). Only an earlier list is replaced.",
            "Output",
            metavar="FILE",
        ),
    ] = Path("excluded.txt")


@dataclass(frozen=True, kw_only=True)
class IndexingOptions(Options):
    out: Annotated[
        Path | None,
        Opt(
            "Index file. By default, one in the user's cache folder, where Loader(index='auto') finds it.",
            "Output",
            metavar="FILE",
        ),
    ] = None
    threads: Threads = None


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(Options):
    """Thresholds; None follows from the data set."""

    dark: Annotated[
        float | None,
        Opt(
            f"Dark: 95% of the pixels have a luminance below this. By default {DARK}, or less in dark data sets.",
            "Thresholds",
            ge=0,
            le=1,
        ),
    ] = None
    bright: Annotated[
        float | None,
        Opt(
            f"Bright: 95% of the pixels have a luminance above this. By default {BRIGHT}, or more in bright data sets.",
            "Thresholds",
            ge=0,
            le=1,
        ),
    ] = None
    clipped: Annotated[
        float | None,
        Opt(
            "Clipped: a share of the pixels above this has the least or the greatest value, in images of more than 8 "
            f"bits. By default {CLIPPED}, or more in data sets of such images.",
            "Thresholds",
            ge=0,
            le=1,
        ),
    ] = None
    low_contrast: Annotated[
        float | None,
        Opt(
            "Low contrast: the standard deviation of the luminance is below this. By default "
            f"{LOW_CONTRAST}, or less in pale data sets.",
            "Thresholds",
            ge=0,
            le=0.5,
        ),
    ] = None
    blurred: Annotated[
        float | None,
        Opt(
            "Blurred: the sharpness is below this. Edges blurred by a one-pixel Gaussian have 1. By default 1.2 to "
            "1.5, or less in blurred data sets.",
            "Thresholds",
            ge=0,
        ),
    ] = None
    tiny: Annotated[
        float | None,
        Opt(
            "Tiny: the image has fewer pixels than a square of this side. By default, a quarter of the median side.",
            "Thresholds",
            ge=0,
            metavar="SIDE",
        ),
    ] = None
    huge: Annotated[
        float | None,
        Opt(
            "Huge: the image has more pixels than a square of this side. By default, four times the median side.",
            "Thresholds",
            ge=1,
            metavar="SIDE",
        ),
    ] = None
    aspect: Annotated[
        float | None,
        Opt(
            "Extreme aspect: the ratio of the longer side to the shorter side is above this. By default "
            f"{ASPECT:g}, or more in data sets of long images.",
            "Thresholds",
            ge=1,
        ),
    ] = None
    imbalance: Annotated[
        float | None,
        Opt(
            "Imbalance: the ratio of the largest class to the smallest, in images, is above this. By default "
            f"{IMBALANCE:g}.",
            "Thresholds",
            ge=1,
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tiny is not None and self.huge is not None and self.tiny >= self.huge:
            raise ValueError(f"tiny: got {self.tiny!r} with huge {self.huge!r}; accepted: less than that")


@dataclass(frozen=True, kw_only=True)
class CheckingOptions(ThresholdOptions, DicomOptions):
    window: Annotated[
        str | None,
        Opt(
            "Window of gray DICOM files that is measured as black to white, 0 to 1: center and width, such as 40,400, "
            "or full for all values that their bits can have. By default, their own units.",
            "Images",
            metavar="CENTER,WIDTH|full",
        ),
    ] = None
    out: Annotated[
        Path | None,
        Opt(
            "Parquet file of measures and findings, one row per image. Progress is saved next to it. By default "
            "findings.parquet for the command without --json, and none otherwise.",
            "Output",
            metavar="FILE",
        ),
    ] = None
    report: Annotated[Path | None, Opt("HTML report of all results, in one file.", "Output", metavar="FILE")] = None
    labels: Annotated[
        bool,
        Opt(
            "Find likely label errors with short training runs and cleanlab. Takes minutes; requires "
            "'variegate[labels]'.",
            "Training",
        ),
    ] = False
    seed: Annotated[int, Opt("Seed for the training runs of --labels.", "Training", ge=0, needs=("labels", True))] = 0
    near_distance: Annotated[
        int | None,
        Opt(
            "Near duplicates: the perceptual hashes differ in at most this number of 64 bits.",
            "Thresholds",
            ge=0,
            le=15,
            metavar="BITS",
        ),
    ] = None
    threads: Threads = None
