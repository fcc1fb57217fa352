"""The samples of a shard and their places, found by one walk over its headers; labels are read on the way.

An index file, next to the shard or in a cache folder, is an Arrow IPC stream of one record batch, and a checksum. It
may come from anywhere: it is no larger than the shard, not compressed, and every column is checked. An index that does
not match the shard is rebuilt. Of several processes that write one the last wins.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate.arrays import Int64Array, UInt8Array
from variegate.checks import integer
from variegate.data.arrow_ipc import check_uncompressed
from variegate.data.base import SourceError, digest_of
from variegate.data.reading import FileVersion, named_errors, open_stream, version_of
from variegate.data.tar.copies import GZIP, ShardCopies, unpacked
from variegate.data.tar.walk import NO_LABEL, FileReader, Label, LabelKind, ShardCounts, ShardFailure, TarSamples
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.io.durable import write_atomically
from variegate.io.files import StrPath, open_regular, read_regular
from variegate.io.location import Location, cache_folder


@dataclass(frozen=True, eq=False)
class ShardIndex:
    """A shard's samples as arrays [samples], in order.

    ``offsets``, ``sizes``: of the image files; ``begins``, ``ends``: of all members of a sample, with their headers.
    ``names``: the members of the images, pa.BinaryArray. ``values``: the label where its kind is NUMBER; where it
    is NAME or BAD, the place in ``texts``, which holds (text, extension of the label's member) once each.
    ``copy_size``: of the local copy, if only that can be read by position, because the shard is gzip'ed or its server
    does not report a size; else 0.
    """

    version: FileVersion
    offsets: Int64Array
    sizes: Int64Array
    begins: Int64Array
    ends: Int64Array
    kinds: UInt8Array
    values: Int64Array
    texts: list[tuple[str, str]]
    names: Any
    counts: ShardCounts
    failure: ShardFailure | None = None
    copy_size: int = 0

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def is_labelled(self) -> bool:
        """The first sample has a label."""
        return bool(self.kinds[0] != LabelKind.NONE)

    def label(self, position: int) -> Label:
        kind = LabelKind(self.kinds[position])
        value = int(self.values[position])
        if kind == LabelKind.NONE:
            return NO_LABEL
        if kind == LabelKind.NUMBER:
            return Label(kind, value)
        text, extension = self.texts[value]
        return Label(kind, text=text, extension=extension)

    def name(self, position: int) -> str:
        name: bytes = self.names[position].as_py()
        return name.decode("utf-8", "surrogateescape")


def index_shard(shard: Location, version: FileVersion, copies: ShardCopies) -> ShardIndex:
    """Walk over the headers and labels of a shard, or of its local copy. Raises SourceError."""
    with named_errors(shard):
        file = copies.open(shard, version, fetch=True) if shard.is_url or _is_gzip(shard) else None
        size = version.size if file is None else os.fstat(file.fileno()).st_size
        with closing(FileReader(file or open_regular(shard.address()), size, str(shard))) as reader:
            index = _collect(reader, version)
    return replace(index, copy_size=size) if size != version.size else index


def _is_gzip(shard: Location) -> bool:
    with open_regular(shard.address()) as file:
        return file.read(len(GZIP)) == GZIP


def _collect(reader: FileReader, version: FileVersion) -> ShardIndex:
    walk = TarSamples(reader)
    places: list[tuple[int, ...]] = []
    names: list[bytes] = []
    texts: dict[tuple[str, str], int] = {}
    for sample in walk:
        image = sample.image
        label = sample.label
        value = label.number
        if label.kind in (LabelKind.NAME, LabelKind.BAD):
            value = texts.setdefault((label.text, label.extension), len(texts))
        places.append((image.offset, image.size, sample.begin, sample.end, label.kind, value))
        names.append(image.name.encode("utf-8", "surrogateescape"))
    columns = zip(_COLUMNS, np.array(places, np.int64).reshape(-1, len(_COLUMNS)).T, strict=True)
    arrays: dict[str, Any] = {name: column.astype(kind) for (name, kind), column in columns}
    all_names = pa.array(names, pa.binary())
    return ShardIndex(version, **arrays, texts=list(texts), names=all_names, counts=walk.counts, failure=walk.failure)


SUFFIX = ".index"
# Increase it with any change of the format, or of how shards are read: older files are then rebuilt.
_FORMAT = b"variegate tar index 5"
# Every sample has a header in its shard that is longer than its row here, except for its name, which is in the header.
_MOST_REST = 1 << 20
_CHECKSUM_BYTES = 4
PLACES = ("offsets", "sizes", "begins", "ends")
_COLUMNS = (*((name, np.int64) for name in PLACES), ("kinds", np.uint8), ("values", np.int64))
_NOT_AN_INDEX = (ValueError, KeyError, TypeError, RecursionError, pa.ArrowException)
_FIELDS = [*((name, pa.from_numpy_dtype(kind)) for name, kind in _COLUMNS), ("names", pa.binary())]


def load_index(shard: Location, version: FileVersion, cache_dir: StrPath | None) -> ShardIndex | None:
    """Load the index of a shard; None without a matching index."""
    for path in _index_paths(shard, cache_dir):
        try:
            index = _parse(read_regular(path, version.size + _MOST_REST), version)
        except (OSError, *_NOT_AN_INDEX):  # whatever is wrong with it, it can be made again
            continue
        if index.version == version:
            return index
    return None


def _load_sidecar(shard: Location, version: FileVersion) -> ShardIndex | None:
    """Load the index next to a remote shard, if it has the shard's size; version marks differ by storage."""
    address = shard.address()
    if "?" in address or len(shard.protocols) > 1:  # a signature is of the shard alone
        return None
    most = version.size + _MOST_REST
    try:
        with open_stream(Location.of(address + SUFFIX)) as stream:
            data = stream.read(most + 1)
        index = _parse(data, version) if len(data) <= most else None
    except (SourceError, DecodeError, *_NOT_AN_INDEX):
        return None
    return replace(index, version=version) if index is not None and index.version.size == version.size else None


def save_index(shard: Location, index: ShardIndex, cache_dir: StrPath | None) -> bool:
    """Keep an index -> False where no place for it can be written to."""
    for path in _index_paths(shard, cache_dir):
        with suppress(OSError):
            write_atomically(path, _pack(index), several_writers=True)
            return True
    return False


def _index_paths(shard: Location, cache_dir: StrPath | None) -> list[Path]:
    """Places that an index may be in, the best first. A cache folder that was asked for is the only one."""
    # The address without its query, which changes with every signature; the index says whether it is the same file.
    whole_name = str(shard) if shard.is_url else os.path.abspath(shard.address())
    cached = cache_folder(cache_dir) / "tar-indexes" / f"{digest_of(whole_name)}-{shard.name}{SUFFIX}"
    return [cached] if cache_dir is not None or shard.is_url else [Path(shard.address() + SUFFIX), cached]


def _pack(index: ShardIndex) -> bytes:
    head: dict[str, Any] = {
        "stamp": index.version,
        "texts": index.texts,
        "seen": asdict(index.counts),
        "loss": index.failure,
    }
    head["copy"] = index.copy_size
    schema = pa.schema(_FIELDS, {"format": _FORMAT, "head": json.dumps(head)})
    columns = [pa.array(getattr(index, name)) for name, _ in _COLUMNS]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([*columns, index.names], schema=schema))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed + _checksum(packed)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")


