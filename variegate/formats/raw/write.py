"""Pixels as they are, in files that readers map to memory; ``formats/raw/layout.py`` has the layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.formats.raw.layout import FIRST_LINE, PLACES, index_bytes, padding, tail_bytes
from variegate.formats.shards import Labels, Record, Shard
from variegate.formats.storage import Storage


class RawShard(Shard):
    """Of records whose ``data`` are pixels, of which ``shape`` says how they lie."""

    def __init__(self, storage: Storage, name: str, labels: Labels) -> None:
        super().__init__(storage, name, labels)
        self._at = 0
        self._places: list[tuple[int, ...]] = []
        self._labels: list[Any] = []
        self._names: list[str] = []
        self._write(FIRST_LINE)

    def add(self, record: Record) -> str:
        """-> the image's place in the file: 0, 1, ..."""
        super().add(record)
        return str(self.count - 1)

    def _write(self, data: bytes) -> None:
        self._writer.file.write(data)
        self._writer.file.write(rest := padding(len(data)))
        self._at += len(data) + len(rest)

    def _add(self, record: Record, label: Any) -> None:
        assert record.shape is not None
        self._places.append((self._at, record.id, *record.shape))
        self._labels.append(label)
        self._names.append(record.source)
        self._write(record.data)

    def _finish(self) -> None:
        places = np.array(self._places, PLACES)
        index = index_bytes(places, self._labels, self.labels.kind, self._names, self.labels.classes)
        begin = self._at
        self._writer.file.write(index + tail_bytes(begin, index))

    def _abandon(self) -> None:
        pass
