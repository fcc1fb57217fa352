"""One pass over a source, in its order: threads read, decode and measure every image once, each some samples at a time.

The journal of a pass is a file that grows, by which the pass goes on after whatever ended it:

    variegate check 1 <plan, hex>
    <length, 4 bytes> <crc32, 4 bytes> <JSON: how far the pass has come> newline <rows, as an Arrow stream>
    ...

Everything up to the first record that is not whole may be believed, since records are appended one after the other.
"""

from __future__ import annotations

import io
import json
import os
import struct
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from variegate.apps.curate.findings import MEASURED
from variegate.apps.curate.sample import FIELDS, Row, row_of
from variegate.errors import DecodeError
from variegate.formats.base import Item, StreamItem, StreamSource
from variegate.formats.filtered import sample_key, stream_key
from variegate.formats.samples import AnySource, Samples
from variegate.io.durable import AppendOnlyFile, write_errors_name
from variegate.io.files import read_regular
from variegate.threads import in_order

# So few that threads end together, and so many that handing them over costs nothing.
_SAMPLES = 16
_BYTES = 8 << 20
_AHEAD = 4  # for each thread
# Reading an address is waiting.
_REMOTE_THREADS = 16
_ROWS_A_RECORD = 8192
_SECONDS_A_RECORD = 1.0
_MAGIC = b"variegate check 1 "
_HEAD = struct.Struct("<II")
_MOST_BYTES = 1 << 40


@dataclass(frozen=True)
class Position:
    """Progress of a pass: ``samples`` are done; of a stream, the next is the one at ``place`` of ``shard``."""

    samples: int = 0
    shard: int = 0
    place: int = 0


# Gives rows, and the position behind them.
Work = Callable[[], tuple[list[Row], Position]]


class ScanJournal:
    """``batches``: what was recorded, by split; ``positions``: how far each split was; ``is_other``: there were records
    of another ``plan``, the hex digest of all that rows depend on. Raises WriteError."""

    def __init__(self, path: Path, plan: str) -> None:
        self.batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self.positions: dict[str, Position] = defaultdict(Position)
        first = _MAGIC + plan.encode() + b"\n"
        with write_errors_name(str(path), "read"):
            data = read_regular(path, _MOST_BYTES) if os.path.lexists(path) else b""
        is_ours = data.startswith(first)
        self.is_other = not is_ours and len(data) > len(first)
        self._begin = len(first)
        end = self._load(memoryview(data), len(first)) if is_ours else 0
        self._file = AppendOnlyFile(path, str(path), end, first)

    @property
    def is_empty(self) -> bool:
        return self._file.end == self._begin

    def append(self, split: str, batch: pa.RecordBatch, position: Position) -> None:
        """It lasts when this returns."""
        out = io.BytesIO()
        out.write(json.dumps({"split": split, **asdict(position)}).encode() + b"\n")
        with pa.ipc.new_stream(out, MEASURED) as writer:
            writer.write_batch(batch)
        record = out.getvalue()
        self._file.append(_HEAD.pack(len(record), zlib.crc32(record)) + record)

    def close(self) -> None:
        self._file.close()

    def _load(self, data: memoryview, at: int) -> int:
        """Up to where records are whole."""
        while at + _HEAD.size <= len(data):
            length, checksum = _HEAD.unpack_from(data, at)
            record = bytes(data[at + _HEAD.size : at + _HEAD.size + length])
            if len(record) != length or zlib.crc32(record) != checksum:
                break
            head, _, rows = record.partition(b"\n")
            position = json.loads(head)
            split = position.pop("split")
            with pa.ipc.open_stream(rows) as reader:
                batches = list(reader)
            # A record that was interrupted behind its last byte was written once more.
            if batches[0]["index"][0].as_py() == self.positions[split].samples:
                self.batches[split] += batches
                self.positions[split] = Position(**position)
            at += _HEAD.size + length
        return at


