"""Earlier work that a studio opens: outputs of ``augment``, findings of ``check``."""

from __future__ import annotations

import os
import re
import shlex
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Protocol

from variegate.apps.check.cleaning import open_checked
from variegate.apps.check.findings import FINDING_KINDS, MARKED, read_table, with_marks
from variegate.apps.preview.rows import captions
from variegate.data.base import SampleRef, SourceError
from variegate.data.filtered import name_key, sample_keys
from variegate.jobs.output.manifest import MANIFEST_NAME, read_manifest
from variegate_studio.photos import Photos

SHOWN_SIDE = 320  # of outputs and findings
_OPERATION = re.compile(r'"op": ?"(\w+)"')
_MOST_ROWS = 200
_SPLIT = "train"


class StudioView(Protocol):
    """``name``: of the call that the page makes for it."""

    name: str

    def about(self) -> Any:
        """Facts for the page before any call, as JSON."""

    def answer(self, asked: Any) -> Any:
        """JSON, or bytes to save."""


class RunGallery:
    """Outputs of the run of ``augment`` that wrote ``photos``, by operation. Raises SourceError for other folders."""

    name = "run"

    def __init__(self, photos: Photos) -> None:
        self._photos, self._place = photos, photos.place
        self.manifest = read_manifest(photos.place)
        self._written: dict[int, int | None] = {}  # rows, and where their images are in the photos
        self._by: dict[str, list[int]] = defaultdict(list)
        index = {key: index for index, key in enumerate(sample_keys(photos.source))}
        rows_of: Counter[str] = Counter()
        for number, row in enumerate(self.manifest.columns("file", "member", "status", "operations")):
            if row["status"] != "written":
                continue
            # Parquet files know their images by the numbers of their rows.
            file = str(row["file"])
            member = f"row {rows_of[file]}" if file.endswith(".parquet") else row["member"]
            rows_of[file] += 1
            self._written[number] = index.get(name_key(SampleRef(file, member)))
            for name in set(_OPERATION.findall(str(row["operations"] or ""))):
                self._by[name].append(number)

    def about(self) -> list[list[Any]]:
        """Each operation with the number of outputs that it changed, the most frequent first."""
        return sorted(([name, len(rows)] for name, rows in self._by.items()), key=lambda each: (-each[1], each[0]))

    def answer(self, asked: Any) -> dict[str, Any]:
        """``count`` outputs from ``first`` on, filtered by ``operation``; "" for all. Raises SourceError."""
        rows = self._by.get(str(asked.get("operation")), []) if asked.get("operation") else list(self._written)
        return {"count": len(rows), "rows": [self._described(number) for number in _part(rows, asked)]}

    def _described(self, number: int) -> dict[str, Any]:
        row, index = self.manifest.row(number), self._written[number]
        try:
            lines = captions(row["operations"] or [])
        except (TypeError, LookupError, AttributeError, RecursionError):
            raise SourceError(f"{self._place}: damaged: the operations of row {number:,} of its manifest") from None
        return {
            "url": "" if index is None else self._photos.address(index, SHOWN_SIDE),
            "title": f"{row['source']}, copy {row['copy']}",
            "lines": lines,
            "replay": f"variegate replay {shlex.quote(os.path.abspath(self._place))} {number}",
        }


class FoundImages:
    """Images of ``photos`` by a check's findings; marks on them become a table for ``clean``. Raises SourceError."""

    name = "findings"

    def __init__(self, photos: Photos, table: str | os.PathLike[str]) -> None:
        self._photos, self._place = photos, os.fspath(table)
        if photos.source is None:
            raise ValueError(f"findings: got {self._place}, without its images; accepted: with SRC, the checked images")
        found, source = open_checked(photos.place, table, _SPLIT)
        if source.fingerprint != photos.source.fingerprint:
            raise SourceError(f"{self._place}: is of other images than the studio shows; accepted: labeled images")
        self._found = found
        self._by: dict[str, list[Any]] = defaultdict(list)
        # Images of a group stand together.
        for entry in sorted(found.entries, key=lambda each: (-1 if each.group is None else each.group, each.row)):
            self._by[entry.finding].append(entry)

    def about(self) -> list[dict[str, Any]]:
        kinds = [kind for name, kind in FINDING_KINDS.items() if name in self._by]
        return [{"name": kind.name, "count": len(self._by[kind.name]), "meaning": kind.meaning} for kind in kinds]

    def answer(self, asked: Any) -> Any:
        """Images of a ``kind``, from ``first`` on; or, for the images in ``marks``, the table in which they are."""
        if (marks := asked.get("marks")) is not None:
            if not isinstance(marks, list) or not all(type(n) is int and 0 <= n < self._photos.count for n in marks):
                raise ValueError(f"marks: accepted: a list of numbers from 0 to {self._photos.count - 1}")
            return with_marks(read_table(self._place), _SPLIT, marks)
        rows, place = self._by.get(str(asked.get("kind")), []), shlex.quote(str(self._photos.place))
        return {
            "count": len(rows),
            "rows": [self._described(entry) for entry in _part(rows, asked)],
            "command": f"variegate clean {place} --from marked.parquet --drop {MARKED}",
        }

    def _described(self, entry: Any) -> dict[str, Any]:
        index = int(self._found.index[entry.row])
        group = [] if entry.group is None else [f"group {entry.group}"]
        about = {"index": index, "group": entry.group, "url": self._photos.address(index, SHOWN_SIDE)}
        return {**about, "title": self._found.files[entry.row], "lines": [*group, entry.why or ""]}


def views_of(photos: Photos, findings: str | os.PathLike[str] | None) -> list[StudioView]:
    """The views available for the photos' folder. Raises SourceError."""
    views: list[StudioView] = []
    if photos.source is not None and (Path(str(photos.place)) / MANIFEST_NAME).is_file():
        try:
            views.append(RunGallery(photos))
        except SourceError as error:  # it may be of something else
            warnings.warn(f"{error}; its run is not shown", stacklevel=2)
    if findings is not None:
        views.append(FoundImages(photos, findings))
    return views


def _part(rows: list[Any], asked: Any) -> list[Any]:
    first, count = asked.get("first", 0), asked.get("count", 100)
    if not all(type(each) is int and each >= 0 for each in (first, count)):
        raise ValueError("first, count: accepted: whole numbers from 0 on")
    return rows[first : first + min(count, _MOST_ROWS)]
