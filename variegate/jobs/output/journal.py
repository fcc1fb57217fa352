"""An append-only record of finished ranges of items, in one file that grows, or at an address in an object for every
flush. Its lines are

    <crc32, 8 hex digits> {"format":1,"plan":"..."}
    <crc32, 8 hex digits> {"durable":0,"start":0,"stop":64,"missing":0,"rows":[{...},{...}]}

Records of the same items replace earlier ones. ``durable`` is the position in the file up to which everything had been
fsynced when the line was written. A power failure may take what came after; a damaged line before that position means a
damaged disk.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import time
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import IO, Any

from variegate.formats.base import SourceError
from variegate.formats.storage import PRIVATE, Storage
from variegate.io.durable import AppendOnlyFile, write_errors_name
from variegate.io.files import open_regular

FORMAT = 1
JOURNAL = f"{PRIVATE}/journal"
# How long what is done may wait for the disk; a crash costs no more than the work of this time.
_FLUSH_SECONDS = 0.5
_READ_BUFFER = 1 << 20
_READ_AT_ONCE = 16
_CRC_LENGTH = 9
_HEAD = re.compile(rb'\{"durable":(\d+),"start":(\d+),"stop":(\d+),"missing":(\d+),"rows":\[')
_BEGIN_ANEW = "choose another folder, or start over without resuming"


@dataclass(frozen=True, slots=True)
class Line:
    """A record of items ``start..stop-1``: its position in the file; ``missing``: outputs not made."""

    offset: int
    length: int
    durable: int
    start: int
    stop: int
    missing: int


def header(plan: str) -> bytes:
    return _checked(json.dumps({"format": FORMAT, "plan": plan}, separators=(",", ":")))


def record(start: int, stop: int, rows: Sequence[str], durable: int, missing: int = 0) -> bytes:
    """``rows``: as json.dumps makes them by default."""
    head = f'{{"durable":{durable},"start":{start},"stop":{stop},"missing":{missing},"rows":['
    return _checked(f"{head}{','.join(rows)}]}}")


def _checked(content: str) -> bytes:
    data = content.encode()
    return b"%08x %b\n" % (zlib.crc32(data), data)


def _content(line: bytes) -> bytes | None:
    """Content behind the checksum, if that is right."""
    content = line[_CRC_LENGTH:-1]
    is_whole = line.endswith(b"\n") and line[:_CRC_LENGTH] == b"%08x " % zlib.crc32(content)
    return content if is_whole else None


def _parse(text: bytes, offset: int) -> Line | None:
    content = _content(text)
    if content is None:
        return None
    found = _HEAD.match(content)
    if found is None:
        return None
    durable, start, stop, missing = map(int, found.groups())
    return Line(offset, len(text), durable, start, stop, missing) if start < stop else None


class Scan:
    """Iterate once over the records of a file. Afterwards ``end`` is where the believed part of it ends.

    Raises SourceError: of another plan or format, or where a damaged line comes before one that trusts it.
    """

    def __init__(self, file: IO[bytes], plan: str, shown: str) -> None:
        self._file = file
        self._plan = plan
        self._shown = shown
        self.end = 0

    def __iter__(self) -> Iterator[Line]:
        offset = 0
        broken = 0
        for number, text in enumerate(self._file, 1):
            line = _parse(text, offset) if number > 1 else None
            if number == 1 and self._check_header(text):
                self.end = len(text)
            elif line is None:
                broken = broken or number
            elif not broken:
                self.end = offset + len(text)
                yield line
            elif line.durable > self.end:
                raise SourceError(
                    f"{self._shown}: line {broken} is damaged, and line {number} after it is not; {_BEGIN_ANEW}"
                )
            offset += len(text)

    def _check_header(self, text: bytes) -> bool:
        try:
            found = dict(json.loads(_content(text) or b""))
        except (ValueError, TypeError, RecursionError):
            return False
        if found.get("format") != FORMAT:
            raise SourceError(
                f"{self._shown}: a journal of format {found.get('format')!r}, by another version of Variegate; "
                f"accepted: {FORMAT}"
            )
        if (plan := found.get("plan")) != self._plan:
            raise SourceError(
                f"{self._shown}: the run that was begun there had other samples or another plan ({plan}, now "
                f"{self._plan}); {_BEGIN_ANEW}"
            )
        return True


def remove_journal(storage: Storage) -> None:
    """Of whichever run, whether there is one or not."""
    for name in (JOURNAL, *_segments(storage)):
        storage.remove(name)


class Journal:
    """Ranges of items that are finished, and the manifest's rows of their outputs. For one thread.

    Opening finds what an earlier run recorded; the rows stay in the file. Raises SourceError as ``Scan``.
    """

    def __init__(self, storage: Storage, plan: str) -> None:
        self._shown = storage.shown
        self._file, lines = _open_file(storage, plan)
        self._lines: list[Line] = []  # ascending, without items in common
        for line in lines:
            self._lines[self._overlapping(line.start, line.stop)] = [line]
        self._waiting: list[bytes] = []
        self.pending_bytes = 0
        self._flushed = time.monotonic()

    @property
    def covered(self) -> list[tuple[int, int]]:
        """Recorded items, flushed or not: (start, stop), sorted, with neighbours merged."""
        merged: list[tuple[int, int]] = []
        for line in self._lines:
            begin = merged.pop()[0] if merged and merged[-1][1] == line.start else line.start
            merged.append((begin, line.stop))
        return merged

    def left(self, num_items: int, size: int) -> Iterator[tuple[int, int]]:
        """Items not recorded, of so many: (start, stop), sorted, ``size`` items at most each."""
        first = 0
        for start, stop in [*self.covered, (num_items, num_items)]:
            yield from ((item, min(item + size, start)) for item in range(first, start, size))
            first = stop

    @property
    def num_missing(self) -> int:
        """Outputs that could not be made."""
        return sum(line.missing for line in self._lines)

    @property
    def pending(self) -> int:
        """Records that are not flushed yet."""
        return len(self._waiting)

    @property
    def is_due(self) -> bool:
        """The last flush was a while ago."""
        return time.monotonic() - self._flushed >= _FLUSH_SECONDS

    def append(self, start: int, stop: int, rows: Sequence[str], missing: int = 0) -> None:
        """Items ``start..stop-1`` are done; ``rows``: JSON of their outputs; ``missing`` of them could not be made.

        Raises ValueError where the range overlaps one that is recorded.
        """
        text = record(start, stop, rows, self._file.end, missing)
        offset = self._file.end + self.pending_bytes
        place = self._overlapping(start, stop)
        if start < 0 or start >= stop or self._lines[place]:
            raise ValueError(f"items {start} to {stop - 1}: accepted: a range of which nothing is recorded yet")
        self._lines[place] = [Line(offset, len(text), self._file.end, start, stop, missing)]
        self._waiting.append(text)
        self.pending_bytes += len(text)

    def invalidate(self, start: int, stop: int) -> None:
        """Items ``start..stop-1``, and all that were recorded together with one of them, are to be made again.

        This is not written down: the journal forgets the record once another of the same items is flushed. A run that
        resumes before finds the same outputs missing.
        """
        del self._lines[self._overlapping(start, stop)]

    def records(self) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
        """(start, stop, rows) of every record now, in the items' order. Raises WriteError; SourceError for damage."""
        self.flush()
        for line in list(self._lines):
            yield line.start, line.stop, self._read(line)

    def flush(self) -> None:
        """Make appended lines last. Raises WriteError, DiskFullError; calling it again tries again."""
        if self._waiting:
            self._file.append(b"".join(self._waiting))
            self._waiting.clear()
            self.pending_bytes = 0
        self._flushed = time.monotonic()

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows, in the order of the items."""
        return (row for _, _, rows in self.records() for row in rows)

    def close(self) -> None:
        """Close the file; lines that were not flushed are forgotten."""
        self._file.close()

    def _read(self, line: Line) -> list[dict[str, Any]]:
        try:
            rows = json.loads(_content(self._file.read(line.offset, line.length)) or b"")["rows"]
        except (ValueError, LookupError, TypeError, RecursionError):
            rows = None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise SourceError(f"{self._shown}: the journal's record at byte {line.offset:,} has changed")
        return rows

    def _overlapping(self, start: int, stop: int) -> slice:
        """Slice of ``_lines`` with the records of any of these items; empty where a record of all of them belongs."""
        first = bisect_right(self._lines, start, key=lambda line: line.stop)
        return slice(first, bisect_left(self._lines, stop, first, key=lambda line: line.start))


def _open_file(storage: Storage, plan: str) -> tuple[AppendOnlyFile | _JournalObjects, list[Line]]:
    """With the lines that are there. Raises SourceError, WriteError."""
    if storage.is_remote:
        objects = _JournalObjects(storage, plan)
        try:
            return objects, list(objects.load())
        except BaseException:
            objects.close()
            raise
    path = os.path.join(storage.root, JOURNAL)
    shown = storage.place_of(JOURNAL)
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


class _JournalObjects:
    """An ``AppendOnlyFile`` at an address, in objects; a copy of all lines lies in the folder for temporary files."""

    def __init__(self, storage: Storage, plan: str) -> None:
        self._storage = storage
        self._plan = plan
        self.end = self._next = 0
        self._copy: IO[bytes] = tempfile.TemporaryFile(prefix="variegate-journal-")  # noqa: SIM115 (kept open)

    def load(self) -> Iterator[Line]:
        names = _segments(self._storage)
        with ThreadPoolExecutor(_READ_AT_ONCE, "variegate-journal") as pool:
            for first in range(0, len(names), _READ_AT_ONCE):
                some = names[first : first + _READ_AT_ONCE]
                for name, data in zip(some, pool.map(self._storage.read, some), strict=True):
                    shown = self._storage.place_of(name)
                    scan = Scan(io.BytesIO(data), self._plan, shown)
                    yield from (replace(line, offset=self.end + line.offset) for line in scan)
                    if not data or scan.end != len(data):
                        raise SourceError(f"{shown}: damaged; choose another folder, or start over")
                    self._keep(data)
                    self.end += len(data)
        self._next = int(names[-1].rpartition("-")[2]) + 1 if names else 0

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
    numbers = [name.removeprefix("journal-") for name in storage.list(PRIVATE) if name.startswith("journal-")]
    return [f"{JOURNAL}-{number}" for number in sorted(filter(str.isdigit, numbers), key=int)]
