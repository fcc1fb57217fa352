"""Packed shards: their plan, the job that makes entries of images, and the writer, with entries of an index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import compress, islice
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import ImageArray
from variegate.checks import PIXEL_VERSION
from variegate.data.annotated.manifest_targets import Content
from variegate.data.base import Item, SourceError
from variegate.data.opening import open_source
from variegate.data.packed import INDEX_NAME, STATISTICS_NAME, ImageSums, PixelSums, statistics_bytes, sums_of
from variegate.data.shards import Labels, Record
from variegate.data.storage import Storage
from variegate.decode import PillowFile, checked_header, is_jpeg, read_channels, read_image
from variegate.decode.channels import in_channels
from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.decode.entropy.index import Known, known_of, pieces_of
from variegate.errors import DecodeError
from variegate.io.location import Location, inside
from variegate.jobs.augment.job import DecodedItem, ExpansionJob, digest_columns
from variegate.jobs.augment.plan import Plan, source_settings
from variegate.jobs.augment.writing import CopyOutput, ShardWriter
from variegate.jobs.output.files import encode_image
from variegate.jobs.output.parts import Row, Rows, record_name
from variegate.threads import default_threads


@dataclass
class Totals:
    """Rows of a packing, added up. ``sums``: None if images have several numbers of channels, or no finite pixel;
    ``shards``: bytes by name; ``kept``: files copied unchanged."""

    images: int = 0
    sums: PixelSums | None = None
    shards: dict[str, int] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    kept: int = 0
    bytes_before: int = 0


def totals_of(rows: Iterable[Row]) -> Totals:
    found = Totals()
    total = PixelSums()
    are_alike = True
    for row in rows:
        if row["status"] != "written":
            found.skipped.append((row["source"], row["reason"]))
            continue
        packed = json.loads(row["packed"])
        found.images += 1
        sums = ImageSums(packed["pixels"], packed["sums"], packed["squares"])
        are_alike = are_alike and total.accepts(len(sums.sums))
        if are_alike:
            total.add(sums)
        found.shards[row["file"]] = row["shard_bytes"]
        found.kept += packed["kept"]
        found.bytes_before += packed["bytes"]
    if are_alike and total.pixels:
        found.sums = total
    return found


@dataclass(frozen=True)
class PackPlan(Plan):
    """Every sample of a source once, an item each, in shards of ``shard_size`` images."""

    short_side: int | None = None  # larger pictures are reduced so that their shorter side has this many pixels
    keep_jpeg: bool = False  # copy JPEG files unchanged; encode other kinds

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source.has_targets:
            accepted = "images alone, as the folder of its images is"
            raise SourceError(
                f"{self.source!r}: has boxes, masks or key points, which shards lose; accepted: {accepted}"
            )

    def _check_format(self) -> None:
        if self.depth.is_deep and self.layout != "raw":
            raise ValueError(f"format: got {self.layout!r}, which holds no images of {self.depth}; accepted: 'raw'")
        if self.channels not in (None, 1, 3) and self.layout != "raw":
            got = f"got {self.layout!r}, which holds no images of {self.channels} channels"
            raise ValueError(f"format: {got}; accepted: 'raw'")

    @property
    def job_kind(self) -> type[PackJob]:
        return PackJob

    def open_part(self, storage: Storage, part: int, labels: Labels) -> PackWriter:
        return PackWriter(self, storage, part, labels)

    def last_files(self, storage: Storage, labels: Labels, rows: Rows) -> Iterator[tuple[str, Content]]:
        yield from super().last_files(storage, labels, rows)
        totals = totals_of(rows())
        if not totals.shards:
            return
        if self.has_index:
            yield INDEX_NAME, pieces_of(_known_files(storage, totals.shards))
        if totals.sums is not None:
            yield STATISTICS_NAME, statistics_bytes(totals.sums, self.depth.white)

    @property
    def has_index(self) -> bool:
        """True if outputs are JPEG files, for which an entropy index is made."""
        return self.layout != "raw"

    def sample_name(self, index: int) -> str:
        """The name of the file, without where it lies: shards are the same wherever their source is."""
        if self.source.folder is not None:
            return super().sample_name(index)
        file, member = self.source.name(index)
        name = Location.of(file).name
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
            **({} if self.channels is None else {"channels": self.channels}),
            **self._reading,
            "shard_size": self.shard_size,
            "executor": executor,
            "pixels": PIXEL_VERSION,
            **self.source.excluded,
        }


Image_HWC = ImageArray


class Origin(NamedTuple):
    """Bytes of a sample's file or pixels, channels that a loader returns, and the file if it is copied unchanged."""

    nbytes: int
    shown: int
    kept: bytes | None


class ShardEntry(NamedTuple):
    """Entry of an image in shards. ``key``, ``entries``: for the entropy index, 0 without entries."""

    shape: tuple[int, int, int, int]
    key: int = 0
    entries: bytes = b""


