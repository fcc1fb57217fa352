"""The history of a search on disk: JSON lines that are only appended to, the first of them the settings."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from variegate.outside.durable import AppendOnlyFile, sync_folder, write_errors_name
from variegate.search.history import History, Row
from variegate.search.settings import Settings

FORMAT = "variegate-population-log/1"


class LogError(ValueError):
    """A file that is no log of this search; the line says which, and why."""


def read_log(path: str | os.PathLike[str]) -> History:
    """Whatever was written in full: a torn last line, and a last step of which members are missing, are left out.

    Raises LogError for other files, and for damage before the end; OSError where it cannot be read.
    """
    return _scan(Path(path))[0]


class PopulationLog:
    """The log of a running search. Usable as a context manager.

    A new file gets the settings. Of a file that is there, the first ``steps`` steps are kept (those of the checkpoint
    that the search goes on from), and what follows is cut off.

    Raises LogError where the file is the log of another search, or has fewer steps; WriteError (of ``append`` too).
    """

    def __init__(self, path: str | os.PathLike[str], settings: Settings, steps: int = 0) -> None:
        self._path = Path(path)
        header = _line({"format": FORMAT, **settings.to_dict()})
        end = 0
        # A run that was killed while it wrote the first line has logged nothing.
        if self._path.exists() and b"\n" in self._path.read_bytes():
            history, ends = _scan(self._path)
            if history.settings != settings:
                raise LogError(f"{self._path}: the log of a search with other settings; accepted: its own, or no file")
            end = ends[min(steps, len(ends) - 1)]
            found = len(history.steps)
        else:
            found = 0
        if found < steps:
            raise LogError(f"{self._path}: got {found} steps; accepted: a log of the {steps} steps that are to be kept")
        self._file = AppendOnlyFile(self._path, str(self._path), end)
        try:
            if end == 0:
                self._file.append(header)
            with write_errors_name(str(self._path)):
                sync_folder(self._path.parent)  # the file's name lasts as well
        except BaseException:
            self.close()
            raise

    def append(self, rows: Sequence[Row]) -> None:
        """A step, as ``Population.advance`` gives it; it lasts when this returns."""
        self._file.append(b"".join(_line(row.to_dict()) for row in rows))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PopulationLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _line(described: dict[str, Any]) -> bytes:
    return json.dumps(described, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _scan(path: Path) -> tuple[History, list[int]]:
    """The history, and where the header and each step end in the file."""
    lines = path.read_bytes().split(b"\n")[:-1]  # What follows the last newline is torn, or nothing.
    try:
        described = json.loads(lines[0])
        if described.pop("format") != FORMAT:
            raise ValueError
        settings = Settings.from_dict(described)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LogError(f"{path}: line 1: accepted: the settings of a search, in format {FORMAT}") from error
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            rows.append(Row.from_dict(json.loads(line)))
        except (ValueError, LookupError, TypeError) as error:
            accepted = "step, epoch, member, score, policy and copied_from of one member"
            raise LogError(f"{path}: line {number}: got {line[:80]!r}; accepted: {accepted}") from error
    try:
        history = History.of(settings, rows)
    except ValueError as error:
        raise LogError(f"{path}: {error}") from error
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    return history, [offsets[1 + step * settings.size] for step in range(len(history.steps) + 1)]
