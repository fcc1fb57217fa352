"""The manifest of a run: a Parquet file with a row for every output, the settings, and the files of the whole run.

docs/engine.md, pack.md and targets.md have the columns. Bytes of names that are not UTF-8 are written as ``\\udcff``.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from variegate.data.base import SourceError, check_index
from variegate.data.labels import NO_LABEL
from variegate.data.storage import Storage
from variegate.io.files import StrPath
from variegate.io.location import Location

if TYPE_CHECKING:
    import pyarrow as pa

    from variegate.data.parquet import ParquetFile

MANIFEST_NAME = "manifest.parquet"
CHECKSUM_NAME = "manifest.sha256"
# The setting of runs on data sets with boxes, masks or key points: ``AnnotatedPlan.metadata``.
ANNOTATED = "annotated"
FORMAT = 2
_ROWS_A_GROUP = 8192
_compact = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make an encoder for every row
_ACCEPTED = "the manifest.parquet that a run of variegate augment or pack wrote"
_TYPES = {
    **dict.fromkeys(("file", "member", "status", "reason", "source"), "string"),
    **{"index": "int64", "id": "uint64", "copy": "int32", "label": "int64", "class": "string"},
    **{"seed": "uint64", "epoch": "int64", "height": "int32", "width": "int32", "operations": "string"},
    **{"sha256": "string", "bytes": "int64", "shard_bytes": "int64", "shard_sha256": "string"},
}
_PACKED = {**_TYPES, "packed": "string"}
_BESIDE = {"mask_file": "string", "mask_bytes": "int64", "mask_sha256": "string"}
_BESIDE |= {"annotation_file": "string", "annotation_bytes": "int64", "annotation_sha256": "string"}
_ANNOTATED_TYPES = {**_TYPES, **_BESIDE, "targets": "string"}
_ALL_TYPES = _PACKED | _ANNOTATED_TYPES
_KNOWN = [list(types) for types in (_TYPES, _PACKED, _ANNOTATED_TYPES)]


class StoredFile(NamedTuple):
    """A file of a run: its name below the destination, its bytes, and their checksum."""

    name: str
    size: int | None
    sha256: str | None


def files_of(row: dict[str, Any]) -> list[StoredFile]:
    """The files of a row: its shard; or its image, with a mask or annotations."""
    name = row.get("file") or ""
    if row.get("shard_bytes") is not None:
        return [StoredFile(name, row["shard_bytes"], row.get("shard_sha256"))]
    files = [StoredFile(name, row.get("bytes"), row.get("sha256"))]
    for kind in ("mask", "annotation"):
        if beside := row.get(f"{kind}_file"):
            files.append(StoredFile(beside, row.get(f"{kind}_bytes"), row.get(f"{kind}_sha256")))
    return files


def write_manifest(
    storage: Storage, rows: Iterable[dict[str, Any]], settings: dict[str, Any], files: Sequence[StoredFile] = ()
) -> int:
    """Write ``manifest.parquet``, whole or not at all -> the number of rows; equal ones give equal bytes.

    ``rows``: the columns by name, ``operations`` as a list; missing columns are null. ``files``: of the whole run.
    """
    import pyarrow.parquet as pq

    schema = _schema(settings, files)
    rows = iter(rows)
    count = 0
    with storage.writer(MANIFEST_NAME) as out:
        with pq.ParquetWriter(out.file, schema, compression="zstd", write_page_checksum=True) as parquet:
            while some := list(islice(rows, _ROWS_A_GROUP)):
                parquet.write_table(_table(some, schema), row_group_size=_ROWS_A_GROUP)
                count += len(some)
        out.file.flush()
        write_checksum(storage, out.descriptor.digest.hexdigest())
        storage.sync()
        out.commit()
    return count


def write_checksum(storage: Storage, digest: str | None = None) -> None:
    """Write a manifest's checksum; ``digest``: None for an existing manifest, whose pages passed their checksums.
    Raises WriteError."""
    storage.write(CHECKSUM_NAME, f"{digest or storage.sha256(MANIFEST_NAME)}  {MANIFEST_NAME}\n".encode())


class Manifest:
    """Rows of a run, in the order of its samples and copies. Made by ``read_manifest``."""

    def __init__(self, file: ParquetFile, settings: dict[str, Any], files: list[StoredFile]) -> None:
        self.settings = settings
        self.files = files
        self._file = file
        groups = range(file.metadata.num_row_groups)
        self._starts = [0, *accumulate(file.metadata.row_group(group).num_rows for group in groups)]
        self._cached_group: tuple[int, Any] = (-1, None)

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def place(self) -> str:
        return str(self._file.location)

    def row(self, index: int) -> dict[str, Any]:
        """The columns by name, ``operations`` as a list. Raises IndexError outside 0..len-1, SourceError."""
        check_index(index, len(self))
        group = bisect_right(self._starts, index) - 1
        if self._cached_group[0] != group:
            self._cached_group = group, self._read(group)
        return self._row(self._cached_group[1].slice(index - self._starts[group], 1).to_pylist()[0])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over all rows, each in the form of ``row``. Raises SourceError where they cannot be read."""
        for group in range(len(self._starts) - 1):
            yield from map(self._row, self._read(group).to_pylist())

    def columns(self, *names: str, all_read: bool = False) -> Iterator[dict[str, Any]]:
        """These columns, null where it has none; ``all_read``: others too, to find damage. Raises SourceError."""
        there = [name for name in names if name in self._file.schema.names]
        blank = dict.fromkeys(names)
        for group in range(len(self._starts) - 1):
            for row in self._read(group, None if all_read else there).select(there).to_pylist():
                yield blank | row

    def _row(self, columns: dict[str, Any]) -> dict[str, Any]:
        operations = columns["operations"]
        source = columns["source"]
        try:
            operations = None if operations is None else json.loads(operations)
        except ValueError:
            raise SourceError(f"{self._file.location}: damaged: the operations of {source} are not JSON") from None
        return columns | {"operations": operations}

    def _read(self, group: int, columns: list[str] | None = None) -> Any:
        from variegate.data.parquet import parquet_reason

        try:
            with self._file.opened(is_checked=True) as opened:
                return opened.read_row_group(group, columns)
        except Exception as error:  # of pyarrow, of fsspec, or of any package that fsspec reads with
            place = f"{self._file.location}: rows from {self._starts[group]:,} on"
            raise SourceError(f"{place} cannot be read: {parquet_reason(error, self._file.location)}") from None


