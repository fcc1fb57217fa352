"""Packed shards: their plan, the job that makes entries of images, and the commit, which ends shards by their bytes."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.checks import PIXEL_VERSION
from variegate.decode import PillowFile, checked_header, is_jpeg, read_image
from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.decode.entropy.index import known_of, pieces_of
from variegate.errors import DecodeError
from variegate.formats.base import FileSource, Item, SourceError, StreamSource
from variegate.formats.filtered import excluded_from
from variegate.formats.opening import open_source
from variegate.formats.packed import INDEX_NAME, sums_of
from variegate.formats.shards import PACKED, Labels, Record, Shard, open_shard
from variegate.formats.storage import PRIVATE, Storage
from variegate.io.location import Location, inside
from variegate.jobs.augment.commit import Report, ShardCommit
from variegate.jobs.augment.job import CopyOutput, DecodedItem, ExpansionJob, digest_columns
from variegate.jobs.augment.plan import Plan
from variegate.jobs.output.files import encode_image
from variegate.jobs.output.journal import Journal
from variegate.jobs.output.on_disk import source_settings
from variegate.threads import default_threads

_UNITS = {"": 1, "b": 1} | {f"{p}b": 1000 ** (n + 1) for n, p in enumerate("kmgt")}
_UNITS |= {f"{p}ib": 1024 ** (n + 1) for n, p in enumerate("kmgt")}
_ACCEPTED_SIZE = "a size such as 256MB, 1GB or 512MiB"


@dataclass(frozen=True)
class PackPlan(Plan):
    """Every sample of a source once, an item each, in shards of about ``shard_bytes``."""

    short_side: int | None = None  # larger pictures are reduced so that their shorter side has this many pixels
    keep_jpeg: bool = False  # JPEG files are copied as they are; other kinds are encoded
    shard_bytes: int = 256 * 1000**2  # a shard ends before the image that would take it beyond; one may be larger
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
    def job_kind(self) -> type[PackJob]:
        return PackJob

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
            "shard_bytes": self.shard_bytes,
            "executor": executor,
            "pixels": PIXEL_VERSION,
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
            if data.shape[2] not in (1, 3):
                raise DecodeError(name, f"got shape {data.shape}; accepted: 1 or 3 channels")
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

    def _encode(self, one: DecodedItem, image: Image_HWC, row: dict[str, Any]) -> CopyOutput:
        origin: Origin = one.sample.file
        about: dict[str, Any] = {"bytes": origin.nbytes, "kept": origin.kept is not None}
        if self._plan.layout == "raw":
            data, about = np.ascontiguousarray(image).tobytes(), about | _sums(image, origin.shown)
            entry = ShardEntry((*image.shape, origin.shown))
        else:
            data = encode_image(image, "jpg", self._plan.quality) if origin.kept is None else origin.kept
            try:
                # What a reader gets, which is a little beside what was encoded.
                about |= _sums(image if origin.kept is not None else read_image(data), 3)
            except DecodeError as error:
                raise ValueError(error.reason) from error
            found = pack_file(data)
            entry = ShardEntry((*image.shape, 3), key_of_file(data), b"" if isinstance(found, int) else found)
        return CopyOutput(row | digest_columns(data) | {"packed": json.dumps(about)}, data, entry)


def _sums(image: Image_HWC, channels: int) -> dict[str, Any]:
    sums, squares = sums_of(image)
    repeated = channels // len(sums)
    return {"sums": sums * repeated, "squares": squares * repeated}


# What an image takes beside its own bytes, about: headers, label and description in an archive, a row elsewhere.
_TAR_BLOCK, _TAR_BESIDE, _ROW = 512, 5 * 512, 64
_FILES_AT_ONCE = 256
_FOLDER = f"{PRIVATE}/index"


class ShardSpan(NamedTuple):
    """The items of a shard, ``start..stop-1``, and its name; "" where none of them could be made."""

    start: int
    stop: int
    file: str

    @property
    def number(self) -> int:
        return int(self.file.partition("-")[2].partition(".")[0])


def spans_of(start: int, stop: int, rows: Iterable[dict[str, Any]]) -> list[ShardSpan]:
    """Of a record. Images that could not be made belong to the shard before them, and the first to the first."""
    starts, files = [start], [""]
    for row in rows:
        if row["file"] is None or row["file"] == files[-1]:
            continue
        if files[-1]:
            starts.append(row["index"])
            files.append(row["file"])
        else:
            files[-1] = row["file"]
    return [ShardSpan(*each) for each in zip(starts, [*starts[1:], stop], files, strict=True)]


class PackCommit(ShardCommit):
    """Outputs come in order. A shard has the number after that of the shard before it; where the next number is taken,
    as by images that could not be read once and now can, the last shard before it gets larger instead."""

    _plan: PackPlan

    def __init__(self, plan: PackPlan, storage: Storage, labels: Labels, journal: Journal, report: Report) -> None:
        super().__init__(plan, storage, labels, journal, report)
        spans = [span for record in journal.records() for span in spans_of(*record) if span.file]
        self._firsts, self._numbers = [span.start for span in spans], [span.number for span in spans]
        # Where what is recorded begins: a shard that comes before ends there.
        self._recorded = [start for start, _ in journal.covered]
        self._next = self._number = self._size = 0
        self._has_next = True
        self._entries: dict[int, bytes] = {}

    def _begin(self, item: int, data: Sequence[bytes] = ()) -> None:
        """Without image files no shard is opened."""
        if item != self._next:
            self._first = self._next = item
        for one in data:
            size = self._size_of(one)
            if self._shard is not None and self._size + size > self._plan.shard_bytes and self._has_next:
                self._end(item)
                self._first = item
            if self._shard is None:
                place = bisect_left(self._firsts, self._first)
                self._number = self._numbers[place - 1] + 1 if place else 0
                self._has_next = self._number + 1 not in self._numbers[place : place + 1]
                self._shard = open_shard(self._storage, self._plan.layout, self._number, self._labels)
                self._size, self._entries = 0, {}
            self._size += size

    def _end_item(self, item: int) -> None:
        self._next = item + 1
        place = bisect_left(self._recorded, self._next)
        if self._next == self._plan.num_items or self._recorded[place : place + 1] == [self._next]:
            self._end(self._next)
            self._first = self._next

    def _put_shard(self, shard: Shard) -> dict[str, Any]:
        if self._plan.has_index:
            # Until ``write_index``.
            sizes = [len(one) for one in self._entries.values()]
            head = json.dumps({"keys": list(self._entries), "sizes": sizes}).encode()
            self._storage.write(f"{_FOLDER}/{shard.name}", b"\n".join([head, b"".join(self._entries.values())]))
        whole = super()._put_shard(shard)
        place = bisect_left(self._firsts, self._first)
        self._firsts.insert(place, self._first)
        self._numbers.insert(place, self._number)
        return whole

    def _size_of(self, data: bytes) -> int:
        if self._plan.layout != "webdataset":
            return len(data) + _ROW
        return len(data) + -len(data) % _TAR_BLOCK + _TAR_BESIDE

    def _record(self, row: dict[str, Any], data: bytes, label: Any, extra: ShardEntry) -> Record:
        """Collects the image's entries of the index, too."""
        if self._plan.has_index:
            self._entries[extra.key] = extra.entries
        about = row["class"], row["source"], row["id"], extra.shape
        return Record(row["index"], None, data, "raw" if self._plan.layout == "raw" else "jpg", label, *about)


