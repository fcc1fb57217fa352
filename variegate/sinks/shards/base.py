"""What every kind of shard does. One process writes a shard, its records in their order; the same records make the
same bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from variegate.sinks.labels import Labels
from variegate.sinks.storage import Storage


@dataclass(frozen=True, slots=True)
class Record:
    """An output.

    ``data``: an image file, ``extension`` its format without a dot. ``label``: as the source has it, -1 for none.
    ``source``: the name of the sample that it was made of; ``index`` and ``id`` are that sample's too.
    """

    index: int
    copy: int
    data: bytes
    extension: str
    label: Any
    class_name: str | None
    source: str
    id: int

    @property
    def key(self) -> str:
        """Without dots: to WebDataset, what comes after one is another member of the same sample."""
        return f"{self.index:08}_{self.copy}"

    @property
    def member(self) -> str:
        return f"{self.key}.{self.extension}"


class Shard(ABC):
    """A shard in the making. Nothing of it is to be seen before ``commit``; as a context manager it is discarded at the
    end, unless it was committed."""

    def __init__(self, storage: Storage, name: str, labels: Labels) -> None:
        self.storage, self.labels = storage, labels
        self.name = name  # relative to the storage's root
        self.count = 0
        self.size, self.sha256 = 0, ""  # of the file, once it is committed
        self._writer = storage.writer(name)
        self._is_open = True

    def add(self, record: Record) -> str:
        """-> the record's name within the shard.

        Raises ValueError for a label that is not as ``labels`` says, WriteError, DiskFullError.
        """
        self._add(record, self.labels.check(record.label, record.source))
        self.count += 1
        return record.member

    def commit(self) -> None:
        """A shard without a record is not written, and one of that name is removed. Raises WriteError; nothing is left
        then but what was there before. To outlast a power failure, it needs ``storage.sync`` as other files do."""
        if self.count:
            self._finish()
            self._writer.commit()
            self._is_open = False
            written = self._writer.descriptor
            self.size, self.sha256 = written.size, written.digest.hexdigest()
        else:
            self.discard()
            self.storage.remove(self.name)

    def discard(self) -> None:
        """Does nothing after ``commit``."""
        if self._is_open:
            self._is_open = False
            self._abandon()
            self._writer.discard()

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    @abstractmethod
    def _add(self, record: Record, label: Any) -> None: ...

    @abstractmethod
    def _finish(self) -> None:
        """Write what belongs at the end, and what belongs beside the shard."""

    @abstractmethod
    def _abandon(self) -> None:
        """Let go of what holds the file."""