class PackJob(ExpansionJob):
    """Reads, decodes, reduces and encodes images, and makes entry points for encoded JPEGs."""

    _plan: PackPlan

    def _open(self, data: Any, name: str) -> tuple[Image_HWC, Origin]:
        """Gray files give one channel."""
        channels = self._plan.channels
        if isinstance(data, np.ndarray):
            image = in_channels(data, channels, name)
            self._check_channels(image, name)
            return image, Origin(data.nbytes, image.shape[2], None)
        kept = bytes(data) if self._plan.keep_jpeg and is_jpeg(data) else None
        several = read_channels(data, name, None, channels)
        if several is not None:
            self._check_channels(several, name)
            is_gray = bool((several == several[:, :, :1]).all())
            image = np.ascontiguousarray(several[:, :, :1]) if is_gray else several
            return image, Origin(len(data), several.shape[2], kept)
        if not is_jpeg(data):
            with PillowFile(data, name) as file:
                image = file.decode()
                is_gray = file.is_gray
        else:
            image = read_image(data, name)
            is_gray = checked_header(data, name).components == 1
        return np.ascontiguousarray(image[:, :, :1]) if is_gray else image, Origin(len(data), 3, kept)

    def _check_channels(self, img_HWC: Image_HWC, name: str) -> None:
        """Raise DecodeError for an image that shards of JPEGs cannot hold."""
        if self._plan.layout != "raw" and img_HWC.shape[2] not in (1, 3):
            accepted = "1 or 3 channels; others with format='raw'"
            raise DecodeError(name, f"got shape {img_HWC.shape}; accepted: {accepted}")

    def _make_copy(self, group: list[DecodedItem], copy: int) -> None:
        """Only images larger than requested are reduced."""
        most = self._plan.short_side
        is_large = [most is not None and min(one.decoded.pixels.shape[:2]) > most for one in group]
        if large := list(compress(group, is_large)):
            super()._make_copy(large, copy)
        if rest := [one for one, is_one in zip(group, is_large, strict=True) if not is_one]:
            self._encode_copy(rest, copy, None, [one.decoded.pixels for one in rest])

    def _encode(self, one: DecodedItem, image: Image_HWC, row: dict[str, Any]) -> CopyOutput:
        origin: Origin = one.decoded.file
        metadata: dict[str, Any] = {"bytes": origin.nbytes, "kept": origin.kept is not None}
        if self._plan.layout == "raw":
            data = np.ascontiguousarray(image).tobytes()
            metadata |= _sums(image, origin.shown)
            entry = ShardEntry((*image.shape, origin.shown))
        else:
            data = encode_image(image, "jpg", self._plan.quality) if origin.kept is None else origin.kept
            try:
                # Statistics are over decoded pixels, which differ slightly from the encoded ones.
                metadata |= _sums(image if origin.kept is not None else read_image(data), 3)
            except DecodeError as error:
                raise ValueError(error.reason) from error
            found = pack_file(data)
            entry = ShardEntry((*image.shape, 3), key_of_file(data), b"" if isinstance(found, int) else found)
        return CopyOutput(row | digest_columns(data) | {"packed": json.dumps(metadata)}, data, entry)


def _sums(image: Image_HWC, channels: int) -> dict[str, Any]:
    pixels, sums, squares = sums_of(image)
    repeated = channels // len(sums)
    return {"pixels": pixels, "sums": sums * repeated, "squares": squares * repeated}


_FILES_AT_ONCE = 256


class PackWriter(ShardWriter):
    """Stores the entries of the shard's images for ``write_index`` as well."""

    def __init__(self, plan: PackPlan, storage: Storage, part: int, labels: Labels) -> None:
        super().__init__(plan, storage, part, labels)
        self._has_index = plan.has_index
        self._entries: dict[int, bytes] = {}

    def _finish(self) -> None:
        super()._finish()
        if self._has_index and self._entries:
            sizes = [len(entry) for entry in self._entries.values()]
            head = json.dumps({"keys": list(self._entries), "sizes": sizes}).encode()
            self.storage.write(_entries_name(self.part), b"\n".join([head, b"".join(self._entries.values())]))

    def _record(self, output: CopyOutput, label: Any) -> Record:
        row, data, entry = output
        if self._has_index:
            self._entries[entry.key] = entry.entries
        metadata = row["class"], row["source"], row["id"], entry.shape
        extension = "jpg" if self._has_index else "raw"
        return Record(row["index"], None, data, extension, label, *metadata)


def _entries_name(part: int) -> str:
    return record_name(part, "entries")


def _known_files(storage: Storage, shards: Iterable[str]) -> Known:
    """The index of these shards. Shards whose entries are gone are read again."""
    every: dict[int, bytes] = {}
    for shard in shards:
        every |= _entries_of(storage, shard)
    return known_of(every)


def _entries_of(storage: Storage, shard: str) -> dict[int, bytes]:
    try:
        part = int(shard.partition(".")[0].removeprefix("shard-"))
        head, _, packed = storage.read(_entries_name(part)).partition(b"\n")
    except FileNotFoundError:
        return _look_through(storage, shard)
    found = json.loads(head)
    entries = {}
    at = 0
    for key, size in zip(found["keys"], found["sizes"], strict=True):
        entries[key] = packed[at : at + size]
        at += size
    return entries


def _look_through(storage: Storage, shard: str) -> dict[int, bytes]:
    """No index of the shard itself is left next to it."""
    entries = dict[int, bytes]()
    with (
        TemporaryDirectory(prefix="variegate-") as folder,
        ThreadPoolExecutor(default_threads(), "variegate-index") as pool,
    ):
        source = open_source(inside(storage.root, shard), stream=False, cache_dir=folder)
        items = map(source.read, range(len(source)))
        while some := list(islice(items, _FILES_AT_ONCE)):
            entries.update(pool.map(_look_into, some))
    return entries


def _look_into(item: Item) -> tuple[int, bytes]:
    assert isinstance(item.data, bytes)
    found = pack_file(item.data)
    return key_of_file(item.data), b"" if isinstance(found, int) else found
