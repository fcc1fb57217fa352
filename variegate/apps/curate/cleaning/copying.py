"""Contents of a cleaned copy, cut into items: a file each, be it an image or a shard."""

from __future__ import annotations

import hashlib
import io
import tarfile
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variegate.errors import DecodeError
from variegate.formats.base import Source, SourceError, StoredFile
from variegate.formats.folder import FLAT_CLASS
from variegate.formats.kinds import file_kind
from variegate.formats.labels import CLASS_NAMES, class_names_beside, class_names_bytes
from variegate.formats.raw import RawShard, open_raw
from variegate.formats.reading import filesystem, named_errors, read_file, reason_for, version_of
from variegate.formats.shards import Labels, Record
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage
from variegate.formats.tar.index import index_shard, load_index
from variegate.formats.tar.samples import split_name
from variegate.io.durable import WriteError
from variegate.io.files import open_regular, read_regular
from variegate.io.location import Location, relative_names
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME
from variegate.jobs.output.run_record import LEFT_OUT_NAME, SETTINGS_NAME, SOURCE_NAME

_OURS = {LEFT_OUT_NAME, MANIFEST_NAME, CHECKSUM_NAME, SETTINGS_NAME, SOURCE_NAME}
_MOST_BYTES = 64 << 30
_FILES_AT_ONCE = 64
_BYTES_AT_ONCE = 32 << 20
_CHUNK = 1 << 20

Row = dict[str, Any]
Kept = npt.NDArray[np.bool_]  # for each sample of a shard


class Copies:
    """``count`` items, of which ``at_once`` are made in one go. ``folders``: to be there even if nothing is in them."""

    count: int
    at_once = 1
    folders: Sequence[str] = ()

    @abstractmethod
    def make(self, storage: Storage, start: int, stop: int) -> list[Row]:
        """Copy items -> rows of the manifest, none where nothing of an item is left. Raises SourceError, WriteError."""

    def item_of(self, row: Row) -> int:
        """The item that a row of the manifest is of."""
        return int(row["index"])


class FileCopies(Copies):
    """Images of a FileSource, byte for byte, under their names below the folder."""

    at_once = _FILES_AT_ONCE

    def __init__(self, source: Any, kept: npt.NDArray[np.int64]) -> None:
        self._source = source
        self._kept = kept
        self.count = len(kept)
        self.folders = [name for name in source.classes if name != FLAT_CLASS]
        for index in kept.tolist():
            check_free(source.relative_path(index), source.name(index))

    def make(self, storage: Storage, start: int, stop: int) -> list[Row]:
        rows, waiting, size = [], [], 0
        ids = self._source.ids(self._kept[start:stop]).tolist()
        for item in range(start, stop):
            index = int(self._kept[item])
            name, data = self._source.relative_path(index), self._read(index)
            waiting.append((name, data))
            size += len(data)
            row = written(printable(name), index, len(data), hashlib.sha256(data).hexdigest())
            rows.append(row | {"source": printable(name), "id": ids[item - start]})
            if size > _BYTES_AT_ONCE:
                storage.write_many(waiting)
                waiting, size = [], 0
        storage.write_many(waiting)
        return rows

    def item_of(self, row: Row) -> int:
        return int(np.searchsorted(self._kept, row["index"]))

    def _read(self, index: int) -> bytes:
        """The file as it is, be it no image."""
        folder = cast(Location, self._source.folder)
        place = str(self._source.name(index))
        try:
            if folder.is_url:
                return read_file(folder.child(self._source.relative_path(index)), _MOST_BYTES)
            return read_regular(self._source.name(index).file, _MOST_BYTES)
        except DecodeError as error:
            reason = error.reason
        except OSError as error:
            reason = error.strerror or str(error)
        raise SourceError(f"{place}: cannot be copied ({reason}); restore it, or run variegate check again")


def check_free(name: str, place: Any) -> None:
    """Raises SourceError for a name that stands for something else in a copy."""
    if name in _OURS:
        raise SourceError(f"{place}: has a name that a copy needs for itself; rename it")


def written(file: str, index: int, size: int, digest: str) -> Row:
    """A row of the manifest."""
    return {"file": file, "status": "written", "index": index, "copy": 0, "bytes": size, "sha256": digest}


def opened(location: Location) -> AbstractContextManager[BinaryIO]:
    """A file that can be read here and there. Raises SourceError."""
    with named_errors(location):
        if not location.is_url:
            return cast("AbstractContextManager[BinaryIO]", io.BufferedReader(open_regular(location.address())))
        fs, path = filesystem(location)
        return cast("AbstractContextManager[BinaryIO]", fs.open(path, "rb"))


