"""What commands can be told that make a data set on disk: on which devices, and how they go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from variegate.options import option
from variegate.options.annotations import AnnotationOptions


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Where it is made."""

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
class TargetOptions(AnnotationOptions):
    """Which boxes are kept, and what masks show where there is no image."""

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
class GoingOnOptions:
    """What becomes of earlier runs, and of images that cannot be read."""

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
