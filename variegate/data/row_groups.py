"""The images of a Parquet row group: decoded in memory, or unpacked into an Arrow IPC file on first use.

Parquet compresses and encodes whole pages of a column, so a row has no place of its own in the file. In an unpacked one
it has: it is had with a single read instead of decoding the hundreds around it. A file appears under its name only when
it is whole.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate.arrays import Int64Array
from variegate.data.arrow_ipc import read_but_last_column
from variegate.data.base import digest_of
from variegate.io.durable import WriteError, write_atomically
from variegate.threads import at_fork

if TYPE_CHECKING:
    from variegate.data.parquet import ParquetFile

# Of an unpacked row: the bytes that it has, null for one that names a path instead; that path; and these bytes.
_SCHEMA = pa.schema([("size", pa.int64()), ("path", pa.binary()), ("bytes", pa.large_binary())])

# The bytes of a row; for a row without bytes, None and its path ("" if missing).
Row = tuple[bytes | None, str]


@dataclass(frozen=True)
class UnpackedRows:
    """``sizes`` and ``starts`` of rows in the file, in bytes; a size of -1 is that of a row with a path of ``paths``
    instead."""

    path: Path
    sizes: Int64Array
    starts: Int64Array
    paths: pa.ChunkedArray

    @property
    def nbytes(self) -> int:
        return self.sizes.nbytes + self.starts.nbytes + self.paths.nbytes

    def row(self, index: int) -> Row:
        """Raises OSError where the file is gone or ends early."""
        size = self.sizes.item(index)
        if size < 0:
            return None, os.fsdecode(self.paths[index].as_py())
        # Opened each time: a data set may have more groups than a process may have open files.
        with open(self.path, "rb", buffering=0) as file:
            start = self.starts.item(index)
            file.seek(start)
            data = file.read(size)
        if len(data) != size:
            raise OSError(f"{self.path}: ends after {start + len(data):,} bytes")
        return data, ""


class _Written(io.RawIOBase):
    """Bytes that Arrow has written since they were taken last."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._end = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._end += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._end

    def take(self) -> list[bytes]:
        taken = self._parts
        self._parts = []
        return taken


def _unpacked(pieces: Iterable[tuple[Any, Any]]) -> Iterator[bytes]:
    """Make an IPC file with a record batch for each piece, columns ``bytes`` and ``path``."""
    written = _Written()
    with pa.ipc.new_file(written, _SCHEMA) as writer:
        for data, paths in pieces:
            paths = pa.nulls(len(data), pa.binary()) if paths is None else paths.cast(pa.binary())
            stored = data.cast(pa.large_binary())
            columns = [pc.binary_length(stored), paths.fill_null(b""), stored.fill_null(b"")]
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
            yield from written.take()
    yield from written.take()


def open_rows(path: Path, count: int) -> UnpackedRows | None:
    """None where the file is missing, or is not a whole one of ``count`` rows."""

    def check(schema: pa.Schema) -> None:
        if not schema.equals(_SCHEMA):
            raise ValueError("an Arrow file of another kind")

    try:
        with open(path, "rb") as file:
            _, batches, spans = read_but_last_column(file, os.fstat(file.fileno()).st_size, check)
    except (OSError, ValueError, TypeError, RecursionError, pa.ArrowException):
        return None
    table = pa.Table.from_batches(batches, _SCHEMA.remove(2))
    sizes = table["size"].fill_null(-1).to_numpy()
    if len(table) != count or table["path"].null_count or (sizes < -1).any():
        return None
    starts: list[Int64Array] = [np.zeros(0, np.int64)]
    for batch, span in zip(batches, spans, strict=True):
        stored = batch["size"].fill_null(0).to_numpy()
        ends = np.cumsum(stored)
        if len(ends) and ends[-1] > span.size:
            return None
        starts.append(span.start + ends - stored)
    return UnpackedRows(path, sizes, np.concatenate(starts), table["path"])


# A row group is decoded in pieces: unpacking needs less memory than the group, and Arrow's limit of 2 GiB per column of
# bytes applies to pieces.
_PIECE_BYTES = 16 << 20


