"""One pass over a source, whose measures are recorded every second or so."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from threading import Event

import pyarrow as pa

from variegate.apps.curate.scan.columns import batch_of
from variegate.apps.curate.scan.journal import ScanJournal
from variegate.apps.curate.scan.passing import Position, pass_over
from variegate.apps.curate.scan.row import Row
from variegate.formats.base import Source, StreamSource

_ROWS_A_RECORD, _SECONDS_A_RECORD = 8192, 1.0


@dataclass
class Recording:
    """Where the rows of a split go: into ``batches``, and into the journal of a run that may be interrupted."""

    split: str
    batches: list[pa.RecordBatch]
    journal: ScanJournal | None

    def add(self, rows: list[Row], position: Position) -> None:
        """``position``: behind the rows."""
        batch = batch_of(self.split, rows)
        self.batches.append(batch)
        if self.journal is not None:
            self.journal.append(self.split, batch, position)


def record_pass(
    source: Source | StreamSource,
    threads: int,
    position: Position,
    recording: Recording,
    tell: Callable[[int], object],
    stop: Event | None,
) -> int:
    """Measure the samples from ``position`` on, and record what there is when it is interrupted, too.

    ``tell``: called with the samples done. ``stop``: once it is set, the pass ends with what it has begun. -> samples
    that are done.
    """
    rows: list[Row] = []
    last = time.monotonic()
    tell(position.samples)
    with closing(pass_over(source, threads, position)) as done, warnings.catch_warnings():
        # A line for every image with a deep gray or an odd header; the columns have it.
        warnings.simplefilter("ignore")
        try:
            for some, position in done:
                rows += some
                tell(position.samples)
                now = time.monotonic()
                if len(rows) >= _ROWS_A_RECORD or now - last >= _SECONDS_A_RECORD:
                    recording.add(rows, position)
                    rows, last = [], now
                if stop is not None and stop.is_set():
                    break
        finally:
            if rows:
                recording.add(rows, position)
    return position.samples
