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
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from variegate.apps.check.findings import MEASURED
from variegate.apps.check.sample import FIELDS, Row, row_of
from variegate.data.filtered import sample_key
from variegate.data.samples import Samples
from variegate.io.durable import AppendOnlyFile, write_errors_name
from variegate.io.files import read_regular
from variegate.threads import in_order

# So few that threads end together, and so many that handing them over costs nothing.
_SAMPLES = 16
_AHEAD = 4  # for each thread
# Reading an address is waiting.
_REMOTE_THREADS = 16
_ROWS_A_RECORD = 8192
_SECONDS_A_RECORD = 1.0
_MAGIC = b"variegate check 1 "
_HEAD = struct.Struct("<II")
_MOST_BYTES = 1 << 40


# Gives rows, and the number of samples up to them and with them.
Work = Callable[[], tuple[list[Row], int]]


class ScanJournal:
    """``batches``: what was recorded, by split; ``done``: samples of each split; ``is_other``: there were records of
    another ``plan``, the hex digest of all that rows depend on. Raises WriteError."""

    def __init__(self, path: Path, plan: str) -> None:
        self.batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self.done: dict[str, int] = defaultdict(int)
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

    def append(self, split: str, batch: pa.RecordBatch, done: int) -> None:
        """It lasts when this returns."""
        out = io.BytesIO()
        out.write(json.dumps({"split": split, "samples": done}).encode() + b"\n")
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
            fields = json.loads(head)
            split = fields["split"]
            with pa.ipc.open_stream(rows) as reader:
                batches = list(reader)
            # A record that was interrupted behind its last byte was written once more.
            if batches[0]["index"][0].as_py() == self.done[split]:
                self.batches[split] += batches
                self.done[split] = fields["samples"]
            at += _HEAD.size + length
        return at


def record_pass(
    source: Samples,
    split: str,
    begin: int,
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
    done = begin
    last = time.monotonic()

    def record() -> None:
        batches.append(batch_of(split, rows))
        if journal is not None:
            journal.append(split, batches[-1], done)
        rows.clear()

    tell(done)
    with closing(pass_over(source, threads, done)) as measured, warnings.catch_warnings():
        # A line for every image with an odd header; the columns have it.
        warnings.simplefilter("ignore")
        try:
            for some, done in measured:
                rows += some
                tell(done)
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


def pass_over(source: Samples, threads: int, begin: int) -> Generator[tuple[list[Row], int], None, None]:
    """Rows of all samples from ``begin`` on in the source's order, and the number of samples up to them and with them.
    Closing the iterator ends the pass with what its threads have begun."""
    threads = max(threads, _REMOTE_THREADS) if source.is_remote else threads
    with ThreadPoolExecutor(threads, "variegate-check") as pool:
        yield from in_order(pool, _work_on(source, begin), threads * _AHEAD)


def _work_on(source: Samples, begin: int) -> Iterator[Work]:
    def measure(start: int, stop: int) -> tuple[list[Row], int]:
        rows = [
            row_of(index, sample_key(source, index), source.name(index), partial(source.read, index), source.classes)
            for index in range(start, stop)
        ]
        return rows, stop

    for start in range(begin, len(source), _SAMPLES):
        yield partial(measure, start, min(start + _SAMPLES, len(source)))
