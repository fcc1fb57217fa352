"""Tiles on one device: statistics gathered, tiles made and written to their places. For a CPU, it loads no torch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.tiled.areas import Area
from variegate.executors.cpu.tiled.chain import TiledImage
from variegate.executors.cpu.tiled.host import HostPixels
from variegate.formats.base import SourceError
from variegate.jobs.jobs import FatalError, Result
from variegate.jobs.tiles.channels import TiledParts, tiled
from variegate.jobs.tiles.reading import PixelFile
from variegate.jobs.tiles.shared import SharedArray
from variegate.jobs.tiles.writing import HeldResult, ResultFile, WriteTile
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
    """``program``: fused, of this one image; ``result``: None where tiles are given back."""

    program: Program
    image: PixelFile
    result: ResultFile | HeldResult | None
    # Nothing writes to its arrays: Ray's actors read them in the object store.
    shares_arrays: ClassVar[bool] = True

    @property
    def descriptors(self) -> list[int]:
        """Open files that a process needs."""
        arrays = [getattr(held, "array", None) for held in (self.image, self.result)]
        return [array.descriptor for array in arrays if isinstance(array, SharedArray)]

    def open(self, device: str, num_threads: int) -> TileJob:
        return TileJob(self, device, num_threads)


class TileJob:
    """On one device; each thread makes a tile."""

    def __init__(self, spec: TileSpec, device: str, num_threads: int) -> None:
        self._spec, self._local = spec, threading.local()
        self._on = HostPixels()
        if device.startswith("cuda"):
            from variegate.executors.cuda.executor import executor_of
            from variegate.executors.cuda.regions import DevicePixels

            self._on = DevicePixels(executor_of(device))
        self._pool = Threads(num_threads, "variegate-tiles") if num_threads > 1 else None
        height, width, _ = spec.program.in_shape[0].tolist()
        try:
            # Compiles kernels, or loads them, before a task has to show that it gets on.
            image = self._image()[0]
            # Of a great reduction even a few pixels are made of much.
            if height * width <= _MOST_REDUCED * image.height * image.width:
                image.make(Area(0, 0, min(image.height, 8), min(image.width, 8)))
        except (SourceError, OSError) as error:
            raise FatalError(str(error)) from error

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Raises FatalError where the image cannot be read, or the result not written: trying again is of no use."""
        beat()
        each = map if self._pool is None or len(payload) == 1 else self._pool.map
        try:
            return Result(list(each(lambda task: self._make(task, beat), payload)), {})
        except (SourceError, OSError) as error:
            raise FatalError(str(error)) from error

    def _make(self, task: TileTask, beat: Callable[[], None]) -> Any:
        image, write = self._image()
        image.set_tables(list(task.tables))
        beat()
        if task.statistic >= 0:
            return image.gather(task.statistic, task.area)
        made, output = self._on.fetched(image.make(task.area)), self._spec.program.output
        beat()
        if made.dtype == np.float32 and output.dtype != "float32":
            made = made.astype(output.dtype)
        return made if write is None else write(task.area, made)

    def _image(self) -> tuple[TiledImage | TiledParts, WriteTile | None]:
        """Of this thread."""
        if not hasattr(self._local, "image"):
            result = self._spec.result
            self._local.image = tiled(self._spec.program, self._spec.image.open(), self._on)
            self._local.write = None if result is None else result.open()
        return self._local.image, self._local.write
