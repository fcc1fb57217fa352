"""Packing a data set: its plan, the same for every worker, device and resume, and the job that workers do."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.decode import PillowFile, checked_header, is_jpeg, read_image
from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.errors import DecodeError
from variegate.formats.base import FileSource, SourceError
from variegate.formats.filtered import excluded_from
from variegate.formats.packed import sums_of
from variegate.formats.shards import PACKED
from variegate.io.location import Location
from variegate.jobs.augment.job import DecodedItem, ExpansionJob
from variegate.jobs.augment.plan import PIXELS, Plan
from variegate.jobs.on_disk import source_settings
from variegate.jobs.output.encode import encode_image

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
            **source_settings(self.source, self.place),
            "copies": 1,
            "layout": self.layout,
            "size": self.short_side,
            **encoding,
            "shard_bytes": self.shard_bytes,
            "executor": executor,
            "pixels": PIXELS,
            **excluded_from(self.source),
        }


def parse_bytes(text: str | int) -> int:
    """``"256MB"`` -> 256,000,000; ``"1GiB"`` -> 1,073,741,824; a number is one of bytes. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text).lower())
    unit = None if match is None else _UNITS.get(match[2])
    size = 0 if match is None or unit is None else int(float(match[1]) * unit)
    if size < 1:
        raise ValueError(f"shard_size: got {text!r}; accepted: {_ACCEPTED_SIZE}")
    return size


Image_HWC = npt.NDArray[np.uint8]


class Origin(NamedTuple):
    """Bytes of a sample's file or pixels, channels that a loader shows, and the file if it is copied as it is."""

    nbytes: int
    shown: int
    kept: bytes | None


class ShardEntry(NamedTuple):
    """Entry of an image in shards. ``key``, ``entries``: of the entropy index, 0 where there is none."""

    shape: tuple[int, int, int, int]
    key: int = 0
    entries: bytes = b""


class PackJob(ExpansionJob):
    """Reads, decodes, reduces, encodes, and makes entries for the index of what it encoded."""

    _plan: PackPlan

    def _open(self, data: Any, name: str) -> tuple[Image_HWC, Origin]:
        """Gray files give one channel."""
        if isinstance(data, np.ndarray):
            return data, Origin(data.nbytes, data.shape[2], None)
        if not is_jpeg(data):
            with PillowFile(data, name) as file:
                image, is_gray = file.decode(), file.is_gray
        else:
            image = read_image(data, name)
            is_gray = checked_header(data, name).components == 1
        kept = bytes(data) if self._plan.keep_jpeg and is_jpeg(data) else None
        return np.ascontiguousarray(image[:, :, :1]) if is_gray else image, Origin(len(data), 3, kept)

    def _make_copy(self, group: list[DecodedItem], copy: int) -> None:
        """Only larger images than are wanted are reduced."""
        most = self._plan.short_side
        is_large = [most is not None and min(one.sample.pixels.shape[:2]) > most for one in group]
        if large := list(compress(group, is_large)):
            super()._make_copy(large, copy)
        if rest := [one for one, is_one in zip(group, is_large, strict=True) if not is_one]:
            self._encode_copy(rest, copy, None, [one.sample.pixels for one in rest])

    def _extras(self, one: DecodedItem) -> list[ShardEntry]:
        return [one.extra]

    def _encode(self, both: tuple[DecodedItem, Image_HWC]) -> tuple[bytes, dict[str, Any]] | ValueError:
        one, image = both
        origin: Origin = one.sample.file
        about = {"bytes": origin.nbytes, "kept": origin.kept is not None}
        if self._plan.layout == "raw":
            one.extra = ShardEntry((*image.shape, origin.shown))
            data, about = np.ascontiguousarray(image).tobytes(), about | _sums(image, origin.shown)
            return data, {"packed": json.dumps(about)}
        try:
            data = encode_image(image, "jpg", self._plan.quality) if origin.kept is None else origin.kept
            # What a reader gets, which is a little beside what was encoded.
            about |= _sums(image if origin.kept is not None else read_image(data), 3)
        except DecodeError as error:
            return ValueError(error.reason)
        except ValueError as error:  # larger than the format can hold
            return error
        found = pack_file(data)
        one.extra = ShardEntry((*image.shape, 3), key_of_file(data), b"" if isinstance(found, int) else found)
        return data, {"packed": json.dumps(about)}


def _sums(image: Image_HWC, channels: int) -> dict[str, Any]:
    sums, squares = sums_of(image)
    repeated = channels // len(sums)
    return {"sums": sums * repeated, "squares": squares * repeated}
