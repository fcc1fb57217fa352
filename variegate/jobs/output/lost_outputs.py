"""Outputs that a run has recorded and that are no longer there, or not whole: found by names and sizes, and taken back.

A listing of each folder tells both. What has its size and other bytes is found by checksums alone: ``verify.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Any

from variegate.errors import shown
from variegate.formats.base import SourceError
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.journal import Journal
from variegate.jobs.output.manifest import is_row, read_manifest

Row = dict[str, Any]
SpanOf = Callable[[Row], tuple[int, int]]
# What is looked at of a row. Rows of earlier versions have no sizes.
_COLUMNS = ("file", "status", "index", "copy", "bytes", "shard_bytes", "mask_file", "mask_bytes")
_FOLDERS_CACHED = 16
_ROWS_A_RECORD = 1024
_MOST_PENDING = 64 << 20


def size_lookup(storage: Storage) -> Callable[[str], int | None]:
    """A function from a file's name, as the manifest has it (``\\udcff`` for bytes), to its size; None where there is
    no such file. It lists each folder once, and keeps the latest lists."""

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


@dataclass
class Lost:
    """How many outputs are lost, and why; in a shard that is lost, all of them are. ``kept``: by item, the copies that
    are there all the same, where another copy of the item is lost."""

    missing: int = 0
    resized: int = 0
    unwanted: int = 0
    kept: dict[int, frozenset[int]] = field(default_factory=dict)


def take_back_lost(
    destination: Destination, span_of: SpanOf, is_sharded: bool, is_unwanted: Callable[[Row], bool]
) -> Lost:
    """``span_of``: the range of items that are made together with a row's output, its own or those of its shard.

    Look for every output that is recorded as written; the items of those that are missing, or of another size, or
    unwanted, are then no longer done. A complete run of which any is lost has begun again. Files of unwanted outputs
    are removed: should they not be made again, nothing would replace them.

    Killed at any moment, it is as if it had not been done, or had been for some, and the next call finds the others.
    Raises WriteError, and SourceError for a journal or manifest that cannot be read.
    """
    storage = destination.storage
    search = _Search(storage, span_of, is_sharded, is_unwanted)
    if destination.is_complete:
        manifest = read_manifest(storage.root)
        bad = search.among(manifest.columns(*_COLUMNS))
        storage.sync()
        if bad:
            destination.reopen(lambda journal: _record(journal, manifest.rows(), span_of, bad))
        return search.found
    journal = destination.journal
    for start, stop, rows in journal.records():
        if bad := search.among(rows):
            journal.take_back(start, stop)
            _record(journal, rows, span_of, bad)
    storage.sync()
    journal.flush()
    return search.found


class _Search:
    """Looks at rows in their order, and adds up what it finds in ``found``."""

    def __init__(self, storage: Storage, span_of: SpanOf, is_sharded: bool, is_unwanted: Callable[[Row], bool]) -> None:
        self._storage, self._span_of, self._is_sharded, self._is_unwanted = storage, span_of, is_sharded, is_unwanted
        self._size_of = size_lookup(storage)
        self.found = Lost()

    def among(self, rows: Iterable[Row]) -> set[tuple[int, int]]:
        """The spans that are to be made again."""
        bad, end = set(), 0
        for span, together in groupby(map(self._checked, rows), self._span_of):
            outputs = list(together)
            if span[0] < end:
                raise self._damaged("its rows are not in the order of their samples")
            end = span[1]
            problems = [self._problem(row) for row in outputs]
            if any(problems):
                bad.add(span)
                self._count(span, outputs, problems)
        return bad

    def _checked(self, row: Row) -> Row:
        if not is_row(row):
            raise self._damaged(f"no row of a manifest has {shown(row)}")
        return row

    def _damaged(self, what: str) -> SourceError:
        place = f"{self._storage.shown}: its record of outputs is damaged"
        return SourceError(f"{place}: {what}; choose another folder, or begin anew without resuming")

    def _problem(self, row: Row) -> str:
        if self._is_unwanted(row):
            return "unwanted"
        if row["status"] != "written":
            return ""
        files = [(row["file"], row.get("shard_bytes" if self._is_sharded else "bytes"))]
        if row.get("mask_file"):
            files.append((row["mask_file"], row["mask_bytes"]))
        sizes = [(self._size_of(printable(file)), wanted) for file, wanted in files]
        if any(size is None for size, _ in sizes):
            return "missing"
        return "resized" if any(wanted not in (None, size) for size, wanted in sizes) else ""

    def _count(self, span: tuple[int, int], outputs: list[Row], problems: list[str]) -> None:
        reason = next(problem for problem in ("unwanted", "missing", "resized") if problem in problems)
        kept = []
        for row, problem in zip(outputs, problems, strict=True):
            is_written = row["status"] == "written"
            problem = problem or (reason if self._is_sharded and is_written else "")
            self.found.missing += problem == "missing"
            self.found.resized += problem == "resized"
            self.found.unwanted += problem == "unwanted"
            if problem == "unwanted" and is_written and not self._is_sharded:
                for file in filter(None, (row["file"], row.get("mask_file"))):
                    self._storage.remove(real_name(self._storage, printable(file)))
            if is_written and not problem:
                kept.append(row["copy"])
        if kept:
            self.found.kept[span[0]] = frozenset(kept)


def _record(journal: Journal, rows: Iterable[Row], span_of: SpanOf, bad: set[tuple[int, int]]) -> None:
    """The rows of all other items, in records of items that follow one another."""
    start = stop = missing = 0
    texts: list[str] = []
    for span, together in groupby(rows, span_of):
        if texts and (span in bad or span[0] != stop or len(texts) >= _ROWS_A_RECORD):
            journal.append(start, stop, texts, missing)
            texts, missing = [], 0
            if journal.pending_bytes > _MOST_PENDING:
                journal.flush()
        if span in bad:
            continue
        if not texts:
            start = span[0]
        stop = span[1]
        for row in together:
            texts.append(json.dumps(row))
            missing += row["status"] != "written"
    if texts:
        journal.append(start, stop, texts, missing)
