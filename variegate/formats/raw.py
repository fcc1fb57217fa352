"""The file of raw pixels: a line, the images one after another, an index of them, and where that lies.

    variegate raw pixels 1\\n          then each part at a multiple of 64 bytes:
    uint8 [H, W, C]                   of every image, contiguous
    the index                         a head in JSON, PLACES, the labels, the names
    64 bytes                          a mark, where the index begins, its size, its SHA-256

All numbers are little-endian. A file is written from its beginning to its end, and of a file that was cut off there is
no end, so that it is never taken for a whole one.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, Int64Array, UInt8Array, UInt64Array
from variegate.errors import DecodeError, shown
from variegate.formats.base import FilesSource, Item, SampleName, SourceError, StoredFile, digest_of
from variegate.formats.labels import checked_names, label_at
from variegate.formats.reading import FileVersion, read_range, reason_for, version_of
from variegate.formats.shards import Labels, Record, Shard
from variegate.formats.storage import Storage
from variegate.io.files import open_regular
from variegate.io.location import Location, relative_names
from variegate.threads import computed_once

SUFFIX = ".vgraw"
FIRST_LINE = b"variegate raw pixels 1\n"
ALIGNED = 64
TAIL_SIZE = 64
# ``channels``: in the file, 1 or 3; ``shown``: in what a reader gives, where gray may be repeated.
PLACES = np.dtype(
    [("offset", "<u8"), ("id", "<u8"), ("height", "<u4"), ("width", "<u4"), ("channels", "u1"), ("shown", "u1")]
)
_TAIL = struct.Struct("<16sQQ32s")
_MARK = b"variegate index\n"
_LABEL_TYPES = {"int": "<i8", "ints": "<i8", "float": "<f8", "floats": "<f8"}


class DamagedRawError(ValueError):
    """A file that is no whole shard of raw pixels; the message says why."""


@dataclass(frozen=True, eq=False)
class RawIndex:
    """Of one file. ``places``: PLACES[N]; ``labels``: int64 or float64, [N] or [N, width]; ``digest``: of all of it."""

    places: AnyArray
    labels: AnyArray
    name_ends: UInt64Array
    names: bytes
    classes: tuple[str, ...]
    digest: str

    def __len__(self) -> int:
        return len(self.places)

    def name(self, position: int) -> str:
        begin = int(self.name_ends[position - 1]) if position else 0
        return self.names[begin : int(self.name_ends[position])].decode("utf-8", "surrogateescape")

    def size_of(self, position: int) -> int:
        place = self.places[position]
        return int(place["height"]) * int(place["width"]) * int(place["channels"])


def padding(size: int) -> bytes:
    """Bytes that bring the next part to its place."""
    return bytes(-size % ALIGNED)


def index_bytes(
    places: AnyArray, labels: Sequence[Any], kind: str, names: Sequence[str], classes: Sequence[str]
) -> bytes:
    """``kind``: "int", "float", "ints" or "floats", as ``formats.shards.Labels`` has it."""
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    array = np.array(labels, _LABEL_TYPES[kind])
    width = array.shape[1] if array.ndim == 2 else 0
    head = {"images": len(places), "labels": kind, "width": width, "classes": list(classes)}
    parts = [
        json.dumps(head).encode() + b"\n",
        places.astype(PLACES).tobytes(),
        array.tobytes(),
        np.cumsum([len(name) for name in encoded], dtype="<u8").tobytes(),
        b"".join(encoded),
    ]
    return b"".join(part + padding(len(part)) for part in parts)


def tail_bytes(begin: int, index: bytes) -> bytes:
    return _TAIL.pack(_MARK, begin, len(index), hashlib.sha256(index).digest())


def read_tail(tail: bytes, size: int) -> tuple[int, int, bytes]:
    """The last bytes of a file of ``size`` -> where the index begins, its size, its SHA-256. Raises DamagedRawError."""
    if len(tail) != TAIL_SIZE:
        raise DamagedRawError("too short for a file of raw pixels")
    mark, begin, length, digest = _TAIL.unpack(tail)
    if mark != _MARK or begin + length + TAIL_SIZE != size:
        raise DamagedRawError("cut off, or no file of raw pixels: it does not end as such")
    return begin, length, digest


def read_index(data: bytes, digest: bytes, begin: int) -> RawIndex:
    """``begin``: where pixels end. Raises DamagedRawError."""
    if hashlib.sha256(data).digest() != digest:
        raise DamagedRawError("the checksum of its index is another")
    try:
        found = _parse(data, digest)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:  # anybody computes checksums
        raise DamagedRawError(f"its index makes no sense ({error})") from None
    places = found.places
    if not (np.isin(places["channels"], (1, 3)).all() and np.isin(places["shown"], (1, 3)).all()):
        raise DamagedRawError("its index names images of neither 1 nor 3 channels")
    if (places["shown"] < places["channels"]).any():
        raise DamagedRawError("its index shows fewer channels than an image has")
    # In numbers that do not run over, and are exact where the file is long enough.
    offset, height, width, channels = (
        places[name].astype(np.float64) for name in ("offset", "height", "width", "channels")
    )
    if (offset + height * width * channels > begin).any():
        raise DamagedRawError("its index names pixels beyond their end")
    return found


def _parse(data: bytes, digest: bytes) -> RawIndex:
    line, _, _ = data.partition(b"\n")
    head = json.loads(line)
    count, kind, width, at = head["images"], _LABEL_TYPES[head["labels"]], head["width"], len(line) + 1
    # Before they are multiplied; to NumPy, -1 are as many as there are.
    for name, value in (("images", count), ("width", width)):
        if type(value) is not int or not 0 <= value <= len(data):
            raise ValueError(f"{name}: got {shown(value)}; accepted: 0 to {len(data):,}, its bytes")

    classes = checked_names(head["classes"])

    def take(dtype: Any, number: int) -> AnyArray:
        nonlocal at
        at += -at % ALIGNED
        found = np.frombuffer(data, dtype, number, at)
        at += found.nbytes
        return found

    places = take(PLACES, count)
    labels = take(kind, count * max(width, 1))
    ends = take("<u8", count)
    at += -at % ALIGNED
    return RawIndex(
        places,
        labels.reshape(count, width) if width else labels,
        ends,
        data[at : at + (int(ends[-1]) if count else 0)],
        classes,
        digest.hex(),
    )


class RawShard(Shard):
    """Of records whose ``data`` are pixels, of which ``shape`` says how they lie."""

    def __init__(self, storage: Storage, name: str, labels: Labels) -> None:
        super().__init__(storage, name, labels)
        self._at = 0
        self._places: list[tuple[int, ...]] = []
        self._labels: list[Any] = []
        self._names: list[str] = []
        self._write(FIRST_LINE)

    def add(self, record: Record) -> str:
        """-> the image's place in the file: 0, 1, ..."""
        super().add(record)
        return str(self.count - 1)

    def _write(self, data: bytes) -> None:
        self._writer.file.write(data)
        self._writer.file.write(rest := padding(len(data)))
        self._at += len(data) + len(rest)

    def _add(self, record: Record, label: Any) -> None:
        assert record.shape is not None
        self._places.append((self._at, record.id, *record.shape))
        self._labels.append(label)
        self._names.append(record.source)
        self._write(record.data)

    def _finish(self) -> None:
        places = np.array(self._places, PLACES)
        index = index_bytes(places, self._labels, self.labels.kind, self._names, self.labels.classes)
        begin = self._at
        self._writer.file.write(index + tail_bytes(begin, index))


