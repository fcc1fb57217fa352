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
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.errors import shown
from variegate.formats.labels import checked_names
from variegate.formats.shards import Labels, Record, Shard
from variegate.formats.storage import Storage

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

    places: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    name_ends: npt.NDArray[np.uint64]
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
    places: npt.NDArray[Any], labels: Sequence[Any], kind: str, names: Sequence[str], classes: Sequence[str]
) -> bytes:
    """``kind``: "int", "float", "ints" or "floats", as ``sinks.shards.base.Labels`` has it."""
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

    def take(dtype: Any, number: int) -> npt.NDArray[Any]:
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