def read_manifest(path: StrPath) -> Manifest:
    """``path``: of the manifest or its folder; an address too. Raises SourceError without a manifest."""
    import pyarrow as pa

    from variegate.data.parquet import open_file
    from variegate.data.reading import parse_file

    place = parse_file("manifest", path)
    if os.path.isdir(place.address()) or (place.is_url and not place.address().lower().endswith(".parquet")):
        place = Location.of(f"{place.address().rstrip('/')}/{MANIFEST_NAME}")
    file = open_file(place, _ACCEPTED)
    metadata = file.schema.metadata or {}
    if b"variegate.settings" not in metadata or file.schema.names not in _KNOWN:
        raise SourceError(f"{place}: a Parquet file, but no manifest; accepted: {_ACCEPTED}")
    for column in file.schema:
        if column.type != pa.type_for_alias(_ALL_TYPES[column.name]):
            wrong = f"its column {column.name} is of type {column.type}, not {_ALL_TYPES[column.name]}"
            raise SourceError(f"{place}: damaged: {wrong}; accepted: {_ACCEPTED}")
    try:
        settings = json.loads(metadata[b"variegate.settings"])
        files = [StoredFile(*one) for one in json.loads(metadata.get(b"variegate.files", b"[]"))]
        is_sound = isinstance(settings, dict) and all(map(_is_file, files))
    except (ValueError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise SourceError(f"{place}: damaged: the settings or files in it are not JSON; accepted: {_ACCEPTED}")
    return Manifest(file, settings, files)


def _is_file(file: StoredFile) -> bool:
    return isinstance(file.name, str) and isinstance(file.sha256, str) and type(file.size) is int


def is_row(row: dict[str, Any]) -> bool:
    """True if it is of a sample and a copy, and a column can hold each value: rows of a journal may hold anything."""
    return (
        isinstance(row.get("index"), int)
        and isinstance(row.get("copy"), int)
        and row["index"] >= 0 <= row["copy"]
        and all(name in _HOLDS and _HOLDS[name](value) for name, value in row.items())
    )


def _holds(kind: str) -> Callable[[Any], bool]:
    if kind == "string":
        return lambda value: value is None or isinstance(value, str)
    bounds = np.iinfo(kind)
    return lambda value: value is None or (type(value) is int and bounds.min <= value <= bounds.max)


_HOLDS = {name: _holds(kind) for name, kind in _ALL_TYPES.items()}
_HOLDS |= dict.fromkeys(("label", "operations"), lambda value: True)  # stored as something else


def _schema(settings: dict[str, Any], files: Sequence[StoredFile]) -> pa.Schema:
    import pyarrow as pa

    # Sorted, so that equal settings are equal bytes whatever order they were put together in.
    metadata = {"variegate.format": str(FORMAT), "variegate.settings": json.dumps(settings, sort_keys=True)}
    metadata |= {"variegate.files": json.dumps(files)} if files else {}
    types = _ANNOTATED_TYPES if ANNOTATED in settings else _PACKED if settings.get("command") == "pack" else _TYPES
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()], metadata)


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    stored = []
    for row in rows:
        operations = row.get("operations")
        label = row.get("label")
        is_stored = type(label) is int and label != NO_LABEL
        texts = {"operations": None if operations is None else _compact(operations)}
        stored.append(row | texts | {"label": label if is_stored else None})
    try:
        return pa.Table.from_pylist(stored, schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([{name: _as_utf8(value) for name, value in row.items()} for row in stored], schema)


def _as_utf8(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
