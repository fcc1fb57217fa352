"""Scan all sources, in their order: threads read, decode and measure every image once, a few per task.

A part of a scan is up to ``SAMPLES_A_PART`` samples of a split. Its record is its rows, as a Parquet file.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from variegate.apps.check.findings import MEASURED
from variegate.apps.check.sample import FIELDS, Row, row_of
from variegate.data.filtered import sample_key
from variegate.data.samples import Samples
from variegate.decode.depth import own_numbers
from variegate.jobs.output.parts import read_records, record_name
from variegate.jobs.output.run_folder import RunFolder
from variegate.threads import in_order

# Few enough that a kill or Ctrl-C costs little.
SAMPLES_A_PART = 256
# Images per task: few enough that threads end together, and enough that starting tasks costs nothing.
_SAMPLES_A_TASK = 16
_AHEAD = 4  # for each thread
# Reading an address is waiting.
_REMOTE_THREADS = 16
_RECORDS = "parquet"


class ScanPart(NamedTuple):
    split: str
    samples: range


class Scan:
    """A scan of ``sources`` (by split), whose finished parts are recorded in ``folder``, if given. ``dicom``: a
    ``vg.Dicom``.

    ``batches``: rows (``MEASURED``) of finished parts, by number. ``resumed``: samples in parts of an earlier run.
    """

    def __init__(self, sources: Mapping[str, Samples], folder: RunFolder | None, dicom: Any = None) -> None:
        self._sources = sources
        self._dicom = dicom
        self._folder = folder
        self._parts = [
            ScanPart(split, range(begin, min(begin + SAMPLES_A_PART, len(source))))
            for split, source in sources.items()
            for begin in range(0, len(source), SAMPLES_A_PART)
        ]
        self.batches: dict[int, pa.RecordBatch] = {}
        if folder is not None:
            self.batches.update(read_records(folder.storage, len(self._parts), self._parse, _RECORDS))
        self.resumed = sum(map(len, self.batches.values()))

    def run(self, threads: int, on_progress: Callable[[int], object], stop: Event | None) -> None:
        """Measure the remaining parts. ``on_progress``: called with the samples done. ``stop``: once it is set, the
        scan ends with the part that it has begun."""
        done = self.resumed
        on_progress(done)
        for split, source in self._sources.items():
            remaining = [n for n, part in enumerate(self._parts) if part.split == split and n not in self.batches]
            samples = [self._parts[number].samples for number in remaining]
            with closing(_measure(source, samples, threads, self._dicom)) as measured:
                for number in remaining:
                    rows: list[Row] = []
                    while len(rows) < len(self._parts[number].samples):
                        rows += next(measured)
                        on_progress(done + len(rows))
                    done += len(rows)
                    self._record(number, batch_of(split, rows))
                    if stop is not None and stop.is_set():
                        return

    def table(self) -> pa.Table:
        """All rows, once all parts are finished."""
        batches = [self.batches[number] for number in sorted(self.batches)]
        return pa.Table.from_batches(batches, MEASURED).combine_chunks()

    def _record(self, number: int, batch: pa.RecordBatch) -> None:
        self.batches[number] = batch
        if self._folder is None:
            return
        out = io.BytesIO()
        pq.write_table(pa.Table.from_batches([batch]), out, write_page_checksum=True)
        storage = self._folder.storage
        storage.write(record_name(number, _RECORDS), out.getvalue())
        storage.sync()

    def _parse(self, number: int, data: bytes) -> pa.RecordBatch | None:
        """None unless ``data`` has the rows of this part."""
        split, samples = self._parts[number]
        try:
            table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read(use_threads=False)
            if table.schema != MEASURED or len(table) != len(samples):
                return None
            (batch,) = table.combine_chunks().to_batches()
        except (pa.ArrowException, OSError, ValueError):
            return None
        is_of_part = batch["index"].to_pylist() == list(samples) and set(batch["split"].to_pylist()) == {split}
        return batch if is_of_part else None


def batch_of(split: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """The columns ``MEASURED``."""
    values: dict[str, Sequence[Any]] = dict(zip(FIELDS, zip(*rows, strict=True), strict=True))
    values["split"] = [split] * len(rows)
    return pa.record_batch([pa.array(values[one.name], one.type) for one in MEASURED], schema=MEASURED)


def _measure(source: Samples, parts: Sequence[range], threads: int, dicom: Any) -> Generator[list[Row], None, None]:
    """Rows of all samples in these parts, in order. Closing the iterator waits for the tasks that its threads have
    begun."""

    def measure(samples: range) -> list[Row]:
        with own_numbers(dicom):
            return [
                row_of(
                    index, sample_key(source, index), source.name(index), partial(source.read, index), source.classes
                )
                for index in samples
            ]

    threads = max(threads, _REMOTE_THREADS) if source.is_remote else threads
    tasks = (
        partial(measure, part[begin : begin + _SAMPLES_A_TASK])
        for part in parts
        for begin in range(0, len(part), _SAMPLES_A_TASK)
    )
    with ThreadPoolExecutor(threads, "variegate-check") as pool:
        yield from in_order(pool, tasks, threads * _AHEAD)
