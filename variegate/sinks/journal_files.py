"""Where the lines of a journal are kept: one file that grows, or at an address, an object for every flush."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import IO

from variegate.data.sources.base import SourceError
from variegate.outside.durable import AppendOnlyFile, write_errors_name
from variegate.outside.files import open_regular
from variegate.sinks.journal_lines import Line, Scan, header
from variegate.sinks.storage import PRIVATE, Storage

JOURNAL = f"{PRIVATE}/journal"
_READ_BUFFER = 1 << 20
_READ_AT_ONCE = 16


def remove_journal(storage: Storage) -> None:
    """Of whichever run, whether there is one or not."""
    storage.remove(JOURNAL)
    for name in _segments(storage):
        storage.remove(name)


def open_journal_file(storage: Storage, plan: str) -> tuple[AppendOnlyFile | JournalObjects, list[Line]]:
    """With the lines that are there. Raises SourceError, WriteError."""
    if storage.is_remote:
        objects = JournalObjects(storage, plan)
        try:
            return objects, list(objects.load())
        except BaseException:
            objects.close()
            raise
    path, shown = os.path.join(storage.root, JOURNAL), storage.place_of(JOURNAL)
    lines: list[Line] = []
    end = 0
    if os.path.exists(path):
        with io.BufferedReader(open_regular(path), _READ_BUFFER) as file:
            scan = Scan(file, plan, shown)
            lines += scan
            end = scan.end
    if end == 0:  # no journal, or not even its first line
        first = header(plan)
        storage.write(JOURNAL, first)
        storage.sync()
        end = len(first)
    return AppendOnlyFile(path, shown, end), lines


class JournalObjects:
    """What ``AppendOnlyFile`` is, at an address, where objects cannot be appended to. A copy of all lines lies in this
    machine's folder for temporary files, since rows are wanted in another order than they came."""

    def __init__(self, storage: Storage, plan: str) -> None:
        self._storage, self._plan = storage, plan
        self.end = 0
        self._next = 0
        self._copy: IO[bytes] = tempfile.TemporaryFile(prefix="variegate-journal-")  # noqa: SIM115 (kept open)

    def load(self) -> Iterator[Line]:
        names = _segments(self._storage)
        with ThreadPoolExecutor(_READ_AT_ONCE, "variegate-journal") as pool:
            rest = iter(names)
            while some := list(islice(rest, _READ_AT_ONCE)):
                for name, data in zip(some, pool.map(self._storage.read, some), strict=True):
                    yield from self._load(name, data)
        self._next = int(names[-1].rpartition("-")[2]) + 1 if names else 0

    def _load(self, name: str, data: bytes) -> Iterator[Line]:
        scan = Scan(io.BytesIO(data), self._plan, self._storage.place_of(name))
        for line in scan:
            yield replace(line, offset=self.end + line.offset)
        if not data or scan.end != len(data):
            raise SourceError(f"{self._storage.place_of(name)}: damaged; choose another folder, or begin anew")
        self._keep(data)
        self.end += len(data)

    def append(self, lines: bytes) -> None:
        # The copy first: should the object not arrive, the next try overwrites what was added here.
        self._keep(lines)
        self._storage.write(f"{JOURNAL}-{self._next:06}", header(self._plan) + lines)
        self._next += 1
        self.end += len(lines)

    def _keep(self, data: bytes) -> None:
        with write_errors_name(f"{tempfile.gettempdir()} (a copy of the journal)"):
            self._copy.seek(self.end)
            self._copy.write(data)
            self._copy.flush()

    def read(self, offset: int, length: int) -> bytes:
        self._copy.seek(offset)
        return self._copy.read(length)

    def close(self) -> None:
        self._copy.close()


def _segments(storage: Storage) -> list[str]:
    begin = len("journal-")
    names = [name for name in storage.list(PRIVATE) if name.startswith("journal-") and name[begin:].isdigit()]
    return [f"{PRIVATE}/{name}" for name in sorted(names, key=lambda name: int(name[begin:]))]
