"""Records of the finished parts of a run: ``.variegate/parts/000017.json`` has the manifest rows of part 17.

A record is written once the files of its part last. A part without a record, or whose files do not have the recorded
sizes, is made again, with the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from variegate.data.base import SourceError
from variegate.data.stamps import printable
from variegate.data.storage import PRIVATE, Storage
from variegate.jobs.output.manifest import MANIFEST_NAME, Manifest, is_row, read_manifest

Row = dict[str, Any]
PARTS = f"{PRIVATE}/parts"
# Columns that show whether a part is complete.
_COLUMNS = ("file", "status", "index", "copy", "bytes", "shard_bytes", "mask_file", "mask_bytes")
_FOLDERS_CACHED = 16
_READ_AT_ONCE = 16


class PartPlan(Protocol):
    """Division of the outputs of a run into parts 0, 1, 2, ..., in the order of the manifest."""

    @property
    def num_parts(self) -> int: ...

    @property
    def is_sharded(self) -> bool:
        """Each part is one file."""

    def part_of(self, index: int, copy: int) -> int: ...

    def outputs_of(self, part: int) -> list[tuple[int, int]]:
        """(index, copy) of each row."""


class FinishedPart(NamedTuple):
    written: int  # outputs
    missing: int  # outputs that cannot be made
    is_recorded: bool = True  # else the manifest of an earlier run has its rows


def record_name(part: int, ending: str = "json") -> str:
    return f"{PARTS}/{part:06}.{ending}"


def write_record(storage: Storage, part: int, rows: Sequence[Row]) -> None:
    """The files of these rows must last."""
    storage.write(record_name(part), json.dumps(rows).encode())


class Parts:
    """Finished parts by number, of a run that was interrupted or has lost files. Raises SourceError for a manifest that
    cannot be read.

    ``num_lost``: outputs in parts that are to be made again because files are missing or have another size.
    """

    def __init__(self, storage: Storage, plan: PartPlan) -> None:
        self._storage = storage
        self._plan = plan
        self.finished: dict[int, FinishedPart] = {}
        self._manifest: Manifest | None = None
        if storage.exists(MANIFEST_NAME):
            self._manifest = read_manifest(storage.root)
        lost: dict[int, int] = {}
        size_of = size_lookup(storage)
        for part, rows, is_recorded in self._candidates():
            written = [row for row in rows if row.get("status") == "written"]
            if all(size_of(printable(name)) == size for row in written for name, size in self._files(row)):
                self.finished.setdefault(part, FinishedPart(len(written), len(rows) - len(written), is_recorded))
            else:
                lost[part] = len(written)
        self.num_lost = sum(count for part, count in lost.items() if part not in self.finished)

    @property
    def remaining(self) -> list[int]:
        """Numbers of the parts that are to be made."""
        return [part for part in range(self._plan.num_parts) if part not in self.finished]

    def rows(self) -> Iterator[Row]:
        """All rows of the manifest, in order, once all parts are finished. Raises SourceError for a damaged record."""
        finished = self.finished
        recorded = sorted(part for part, found in finished.items() if found.is_recorded)
        listed = () if self._manifest is None else self._groups(self._manifest.rows())
        from_manifest = ((part, rows) for part, rows in listed if not finished[part].is_recorded)
        for part, rows in merge(self._read(recorded), from_manifest, key=lambda pair: pair[0]):
            if rows is None:
                raise SourceError(f"{self._storage.place_of(record_name(part))}: damaged; delete it, and resume")
            yield from rows

    def _candidates(self) -> Iterator[tuple[int, list[Row], bool]]:
        """Parts with complete lists of rows, first those with records."""
        names = (name.removesuffix(".json") for name in self._storage.list(PARTS) if name.endswith(".json"))
        numbers = sorted(int(name) for name in names if name.isdecimal())
        for part, rows in self._read([number for number in numbers if number < self._plan.num_parts]):
            if rows is not None:
                yield part, rows, True
        if self._manifest is not None:
            for part, listed in self._groups(self._manifest.columns(*_COLUMNS)):
                rows = list(listed)
                if self._is_of(part, rows):
                    yield part, rows, False

    def _groups(self, rows: Iterator[Row]) -> Iterator[tuple[int, Iterator[Row]]]:
        """Rows of a manifest by part. Rows that are not in order are left out."""
        last = -1
        for part, together in groupby(rows, self._part_of):
            if part > last:
                last = part
                yield part, together

    def _part_of(self, row: Row) -> int:
        index, copy = row["index"], row["copy"]
        if index is None or copy is None or index < 0 or copy < 0:
            return -1
        part = self._plan.part_of(index, copy)
        return part if part < self._plan.num_parts else -1

    def _is_of(self, part: int, rows: Sequence[Row]) -> bool:
        return [(row["index"], row["copy"]) for row in rows] == self._plan.outputs_of(part)

    def _read(self, parts: Sequence[int]) -> Iterator[tuple[int, list[Row] | None]]:
        """Rows of records; None for a damaged one."""
        with ThreadPoolExecutor(_READ_AT_ONCE, "variegate-records") as pool:
            for first in range(0, len(parts), _READ_AT_ONCE):
                some = parts[first : first + _READ_AT_ONCE]
                yield from zip(some, pool.map(self._read_record, some), strict=True)

    def _read_record(self, part: int) -> list[Row] | None:
        try:
            rows = json.loads(self._storage.read(record_name(part)))
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        is_list = isinstance(rows, list) and all(isinstance(row, dict) and is_row(row) for row in rows)
        return rows if is_list and self._is_of(part, rows) else None

    def _files(self, row: Row) -> Iterator[tuple[str, int | None]]:
        yield row.get("file") or "", row.get("shard_bytes" if self._plan.is_sharded else "bytes")
        if row.get("mask_file"):
            yield row["mask_file"], row.get("mask_bytes")


def size_lookup(storage: Storage) -> Callable[[str], int | None]:
    """A function from a name, as in the manifest, to the file's size or None. Folders are listed once."""

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
    """The name on the disk of a name in the manifest, where bytes that are not UTF-8 are escaped."""
    if "\\udc" not in name:
        return name
    found = ""
    for part in name.split("/"):
        here = {printable(entry.rstrip("/")): entry.rstrip("/") for entry in storage.list(found)}
        found = f"{found}/{here.get(part, part)}" if found else here.get(part, part)
    return found
