"""Shards that a run writes: labels, records, and the common part. Equal records make equal bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from variegate.checks import one_of
from variegate.data.base import SourceError, truncate
from variegate.data.labels import is_a_line
from variegate.data.storage import Storage
from variegate.program.depth import Depth

Layout = Literal["folder", "webdataset", "parquet"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
# Of a data set that is packed: shards alone.
PackFormat = Literal["webdataset", "parquet", "raw"]
PACKED: tuple[PackFormat, ...] = get_args(PackFormat)


class Labels(NamedTuple):
    """``kind``: "int" (a class, -1 for none), "float", or "ints" and "floats", rows of ``width`` numbers. ``classes``:
    the names of int labels, where they are known."""

    kind: str = "int"
    width: int = 0
    classes: tuple[str, ...] = ()

    def check(self, label: Any, name: str) -> Any:
        """The label as a Python int, float or list. Raises ValueError naming the sample where it is of another kind."""
        kind, width = _kind_of(label)
        if (kind, width) == (self.kind, self.width) or (kind, self.kind) == ("int", "float"):
            return np.asarray(label, np.int64 if self.kind.startswith("int") else np.float64).tolist()
        raise ValueError(f"{name}: got the label {_short(label)}; accepted: {self}, as the first sample has")

    def __str__(self) -> str:
        words = {"int": "a whole number", "float": "a number"}
        return words.get(self.kind) or f"{self.width} {'whole ' * (self.kind == 'ints')}numbers"


def describe_labels(format: str, label: Any, classes: tuple[str, ...] = ()) -> Labels:
    """Derive the kind of labels from the run's first sample. Raises SourceError where this format cannot hold such."""
    if format not in PACKED:
        one_of("format", format, LAYOUTS)
    kind, width = _kind_of(label)
    if not kind:
        raise SourceError(f"labels such as {_short(label)} cannot be written; accepted: numbers, or rows of numbers")
    if kind != "int" and format not in ("parquet", "raw"):
        what = "class folders" if format == "folder" else "WebDataset's .cls files"
        raise SourceError(f"labels such as {_short(label)} do not go into {what}; accepted with them: parquet")
    odd = next((name for name in classes if not is_a_line(name)), None)
    if odd is not None and format == "webdataset":
        raise SourceError(f"class {odd!r}: a list with a class a line cannot hold it; accepted: folder, parquet")
    return Labels(kind, width, tuple(classes) if kind == "int" else ())


def _kind_of(label: Any) -> tuple[str, int]:
    """ "" for a label that is neither a number nor a row of numbers, or exceeds 64 bits."""
    array = np.asarray(label)
    kind = {"b": "int", "i": "int", "u": "int", "f": "float"}.get(array.dtype.kind, "")
    if not kind or array.ndim > 1 or array.size == 0 or (array.dtype.kind == "u" and array.max() >= 1 << 63):
        return "", 0
    return (f"{kind}s", len(array)) if array.ndim else (kind, 0)


def _short(label: Any) -> str:
    return truncate(" ".join(repr(label).split()))


@dataclass(frozen=True, slots=True)
class Record:
    """An output. ``data``: an image file, ``extension`` its format without a dot; or pixels, ``shape`` then their
    height, width, channels, and the channels that readers show. ``label``: as the source has it, -1 for none.
    ``source``, ``index`` and ``id`` are of the original sample; ``copy``: None without copies. ``beside``: an
    ``annotated.ImageAnnotations``, in shards that have such."""

    index: int
    copy: int | None
    data: bytes
    extension: str
    label: Any
    class_name: str | None
    source: str
    id: int
    shape: tuple[int, int, int, int] | None = None
    beside: Any = None

    @property
    def key(self) -> str:
        """The key has no dots, because WebDataset takes the text after a dot for an extension."""
        return f"{self.index:08}" if self.copy is None else f"{self.index:08}_{self.copy}"

    @property
    def member(self) -> str:
        return f"{self.key}.{self.extension}"


class Shard(AbstractContextManager["Shard"]):
    """A shard in the making: nothing of it is seen before ``commit``; without that, its context manager discards it."""

    def __init__(self, storage: Storage, name: str, labels: Labels) -> None:
        self.storage = storage
        self.labels = labels
        self.name = name  # relative to the storage's root
        self.count = 0
        self.size, self.sha256 = 0, ""  # of the file, once it is committed
        self._writer = storage.writer(name)
        self._is_open = True

    def add(self, record: Record) -> str:
        """-> the record's name within the shard. Raises ValueError for another kind of label, WriteError."""
        self._add(record, self.labels.check(record.label, record.source))
        self.count += 1
        return record.member

    def commit(self) -> None:
        """A shard without a record is not written, and an existing shard of that name is removed. Raises WriteError;
        then nothing changed. To outlast a power failure, it needs ``storage.sync`` as other files do."""
        if self.count:
            self._finish()
            self._writer.commit()
            self._is_open = False
            written = self._writer.descriptor
            self.size = written.size
            self.sha256 = written.digest.hexdigest()
        else:
            self.discard()
            self.storage.remove(self.name)

    def discard(self) -> None:
        """Does nothing after ``commit``."""
        if self._is_open:
            self._is_open = False
            self._abandon()
            self._writer.discard()

    def __exit__(self, *_: object) -> None:
        self.discard()

    @abstractmethod
    def _add(self, record: Record, label: Any) -> None: ...

    @abstractmethod
    def _finish(self) -> None:
        """Write the end of the shard, and its sidecars."""

    def _abandon(self) -> None:
        """Let go of what holds the file."""


class GroupedShard(Shard):
    """A shard whose rows are written in groups, to ``_file``, which writes the end of the file when it is closed."""

    _file: Any
    _rows: list[tuple[Any, ...]]

    @abstractmethod
    def _begin_group(self) -> None:
        """Empty ``_rows`` and their metadata."""

    @abstractmethod
    def _write_group(self) -> None:
        """Write the rows, and begin another group."""

    def _finish(self) -> None:
        if self._rows:
            self._write_group()
        self._file.close()

    def _abandon(self) -> None:
        self._begin_group()
        with suppress(OSError):  # closing it writes, which may be why it is abandoned
            self._file.close()


# By format: the module, the class of its shards and of shards with annotations, and the extension.
WRITERS = {
    "webdataset": ("tar.webdataset", "WebDatasetShard", "AnnotatedTarShard", "tar"),
    "parquet": ("parquet", "ParquetShard", "AnnotatedParquetShard", "parquet"),
    "raw": ("raw", "RawShard", "", "arrow"),
}


def open_shard(
    storage: Storage,
    format: str,
    number: int,
    labels: Labels,
    metadata: Mapping[str, Any] | None = None,
    depth: Depth = Depth.UINT8,
) -> Shard:
    """``number`` 7 makes ``shard-000007``; ``metadata``: of a source with boxes, masks or key points in such shards;
    ``depth``: of raw pixels."""
    if format not in WRITERS:
        raise ValueError(f"format: got {format!r}; accepted: {', '.join(WRITERS)}")
    module, plain, annotated, extension = WRITERS[format]
    kind: Any = getattr(import_module(f"variegate.data.{module}"), plain if metadata is None else annotated)
    name = f"shard-{number:06}.{extension}"
    more = [depth] if format == "raw" else [] if metadata is None else [metadata]
    shard: Shard = kind(storage, name, labels, *more)
    return shard
