"""A cleaned copy, written as any run on disk is: every file once, and a record of what is not in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from os import PathLike
from threading import Event
from typing import Any

from variegate.apps.curate.cleaning.copying import Copies, Row
from variegate.apps.curate.cleaning.found import LeftOut
from variegate.formats.base import Source, SourceError
from variegate.formats.filtered import excluded_from
from variegate.formats.stamps import Stamps
from variegate.formats.storage import Storage
from variegate.jobs.on_disk import DiskRun, source_settings
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.lost_outputs import Lost, SpanOf
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.run_record import LEFT_OUT_NAME, describe_other, read_source, write_source
from variegate.options.datasets import CleaningOptions
from variegate.threads import Lookahead

_THREADS = 4
OnProgress = Callable[[int, int], None]
Span = tuple[int, int]


@dataclass
class Cleaned:
    """``images``: of the source; ``left_out``: those of them that are not in the copy, or in the list. ``counts``: of
    these by kind of finding; an image may have several. ``files``, ``bytes``: written by this call; ``resumed``: files
    that an earlier one had written. ``notes``: what else is worth knowing."""

    images: int
    left_out: list[LeftOut]
    counts: dict[str, int]
    place: str
    files: int = 0
    bytes: int = 0
    resumed: int = 0
    is_interrupted: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass
class CopyRun(DiskRun):
    """A cleaned copy, and a record of what is not in it. ``made`` is counted up as it goes."""

    source: Source
    place: str
    copies: Copies
    made: Cleaned
    drop: tuple[str, ...]
    options: CleaningOptions
    destination: str | PathLike[str] = field(repr=False)  # it may hold a password
    stop: Event = field(default_factory=Event)
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        self.resume, self.num_items = self.options.resume, self.copies.count
        # A line of JSON for each image.
        self._record = "".join(json.dumps(one.to_dict()) + "\n" for one in self.made.left_out).encode()

    def run(self) -> None:
        """Raises SourceError for another destination or a source that has changed since it was begun; WriteError."""
        self.run_on(self.source)
        self.made.is_interrupted = self.is_interrupted

    def settings(self) -> dict[str, Any]:
        return {
            "command": "clean",
            **source_settings(self.source, self.place),
            "split": self.options.split,
            "drop": list(self.drop),
            "dropped": {"images": len(self.made.left_out), "sha256": hashlib.sha256(self._record).hexdigest()},
            **excluded_from(self.source),
        }

    def compare(self, destination: Destination, stamps: Stamps | None) -> Callable[[Row], bool]:
        was = None if stamps is None else read_source(destination.storage)
        if stamps is not None and was is None:
            destination.amend(lambda storage: write_source(storage, stamps))
        elif stamps is not None and was is not None and (difference := describe_other(was, stamps)):
            raise SourceError(
                f"{destination.storage.shown}: was begun with other files: {difference}; restore them, or run "
                "variegate check again and choose another folder"
            )
        return super().compare(destination, stamps)

    def spans(self, destination: Destination) -> SpanOf:
        return lambda row: (item := self.copies.item_of(row), item + 1)

    def restore(self, destination: Destination, lost: Lost) -> None:
        storage = destination.storage
        if not destination.is_complete:
            self.made.resumed = destination.journal.num_rows
            return
        self.made.resumed = len(read_manifest(storage.root))
        if not storage.exists(LEFT_OUT_NAME) or storage.read(LEFT_OUT_NAME) != self._record:
            destination.amend(self._write_side_files)

    def make(self, destination: Destination) -> None:
        journal, storage, made = destination.journal, destination.storage, self.made
        done, threads = sum(stop - start for start, stop in journal.covered), self.options.threads or _THREADS

        def begin_each() -> Iterator[tuple[Span, Future[list[Row]]]]:
            for span in journal.left(self.num_items, self.copies.at_once):
                if self.stop.is_set():
                    return
                yield span, pool.submit(self.copies.make, storage, *span)

        def flush() -> None:
            storage.sync()
            journal.flush()

        with ThreadPoolExecutor(threads, "variegate-clean") as pool:
            ahead = Lookahead(begin_each())
            try:
                while True:
                    ahead.begin(2 * threads)
                    if (begun := ahead.take()) is None:
                        break
                    (start, stop), future = begun
                    rows = future.result()
                    journal.append(start, stop, [json.dumps(row) for row in rows])
                    made.files += len(rows)
                    made.bytes += sum(row["bytes"] for row in rows)
                    done += stop - start
                    if journal.is_due:
                        flush()
                    if self.on_progress is not None:
                        self.on_progress(done, self.num_items)
            finally:
                for _, future in ahead.close():
                    future.cancel()
                pool.shutdown()
                flush()

    def finish(self, destination: Destination) -> None:
        self._write_side_files(destination.storage)
        super().finish(destination)

    def _write_side_files(self, storage: Storage) -> None:
        storage.write(LEFT_OUT_NAME, self._record)
        if not storage.is_remote:  # where there are no folders without files
            for folder in self.copies.folders:
                os.makedirs(os.path.join(storage.root, folder), exist_ok=True)
        storage.sync()
