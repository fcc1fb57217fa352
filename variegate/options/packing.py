"""What a packing can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from variegate.options import check_options, option
from variegate.options.expansion import DeviceOptions, GoingOnOptions


@dataclass(frozen=True, kw_only=True)
class PackingOptions(GoingOnOptions, DeviceOptions):
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
        names = ("size", "quality", "format", "workers", "threads", "allocation", "on_error", "changed")
        check_options(self, *names)
