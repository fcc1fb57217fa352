"""``log.jsonl``: a line for every step and every evaluation, which goes on where a checkpoint was taken."""

from __future__ import annotations

import errno
import itertools
import json
import math
from pathlib import Path
from typing import Any

from variegate.formats.base import SourceError
from variegate.io.durable import AppendOnlyFile, write_error

Line = dict[str, Any]


class DivergedError(RuntimeError):
    """The loss is no number any more. ``line``: the first of which this is true; ``lr``: as it was given."""

    def __init__(self, line: Line, lr: float) -> None:
        super().__init__(
            f"the loss is {line['loss']} in step {line['step']} (epoch {line['epoch']}): the training has diverged; a "
            f"lower --lr (it is {lr:g}), a longer --warmup or a smaller --clip may help, with another folder as --out"
        )


def finite_part(lines: list[Line]) -> list[Line]:
    """Those before the first with a loss that is no number."""
    return list(itertools.takewhile(lambda line: math.isfinite(line["loss"]), lines))


class TrainingLog:
    """``end``: bytes of it that a checkpoint knows of; what was written later is cut off, and comes again.

    ``last`` has the latest line of a step and that of an evaluation, as one. Raises WriteError, SourceError for a file
    that is damaged.
    """

    def __init__(self, path: Path, end: int) -> None:
        self.last: Line = {}
        self._path = path
        if end and path.exists():
            with open(path, "rb") as file:
                known = file.read()[:end]
            end = known.rfind(b"\n") + 1
            for number, line in enumerate(known[:end].splitlines(), 1):
                try:
                    self.last.update(json.loads(line))
                except (ValueError, TypeError, RecursionError) as error:
                    what = f"line {number} is damaged ({error})"
                    raise SourceError(f"{path}: {what}; restore it, or choose another folder") from error
        self._file = AppendOnlyFile(path, str(path), end)

    @property
    def end(self) -> int:
        return self._file.end

    def check(self) -> None:
        """Raises WriteError where the file is gone, which can still be written to as long as it is open."""
        if not self._path.exists():
            raise write_error(
                OSError(errno.ENOENT, "it was deleted, or moved, while the training ran"), str(self._path)
            )

    def append(self, lines: list[Line]) -> None:
        """They last when this returns."""
        self.check()
        for line in lines:
            self.last.update(line)
        if lines:
            self._file.append("".join(json.dumps(line) + "\n" for line in lines).encode())

    def close(self) -> None:
        self._file.close()
