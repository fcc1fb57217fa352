"""A large image whose first reader is killed in the middle of it. Loads no torch."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import Any

from variegate.executors.cpu.tiled.areas import Area
from variegate.jobs.tiles.reading import HeldArray, RectangleFile


@dataclass(frozen=True)
class DeadlyImage:
    """``image``, of which the first process to read a line beyond ``line`` takes away the file ``mark``, and itself.

    ``loads``: a file that gets a line for each process that opens the image: whether it has loaded torch.
    """

    image: HeldArray | RectangleFile
    mark: str
    line: int
    loads: str = os.devnull

    @property
    def array(self) -> Any:
        return getattr(self.image, "array", None)

    def open(self) -> Any:
        with open(self.loads, "a") as file:
            file.write(f"{os.getpid()} {'torch' in sys.modules}\n")
        return _DeadlyStage(self.image.open(), self)


class _DeadlyStage:
    def __init__(self, stage: Any, of: DeadlyImage) -> None:
        self.height, self.width, self.channels = stage.height, stage.width, stage.channels
        self._stage, self._of = stage, of

    def make(self, area: Area) -> Any:
        if area.bottom > self._of.line:
            try:
                os.remove(self._of.mark)
            except FileNotFoundError:
                return self._stage.make(area)
            os.kill(os.getpid(), signal.SIGKILL)
        return self._stage.make(area)
