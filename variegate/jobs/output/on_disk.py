"""All work on disk goes one way: claim, compare, take back what is lost, restore, make what is left, finish."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any

from variegate import errors
from variegate.formats.base import Source, SourceError
from variegate.formats.stamps import Stamps, printable, stamps_of
from variegate.formats.storage import Storage
from variegate.io.addresses import shown
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.journal import Journal
from variegate.jobs.output.manifest import is_row, read_manifest


class DiskRun:
    """``num_items`` items whose outputs are recorded in the journal of ``destination`` until all of them are there."""

    destination: StrPath
    resume: bool
    stop: Event
    is_sharded = False
    num_items: int
    is_interrupted = False
    shared_columns: Mapping[str, Any] = MappingProxyType({})  # of all rows of the manifest

    def settings(self) -> dict[str, Any]:
        """All that the outputs depend on, as JSON."""
        raise NotImplementedError

    def check_source(self, destination: Destination, stamps: Stamps | None) -> None:
        """Raise SourceError if the source is not the one that the run was begun with."""

    def span_of(self, row: Row) -> Span:
        """The items ``start..stop-1`` that are made together with a row's output."""
        raise NotImplementedError

    def restore(self, destination: Destination, num_lost: int) -> None:
        """Put in order what is there, complete or not. ``num_lost``: outputs of an earlier run that are made again."""

    def make(self, destination: Destination) -> None:
        """Make and record what is left in the journal, or less where ``stop`` is set."""
        raise NotImplementedError

    def write_side_files(self, destination: Destination, rows: Callable[[], Iterator[Row]]) -> None:
        """Write what lies beside the outputs, now that all of them are there. ``rows``: of the manifest, in order."""

    def run_on(self, source: Source | None) -> None:
        """Go the whole way. ``is_interrupted``: it ended before all items were there."""
        settings = self.settings()
        stamps = None if source is None else stamps_of(source)
        self.refuse(settings, stamps)
        place = None if stamps is None else "source"
        with Destination(self.destination, settings, self.resume, place) as destination:
            self.check_source(destination, stamps)
            self.restore(destination, invalidate_lost_outputs(destination, self.span_of, self.is_sharded))
            if destination.is_complete:
                return
            self.make(destination)
            self.is_interrupted = destination.journal.covered != [(0, self.num_items)]
            if not self.is_interrupted:
                self.write_side_files(destination, destination.journal.rows)
                destination.finish({**row, **self.shared_columns} for row in destination.journal.rows())

    def refuse(self, settings: dict[str, Any], stamps: Stamps | None) -> None:
        """Raise SourceError for a destination of another source, before its settings are compared."""


def source_settings(source: Source, place: str) -> dict[str, Any]:
    """The settings that every run has of its source. ``place``: as it was given."""
    return {
        "source": shown(place),
        "samples": len(source),
        "fingerprint": source.fingerprint,
        "classes": list(source.classes),
    }


def check_apart(source: LocationLike, destination: StrPath) -> None:
    """Raise SourceError where the destination is the source, lies in it, or is a file."""
    inner, outer = (Location.parse(place, chain=True) for place in (destination, source))
    if inner.is_url or outer.is_url:
        return
    below = Path(inner.address()).resolve()
    above = Path(outer.address()).resolve()
    if below == above or above in below.parents:
        where = "is the source itself" if below == above else f"lies inside the source {above}"
        raise SourceError(f"{below}: {where}; choose a folder outside of it")
    if below.exists() and not below.is_dir():
        raise SourceError(f"{below}: is a file; expected a folder, or a name that is still free")


Row = dict[str, Any]
Span = tuple[int, int]
SpanOf = Callable[[Row], Span]
# What is looked at of a row.
_COLUMNS = ("file", "status", "index", "copy", "bytes", "shard_bytes", "mask_file", "mask_bytes")
_FOLDERS_CACHED = 16
_ROWS_A_RECORD = 1024
_MOST_PENDING = 64 << 20


