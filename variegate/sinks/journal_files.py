"""Where the lines of a journal are kept: one file that grows, or at an address, an object for every flush."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import IO, Protocol

from variegate.data.sources.base import SourceError
from variegate.outside.files import open_regular
from variegate.sinks.atomic import write_all
from variegate.sinks.journal_lines import Line, Scan, header
from variegate.sinks.storage import PRIVATE, Storage, write_error

JOURNAL = f"{PRIVATE}/journal"
_READ_BUFFER = 1 << 20
_READ_AT_ONCE = 16


class JournalFile(Protocol):
    """``durable``: up to where everything lasts; the next flush begins there."""

    durable: int

    def load(self) -> Iterator[Line]:
        """The records that are there; to be read to the end before anything else is asked for. Raises SourceError."""
        ...

    def append(self, lines: bytes) -> None:
        """Lasts when this returns. Raises WriteError, and may then be called again."""
        ...

    def read(self, offset: int, length: int) -> bytes: ...

    def close(self) -> None: ...


def open_journal_file(storage: Storage, plan: str) -> JournalFile:
    return _Segments(storage, plan) if storage.is_remote else _File(storage, plan)


def remove_journal(storage: Storage) -> None:
    """Of whichever run, whether there is one or not."""
    storage.remove(JOURNAL)
    for name in _segments(storage):
        storage.remove(name)


class _File:
    def __init__(self, storage: Storage, plan: str) -> None:
        self._storage, self._plan, self._shown = storage, plan, storage.place_of(JOURNAL)
        self.durable = 0
        self._file: IO[bytes] | None = None
        self._is_torn = False

    def load(self) -> Iterator[Line]:
        path = os.path.join(self._storage.root, JOURNAL)
        if os.path.exists(path):
            with io.BufferedReader(open_regular(path), _READ_BUFFER) as file:
                scan = Scan(file, self._plan, self._shown)
                yield from scan
                self.durable, size = scan.end, os.fstat(file.fileno()).st_size
        if self.durable == 0:  # no journal, or not even its first line
            first = header(self._plan)
            self._storage.write(JOURNAL, first)
            self._storage.sync()
            self.durable = size = len(first)
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 (kept open)
        if size > self.durable:
            self._is_torn = True
            self.append(b"")

    def append(self, lines: bytes) -> None:
        assert self._file is not None
        descriptor = self._file.fileno()
        try:
            if self._is_torn:
                os.ftruncate(descriptor, self.durable)
            self._is_torn = True
            os.lseek(descriptor, self.durable, os.SEEK_SET)
            write_all(descriptor, lines)
            os.fsync(descriptor)
        except OSError as error:
            raise write_error(error, self._shown) from error
        self._is_torn = False
        self.durable += len(lines)

    def read(self, offset: int, length: int) -> bytes:
        assert self._file is not None
        self._file.seek(offset)
        return self._file.read(length)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _Segments:
    """Objects cannot be appended to. A copy of all lines lies in this machine's folder for temporary files, since rows
    are wanted in another order than they came."""

    def __init__(self, storage: Storage, plan: str) -> None:
        self._storage, self._plan = storage, plan
        self.durable = 0
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
            yield replace(line, offset=self.durable + line.offset)
        if not data or scan.end != len(data):
            raise SourceError(f"{self._storage.place_of(name)}: damaged; choose another folder, or begin anew")
        self._keep(data)
        self.durable += len(data)

    def append(self, lines: bytes) -> None:
        # The copy first: should the object not arrive, the next try overwrites what was added here.
        self._keep(lines)
        self._storage.write(f"{JOURNAL}-{self._next:06}", header(self._plan) + lines)
        self._next += 1
        self.durable += len(lines)

    def _keep(self, data: bytes) -> None:
        try:
            self._copy.seek(self.durable)
            self._copy.write(data)
            self._copy.flush()
        except OSError as error:
            raise write_error(error, f"{tempfile.gettempdir()} (a copy of the journal)") from error

    def read(self, offset: int, length: int) -> bytes:
        self._copy.seek(offset)
        return self._copy.read(length)

    def close(self) -> None:
        self._copy.close()


def _segments(storage: Storage) -> list[str]:
    begin = len("journal-")
    names = [name for name in storage.list(PRIVATE) if name.startswith("journal-") and name[begin:].isdigit()]
    return [f"{PRIVATE}/{name}" for name in sorted(names, key=lambda name: int(name[begin:]))]
