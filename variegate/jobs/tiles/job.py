"""What a worker does for one image in tiles: gather statistics, make tiles, and write them where they belong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.augmenter.augmenter import Augmenter
from variegate.executors.cpu.tiled.areas import Area
from variegate.executors.cpu.tiled.chain import TiledImage
from variegate.formats.base import SourceError
from variegate.jobs.jobs import FatalError, Result
from variegate.jobs.mapping import MapSpec
from variegate.jobs.tiles.reading import PixelFile
from variegate.jobs.tiles.writing import ResultFile, TileWriter
from variegate.program.program import Program
from variegate.threads import Threads

Tables = npt.NDArray[np.uint8]

_MOST_REDUCED = 4096


class TileTask(NamedTuple):
    """A rectangle: of the result, or of what statistic ``statistic`` sees. ``tables``: of the statistics before it."""

    area: Area
    tables: tuple[Tables, ...]
    statistic: int = -1


@dataclass(frozen=True)
class TileSpec:
    """``work``: what the image is augmented by; ``result``: None where tiles are given back."""

    work: MapSpec
    id: int
    image: PixelFile
    shape: tuple[int, int, int]
    result: ResultFile | None
    conditions: dict[str, Any] | None = None

    def programs(self, augmenter: Augmenter) -> tuple[Program, Program]:
        """The program as it was sampled, and fused. Raises ValueError for transforms that no single image has."""
        work = self.work
        return augmenter.plan_one(self.shape, self.id, work.epoch, work.copy, self.conditions)

    def open(self, device: str, num_threads: int) -> TileJob:
        return TileJob(self, self.work.augmenter(device, num_threads), num_threads)


class TileJob:
    """On one device, whose threads make a tile each."""

    def __init__(self, spec: TileSpec, augmenter: Augmenter, num_threads: int) -> None:
        self._spec, self._local = spec, threading.local()
        self._program = spec.programs(augmenter)[1]
        self._pool = Threads(num_threads, "variegate-tiles") if num_threads > 1 else None
        try:
            # Compiles kernels, or loads them, before a task has to show that it gets on.
            image = self._image()[0]
            pixels = spec.shape[0] * spec.shape[1]
            # Of a great reduction even a few pixels are made of much.
            if pixels <= _MOST_REDUCED * image.height * image.width:
                image.make(Area(0, 0, min(image.height, 8), min(image.width, 8)))
        except (SourceError, OSError) as error:
            raise FatalError(str(error)) from error

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Raises FatalError where the image cannot be read, or the result not written: trying again is of no use."""
        beat()
        try:
            if self._pool is None or len(payload) == 1:
                return Result([self._make(task, beat) for task in payload], {})
            return Result(list(self._pool.map(partial(self._make, beat=beat), payload)), {})
        except (SourceError, OSError) as error:
            raise FatalError(str(error)) from error

    def _make(self, task: TileTask, beat: Callable[[], None]) -> Any:
        image, writer = self._image()
        image.set_tables(list(task.tables))
        beat()
        if task.statistic >= 0:
            return image.gather(task.statistic, task.area)
        made = image.make(task.area)
        beat()
        if made.dtype == np.float32 and self._program.output.dtype != "float32":
            made = made.astype(self._program.output.dtype)
        if writer is None:
            return made
        writer.write(task.area, made)
        return None

    def _image(self) -> tuple[TiledImage, TileWriter | None]:
        """Of this thread."""
        if not hasattr(self._local, "image"):
            self._local.image = TiledImage(self._program, self._spec.image.open())
            self._local.writer = None if self._spec.result is None else self._spec.result.open()
        return self._local.image, self._local.writer