def _parse(data: bytes, shard: FileVersion) -> ShardIndex:
    """Raises one of _NOT_AN_INDEX for all but an index that may be this shard's."""
    data, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if _checksum(data) != checksum:
        raise ValueError("damaged")
    head_message, batch_message = pa.ipc.MessageReader.open_stream(data)
    # To read another kind of message as a schema ends the process.
    if head_message.type != "schema":
        raise ValueError("no schema")
    schema = pa.ipc.read_schema(head_message)
    if (schema.metadata or {}).get(b"format") != _FORMAT or not schema.equals(pa.schema(_FIELDS)):
        raise ValueError("not an index of this version")
    check_uncompressed(batch_message.metadata.to_pybytes())
    batch = pa.ipc.read_record_batch(batch_message, schema)
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise ValueError("missing values")
    columns: dict[str, Any] = {name: batch.column(name).to_numpy() for name, _ in _COLUMNS}
    head = json.loads(schema.metadata[b"head"])
    texts = [(text, extension) for text, extension in head["texts"]]
    counts = ShardCounts(**head["seen"])
    failure = ShardFailure(*head["loss"]) if head["loss"] else None
    _check_kinds(texts, counts, failure)
    copy_size = integer("copy", head["copy"], 0)
    _check_places(columns, len(texts), copy_size or shard.size)
    version = FileVersion(*head["stamp"])
    names = batch.column("names")
    return ShardIndex(version, **columns, texts=texts, names=names, counts=counts, failure=failure, copy_size=copy_size)


