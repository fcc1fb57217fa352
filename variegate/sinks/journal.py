"""What has been done of a run: an append-only record of finished ranges of items."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from variegate.data.sources.base import SourceError
from variegate.sinks.journal_files import open_journal_file, remove_journal
from variegate.sinks.journal_lines import Line, record, rows_of, taking_back
from variegate.sinks.storage import Storage


class Journal:
    """Ranges of items that are finished, and the manifest's rows of their outputs. For one thread.

    Opening finds what an earlier run recorded; of what that run was writing when it was killed, nothing is believed
    that is not whole. ``plan`` is a digest of all that the rows depend on. Raises SourceError for a journal of another
    plan, and for one that is damaged where it had been safe.

    Memory is by record, not by row: the rows stay in the file.
    """

    def __init__(self, storage: Storage, plan: str) -> None:
        self._storage, self._shown = storage, storage.shown
        self._file, lines = open_journal_file(storage, plan)
        self._lines: dict[int, Line] = {}  # by the first item
        self._starts: list[int] = []  # the keys of these, ascending
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self.num_rows = self.num_missing = 0
        try:
            for line in lines:
                if not (self._forget(line.start, line.stop) if line.count < 0 else self._remember(line)):
                    what = "twice" if line.count >= 0 else "taken back, and not before that"
                    raise SourceError(
                        f"{self._shown}: the journal has items {line.start} to {line.stop - 1} {what}; choose another "
                        "folder, or begin anew without resuming"
                    )
        except BaseException:
            self._file.close()
            raise

    @property
    def covered(self) -> list[tuple[int, int]]:
        """What is recorded, flushed or not: (start, stop), sorted, with neighbours merged."""
        merged: list[tuple[int, int]] = []
        for line in self._sorted():
            begin = merged.pop()[0] if merged and merged[-1][1] == line.start else line.start
            merged.append((begin, line.stop))
        return merged

    @property
    def pending(self) -> int:
        """Records that are not flushed yet."""
        return len(self._waiting)

    @property
    def pending_bytes(self) -> int:
        return self._waiting_bytes

    def append(self, start: int, stop: int, rows: Sequence[str], missing: int = 0) -> None:
        """Items ``start..stop-1`` are done; ``rows``: the JSON text of one object per output, in the items' order, as
        json.dumps makes it (ASCII, one line); ``missing``: how many of them are of outputs that could not be made.
        Raises ValueError where the range overlaps one that is recorded."""
        text = record(start, stop, rows, self._file.end, missing)
        offset = self._file.end + self._waiting_bytes
        if not self._remember(Line(offset, len(text), self._file.end, start, stop, len(rows), missing)):
            raise ValueError(f"items {start} to {stop - 1}: accepted: a range of which nothing is recorded yet")
        self._wait(text)

    def take_back(self, start: int, stop: int) -> None:
        """Items ``start..stop-1`` are to be done again. Raises ValueError unless they are the items of one record."""
        if not self._forget(start, stop):
            raise ValueError(f"items {start} to {stop - 1}: accepted: the items of one record")
        self._wait(taking_back(start, stop, self._file.end))

    def records(self) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
        """(start, stop, rows) of every record, in the order of the items. What is appended or taken back meanwhile is
        not looked at. Raises WriteError, SourceError as ``rows`` does."""
        self.flush()
        for line in self._sorted():
            yield line.start, line.stop, self._read(line)

    def flush(self) -> None:
        """What was appended lasts when this returns. Raises WriteError, DiskFullError; calling it again tries again."""
        if self._waiting:
            self._file.append(b"".join(self._waiting))
            self._waiting.clear()
            self._waiting_bytes = 0

    def rows(self, num_items: int) -> Iterator[dict[str, Any]]:
        """All rows, in the order of the items, once each. Raises ValueError unless exactly the items 0..num_items-1 are
        recorded, WriteError where flushing fails, and, while iterating, SourceError where the journal has changed."""
        covered = self.covered
        if covered != ([(0, num_items)] if num_items else []):
            raise ValueError(f"num_items: got {num_items}; recorded are {covered[:5]}; accepted: all of them")
        self.flush()
        return (row for line in self._sorted() for row in self._read(line))

    def _sorted(self) -> list[Line]:
        return [self._lines[start] for start in self._starts]

    def _read(self, line: Line) -> list[dict[str, Any]]:
        rows = rows_of(self._file.read(line.offset, line.length))
        if rows is None:
            raise SourceError(f"{self._shown}: the journal's record at byte {line.offset:,} has changed")
        return rows

    def close(self) -> None:
        """What was not flushed is forgotten."""
        self._file.close()

    def remove(self) -> None:
        """Close it and leave nothing of it behind."""
        self.close()
        remove_journal(self._storage)

    def _wait(self, text: bytes) -> None:
        self._waiting.append(text)
        self._waiting_bytes += len(text)

    def _remember(self, line: Line) -> bool:
        """False where its range overlaps one that is recorded, or is none."""
        at = bisect_left(self._starts, line.start)
        end_before = self._lines[self._starts[at - 1]].stop if at else 0
        next_start = self._starts[at] if at < len(self._starts) else line.stop
        if not end_before <= line.start < line.stop <= next_start:
            return False
        self._starts.insert(at, line.start)
        self._lines[line.start] = line
        self.num_rows += line.count
        self.num_missing += line.missing
        return True

    def _forget(self, start: int, stop: int) -> bool:
        """False where no record is of just these items."""
        line = self._lines.get(start)
        if line is None or line.stop != stop:
            return False
        del self._lines[start], self._starts[bisect_left(self._starts, start)]
        self.num_rows -= line.count
        self.num_missing -= line.missing
        return True
