"""A cleaned copy, written: every file once, whatever ends a run, and with a record of what is not in it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np

from variegate.apps.curate.cleaning.copying import Copies, Row
from variegate.apps.curate.cleaning.found import LeftOut
from variegate.formats.base import Source, SourceError
from variegate.formats.filtered import excluded_from
from variegate.formats.stamps import Stamps, differences, stamps_of
from variegate.formats.storage import Storage
from variegate.io.addresses import shown
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.lost_outputs import take_back_lost
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.run_record import (
    LEFT_OUT_NAME,
    describe_changed,
    describe_listing,
    read_source,
    write_source,
)

_FLUSH_SECONDS = 0.5
THREADS = 4
OnProgress = Callable[[int, int], None]
Span = tuple[int, int]


def left_out_bytes(left_out: Sequence[LeftOut]) -> bytes:
    """The record: a line of JSON for each image."""
    return "".join(json.dumps(one.to_dict()) + "\n" for one in left_out).encode()


@dataclass
class CopyRun:
    """``files``: written by this run; ``resumed``: by an earlier one; ``num_bytes``: of the former."""

    source: Source
    place: str
    copies: Copies
    left_out: list[LeftOut]
    drop: tuple[str, ...]
    split: str
    destination: str | os.PathLike[str] = field(repr=False)  # it may hold a password
    threads: int = THREADS
    resume: bool = True
    stop: Event = field(default_factory=Event)
    on_progress: OnProgress | None = None
    files: int = 0
    resumed: int = 0
    num_bytes: int = 0
    is_interrupted: bool = False

    def run(self) -> None:
        """Raises SourceError for a destination that holds anything else, and where the source has changed since the
        copy was begun; WriteError."""
        record = left_out_bytes(self.left_out)
        stamps = stamps_of(self.source)
        with Destination(
            self.destination, self._settings(record), None, self.resume, None if stamps is None else "source"
        ) as destination:
            self._check_same(destination, stamps)
            take_back_lost(destination, self._span_of, False, lambda row: False)
            if destination.is_complete:
                self.resumed = len(read_manifest(destination.storage.root))
                self._restore(destination, record)
                return
            self.resumed = destination.journal.num_rows
            self._make_all(destination)
            if destination.journal.covered == [(0, self.copies.count)]:
                self._put_beside(destination.storage, record)
                destination.finish(destination.journal.rows(self.copies.count))
            else:
                self.is_interrupted = True

    def _settings(self, record: bytes) -> dict[str, Any]:
        dropped = {"images": len(self.left_out), "sha256": hashlib.sha256(record).hexdigest()}
        return {
            "command": "clean",
            "source": shown(self.place),
            "samples": len(self.source),
            "fingerprint": self.source.fingerprint,
            "classes": list(self.source.classes),
            "split": self.split,
            "drop": list(self.drop),
            "dropped": dropped,
            **excluded_from(self.source),
        }

    def _check_same(self, destination: Destination, stamps: Stamps | None) -> None:
        if stamps is None:
            return
        was = read_source(destination.storage)
        if was is None:
            destination.amend(lambda storage: write_source(storage, stamps))
            return
        difference = describe_listing(was, stamps)
        if not difference and len(files := differences(was, stamps)):
            difference = describe_changed(was, stamps, files)
        if difference:
            raise SourceError(
                f"{destination.storage.shown}: was begun with other files: {difference}; restore them, or run "
                "variegate check again and choose another folder"
            )

    def _span_of(self, row: Row) -> Span:
        item = self.copies.item_of(row)
        return item, item + 1

    def _make_all(self, destination: Destination) -> None:
        journal, storage = destination.journal, destination.storage
        spans, under_way = journal.left(self.copies.count, self.copies.at_once), deque[tuple[Span, Future[list[Row]]]]()
        flushed, done = time.monotonic(), sum(stop - start for start, stop in journal.covered)

        def flush() -> None:
            storage.sync()
            journal.flush()

        with ThreadPoolExecutor(self.threads, "variegate-clean") as pool:
            try:
                while True:
                    while len(under_way) < 2 * self.threads and not self.stop.is_set():
                        span = next(spans, None)
                        if span is None:
                            break
                        under_way.append((span, pool.submit(self.copies.make, storage, *span)))
                    if not under_way:
                        break
                    (start, stop), future = under_way.popleft()
                    rows = future.result()
                    journal.append(start, stop, [json.dumps(row) for row in rows])
                    self.files += len(rows)
                    self.num_bytes += sum(row["bytes"] for row in rows)
                    done += stop - start
                    if time.monotonic() - flushed >= _FLUSH_SECONDS:
                        flush()
                        flushed = time.monotonic()
                    if self.on_progress is not None:
                        self.on_progress(done, self.copies.count)
            finally:
                for _, future in under_way:
                    future.cancel()
                pool.shutdown()
                flush()

    def _put_beside(self, storage: Storage, record: bytes) -> None:
        storage.write(LEFT_OUT_NAME, record)
        if not storage.is_remote:  # where there are no folders without files
            for folder in self.copies.folders:
                os.makedirs(os.path.join(storage.root, folder), exist_ok=True)
        storage.sync()

    def _restore(self, destination: Destination, record: bytes) -> None:
        storage = destination.storage
        if not storage.exists(LEFT_OUT_NAME) or storage.read(LEFT_OUT_NAME) != record:
            destination.amend(lambda storage: self._put_beside(storage, record))


def kept_indices(count: int, left_out: Sequence[LeftOut]) -> Any:
    """int64: those of the samples that stay."""
    is_kept = np.ones(count, np.bool_)
    is_kept[[one.index for one in left_out]] = False
    return np.flatnonzero(is_kept)
