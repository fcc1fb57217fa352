"""From packed images to shards of about a size: where one ends follows from the images alone.

A shard begins where the last one ended, and ends before the image that would take it beyond its size. Where shards were
lost, those around them are in their places, and what is made between comes out as it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from variegate.formats.shards import Labels, Record, Shard
from variegate.formats.storage import Storage
from variegate.formats.writing import open_shard
from variegate.jobs.augment.commit import Report, ShardCommit
from variegate.jobs.output.journal import Journal
from variegate.jobs.pack.entries import put_entries
from variegate.jobs.pack.job import Beside
from variegate.jobs.pack.plan import PackPlan

# What an image takes beside its own bytes, about: headers, label and description in an archive, a row elsewhere.
_TAR_BLOCK, _TAR_BESIDE, _ROW = 512, 5 * 512, 64


class ShardSpan(NamedTuple):
    """The items of a shard, ``start..stop-1``, and its name; "" where none of them could be made."""

    start: int
    stop: int
    file: str

    @property
    def number(self) -> int:
        return int(self.file.partition("-")[2].partition(".")[0])


def spans_of(start: int, stop: int, rows: Iterable[dict[str, Any]]) -> list[ShardSpan]:
    """Of a record of items, which may hold several shards. Images that could not be made belong to the shard before
    them, and the first to the first."""
    starts, files = [start], [""]
    for row in rows:
        if row["file"] is None or row["file"] == files[-1]:
            continue
        if files[-1]:
            starts.append(row["index"])
            files.append(row["file"])
        else:
            files[-1] = row["file"]
    return [ShardSpan(*each) for each in zip(starts, [*starts[1:], stop], files, strict=True)]


class PackCommit(ShardCommit):
    """Outputs come in order. A shard has the number after that of the shard before it; where the next number is taken,
    as by images that could not be read once and now can, the last shard before it gets larger instead."""

    _plan: PackPlan

    def __init__(self, plan: PackPlan, storage: Storage, labels: Labels, journal: Journal, report: Report) -> None:
        super().__init__(plan, storage, labels, journal, report)
        spans = [span for record in journal.records() for span in spans_of(*record) if span.file]
        self._firsts, self._numbers = [span.start for span in spans], [span.number for span in spans]
        # Where what is recorded begins: a shard that comes before ends there.
        self._recorded = [start for start, _ in journal.covered]
        self._next = self._number = self._size = 0
        self._has_next = True
        self._entries: dict[int, bytes] = {}

    def _begin(self, item: int, data: Sequence[bytes] = ()) -> None:
        """Without image files no shard is opened."""
        if item != self._next:
            self._first = self._next = item
        for one in data:
            size = self._size_of(one)
            if self._shard is not None and self._size + size > self._plan.shard_bytes and self._has_next:
                self._end(item)
                self._first = item
            if self._shard is None:
                place = bisect_left(self._firsts, self._first)
                self._number = self._numbers[place - 1] + 1 if place else 0
                self._has_next = self._number + 1 not in self._numbers[place : place + 1]
                self._shard = open_shard(self._storage, self._plan.layout, self._number, self._labels)
                self._size, self._entries = 0, {}
            self._size += size

    def _end_item(self, item: int) -> None:
        self._next = item + 1
        place = bisect_left(self._recorded, self._next)
        if self._next == self._plan.num_items or self._recorded[place : place + 1] == [self._next]:
            self._end(self._next)
            self._first = self._next

    def _put_shard(self, shard: Shard) -> dict[str, Any]:
        if self._plan.has_index:
            put_entries(self._storage, shard.name, self._entries)
        whole = super()._put_shard(shard)
        place = bisect_left(self._firsts, self._first)
        self._firsts.insert(place, self._first)
        self._numbers.insert(place, self._number)
        return whole

    def _size_of(self, data: bytes) -> int:
        if self._plan.layout != "webdataset":
            return len(data) + _ROW
        return len(data) + -len(data) % _TAR_BLOCK + _TAR_BESIDE

    def _record(self, row: dict[str, Any], data: bytes, label: Any, beside: Beside) -> Record:
        """Keeps the image's entries of the index, too."""
        if self._plan.has_index:
            self._entries[beside.key] = beside.entries
        about = row["class"], row["source"], row["id"], beside.shape
        return Record(row["index"], None, data, "raw" if self._plan.layout == "raw" else "jpg", label, *about)
