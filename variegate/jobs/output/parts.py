"""Records of the finished parts of a run: ``.variegate/parts/000017.json`` has the manifest rows of part 17.

A record is written once the files of its part last. A part without a record, or whose files do not have the recorded
sizes, is made again, with the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

from variegate.data.base import SourceError
from variegate.data.stamps import escape_undecodable
from variegate.data.storage import PRIVATE, Storage
from variegate.jobs.output.manifest import MANIFEST_NAME, Manifest, files_of, is_row, read_manifest
from variegate.threads import in_order

Row = dict[str, Any]
T = TypeVar("T")
# Returns a manifest's rows in order; called once per pass.
Rows = Callable[[], Iterator[Row]]
PARTS = f"{PRIVATE}/parts"
# Columns that show whether a part is complete.
_COLUMNS = (
    *("file", "status", "index", "copy", "bytes", "shard_bytes"),
    *("mask_file", "mask_bytes", "annotation_file", "annotation_bytes"),
)
_FOLDERS_CACHED = 16
_READ_AT_ONCE = 16


class PartPlan(Protocol):
    """Division of the outputs of a run into parts 0, 1, 2, ..., in the order of the manifest."""

    @property
    def num_parts(self) -> int: ...

    def part_number(self, index: int, copy: int) -> int: ...

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


def read_records(
    storage: Storage, num_parts: int, parse: Callable[[int, bytes], T | None], ending: str = "json"
) -> Iterator[tuple[int, T]]:
    """Yield parsed records of parts, in order, except records for which ``parse`` returns None."""
    names = (name.partition(".") for name in storage.list(PARTS))
    numbers = sorted(int(name) for name, _, kind in names if kind == ending and name.isdecimal())

    def read(part: int) -> T | None:
        try:
            return parse(part, storage.read(record_name(part, ending)))
        except FileNotFoundError:
            return None

    with ThreadPoolExecutor(_READ_AT_ONCE, "variegate-records") as pool:
        tasks = (partial(read, part) for part in numbers if part < num_parts)
        for part, found in zip(numbers, in_order(pool, tasks, _READ_AT_ONCE), strict=False):
            if found is not None:
                yield part, found


class Parts:
    """Finished parts by number, of a run that was interrupted or has lost files. Raises SourceError for a manifest that
    cannot be read.

    ``num_lost``: outputs in parts that are to be made again because files are missing or have another size.
    ``lost_files``: missing or damaged files of the full run.
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
            if all(size_of(escape_undecodable(file.name)) == file.size for row in written for file in files_of(row)):
                self.finished.setdefault(part, FinishedPart(len(written), len(rows) - len(written), is_recorded))
            else:
                lost[part] = len(written)
        self.num_lost = sum(count for part, count in lost.items() if part not in self.finished)
        files = [] if self._manifest is None else self._manifest.files
        self.lost_files = [file.name for file in files if size_of(file.name) != file.size]

    @property
    def remaining(self) -> list[int]:
        """Numbers of the parts that are to be made."""
        return [part for part in range(self._plan.num_parts) if part not in self.finished]

    def rows(self) -> Iterator[Row]:
        """All rows of the manifest, in order, once all parts are finished. Raises SourceError for a damaged record."""
        listed = iter(()) if self._manifest is None else self._groups(self._manifest.rows())
        from_manifest = ((part, rows) for part, rows in listed if not self.finished[part].is_recorded)
        recorded = ((part, rows) for part, rows in self._read() if self.finished[part].is_recorded)
        number = 0
        for part, rows in merge(recorded, from_manifest, key=lambda pair: pair[0]):
            if part != number:
                break
            number += 1
            yield from rows
        if number < self._plan.num_parts:
            raise SourceError(f"{self._storage.place_of(record_name(number))}: damaged; delete it, and resume")

    def _candidates(self) -> Iterator[tuple[int, list[Row], bool]]:
        """Parts with complete lists of rows; parts with records come first."""
        for part, recorded in self._read():
            yield part, recorded, True
        if self._manifest is not None:
            for part, listed in self._groups(self._manifest.columns(*_COLUMNS)):
                rows = list(listed)
                if self._is_of(part, rows):
                    yield part, rows, False

    def _groups(self, rows: Iterator[Row]) -> Iterator[tuple[int, Iterator[Row]]]:
        """Rows of a manifest by part. Rows out of order are skipped."""
        last = -1
        for part, together in groupby(rows, self._part_of):
            if part > last:
                last = part
                yield part, together

    def _part_of(self, row: Row) -> int:
        index, copy = row["index"], row["copy"]
        if index is None or copy is None or index < 0 or copy < 0:
            return -1
        part = self._plan.part_number(index, copy)
        return part if part < self._plan.num_parts else -1

    def _is_of(self, part: int, rows: Sequence[Row]) -> bool:
        return [(row["index"], row["copy"]) for row in rows] == self._plan.outputs_of(part)

    def _read(self) -> Iterator[tuple[int, list[Row]]]:
        return read_records(self._storage, self._plan.num_parts, self._parse)

    def _parse(self, part: int, data: bytes) -> list[Row] | None:
        try:
            rows = json.loads(data)
        except (ValueError, RecursionError):
            return None
        is_list = isinstance(rows, list) and all(isinstance(row, dict) and is_row(row) for row in rows)
        return rows if is_list and self._is_of(part, rows) else None


def size_lookup(storage: Storage) -> Callable[[str], int | None]:
    """A function from a name, as in the manifest, to the file's size or None. Folders are listed once."""

    @lru_cache(_FOLDERS_CACHED)
    def list_folder(folder: str) -> dict[str, int]:
        try:
            return {escape_undecodable(name): size for name, size in storage.sizes(real_name(storage, folder)).items()}
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
        here = {escape_undecodable(entry.rstrip("/")): entry.rstrip("/") for entry in storage.list(found)}
        found = f"{found}/{here.get(part, part)}" if found else here.get(part, part)
    return found