def size_lookup(storage: Storage) -> Callable[[str], int | None]:
    """A function from a name, as the manifest has it, to the file's size or None; folders are listed once."""

    @lru_cache(_FOLDERS_CACHED)
    def list_folder(folder: str) -> dict[str, int]:
        try:
            return {printable(name): size for name, size in storage.sizes(real_name(storage, folder)).items()}
        except ValueError:  # such as "..", which no run has written to
            return {}

    def size_of(file: str) -> int | None:
        folder, _, name = file.rpartition("/")
        return list_folder(folder).get(name)

    return size_of


def real_name(storage: Storage, name: str) -> str:
    """A name as the manifest has it -> as it is on the disk, where the two differ."""
    if "\\udc" not in name:
        return name
    found = ""
    for part in name.split("/"):
        here = {printable(entry.rstrip("/")): entry.rstrip("/") for entry in storage.list(found)}
        found = f"{found}/{here.get(part, part)}" if found else here.get(part, part)
    return found


def invalidate_lost_outputs(destination: Destination, span_of: SpanOf, is_sharded: bool) -> int:
    """Drop the records of items with an output that is missing or of another size; a complete run begins again.

    ``span_of``: the items that are made together with a row's output. Returns the number of outputs of these items,
    which are made again. If it is killed at any moment, the next call finds the others.
    """
    storage = destination.storage
    size_of = size_lookup(storage)
    num_outputs = 0

    def is_lost(row: Row) -> bool:
        files = [(row["file"], row.get("shard_bytes" if is_sharded else "bytes"))]
        if row.get("mask_file"):
            files.append((row["mask_file"], row["mask_bytes"]))
        return any(size_of(printable(file)) != size for file, size in files)

    def search(rows: Iterable[Row]) -> set[Span]:
        """The spans that are to be made again, of rows in their order."""
        nonlocal num_outputs
        lost = set()
        end = 0
        for span, together in groupby((_checked(storage, row) for row in rows), span_of):
            if span[0] < end:
                raise _damaged(storage, "its rows are not in the order of their samples")
            end = span[1]
            outputs = [row for row in together if row["status"] == "written"]
            if any(map(is_lost, outputs)):
                lost.add(span)
                num_outputs += len(outputs)
        return lost

    if destination.is_complete:
        manifest = read_manifest(storage.root)
        lost = search(manifest.columns(*_COLUMNS))
        storage.sync()
        if lost:
            destination.reopen(lambda journal: _record(journal, manifest.rows(), span_of, lost))
        return num_outputs
    journal = destination.journal
    for start, stop, rows in journal.records():
        if lost := search(rows):
            journal.invalidate(start, stop)
            _record(journal, rows, span_of, lost)
    storage.sync()
    journal.flush()
    return num_outputs


def _checked(storage: Storage, row: Row) -> Row:
    if not is_row(row):
        raise _damaged(storage, f"no row of a manifest has {errors.shown(row)}")
    return row


def _damaged(storage: Storage, what: str) -> SourceError:
    place = f"{storage.shown}: its record of outputs is damaged"
    return SourceError(f"{place}: {what}; choose another folder, or start over without resuming")


def _record(journal: Journal, rows: Iterable[Row], span_of: SpanOf, lost: set[Span]) -> None:
    """The rows of all other items, in records of items that follow one another."""
    start = stop = missing = 0
    texts: list[str] = []
    for span, together in groupby(rows, span_of):
        if texts and (span in lost or span[0] != stop or len(texts) >= _ROWS_A_RECORD):
            journal.append(start, stop, texts, missing)
            texts = []
            missing = 0
            if journal.pending_bytes > _MOST_PENDING:
                journal.flush()
        if span in lost:
            continue
        if not texts:
            start = span[0]
        stop = span[1]
        for row in together:
            texts.append(json.dumps(row))
            missing += row["status"] != "written"
    if texts:
        journal.append(start, stop, texts, missing)
