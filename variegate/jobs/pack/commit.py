"""Shards of about a size, of packed images: where one ends follows from the images alone. It begins where the last one
ended, and ends before the image that would take it beyond its size. Where shards were lost, those around them are in
their places, and what is made between comes out as it was."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.decode.entropy.index import known_of, pieces_of
from variegate.errors import DecodeError
from variegate.formats.base import Item, StreamSource
from variegate.formats.opening import open_source
from variegate.formats.packed import INDEX_NAME
from variegate.formats.shards import Labels, Record, Shard, open_shard
from variegate.formats.storage import PRIVATE, Storage
from variegate.io.location import inside
from variegate.jobs.augment.commit import Report, ShardCommit
from variegate.jobs.output.journal import Journal
from variegate.jobs.pack.plan import PackPlan, ShardEntry
from variegate.threads import default_threads

# What an image takes beside its own bytes, about: headers, label and description in an archive, a row elsewhere.
_TAR_BLOCK, _TAR_BESIDE, _ROW = 512, 5 * 512, 64
_FILES_AT_ONCE = 256
_FOLDER = f"{PRIVATE}/index"


class ShardSpan(NamedTuple):
    """The items of a shard, ``start..stop-1``, and its name; "" where none of them could be made."""

    start: int
    stop: int
    file: str

    @property
    def number(self) -> int:
        return int(self.file.partition("-")[2].partition(".")[0])


def spans_of(start: int, stop: int, rows: Iterable[dict[str, Any]]) -> list[ShardSpan]:
    """Of a record. Images that could not be made belong to the shard before them, and the first to the first."""
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
            # Until ``write_index``.
            sizes = [len(one) for one in self._entries.values()]
            head = json.dumps({"keys": list(self._entries), "sizes": sizes}).encode()
            self._storage.write(f"{_FOLDER}/{shard.name}", b"\n".join([head, b"".join(self._entries.values())]))
        whole = super()._put_shard(shard)
        place = bisect_left(self._firsts, self._first)
        self._firsts.insert(place, self._first)
        self._numbers.insert(place, self._number)
        return whole

    def _size_of(self, data: bytes) -> int:
        if self._plan.layout != "webdataset":
            return len(data) + _ROW
        return len(data) + -len(data) % _TAR_BLOCK + _TAR_BESIDE

    def _record(self, row: dict[str, Any], data: bytes, label: Any, extra: ShardEntry) -> Record:
        """Collects the image's entries of the index, too."""
        if self._plan.has_index:
            self._entries[extra.key] = extra.entries
        about = row["class"], row["source"], row["id"], extra.shape
        return Record(row["index"], None, data, "raw" if self._plan.layout == "raw" else "jpg", label, *about)


def write_index(storage: Storage, shards: Iterable[str]) -> dict[str, object]:
    """Write the index of these shards -> its size and checksum. Shards whose entries are gone are read again."""
    every: dict[int, bytes] = {}
    for shard in shards:
        every |= _entries_of(storage, shard)
    with storage.writer(INDEX_NAME) as out:
        for piece in pieces_of(known_of(every)):
            out.file.write(piece)
        out.file.flush()
        about: dict[str, object] = {"bytes": out.descriptor.size, "sha256": out.descriptor.digest.hexdigest()}
        out.commit()
    return about


def _entries_of(storage: Storage, shard: str) -> dict[int, bytes]:
    try:
        head, _, packed = storage.read(f"{_FOLDER}/{shard}").partition(b"\n")
    except FileNotFoundError:
        return _look_through(storage, shard)
    found, entries, at = json.loads(head), {}, 0
    for key, size in zip(found["keys"], found["sizes"], strict=True):
        entries[key] = packed[at : at + size]
        at += size
    return entries


def _look_through(storage: Storage, shard: str) -> dict[int, bytes]:
    """A shard is read from its beginning to its end, so that no listing of it is left beside it."""
    source = open_source(inside(storage.root, shard), stream=True if shard.endswith(".tar") else None)
    items: Iterable[Item | DecodeError]
    if isinstance(source, StreamSource):
        items = (sample.item for sample in source.read_shard(0))
    else:
        items = map(source.read, range(len(source)))
    items, entries = iter(items), dict[int, bytes]()
    with ThreadPoolExecutor(default_threads(), "variegate-index") as pool:
        while some := list(islice(items, _FILES_AT_ONCE)):
            entries.update(pool.map(_look_into, some))
    return entries


def _look_into(item: Item | DecodeError) -> tuple[int, bytes]:
    if isinstance(item, DecodeError):
        raise item
    assert isinstance(item.data, bytes)
    found = pack_file(item.data)
    return key_of_file(item.data), b"" if isinstance(found, int) else found
