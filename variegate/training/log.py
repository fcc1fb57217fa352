"""``log.jsonl``: a line for every step and every evaluation, which goes on where a checkpoint was taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from variegate.outside.durable import AppendOnlyFile

Line = dict[str, Any]


class TrainingLog:
    """``end``: bytes of it that a checkpoint knows of; what was written later is cut off, and comes again.

    ``last`` has the latest line of a step and that of an evaluation, as one. Raises WriteError.
    """

    def __init__(self, path: Path, end: int) -> None:
        self.last: Line = {}
        if end and path.exists():
            with open(path, "rb") as file:
                known = file.read(end)
            end = known.rfind(b"\n") + 1
            for line in known[:end].splitlines():
                self.last.update(json.loads(line))
        self._file = AppendOnlyFile(path, str(path), end)

    @property
    def end(self) -> int:
        return self._file.end

    def append(self, lines: list[Line]) -> None:
        """They last when this returns."""
        for line in lines:
            self.last.update(line)
        if lines:
            self._file.append("".join(json.dumps(line) + "\n" for line in lines).encode())

    def close(self) -> None:
        self._file.close()
