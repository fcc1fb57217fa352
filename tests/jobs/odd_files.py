"""A large image whose first reader is killed in the middle of it. Loads no torch."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import Any

from variegate.jobs.regions.reading import HeldArray, ImageFile


@dataclass(frozen=True)
class DeadlyImage:
    """``image``, of which the first process to read a line beyond ``line`` takes away the file ``mark``, and itself.

    ``loads``: a file that gets a line for each process that opens the image: whether it has loaded torch.
    """

    image: HeldArray | ImageFile
    mark: str
    line: int
    loads: str = os.devnull

    def open(self) -> Any:
        with open(self.loads, "a") as file:
            file.write(f"{os.getpid()} {'torch' in sys.modules}\n")
        return _DeadlyReader(self.image.open(), self)


class _DeadlyReader:
    mapped = None

    def __init__(self, reader: Any, of: DeadlyImage) -> None:
        self.shape, self.depth, self.lines = reader.shape, reader.depth, reader.lines
        self._reader, self._of = reader, of

    def read(self, begin: int, end: int, into: Any) -> None:
        if end > self._of.line:
            try:
                os.remove(self._of.mark)
            except FileNotFoundError:
                return self._reader.read(begin, end, into)
            os.kill(os.getpid(), signal.SIGKILL)
        return self._reader.read(begin, end, into)
