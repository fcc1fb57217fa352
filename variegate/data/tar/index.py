"""The samples of a shard and their places, found by one walk over its headers; labels are read on the way.

An index file, beside the shard or in a cache folder, is an Arrow IPC stream of one record batch, and a checksum. It may
come from anywhere: it is no larger than the shard, not compressed, and every column is checked. An index that does not
fit the shard is made anew. Of several processes that write one the last wins.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate.arrays import Int64Array, UInt8Array
from variegate.checks import integer
from variegate.data.arrow_ipc import check_uncompressed
from variegate.data.base import SourceError, check_on_error, digest_of, first_names
from variegate.data.reading import FileVersion, named_errors, open_stream, version_of
from variegate.data.tar.copies import GZIP, ShardCopies, unpacked
from variegate.data.tar.members import FileReader
from variegate.data.tar.samples import (
    NO_LABEL,
    Label,
    LabelKind,
    ShardCounts,
    ShardFailure,
    TarSamples,
    notes_of_walks,
    resolve_label,
    split_name,
)
from variegate.errors import DecodeError
from variegate.io.durable import write_atomically
from variegate.io.files import StrPath, open_regular, read_regular
from variegate.io.location import Location, LocationLike, cache_folder


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
    walk = TarSamples(reader, with_data=False)
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
# A change of what is written, or of how shards are read, takes a new number: older files are then made anew.
_FORMAT = b"variegate tar index 5"
# Every sample has a header in its shard, which is longer than its row here but for its name, and that is in the header.
_MOST_REST = 1 << 20
_CHECKSUM_BYTES = 4
PLACES = ("offsets", "sizes", "begins", "ends")
_COLUMNS = (*((name, np.int64) for name in PLACES), ("kinds", np.uint8), ("values", np.int64))
_NOT_AN_INDEX = (ValueError, KeyError, TypeError, RecursionError, pa.ArrowException)
_FIELDS = [*((name, pa.from_numpy_dtype(kind)) for name, kind in _COLUMNS), ("names", pa.binary())]


def load_index(shard: Location, version: FileVersion, cache_dir: StrPath | None) -> ShardIndex | None:
    """The kept index of a shard; None where there is none that fits."""
    for path in _index_paths(shard, cache_dir):
        try:
            index = _parse(read_regular(path, version.size + _MOST_REST), version)
        except (OSError, *_NOT_AN_INDEX):  # whatever is wrong with it, it can be made again
            continue
        if index.version == version:
            return index
    return None


def _load_sidecar(shard: Location, version: FileVersion) -> ShardIndex | None:
    """The index that lies beside a remote shard, if it fits its size; the mark of a version differs by storage."""
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


_INDEXING_THREADS = 16
NO_LABELS = "no labels"


@dataclass(frozen=True, eq=False)
class ListedShard:
    """``labels`` has an entry for each sample of the index, and one more where the shard ends in a failure."""

    location: Location
    index: ShardIndex
    labels: Int64Array
    broken: dict[int, str]  # what is wrong, for samples whose label is, and for the failure

    def column(self, name: str) -> Int64Array:
        """A column of the index, with -1 for the failure."""
        column: Int64Array = getattr(self.index, name)
        return np.append(column, np.full(len(self.labels) - len(column), -1, np.int64))

    def names(self) -> Any:
        """Of the members, pa.LargeBinaryArray; null for a failure whose member is not known."""
        names = self.index.names.cast(pa.large_binary())
        if self.index.failure is None:
            return names
        member = self.index.failure.member
        last = None if member is None else member.encode("utf-8", "surrogateescape")
        return pa.concat_arrays([names, pa.array([last], pa.large_binary())])


def sorted_shards(shards: Sequence[LocationLike]) -> list[Location]:
    """Shards in the order of their numbers. Raises SourceError where there are none, or one is given twice."""
    locations = sorted((Location.parse(shard, chain=True) for shard in shards), key=Location.address)
    if not locations:
        raise SourceError("no shards given; expected at least one .tar file")
    for one, other in pairwise(locations):
        if one == other:
            raise SourceError(f"{one}: given twice; each shard is expected once")
    return locations


def list_shards(
    shards: Sequence[LocationLike],
    classes: tuple[str, ...],
    *,
    on_error: str,
    copies: ShardCopies,
) -> tuple[list[ListedShard], list[str]]:
    """The shards, sorted, and notes about them. Raises SourceError as ``open_webdataset`` says."""
    check_on_error(on_error)
    locations = sorted_shards(shards)
    with ThreadPoolExecutor(min(_INDEXING_THREADS, len(locations)), "variegate-index") as pool:
        try:
            indexed = list(pool.map(partial(_index_or_failure, on_error=on_error, copies=copies), locations))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    indexes = [index for index, _ in indexed]
    first = next((index for index in indexes if len(index)), None)
    if first is None:
        pairs = zip(locations, indexes, strict=True)
        reasons = [f"{shard}: {index.failure.reason}" for shard, index in pairs if index.failure]
        raise SourceError(f"not one whole sample in {len(locations):,} shards: {first_names(reasons, 3)}")
    is_labelled = bool(first.kinds[0] != LabelKind.NONE)
    listed = [_resolve(*one, classes, is_labelled) for one in zip(locations, indexes, strict=True)]
    not_kept = [str(shard) for shard, (_, is_kept) in zip(locations, indexed, strict=True) if not is_kept]
    return listed, notes_of(listed, not_kept)


def list_shard(
    shard: Location, classes: tuple[str, ...], is_labelled: bool, on_error: str, copies: ShardCopies, fetch: bool
) -> ListedShard | None:
    """One shard, of which a copy is made if it needs one; None without an index, unless ``fetch``. Raises SourceError
    if it cannot be read, and unless ``on_error`` is "skip", if it is damaged."""
    found = _index(shard, on_error, copies, fetch)
    if found is None:
        return None
    index, _ = found
    if fetch and (shard.is_url or index.copy_size):
        copies.fetch(shard, index.version)
    return _resolve(shard, index, classes, is_labelled)


def first_is_labelled(shard: Location, copies: ShardCopies) -> bool | None:
    """Return whether the first sample has a label, of which as little as possible is read; None without a sample.
    Raises SourceError, DecodeError."""
    index = _kept_index(shard, version_of(shard, needs_size=False), copies)
    if index is not None:
        return bool(index.kinds[0] != LabelKind.NONE) if len(index) else None
    with open_stream(shard) as stream:
        head = next(unpacked(stream), b"")
    first = next(iter(TarSamples(FileReader(BytesIO(head), len(head), str(shard)), with_data=False)), None)
    return None if first is None else first.label != NO_LABEL


def _kept_index(shard: Location, version: FileVersion, copies: ShardCopies) -> ShardIndex | None:
    index = load_index(shard, version, copies.cache_dir)
    if index is None and shard.is_url and (index := _load_sidecar(shard, version)) is not None:
        save_index(shard, index, copies.cache_dir)
    return index


def _index(shard: Location, on_error: str, copies: ShardCopies, fetch: bool = True) -> tuple[ShardIndex, bool] | None:
    """A shard's index, and whether it is kept in a file; None if it is in no file and may not be made. Raises
    SourceError."""
    version = version_of(shard, needs_size=False)
    index = _kept_index(shard, version, copies)
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


def _index_or_failure(shard: Location, *, on_error: str, copies: ShardCopies) -> tuple[ShardIndex, bool]:
    """The same, and an index of nothing for a shard that cannot be read, unless ``on_error`` is "raise"."""
    try:
        found = _index(shard, on_error, copies)
        assert found is not None
        return found
    except SourceError as error:
        if on_error == "raise":
            raise
        failure = ShardFailure(None, error.reason(str(shard)), is_transient=True)
        none: dict[str, Any] = {name: np.zeros(0, kind) for name, kind in _COLUMNS}
        none |= {"names": pa.array([], pa.binary()), "texts": [], "counts": ShardCounts(), "failure": failure}
        return ShardIndex(FileVersion(0, ""), **none), True


def _remedy(index: ShardIndex) -> str:
    if not index.counts.members:
        return ""
    if not len(index):
        return "; no whole sample comes before it" if index.failure and index.failure.member else ""
    return (
        f"; {len(index):,} whole samples come before it: "
        'on_error="skip" uses them, and counts the one that is lost as an error'
    )


def _resolve(location: Location, index: ShardIndex, classes: tuple[str, ...], is_labelled: bool) -> ListedShard:
    numbers = {name: number for number, name in enumerate(classes)}
    labels = np.where(index.kinds == LabelKind.NUMBER, index.values, -1)
    broken: dict[int, str] = {}
    # Plain numbers, which most data sets have and nothing else, are resolved all at once.
    doubtful = np.arange(len(index)) if classes else np.flatnonzero(index.kinds != LabelKind.NUMBER)
    for position in doubtful.tolist():
        key, _ = split_name(index.name(position)) or ("", "")
        labels[position], problem = resolve_label(index.label(position), key, numbers, is_labelled)
        if problem:
            broken[position] = problem
    if index.failure:
        labels = np.append(labels, -1)
        broken[len(index)] = index.failure.sentence
    return ListedShard(location, index, labels, broken)


def notes_of(shards: list[ListedShard], not_kept: list[str]) -> list[str]:
    """Remarks about shards; ``not_kept``: names of those whose index is in no file."""
    lines = notes_of_walks((str(shard.location), shard.index.counts, shard.index.failure) for shard in shards)
    samples = sum(len(shard.index) for shard in shards)
    unlabelled = sum(int(np.sum(shard.index.kinds == LabelKind.NONE)) for shard in shards)
    if unlabelled == samples:
        lines.append(f"{NO_LABELS}: no sample has a .cls or .json member with one; all labels are -1")
    elif unlabelled:
        lines.append(f"{unlabelled:,} of {samples:,} samples have no label")
    if wrong := sum(len(shard.broken) - bool(shard.index.failure) for shard in shards):
        shard = next(shard for shard in shards if len(shard.broken) > bool(shard.index.failure))
        position = min(shard.broken)
        first = f"{shard.location}: {shard.index.name(position)}: {shard.broken[position]}"
        lines.append(f"{wrong:,} samples cannot be used for their labels; {first}")
    if not_kept:
        lines.append(f"the index could not be written, and is made at every start: {first_names(not_kept)}")
    return lines
