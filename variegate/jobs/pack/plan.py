"""What packing a data set makes: decided before it begins, and the same for every worker, device and resume."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from variegate.checks import integer
from variegate.formats.base import FileSource, Source, SourceError
from variegate.formats.filtered import excluded_from
from variegate.formats.shards import PACKED, PackFormat
from variegate.io.addresses import shown
from variegate.io.location import Location
from variegate.jobs.augment.plan import PIXELS, Plan
from variegate.ops.output import Identity
from variegate.ops.resize import Resize
from variegate.transforms import Transform

_UNITS = {"": 1, "b": 1} | {f"{p}b": 1000 ** (n + 1) for n, p in enumerate("kmgt")}
_UNITS |= {f"{p}ib": 1024 ** (n + 1) for n, p in enumerate("kmgt")}
_ACCEPTED_SIZE = "a size such as 256MB, 1GB or 512MiB"


@dataclass(frozen=True)
class PackPlan(Plan):
    """Every sample of a source once, in shards of about ``shard_bytes``.

    Args:
        short_side: larger pictures are reduced so that their shorter side has this many pixels; None: none is.
        keep_jpeg: JPEG files are copied as they are; other kinds are encoded.
        shard_bytes: a shard ends before the image that would take it beyond; one image may be larger.

    The items are the samples. Raises ValueError (SourceError) naming the argument.
    """

    short_side: int | None = None
    keep_jpeg: bool = False
    shard_bytes: int = 256 * 1000**2
    _layouts: ClassVar[tuple[str, ...]] = PACKED

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self.source, "has_targets", False):
            accepted = "images alone, as the folder of its images is"
            raise SourceError(
                f"{self.source!r}: has boxes, masks or key points, which shards lose; accepted: {accepted}"
            )
        if self.keep_jpeg and self.short_side is not None:
            raise ValueError(
                "keep_jpeg: got it with a size; accepted: one of them, as files that are kept stay as large"
            )
        if self.keep_jpeg and self.layout == "raw":
            raise ValueError("keep_jpeg: got it with the format raw, which has no files; accepted: webdataset, parquet")

    @property
    def has_index(self) -> bool:
        """JPEG files come out, so that an entropy index is made of them."""
        return self.layout != "raw"

    @property
    def items_per_shard(self) -> int:
        """As many as there is room for."""
        return 1

    def sample_name(self, index: int) -> str:
        """The name of the file, without where it lies: shards are the same wherever their source is."""
        if isinstance(self.source, FileSource):
            return super().sample_name(index)
        file, member = self.source.name(index)
        name = Location.parse(file).name
        return name if member is None else f"{name}: {member}"

    def settings(self, executor: str) -> dict[str, Any]:
        encoding = {} if self.layout == "raw" else {"quality": self.quality, "keep_jpeg": self.keep_jpeg}
        return {
            "command": "pack",
            "source": shown(self.place),
            "samples": len(self.source),
            "fingerprint": self.source.fingerprint,
            "classes": list(self.source.classes),
            "copies": 1,
            "layout": self.layout,
            "size": self.short_side,
            **encoding,
            "shard_bytes": self.shard_bytes,
            "executor": executor,
            "pixels": PIXELS,
            **excluded_from(self.source),
        }


def pack_plan(
    source: Source,
    place: str,
    format: PackFormat,
    size: int | None,
    quality: int | None,
    keep_jpeg: bool,
    shard_size: str | int,
) -> PackPlan:
    """Of what a user says. Raises ValueError naming the argument."""
    if quality is not None and format == "raw":
        raise ValueError("quality: got it with the format raw, whose pixels are not encoded; accepted: leave it out")
    side = None if size is None else integer("size", size, 1, 32_767)
    transform: Transform = Identity() if side is None else Resize(side)
    return PackPlan(
        source,
        transform,
        layout=format,
        quality=90 if quality is None else quality,
        place=place,
        short_side=side,
        keep_jpeg=keep_jpeg,
        shard_bytes=parse_bytes(shard_size),
    )


def parse_bytes(text: str | int) -> int:
    """``"256MB"`` -> 256,000,000; ``"1GiB"`` -> 1,073,741,824; a number is one of bytes. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text).lower())
    unit = None if match is None else _UNITS.get(match[2])
    size = 0 if match is None or unit is None else int(float(match[1]) * unit)
    if size < 1:
        raise ValueError(f"shard_size: got {text!r}; accepted: {_ACCEPTED_SIZE}")
    return size
