"""Options that several commands have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from variegate.options import Opt, Options

# The manifest holds an epoch in 64 bits, with a sign.
MAX_EPOCH = 2**63 - 1

Seed: TypeAlias = Annotated[int, Opt("Seed of all random choices.", "Augmentation", ge=0, is_main=True)]
Epoch: TypeAlias = Annotated[
    int,
    Opt(
        "Epoch to augment for: it changes the augmentation, and selects the policy of a schedule.",
        "Augmentation",
        ge=0,
        le=MAX_EPOCH,
    ),
]
Copies: TypeAlias = Annotated[int, Opt("Augmented copies of each image.", "Augmentation", ge=1, is_main=True)]
ShardSize: TypeAlias = Annotated[int, Opt("Number of images per shard, approximately.", "Output", ge=1)]
Threads: TypeAlias = Annotated[int | None, Opt("Number of threads. By default, all cores.", "Machine", ge=1)]


def ray_address(needs: str, panel: str) -> Opt:
    """``needs``: option with the value "ray" that an address goes with."""
    help = "Address of the Ray cluster. By default the cluster on this machine, or a new one."
    return Opt(help, panel, metavar="HOST:PORT|auto", needs=(needs, "ray"))


def device_names(devices: str) -> list[str]:
    """The names in ``--devices``."""
    return [name.strip() for name in devices.split(",")]


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """Devices, and the workers that run them."""

    devices: Annotated[
        str,
        Opt(
            "Devices to use: auto (all GPUs, or else the CPU), or a list such as cuda:0,cuda:1 or "
            "cpu:0,cpu:1 (parts of the CPU).",
            "Devices",
            metavar="DEVICES",
            is_main=True,
        ),
    ] = "auto"
    workers: Annotated[
        Literal["process", "thread", "ray"],
        Opt("Type of worker that runs each device; ray uses actors on a Ray cluster.", "Devices"),
    ] = "process"
    address: Annotated[str | None, ray_address("workers", "Devices")] = None
    threads: Annotated[
        int | None, Opt("Threads per device. By default, the devices share all cores.", "Devices", ge=1)
    ] = None
    allocation: Annotated[
        Literal["next_idle", "round_robin", "random"], Opt("Strategy that assigns tasks to devices.", "Devices")
    ] = "next_idle"
    steal: Annotated[bool, Opt("Let idle devices take tasks from the longest queue (work stealing).", "Devices")] = True

    def device_list(self) -> Any:
        """``devices`` as functions take it."""
        is_list = not isinstance(self.devices, str) or self.devices == "auto"
        return self.devices if is_list else device_names(self.devices)


@dataclass(frozen=True, kw_only=True)
class DicomOptions(Options):
    """Options for reading DICOM files."""

    window: Annotated[
        str | None,
        Opt(
            "Window of gray DICOM files that becomes black to white: center and width, such as 40,400, or full for all "
            "values that their bits can have. By default the window of each file, or own units with --depth float32.",
            "Images",
            metavar="CENTER,WIDTH|full",
        ),
    ] = None
    frame: Annotated[
        int | None,
        Opt("Frame of DICOM files, counted from 0. By default, files of several frames are refused.", "Images", ge=0),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReadOptions(DicomOptions):
    """Options for reading images that are written again."""

    channels: Annotated[
        int | None,
        Opt(
            "Channels that every file must have: 4 reads alpha, other numbers TIFF or NumPy files.",
            "Images",
            ge=1,
            le=32,
        ),
    ] = None
    depth: Annotated[
        Literal["uint8", "uint16", "float32"],
        Opt(
            "Dtype in which images are read. uint16 and float32 keep 16 bits and floats; uint8 scales them to 8 bits.",
            "Images",
        ),
    ] = "uint8"


@dataclass(frozen=True, kw_only=True)
class TrainReadOptions(DicomOptions):
    """Options for reading images that models train on; ``depth`` as of a Loader."""

    depth: Annotated[
        Literal["uint8", "uint16", "float32"] | None,
        Opt(
            "Dtype in which images are read. uint16 and float32 keep 16 bits and floats up to the model. By default, "
            "8 bits of files, and the dtype of raw packs.",
            "Images",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TargetOptions(Options):
    """Targets to read (``annotations``: as ``open_source`` takes it), and how they are augmented."""

    annotations: Annotated[
        str | None,
        Opt(
            "Boxes, masks and key points for a folder SRC: a COCO .json file, voc, yolo or masks, and options after "
            "commas (instances.json,mask=each or yolo,split=train). By default, voc and yolo layouts "
            "are detected.",
            "Images",
            metavar="FILE|LAYOUT",
            is_main=True,
        ),
    ] = None
    min_area: Annotated[
        float,
        Opt("Drop boxes whose remaining area is smaller than this.", "Augmentation", ge=0, metavar="PIXELS"),
    ] = 0.0
    min_visibility: Annotated[
        float,
        Opt("Drop boxes of which less than this share remains.", "Augmentation", ge=0, le=1, metavar="SHARE"),
    ] = 0.0
    mask_fill: Annotated[
        int, Opt("Mask value where the image shows its fill color. Losses often ignore 255.", "Augmentation")
    ] = 0


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Options):
    """A policy, and the crop before it."""

    policy: Annotated[
        str,
        Opt(
            "Augmentation policy: randaugment, trivialaugment, autoaugment, augmix, 3-augment, imagenet, cifar10, "
            "svhn, v0, pba-cifar10, pba-svhn, a timm string such as rand-m9-mstd0.5-inc1, a .json or .yaml file, or "
            "none.",
            "Augmentation",
            metavar="POLICY",
            is_main=True,
        ),
    ] = "randaugment"
    size: Annotated[
        str,
        Opt(
            "Random crop resized to this size (RandomResizedCrop) before the policy; none keeps the size of each "
            "image.",
            "Augmentation",
            metavar="SIDE|HxW|none",
            is_main=True,
        ),
    ] = "none"