class ShardCopies(Copies):
    """Shards and ``classnames.txt``: whole, left out, or without some samples, all other bytes as they were."""

    def __init__(self, source: Source, files: list[StoredFile], kept: npt.NDArray[np.int64]) -> None:
        self._files = [file.location for file in files]
        self._names = relative_names(self._files)
        for name, location in zip(self._names, self._files, strict=True):
            check_free(name, location)
        is_kept = np.isin(np.arange(len(source)), kept)
        self._kept = np.split(is_kept, np.cumsum([file.samples for file in files])[:-1])
        names = class_names_beside(self._files) if self._names[0].endswith(".tar") else None
        self._class_names = None if names is None else class_names_bytes(names)
        self.count = len(files) + (names is not None)

    def make(self, storage: Storage, start: int, stop: int) -> list[Row]:
        return [row for item in range(start, stop) for row in self._make(storage, item)]

    def _make(self, storage: Storage, item: int) -> list[Row]:
        if item == len(self._files):
            data = self._class_names or b""
            storage.write(CLASS_NAMES, data)
            return [written(CLASS_NAMES, item, len(data), hashlib.sha256(data).hexdigest())]
        location, name, kept = self._files[item], self._names[item], self._kept[item]
        if not kept.any():
            storage.remove(name)
            return []
        kind = file_kind(location)
        try:
            if kind is not None and kind.suffix == ".vgraw" and not kept.all():
                return [written(name, item, *_copy_raw(storage, location, name, kept)) | {"source": name}]
            copy = _copy if kept.all() or kind is None else _COPIERS[kind.suffix]
            with storage.writer(name) as out:
                copy(location, kept, out.file)
                out.commit()
        except (SourceError, WriteError, MemoryError):
            raise
        except Exception as error:  # of tarfile, pyarrow or fsspec, of a damaged shard: nearly any
            raise SourceError(f"{location}: cannot be copied in part: {reason_for(error, location)}") from None
        return [written(name, item, out.descriptor.size, out.descriptor.digest.hexdigest()) | {"source": name}]


def _copy(location: Location, kept: Kept, out: Any) -> None:
    with opened(location) as file:
        while data := file.read(_CHUNK):
            out.write(data)


def _copy_tar(location: Location, kept: Kept, out: Any) -> None:
    version = version_of(location)
    shard = load_index(location, version, None) or index_shard(location, version)
    gone = set(shard.offsets[~kept[: len(shard)]].tolist())
    if shard.failure is not None:
        raise SourceError(f"{location}: is damaged, and cannot be copied in part; --exclude-list writes a list")
    with opened(location) as file:
        at = 0
        for begin, end in _spans_of(file, gone):
            _copy_range(file, out, at, begin)
            at = end
        file.seek(0, 2)
        _copy_range(file, out, at, file.tell())


def _spans_of(file: BinaryIO, gone: set[int]) -> list[tuple[int, int]]:
    """Members of the samples whose image begins at one of these places: (begin, end) in bytes."""
    with tarfile.open(fileobj=file, mode="r:") as archive:
        members = [(one.name, one.offset, one.offset_data, one.size if _has_data(one) else 0) for one in archive]
    spans = []
    for _, group in groupby(members, lambda member: (split_name(member[0]) or (None,))[0]):
        together = list(group)
        if any(place in gone for _, _, place, _ in together):
            spans += [(begin, place + size + -size % tarfile.BLOCKSIZE) for _, begin, place, size in together]
    return spans


def _has_data(member: tarfile.TarInfo) -> bool:
    return member.isreg() or member.type not in tarfile.SUPPORTED_TYPES


def _copy_range(file: BinaryIO, out: Any, begin: int, end: int) -> None:
    file.seek(begin)
    while begin < end:
        data = file.read(min(_CHUNK, end - begin))
        if not data:
            raise OSError("ends before its time")
        out.write(data)
        begin += len(data)


def _copy_parquet(location: Location, kept: Kept, out: Any) -> None:
    with opened(location) as file:
        parquet = pq.ParquetFile(file)
        schema, first = parquet.schema_arrow, parquet.metadata.row_group(0)
        columns = [first.column(number) for number in range(first.num_columns)]
        codecs = {column.path_in_schema: column.compression for column in columns}
        row = 0
        with pq.ParquetWriter(out, schema, compression=codecs, write_page_checksum=True) as writer:
            for number in range(parquet.num_row_groups):
                table = parquet.read_row_group(number, use_threads=False)
                left = table.filter(pa.array(kept[row : row + len(table)]))
                row += len(table)
                _check_holds_images(location, left)
                if len(left):
                    writer.write_table(left, row_group_size=len(left))


def _check_holds_images(location: Location, table: pa.Table) -> None:
    for field in table.schema:
        if pa.types.is_struct(field.type) and field.type.get_field_index("bytes") >= 0:
            data = pc.struct_field(table[field.name], "bytes")
            if data.null_count and field.type.get_field_index("path") >= 0:
                raise SourceError(
                    f"{location}: names image files instead of holding them, which a copy elsewhere would not find; "
                    "accepted: --exclude-list"
                )


def _copy_raw(storage: Storage, location: Location, name: str, kept: Kept) -> tuple[int, str]:
    source = open_raw([location])
    index = source.files[0].index
    kind = "int" if index.labels.dtype.kind == "i" else "float"
    width = index.labels.shape[1] if index.labels.ndim == 2 else 0
    labels = Labels(f"{kind}s" if width else kind, width, index.classes)
    with RawShard(storage, name, labels) as shard:
        for position in np.flatnonzero(kept).tolist():
            place = index.places[position]
            height, breadth, channels, shown = (int(place[one]) for one in ("height", "width", "channels", "shown"))
            item = source.read(position)
            pixels = np.ascontiguousarray(np.asarray(item.data)[:, :, :channels])
            shape = (height, breadth, channels, shown)
            sample = (index.name(position), int(place["id"]))
            shard.add(Record(position, None, pixels.tobytes(), "raw", item.label, None, *sample, shape))
        shard.commit()
    return shard.size, shard.sha256


_COPIERS = {".tar": _copy_tar, ".parquet": _copy_parquet}
