"""The images of a Parquet row group: decoded in memory, or unpacked into a plain file on first use."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from variegate.data.sources.parquet.file import ParquetFile
from variegate.data.sources.parquet.group_cache import SizedValue
from variegate.data.sources.parquet.unpacked import Row, UnpackedRows, open_rows, write_rows

# A row group is decoded piece by piece, so that unpacking one needs less memory than all of it, and so that Arrow's
# limit of 2 GiB in one column of bytes is a limit of pieces.
_PIECE_BYTES = 16 << 20


@dataclass(frozen=True)
class ResidentRows:
    """A decoded row group as it lies in Arrow's memory: pieces of the columns ``bytes`` and ``path``."""

    pieces: list[tuple[Any, Any]]
    starts: list[int]

    @property
    def nbytes(self) -> int:
        return sum(a.get_total_buffer_size() for piece in self.pieces for a in piece if a is not None)

    def row(self, index: int) -> Row:
        piece = bisect_right(self.starts, index) - 1
        return _row(*self.pieces[piece], index - self.starts[piece])


Rows = ResidentRows | UnpackedRows


@dataclass
class GroupReader:
    """Makes the row groups of one file readable; ``folder`` is where they are unpacked, None to hold them in memory.

    ``failure``: why unpacking was given up, once it was.
    """

    file: ParquetFile
    column: str
    folder: Path | None = None
    failure: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        schema, metadata = self.file.schema, self.file.metadata
        kind = schema.field(self.column).type
        self.fields = (
            [name for name in ("bytes", "path") if kind.get_field_index(name) >= 0] if pa.types.is_struct(kind) else []
        )
        leaves = {f"{self.column}.{name}" for name in self.fields} | {self.column}
        where = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path in leaves]
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self.rows = [group.num_rows for group in groups]
        # What the encoded pages hold before compression: the images' bytes, less what a dictionary saves.
        self.expected = [sum(group.column(i).total_uncompressed_size for i in where) for group in groups]

    def load(self, group: int) -> SizedValue[Rows]:
        """Raises whatever reading the file raises; a disk that cannot be written to only costs memory."""
        if self.folder is not None and self.failure is None:
            path = self.folder / f"group-{group:06}"
            rows = open_rows(path, self.rows[group])
            if rows is None:
                rows = self._unpack(group, path)
            if rows is not None:
                return SizedValue(rows, rows.nbytes)
        pieces = list(self._pieces(group))
        starts = [0]
        for data, _ in pieces[:-1]:
            starts.append(starts[-1] + len(data))
        resident = ResidentRows(pieces, starts)
        return SizedValue(resident, resident.nbytes)

    def missing_bytes(self) -> int:
        """About how much unpacking would still add to the disk."""
        if self.folder is None:
            return 0
        present = {entry.name for entry in os.scandir(self.folder)} if self.folder.is_dir() else set()
        return sum(size for group, size in enumerate(self.expected) if f"group-{group:06}" not in present)

    def _unpack(self, group: int, path: Path) -> UnpackedRows | None:
        if not path.parent.exists():
            _remove_others_than(path.parent)
        rows = _RowIterator(self._pieces(group))
        try:
            write_rows(path, rows)
        except OSError as error:
            if rows.failed:
                raise
            self.failure = f"{path.parent}: {error.strerror or error}"
            return None
        return open_rows(path, self.rows[group])

    def _pieces(self, group: int) -> Iterator[tuple[Any, Any]]:
        columns = [f"{self.column}.{name}" for name in self.fields] or [self.column]
        count = max(1, self.rows[group] * _PIECE_BYTES // max(_PIECE_BYTES, self.expected[group]))
        with self.file.opened() as opened:
            for batch in opened.iter_batches(batch_size=count, row_groups=[group], columns=columns):
                column = batch.column(0)
                # Flattened, the parts of a struct are null where the whole is.
                names = [field.name for field in column.type] if self.fields else ["bytes"]
                parts = dict(zip(names, column.flatten() if self.fields else [column], strict=True))
                yield parts["bytes"], parts.get("path")


class _RowIterator:
    """Rows of pieces, which remembers whether it was the reading that failed."""

    def __init__(self, pieces: Iterator[tuple[Any, Any]]) -> None:
        self._pieces, self.failed = pieces, False

    def __iter__(self) -> Iterator[Row]:
        while True:
            try:
                piece = next(self._pieces, None)
            except BaseException:
                self.failed = True
                raise
            if piece is None:
                return
            for index in range(len(piece[0])):
                yield _row(*piece, index)


def _row(data: Any, path: Any, index: int) -> Row:
    stored = data[index].as_py()
    return (stored, "") if stored is not None else (None, (path[index].as_py() or "") if path is not None else "")


def _unpacked_folder(cache: Path, file: ParquetFile, column: str) -> Path:
    """Where a file's row groups go: a folder for the file, and in it one for each state that the file was in."""
    address = file.location.address()
    place = address if file.location.is_url else os.path.abspath(address)
    which = hashlib.sha256(f"{place}\0{column}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    shown = re.sub(r"[^\w.-]", "_", file.name)[:64]
    return cache / f"{shown}-{which}" / f"{file.size}-{file.stamp}"


def _remove_others_than(folder: Path) -> None:
    """The file was replaced: what was unpacked of the one before will not be read again."""
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def choose_unpacking(readers: list[GroupReader], memory: int, cache: Path) -> list[str]:
    """Where the row groups do not fit in memory, give each file its folder in the cache; the notes that say so."""
    total = sum(sum(reader.expected) for reader in readers)
    if total <= memory:
        return []
    for reader in readers:
        reader.folder = _unpacked_folder(cache, reader.file, reader.column)
    missing = sum(reader.missing_bytes() for reader in readers)
    free = shutil.disk_usage(next(place for place in (cache, *cache.absolute().parents) if place.exists())).free
    size = f"{_size(total)} of images do not fit in memory={_size(memory)}"
    if missing > free:
        for reader in readers:
            reader.folder = None
        return [
            f"{size}, and unpacking them needs {_size(missing)} in {cache}, where {_size(free)} are free: reading in "
            "random order will be slow"
        ]
    return [f"{size}: unpacked into {cache}, each row group when first read"]


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