def write_index(storage: Storage, shards: Iterable[str]) -> dict[str, object]:
    """Write the index of these shards -> its size and checksum. Shards whose entries are gone are read again."""
    every: dict[int, bytes] = {}
    for shard in shards:
        every |= _entries_of(storage, shard)
    with storage.writer(INDEX_NAME) as out:
        for piece in pieces_of(known_of(every)):
            out.file.write(piece)
        out.file.flush()
        about: dict[str, object] = {"bytes": out.descriptor.size, "sha256": out.descriptor.digest.hexdigest()}
        out.commit()
    return about


def _entries_of(storage: Storage, shard: str) -> dict[int, bytes]:
    try:
        head, _, packed = storage.read(f"{_FOLDER}/{shard}").partition(b"\n")
    except FileNotFoundError:
        return _look_through(storage, shard)
    found, entries, at = json.loads(head), {}, 0
    for key, size in zip(found["keys"], found["sizes"], strict=True):
        entries[key] = packed[at : at + size]
        at += size
    return entries


def _look_through(storage: Storage, shard: str) -> dict[int, bytes]:
    """A shard is read from its beginning to its end, so that no listing of it is left beside it."""
    source = open_source(inside(storage.root, shard), stream=True if shard.endswith(".tar") else None)
    items: Iterable[Item | DecodeError]
    if isinstance(source, StreamSource):
        items = (sample.item for sample in source.read_shard(0))
    else:
        items = map(source.read, range(len(source)))
    items, entries = iter(items), dict[int, bytes]()
    with ThreadPoolExecutor(default_threads(), "variegate-index") as pool:
        while some := list(islice(items, _FILES_AT_ONCE)):
            entries.update(pool.map(_look_into, some))
    return entries


def _look_into(item: Item | DecodeError) -> tuple[int, bytes]:
    if isinstance(item, DecodeError):
        raise item
    assert isinstance(item.data, bytes)
    found = pack_file(item.data)
    return key_of_file(item.data), b"" if isinstance(found, int) else found
