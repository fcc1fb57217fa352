"""Which tiles of a result are there, so that a command that was killed goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from variegate.jobs.tiles.writing import ResultFile, remove


class TilesDone:
    """Beside the partial file: ``.json``, what it is a part of, and ``.done``, the numbers of its tiles, four bytes
    each, written once a tile is in its place. A machine that loses its power loses what it had not yet written to disk;
    a process that is killed loses nothing."""

    def __init__(self, result: ResultFile, settings: dict[str, Any]) -> None:
        self._result = result
        self._settings = json.dumps(settings, sort_keys=True)
        # Of a source that nothing tells apart, nothing is taken up.
        self._is_known = settings.get("source") is not None
        partial = result.partial
        self._json, self._done = Path(f"{partial}.json"), Path(f"{partial}.done")
        self._file: Any = None
        self.done: frozenset[int] = frozenset()

    def take_up(self) -> bool:
        """Whether an earlier run made a part of this very result; then ``done`` has its tiles."""
        try:
            is_same = self._is_known and self._json.read_text() == self._settings and self._result.partial.exists()
            data = self._done.read_bytes() if is_same else b""
        except OSError:
            return False
        if is_same:
            self.done = frozenset(np.frombuffer(data, "<u4", len(data) // 4).tolist())
            # What was cut off in the middle of a number.
            os.truncate(self._done, len(data) // 4 * 4)
            self._file = open(self._done, "ab", buffering=0)  # noqa: SIM115
        return is_same

    def begin(self) -> None:
        """After the partial file has been begun."""
        self._done.write_bytes(b"")
        self._json.write_text(self._settings)
        self._file = open(self._done, "ab", buffering=0)  # noqa: SIM115

    def add(self, tile: int) -> None:
        self._file.write(np.uint32(tile).astype("<u4").tobytes())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """The result is whole, and has its name."""
        remove(self._json)
        remove(self._done)