@dataclass(frozen=True)
class ResidentRows:
    """A decoded row group in Arrow's memory: pieces of the columns ``bytes`` and ``path``."""

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
    """Reads the row groups of a file; ``folder``: to unpack them to. ``failure``: of unpacking."""

    file: ParquetFile
    column: str
    folder: Path | None = None
    failure: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        schema = self.file.schema
        metadata = self.file.metadata
        kind = schema.field(self.column).type
        self.fields = (
            [name for name in ("bytes", "path") if kind.get_field_index(name) >= 0] if pa.types.is_struct(kind) else []
        )
        leaves = {f"{self.column}.{name}" for name in self.fields} | {self.column}
        where = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path in leaves]
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self.rows = [group.num_rows for group in groups]
        # Size of the encoded pages before compression: the images' bytes, minus savings of a dictionary.
        self.expected = [sum(group.column(i).total_uncompressed_size for i in where) for group in groups]

    def load(self, group: int) -> Rows:
        """Raises whatever reading the file raises; a disk that cannot be written to only costs memory."""
        if self.folder is not None and self.failure is None:
            path = self.folder / f"group-{group:06}"
            rows = open_rows(path, self.rows[group])
            if rows is None:
                rows = self._unpack(group, path)
            if rows is not None:
                return rows
        pieces = list(self._pieces(group))
        return ResidentRows(pieces, list(accumulate((len(data) for data, _ in pieces[:-1]), initial=0)))

    def missing_bytes(self) -> int:
        """About how much unpacking would still add to the disk."""
        if self.folder is None:
            return 0
        present = {entry.name for entry in os.scandir(self.folder)} if self.folder.is_dir() else set()
        return sum(size for group, size in enumerate(self.expected) if f"group-{group:06}" not in present)

    def _unpack(self, group: int, path: Path) -> UnpackedRows | None:
        if not path.parent.exists():
            # The file was replaced: the data unpacked from the earlier file will not be read again.
            for other in path.parent.parent.glob("*"):
                if other != path.parent:  # another process may have begun it by now
                    shutil.rmtree(other, ignore_errors=True)

        try:
            write_atomically(path, _unpacked(self._pieces(group)), durable=True, several_writers=True)
        except WriteError as error:
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


def _row(data: Any, path: Any, index: int) -> Row:
    stored = data[index].as_py()
    return (stored, "") if stored is not None else (None, (path[index].as_py() or "") if path is not None else "")


def _unpacked_folder(cache: Path, file: ParquetFile, column: str) -> Path:
    """The place of a file's row groups: a folder for the file, and in it one for each state that the file was in."""
    address = file.location.address()
    place = address if file.location.is_url else os.path.abspath(address)
    shown = re.sub(r"[^\w.-]", "_", file.name)[:64]
    return cache / f"{shown}-{digest_of(place, chr(0), column)}" / f"{file.size}-{file.stamp}"


def choose_unpacking(readers: list[GroupReader], memory: int, cache: Path) -> list[str]:
    """Give each file its folder in the cache, if the row groups do not fit in memory; the notes that say so."""
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


class GroupCache:
    """Row groups by number, loaded on first use, the least recently used dropped first. ``expected``: estimated bytes
    of each group. Loaded groups and groups that are loading stay within ``budget`` bytes together, so that loads wait
    for each other. One group larger than the budget is let in alone: refused, it would be loaded again for each of its
    rows."""

    def __init__(self, load: Callable[[int], Rows], expected: Sequence[int], budget: int) -> None:
        self._load = load
        self._expected = expected
        self._budget = budget
        self._held: OrderedDict[int, Rows] = OrderedDict()
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._loading: set[int] = set()
        self.nbytes = sum(rows.nbytes for rows in self._held.values())  # of loaded groups

    def get(self, key: int) -> Rows:
        """The group; raises whatever ``load`` raises. Another call then tries again."""
        with self._changed:
            while (held := self._held.get(key)) is None and self._must_wait(key):
                self._changed.wait()
            if held is not None:
                self._held.move_to_end(key)
                return held
            self._loading.add(key)
            self._make_room(0)
        try:
            held = self._load(key)
        finally:
            with self._changed:
                self._loading.discard(key)
                if held is not None:
                    self._held[key] = held
                    self.nbytes += held.nbytes
                    self._make_room(1)
                self._changed.notify_all()
        return held

    def drop(self, key: int) -> None:
        """Forget a group that can no longer be read."""
        with self._changed:
            dropped = self._held.pop(key, None)
            self.nbytes -= dropped.nbytes if dropped else 0

    def _must_wait(self, key: int) -> bool:
        """Another thread loads this group, or there is no room for one more that is being loaded."""
        is_full = self._reserved() + self._expected[key] > self._budget
        return key in self._loading or (bool(self._loading) and is_full)

    def _reserved(self) -> int:
        return sum(self._expected[key] for key in self._loading)

    def _make_room(self, keep: int) -> None:
        limit = self._budget - self._reserved()
        while len(self._held) > keep and self.nbytes > limit:
            _, dropped = self._held.popitem(last=False)
            self.nbytes -= dropped.nbytes
