"""Outputs gathered into large files: WebDataset's tar archives, or Parquet files in Hugging Face's layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from variegate.sinks.storage import Storage

FORMATS = ("folder", "webdataset", "parquet")


@dataclass(frozen=True, slots=True)
class Record:
    """An output. ``data``: an encoded image, ``extension`` its format without a dot. ``label``: as the source has it,
    -1 for none. ``source``: the name of the sample it was made of, ``index`` and ``id`` that sample's."""

    index: int
    copy: int
    data: bytes
    extension: str
    label: Any
    class_name: str | None
    source: str
    id: int


class Labels(NamedTuple):
    """What labels a run has: "int", "float", "ints" or "floats" (rows of ``width`` numbers), and the classes' names."""

    kind: str = "int"
    width: int = 0
    classes: tuple[str, ...] = ()


def describe_labels(format: str, label: Any, classes: tuple[str, ...] = ()) -> Labels:
    """From the label of the run's first sample. Raises SourceError where ``format`` cannot hold such labels (or names
    of classes), naming one that can. For all of FORMATS."""
    raise NotImplementedError


class Shard(ABC):
    """A shard in the making: records are added in their order, then it is committed or discarded. As a context manager
    it is discarded at the end, unless it was committed."""

    name: str  # relative to the root: shard-000000.tar

    @abstractmethod
    def add(self, record: Record) -> str:
        """-> the record's name within the shard. Raises ValueError for a label of another kind than the run's,
        WriteError, DiskFullError."""

    @abstractmethod
    def commit(self) -> None:
        """A shard without a record is not written (one that was there is removed)."""

    @abstractmethod
    def discard(self) -> None: ...

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def open_shard(storage: Storage, format: str, number: int, labels: Labels) -> Shard:
    """``format``: "webdataset" or "parquet"."""
    raise NotImplementedError