def record_pass(
    source: AnySource,
    split: str,
    begin: Position,
    threads: int,
    journal: ScanJournal | None,
    tell: Callable[[int], object],
    stop: Event | None,
) -> list[pa.RecordBatch]:
    """Measure the samples from ``begin`` on -> ``MEASURED``; ``journal`` gets what there is when interrupted, too.

    ``tell``: called with the samples done. ``stop``: once it is set, the pass ends with what it has begun.
    """
    batches: list[pa.RecordBatch] = []
    rows: list[Row] = []
    position = begin
    last = time.monotonic()

    def record() -> None:
        batches.append(batch_of(split, rows))
        if journal is not None:
            journal.append(split, batches[-1], position)
        rows.clear()

    tell(position.samples)
    with closing(pass_over(source, threads, position)) as done, warnings.catch_warnings():
        # A line for every image with an odd header; the columns have it.
        warnings.simplefilter("ignore")
        try:
            for some, position in done:
                rows += some
                tell(position.samples)
                now = time.monotonic()
                if len(rows) >= _ROWS_A_RECORD or now - last >= _SECONDS_A_RECORD:
                    record()
                    last = now
                if stop is not None and stop.is_set():
                    break
        finally:
            if rows:
                record()
    return batches


def batch_of(split: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """The columns ``MEASURED``."""
    values: dict[str, Sequence[Any]] = dict(zip(FIELDS, zip(*rows, strict=True), strict=True))
    values["split"] = [split] * len(rows)
    return pa.record_batch([pa.array(values[one.name], one.type) for one in MEASURED], schema=MEASURED)


def pass_over(source: AnySource, threads: int, begin: Position) -> Generator[tuple[list[Row], Position], None, None]:
    """Rows of all samples from ``begin`` on in the source's order, and the positions behind them. Closing the iterator
    ends the pass with what its threads have begun."""
    if isinstance(source, Samples):
        work = _by_index(source, begin)
        threads = max(threads, _REMOTE_THREADS) if source.is_remote else threads
    else:
        work = _by_shard(source, begin)
    with ThreadPoolExecutor(threads, "variegate-check") as pool:
        yield from in_order(pool, work, threads * _AHEAD)


def _by_index(source: Samples, begin: Position) -> Iterator[Work]:
    """Of samples that are read by the thread that measures them."""

    def measure(start: int, stop: int) -> tuple[list[Row], Position]:
        rows = [
            row_of(index, sample_key(source, index), source.name(index), partial(source.read, index), source.classes)
            for index in range(start, stop)
        ]
        return rows, Position(stop)

    for start in range(begin.samples, len(source), _SAMPLES):
        yield partial(measure, start, min(start + _SAMPLES, len(source)))


def _by_shard(source: StreamSource, begin: Position) -> Iterator[Work]:
    """Of samples that are read here, as a shard gives one after the other."""

    def measure(samples: list[StreamItem], behind: Position) -> tuple[list[Row], Position]:
        rows = [
            row_of(index, stream_key(sample.name), sample.name, partial(item_of, sample), source.classes)
            for index, sample in enumerate(samples, behind.samples - len(samples))
        ]
        return rows, behind

    done = begin.samples
    for shard in range(begin.shard, source.num_shards):
        skipped = begin.place if shard == begin.shard else 0
        some: list[StreamItem] = []
        size = 0
        for place, sample in enumerate(chain(islice(source.read_shard(shard), skipped, None), [None]), skipped):
            if sample is not None:
                some.append(sample)
                size += len(sample.item.data) if isinstance(sample.item, Item) else 0
            if some and (sample is None or len(some) == _SAMPLES or size >= _BYTES):
                behind = (shard + 1, 0) if sample is None else (shard, place + 1)
                done += len(some)
                yield partial(measure, some, Position(done, *behind))
                some = []
                size = 0


def reads_of(source: AnySource, indices: Sequence[int]) -> Iterator[tuple[int, Callable[[], Item]]]:
    """Index, and what reads the sample; of a stream in its order, which is read up to the last of ``indices``."""
    # Asked of the class: isinstance() of a protocol would compute the fingerprint.
    if isinstance(source, Samples):
        for index in indices:
            yield index, partial(source.read, index)
        return
    stream = source
    wanted = set(indices)
    samples = chain.from_iterable(map(stream.read_shard, range(stream.num_shards)))
    for index, sample in enumerate(islice(samples, max(wanted, default=-1) + 1)):
        if index in wanted:
            yield index, partial(item_of, sample)


def item_of(sample: StreamItem) -> Item:
    if isinstance(sample.item, DecodeError):
        raise sample.item
    return sample.item
