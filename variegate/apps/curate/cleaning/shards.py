"""Shards without some of their samples: of what is left, every byte is what it was, as far as the format has it so."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from itertools import groupby
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variegate.apps.curate.cleaning.copying import Copies, Row, check_free, opened, written
from variegate.formats.base import Source, SourceError, StoredFile
from variegate.formats.kinds import file_kind
from variegate.formats.raw import RawShard, open_raw
from variegate.formats.reading import reason_for, version_of
from variegate.formats.shards import Labels, Record
from variegate.formats.storage import Storage
from variegate.formats.tar.index import index_shard, load_index
from variegate.formats.tar.labels import CLASS_NAMES, class_names_beside, class_names_bytes
from variegate.formats.tar.samples import split_name
from variegate.io.durable import WriteError
from variegate.io.location import Location, relative_names

_CHUNK = 1 << 20
Kept = npt.NDArray[np.bool_]  # for each sample of a shard


class ShardCopies(Copies):
    """The shards of a source, by their names below the folder that they share, and ``classnames.txt`` beside them.

    A shard that loses nothing is copied; one that loses all its samples is not written. Of the others, a .tar keeps all
    members of the samples that stay and whatever belongs to none, to the byte; a .parquet file all columns and their
    metadata, in the row groups that it had; a .vgraw file pixels, labels, names and ids.
    """

    def __init__(self, source: Source, files: list[StoredFile], kept: npt.NDArray[np.int64]) -> None:
        self._source = source
        self._files = [file.location for file in files]
        self._names = relative_names(self._files)
        for name, location in zip(self._names, self._files, strict=True):
            check_free(name, location)
        is_kept = np.zeros(len(source), np.bool_)
        is_kept[kept] = True
        ends = np.cumsum([file.samples for file in files])
        self._kept = np.split(is_kept, ends[:-1])
        self._class_names: bytes | None = None
        names = class_names_beside(self._files) if self._names[0].endswith(".tar") else None
        if names is not None:
            self._class_names = class_names_bytes(names)
        self.count = len(files) + (names is not None)

    def make(self, storage: Storage, start: int, stop: int) -> list[Row]:
        return [row for item in range(start, stop) for row in self._make(storage, item)]

    def _make(self, storage: Storage, item: int) -> list[Row]:
        if item == len(self._files):
            with storage.writer(CLASS_NAMES) as out:
                out.file.write(self._class_names or b"")
                out.commit()
            return [written(CLASS_NAMES, item, out.descriptor.size, out.descriptor.digest.hexdigest())]
        location, name, kept = self._files[item], self._names[item], self._kept[item]
        if not kept.any():
            storage.remove(name)
            return []
        kind = file_kind(location)
        copy = _copy if kept.all() or kind is None else _COPIERS[kind.suffix]
        try:
            size, digest = copy(storage, location, name, kept)
        except (SourceError, WriteError, MemoryError):
            raise
        except Exception as error:  # of tarfile, pyarrow or fsspec, of a damaged shard: nearly any
            raise SourceError(f"{location}: cannot be copied in part: {reason_for(error, location)}") from None
        return [written(name, item, size, digest) | {"source": name}]


def _copy(storage: Storage, location: Location, name: str, kept: Kept) -> tuple[int, str]:
    with opened(location) as file, storage.writer(name) as out:
        while data := file.read(_CHUNK):
            out.file.write(data)
        out.commit()
    return out.descriptor.size, out.descriptor.digest.hexdigest()


def _copy_tar(storage: Storage, location: Location, name: str, kept: Kept) -> tuple[int, str]:
    version = version_of(location)
    shard = load_index(location, version, None) or index_shard(location, version)
    gone = set(shard.offsets[~kept[: len(shard)]].tolist())
    if shard.failure is not None:
        raise SourceError(f"{location}: is damaged, and cannot be copied in part; --exclude-list writes a list")
    with opened(location) as file, storage.writer(name) as out:
        at = 0
        for begin, end in _spans_of(file, gone):
            _copy_range(file, out.file, at, begin)
            at = end
        file.seek(0, 2)
        _copy_range(file, out.file, at, file.tell())
        out.commit()
    return out.descriptor.size, out.descriptor.digest.hexdigest()


def _spans_of(file: BinaryIO, gone: set[int]) -> list[tuple[int, int]]:
    """Where the members of samples are whose image begins at one of these places: (begin, end) in bytes."""
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


def _copy_parquet(storage: Storage, location: Location, name: str, kept: Kept) -> tuple[int, str]:
    with opened(location) as file, storage.writer(name) as out:
        parquet = pq.ParquetFile(file)
        schema, first = parquet.schema_arrow, parquet.metadata.row_group(0)
        columns = [first.column(number) for number in range(first.num_columns)]
        codecs = {column.path_in_schema: column.compression for column in columns}
        row = 0
        with pq.ParquetWriter(out.file, schema, compression=codecs, write_page_checksum=True) as writer:
            for number in range(parquet.num_row_groups):
                table = parquet.read_row_group(number, use_threads=False)
                left = table.filter(pa.array(kept[row : row + len(table)]))
                row += len(table)
                _check_holds_images(location, left)
                if len(left):
                    writer.write_table(left, row_group_size=len(left))
        out.commit()
    return out.descriptor.size, out.descriptor.digest.hexdigest()


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


_COPIERS: dict[str, Callable[[Storage, Location, str, Kept], tuple[int, str]]] = {
    ".tar": _copy_tar,
    ".parquet": _copy_parquet,
    ".vgraw": _copy_raw,
}