_OPENED_AT_ONCE = 16
# Python holds an open file for every map, of which a process may have 1,024.
_MOST_MAPS = 256


@dataclass(frozen=True, eq=False)
class RawShardFile:
    """A file whose index was read."""

    location: Location
    version: FileVersion
    index: RawIndex


class RawSource(FilesSource):
    """The images of raw shards, in the shards' order. Made by ``open_raw``. One in a file of this machine is a
    read-only view into its map (a file must not be cut off meanwhile); gray ones of a set of colour ones are shown with
    their channel repeated. Ids are those of the samples that were packed. A pickled copy makes maps anew."""

    is_stacked = False

    def __init__(self, files: Sequence[RawShardFile]) -> None:
        self.files = list(files)
        stored = [StoredFile(file.location, len(file.index), *file.version) for file in files]
        super().__init__(stored, files[0].index.classes)
        self._ids = np.concatenate([file.index.places["id"] for file in files])
        self._labels = np.concatenate([file.index.labels for file in files])
        self.__setstate__({})

    @computed_once
    def fingerprint(self) -> str:
        """Of the names of the shards and of their indexes: sizes, labels, ids and names."""
        named = zip(relative_names([file.location for file in self.files]), self.files, strict=True)
        return digest_of("\0".join(self.classes), *(f"\0{name}\0{file.index.digest}" for name, file in named))

    def read(self, index: int) -> Item:
        """Pixels uint8 [H, W, C], not to be written to. Raises DecodeError where the file has changed, or is gone."""
        file, position = self._place(index)
        found = self.files[file]
        place = found.index.places[position]
        offset = int(place["offset"])
        size = found.index.size_of(position)
        if found.location.is_url:
            data = read_range(found.location, offset, size, found.version.size, str(self.name(index)))
            flat = np.frombuffer(data, np.uint8)
        else:
            mapped = self._map(file, index)
            begin = offset - offset % mmap.PAGESIZE
            # The system begins to read what is not in memory: else the augmenting threads would wait for every page.
            with suppress(AttributeError, OSError, ValueError):
                mapped.madvise(mmap.MADV_WILLNEED, begin, offset + size - begin)
            flat = np.frombuffer(mapped, np.uint8, size, offset)
        height, width, channels, shown = (int(place[name]) for name in ("height", "width", "channels", "shown"))
        image = flat.reshape(height, width, channels)
        if shown != channels:
            image = np.broadcast_to(image, (height, width, shown))
        return Item(image, label_at(self._labels, index))

    def pixels(self, indices: Int64Array) -> UInt8Array:
        raise TypeError("pixels: images of raw shards may differ in size; accepted: read, one after another")

    def labels(self, indices: Int64Array) -> AnyArray:
        """Those of many images, copied."""
        return np.asarray(self._labels[indices])

    def name(self, index: int) -> SampleName:
        file, position = self._place(index)
        return SampleName(str(self.files[file].location), self.files[file].index.name(position))

    def ids(self, indices: Int64Array) -> UInt64Array:
        """Those of the samples that were packed."""
        return np.asarray(self._ids[indices], np.uint64)

    def _map(self, file: int, index: int) -> mmap.mmap:
        """The map of a shard, kept with the latest ones; views keep theirs alive."""
        with self._lock:
            mapped = self._maps.get(file)
            if mapped is not None:
                self._maps.move_to_end(file)
                return mapped
        found = self.files[file]
        try:
            with open_regular(found.location.address()) as opened:
                now = os.fstat(opened.fileno())
                if (now.st_size, str(now.st_mtime_ns)) != tuple(found.version):
                    raise DecodeError(str(self.name(index)), "the file has changed since it was opened")
                options: Any = {"trackfd": False} if sys.version_info >= (3, 13) else {}
                mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ, **options)
        except DecodeError:
            raise
        except (OSError, ValueError) as error:
            raise DecodeError(str(self.name(index)), reason_for(error, found.location)) from None
        with self._lock:
            self._maps[file] = mapped
            while len(self._maps) > _MOST_MAPS:
                self._maps.popitem(last=False)
        return mapped

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_maps", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._maps: OrderedDict[int, mmap.mmap] = OrderedDict()
        self._lock = threading.Lock()