def _check_kinds(texts: list[tuple[str, str]], counts: ShardCounts, failure: ShardFailure | None) -> None:
    """Raises ValueError for values of other types than a walk makes."""
    is_text = all(isinstance(one, str) for pair in texts for one in pair)
    is_count = all(type(getattr(counts, field.name)) is type(field.default) for field in fields(counts))
    is_failure = failure is None or (
        isinstance(failure.member, (str, type(None)))
        and isinstance(failure.reason, str)
        and isinstance(failure.is_transient, bool)
    )
    if not (is_text and is_count and is_failure):
        raise ValueError("values of other types")


def _check_places(columns: dict[str, Any], texts: int, size: int) -> None:
    """Raises ValueError for places that are not in a shard of ``size`` bytes, or not in its ``texts``."""
    begins, offsets, sizes, ends = (columns[name] for name in ("begins", "offsets", "sizes", "ends"))
    is_ordered = (begins >= 0) & (begins <= offsets) & (offsets <= ends) & (ends <= size)
    # The size alone, as a sum may overflow.
    if not np.all(is_ordered & (sizes >= 0) & (sizes <= ends - offsets)):
        raise ValueError("a sample that is not in the shard")
    kinds = columns["kinds"]
    places = columns["values"][kinds >= LabelKind.NAME]
    if np.any(kinds > max(LabelKind)) or np.any(places < 0) or np.any(places >= texts):
        raise ValueError("a label that is not in its texts")


def empty_index(failure: ShardFailure) -> ShardIndex:
    """The index of an unreadable shard."""
    columns: dict[str, Any] = {name: np.zeros(0, kind) for name, kind in _COLUMNS}
    names = pa.array([], pa.binary())
    return ShardIndex(FileVersion(0, ""), **columns, texts=[], names=names, counts=ShardCounts(), failure=failure)


def kept_index(shard: Location, version: FileVersion, copies: ShardCopies) -> ShardIndex | None:
    """Load an index from a local file, or from next to a remote shard; None without a matching index."""
    index = load_index(shard, version, copies.cache_dir)
    if index is None and shard.is_url and (index := _load_sidecar(shard, version)) is not None:
        save_index(shard, index, copies.cache_dir)
    return index


def find_index(
    shard: Location, on_error: str, copies: ShardCopies, fetch: bool = True
) -> tuple[ShardIndex, bool] | None:
    """A shard's index, and whether it is kept in a file; None if it is in no file and may not be made. Raises
    SourceError, also for a damaged shard unless ``on_error`` is "skip"."""
    version = version_of(shard, needs_size=False)
    index = kept_index(shard, version, copies)
    is_kept = index is not None
    if index is None:
        if not fetch:
            return None
        index = index_shard(shard, version, copies)
        # A walk that the disk broke off says nothing of the shard.
        is_transient = index.failure is not None and index.failure.is_transient
        is_kept = not is_transient and save_index(shard, index, copies.cache_dir)
    if index.failure and on_error == "raise":
        raise SourceError(f"{shard}: {index.failure.reason}{_remedy(index)}")
    return index, is_kept


def first_is_labelled(shard: Location, copies: ShardCopies) -> bool | None:
    """Return whether the first sample has a label, reading as little as possible; None without a sample. Raises
    SourceError, DecodeError."""
    index = kept_index(shard, version_of(shard, needs_size=False), copies)
    if index is not None:
        return index.is_labelled if len(index) else None
    with open_stream(shard) as stream:
        head = next(unpacked(stream), b"")
    first = next(iter(TarSamples(FileReader(BytesIO(head), len(head), str(shard)))), None)
    return None if first is None else first.label != NO_LABEL


def _remedy(index: ShardIndex) -> str:
    if not index.counts.members:
        return ""
    if not len(index):
        return "; no whole sample comes before it" if index.failure and index.failure.member else ""
    return (
        f"; {pluralize(len(index), 'complete sample')} before it: "
        'on_error="skip" uses them, and counts the one that is lost as an error'
    )
