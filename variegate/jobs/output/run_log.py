"""``RunLog``: the progress of a run, as JSON lines."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from variegate.io.durable import AppendOnlyFile, make_folder, named_write_errors


class RunLog(AbstractContextManager["RunLog"]):
    """An append-only log. ``entries``: the values of an earlier process; a torn or damaged line ends them.

    ``is_synced``: appended lines survive a power failure. Raises WriteError naming ``path``.
    """

    def __init__(self, path: Path, is_synced: bool = True) -> None:
        self.entries: list[Any] = []
        end = 0
        with named_write_errors(str(path)):
            make_folder(path.parent)
            lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        for line in lines:
            try:
                self.entries.append(json.loads(line))
            except (ValueError, RecursionError):
                break
            end += len(line) + 1
        self._file = AppendOnlyFile(path, str(path), end, is_synced=is_synced)

    def append(self, value: Any) -> None:
        self._file.append(json.dumps(value).encode() + b"\n")

    def __exit__(self, *_: object) -> None:
        self._file.close()
