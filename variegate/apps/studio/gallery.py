"""The outputs of a run of ``augment``, by what was done to them."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

from variegate.apps.preview.rows import captions
from variegate.formats.base import SourceError
from variegate.jobs.output.manifest import MANIFEST_NAME, read_manifest

_OPERATION = re.compile(r'"op": ?"(\w+)"')
_MOST_ROWS = 200
TYPES = {".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}  # that a browser shows


class RunGallery:
    """Rows of the manifest in ``folder``, whose outputs are files. Raises SourceError for others."""

    def __init__(self, folder: str | Path) -> None:
        self.folder, self.manifest = Path(folder).resolve(), read_manifest(folder)
        self._written: list[int] = []
        self._by: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(self.manifest.columns("member", "status", "operations")):
            if row["member"] is not None:
                raise SourceError(f"{folder}: its outputs are in shards; accepted: a run that wrote a folder of files")
            if row["status"] == "written":
                self._written.append(number)
                for name in set(_OPERATION.findall(row["operations"] or "")):
                    self._by[name].append(number)

    @classmethod
    def of(cls, source: Any) -> RunGallery | None:
        """Of a source that a run wrote; None for others."""
        try:
            return cls(str(source)) if (Path(str(source)) / MANIFEST_NAME).is_file() else None
        except SourceError:
            return None

    def operations(self) -> list[list[Any]]:
        """Each with the number of outputs that it changed, the most frequent first."""
        return sorted(([name, len(rows)] for name, rows in self._by.items()), key=lambda each: (-each[1], each[0]))

    def page(self, operation: str, first: int, count: int) -> dict[str, Any]:
        """Outputs from ``first`` on, of those that ``operation`` changed; "" for all. Raises SourceError."""
        rows = self._by.get(operation, []) if operation else self._written
        shown = rows[max(first, 0) :][: min(max(count, 0), _MOST_ROWS)]
        return {"count": len(rows), "rows": [self._described(number) for number in shown]}

    def _described(self, number: int) -> dict[str, Any]:
        row = self.manifest.row(number)
        return {
            "url": f"/r/{number}-{str(row['sha256'])[:12]}",
            "title": f"{row['source']}, copy {row['copy']}",
            "lines": captions(row["operations"] or []),
            "replay": f"variegate replay {shlex.quote(str(self.folder))} {number}",
        }

    def picture(self, number: int) -> tuple[bytes, str]:
        """An output and its media type. Raises LookupError for one that is no image within the folder."""
        path = (self.folder / str(self.manifest.row(number)["file"])).resolve()
        if not path.is_relative_to(self.folder) or path.suffix.lower() not in TYPES:
            raise LookupError(path)
        try:
            return path.read_bytes(), TYPES[path.suffix.lower()]
        except OSError as error:
            raise LookupError(path) from error