def open_raw(files: Sequence[Location]) -> RawSource:
    """Raises SourceError naming the file: no raw pixels, damaged, of other classes or labels than the first."""
    with ThreadPoolExecutor(min(_OPENED_AT_ONCE, len(files))) as pool:
        opened = list(pool.map(_open, files))
    first = opened[0].index
    for file in opened[1:]:
        if file.index.classes != first.classes:
            raise SourceError(f"{file.location}: has other classes than {opened[0].location}")
        if (file.index.labels.dtype, file.index.labels.shape[1:]) != (first.labels.dtype, first.labels.shape[1:]):
            raise SourceError(f"{file.location}: has labels of another kind than {opened[0].location}")
    return RawSource(opened)


def _open(location: Location) -> RawShardFile:
    version = version_of(location)
    size = version.size
    name = str(location)
    try:
        if size < TAIL_SIZE + len(FIRST_LINE) or read_range(location, 0, len(FIRST_LINE), size, name) != FIRST_LINE:
            raise DamagedRawError("no file of raw pixels: it does not begin as such")
        begin, length, digest = read_tail(read_range(location, size - TAIL_SIZE, TAIL_SIZE, size, name), size)
        index = read_index(read_range(location, begin, length, size, name), digest, begin)
    except DamagedRawError as error:
        raise SourceError(f"{location}: {error}") from None
    except DecodeError as error:
        raise SourceError(f"{location}: {error.reason}") from None
    return RawShardFile(location, version, index)
