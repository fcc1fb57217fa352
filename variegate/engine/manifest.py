"""What an expanded folder says about itself: a line of JSON for every sample and copy, and the settings of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

from variegate.sinks.folder import write_atomically

MANIFEST_NAME = "manifest.jsonl"
SETTINGS_NAME = "variegate.json"


class ManifestWriter:
    """Writes ``root/manifest.jsonl``, sorted by sample and copy whatever the order in which rows are added."""

    def __init__(self, root: Path, settings: dict[str, Any], copies: int) -> None:
        root.mkdir(parents=True, exist_ok=True)
        write_atomically(root / SETTINGS_NAME, (json.dumps(settings, indent=2) + "\n").encode())
        self.path = root / MANIFEST_NAME
        self._file: TextIO = self.path.open("w", encoding="utf-8")
        self._copies = copies
        self._next = (0, 0)
        self._early: dict[tuple[int, int], dict[str, Any]] = {}

    def add(self, row: dict[str, Any]) -> None:
        """A row with an ``id`` and a ``copy``; ``copy`` None stands for all copies of a sample that has none."""
        self._early[row["id"], row["copy"] or 0] = row
        while (row := self._early.pop(self._next, {})) != {}:
            self._write(row)
            sample_id, copy = self._next
            is_last = row["copy"] is None or copy + 1 == self._copies
            self._next = (sample_id + 1, 0) if is_last else (sample_id, copy + 1)

    def flush(self) -> None:
        """Every row that is not ahead of its turn is whole on disk when this returns."""
        self._file.flush()

    def close(self) -> None:
        """Write what came ahead of its turn as well: a run that ends early leaves gaps."""
        for key in sorted(self._early):
            self._write(self._early[key])
        self._early.clear()
        self._file.close()

    def _write(self, row: dict[str, Any]) -> None:
        # ASCII only: a file name that is not valid UTF-8 still gives valid JSON.
        self._file.write(json.dumps(row, ensure_ascii=True) + "\n")
