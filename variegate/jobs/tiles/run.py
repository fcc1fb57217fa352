"""One image on many devices: ``ImageRun`` has workers gather statistics, and then make and write tiles."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from variegate.checks import PIXEL_VERSION, integer
from variegate.executors.cpu.tiled.areas import Area
from variegate.formats.base import SourceError
from variegate.jobs.drive import FailedItem
from variegate.jobs.jobs import EngineError
from variegate.jobs.mapping import MapSpec
from variegate.jobs.tiles import reading
from variegate.jobs.tiles.channels import tiled
from variegate.jobs.tiles.shared import SharedArray, mapped, share
from variegate.jobs.tiles.worker import Tables, TileSpec, TileTask
from variegate.jobs.tiles.writing import HeldResult, ResultFile, TilesDone, WriteTile, checked_result
from variegate.program.program import Program

if TYPE_CHECKING:
    from variegate.jobs.engine import Engine

MOST_TILE = 16_384
# Of every thread: tasks that are under way.
_AHEAD = 3
# A task for so many pixels of the source, up to so many tasks, of tiles no smaller than this.
_TASK_PIXELS, _TASKS, _LEAST_SIDE = 1 << 20, 64, 32
# Tile numbers are stored in four bytes.
_MOST_TILES = 1 << 32


@dataclass
class ImageRun:
    """One image, one result. ``done`` of ``total`` tiles; ``resumed`` of them by an earlier run."""

    engine: Engine
    work: MapSpec
    image: reading.PixelFile
    id: int = 0
    out: str | None = None
    tile: int = 1024
    conditions: dict[str, Any] | None = None
    resume: bool = True
    on_progress: Callable[[ImageRun], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Raises ValueError, SourceError or ImportError for what is not accepted, before anything is written."""
        self.tile = integer("tile", self.tile, 1, MOST_TILE)
        if self.engine.executor == "reference":
            devices = ", ".join(self.engine.devices)
            raise ValueError(f"devices: got {devices} for an image in tiles; accepted: cpu:0, ... or cuda:0, ...")
        if "bfloat16" in str(self.work.dtype):
            raise ValueError("dtype: got bfloat16, which arrays do not have; accepted: float32 or float16")
        if self.out is not None:
            self.out = checked_result(self.out, self.tile)
        source = self.image.open()
        shape, work = (source.height, source.width, source.channels), self.work
        self.sampled: Program
        # GPUs run the passes of the CPU: their statistics are tables by then.
        self.sampled, program = work.augmenter("cpu", 1).plan_one(
            shape, self.id, work.epoch, work.copy, self.conditions
        )
        # Planes are copied line by line into those of an array; elsewhere channels come last.
        is_planar = work.layout == "NCHW" and self.out is None and self.engine.workers != "ray"
        layout = "NCHW" if is_planar else "NHWC"
        self.program = program.replace(output=replace(program.output, layout=layout))
        if self.engine.executor == "cuda":
            from variegate.executors.cuda.regions import refuse_regions

            refuse_regions(self.program)
        # Refuses what cannot be done.
        self._plan = tiled(self.program, source)
        self.shape = self._plan.height, self._plan.width, self._plan.channels
        self.dtype = np.dtype(self.program.output.dtype if self.program.output.is_float else "uint8")
        self.whole = Area(0, 0, *self.shape[:2])
        self._tiles = self.whole.blocks(self._side(shape[0] * shape[1]))
        self.total, self.done, self.resumed = len(self._tiles), 0, 0
        if self.total > _MOST_TILES:
            got = f"got {self.tile}, which cuts {self.shape[0]:,} x {self.shape[1]:,} pixels into {self.total:,} tiles"
            place = getattr(self.image, "path", "image")
            raise SourceError(f"{place}: tile: {got}; accepted: {_MOST_TILES:,} tiles at most")
        self.is_interrupted = False

    def _side(self, pixels: int) -> int:
        """Of the tiles that are tasks: smaller where a huge image is reduced to few. It depends on no device."""
        side = self.tile
        if self.out is None or self.out.lower().endswith(".npy"):
            wanted = min(_TASKS, max(pixels, self.shape[0] * self.shape[1]) // _TASK_PIXELS)
            while side > _LEAST_SIDE and len(self.whole.blocks(side)) < wanted:
                side = -(-side // 2)
        return side

    def run(self) -> npt.NDArray[Any] | None:
        """-> the result, in the engine's layout; None where it is in a file, or interrupted."""
        with ExitStack() as stack:
            if self.out is None:
                is_planar = self.work.layout == "NCHW"
                shape = (self.shape[2], *self.shape[:2]) if is_planar else self.shape
                try:
                    array = self._room(stack, shape, self.dtype.name)
                except (MemoryError, ValueError):  # too much, or too much to be counted
                    size = f"{self.shape[0]:,} x {self.shape[1]:,} x {self.shape[2]} {self.dtype.name}"
                    raise EngineError(f"out: got None for {size}, more than memory holds; accepted: a file") from None
                made = mapped(array)
                if self.engine.workers == "ray":
                    # Actors may be on other machines, and give tiles back.
                    self._make(stack, None, HeldResult(made, is_planar).open())
                else:
                    self._make(stack, HeldResult(array, is_planar))
                return made
            result = ResultFile(self.out, self.shape, self.dtype.name, self.tile)
            progress = TilesDone(result, self._settings())
            stack.callback(progress.close)
            try:
                if not (self.resume and progress.take_up()):
                    progress.remove()
                    result.begin()
                    progress.begin()
                self._make(stack, result, None, progress)
                if not self.is_interrupted:
                    result.finish()
            except OSError as error:
                raise EngineError(f"{self.out}: cannot be written ({error})") from error
            if not self.is_interrupted:
                progress.remove()
        return None

    def _room(self, stack: ExitStack, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any] | SharedArray:
        """Memory that all workers of this machine see. Raises MemoryError or ValueError."""
        if self.engine.workers != "process":
            return np.empty(shape, dtype)
        shared = share(shape, dtype)
        stack.callback(shared.close)
        return shared

    def _make(
        self,
        stack: ExitStack,
        result: ResultFile | HeldResult | None,
        write: WriteTile | None = None,
        progress: TilesDone | None = None,
    ) -> None:
        """``write``: of what workers give back."""
        image, rounds = self.image, _Rounds(self, progress)
        feed = rounds.tasks()
        if self.engine.workers == "ray":
            # Other machines find files by their whole paths, and the object store keeps arrays without gaps.
            image, result = _absolute(image), _absolute(result)
            if isinstance(image, reading.HeldArray):
                image = reading.HeldArray(np.ascontiguousarray(mapped(image.array)))
        if isinstance(image, reading.HeldArray) and self.engine.workers == "process":
            shared, held = self._room(stack, image.array.shape, "uint8"), mapped(image.array)
            # Processes start meanwhile.
            feed = _placed(held, mapped(shared), feed)
            image = reading.HeldArray(shared)
        results = self.engine.run(
            TileSpec(self.program, image, result),
            feed,
            ordered=False,
            max_items=_AHEAD * len(self.engine.devices) * max(1, self.engine.num_threads),
            has_room=rounds.has_room,
            stop=self.stop,
        )
        with closing(results):
            for finished in results:
                if isinstance(finished, FailedItem):
                    raise EngineError(f"tile {rounds.areas[finished.item][1]}: {finished.reason}")
                for item, made in enumerate(finished.outputs, finished.start):
                    area = rounds.settle(item, made)
                    if area is None:
                        continue
                    if write is not None:
                        write(area, made)
                    if self.on_progress is not None:
                        self.on_progress(self)
        self.is_interrupted = rounds.left > 0

    def _settings(self) -> dict[str, Any]:
        work = self.work
        return {
            "transform": work.transform.to_dict(), "seed": int(work.seed), "epoch": work.epoch, "copy": work.copy,
            "geometry": work.geometry, "id": self.id, "tile": self.tile, "shape": list(self.shape),
            "dtype": self.dtype.name,
            "conditions": None if self.conditions is None else {k: repr(v) for k, v in self.conditions.items()},
            "source": _stamp_of(self.image), "pixels": PIXEL_VERSION,
        }  # fmt: skip


class _Rounds:
    """Rounds of tasks, one for each statistic, then the tiles; each begins when the one before it has come in."""

    def __init__(self, run: ImageRun, progress: TilesDone | None) -> None:
        self._run, self._progress = run, progress
        self._tables: list[Tables] = []
        self.areas: dict[int, tuple[int, Area]] = {}
        self._statistic = -1
        self._is_between = False
        self._done = frozenset(number for number in (progress.done if progress else ()) if number < run.total)
        run.done = run.resumed = len(self._done)
        self.left = run.total - run.done
        self._next = 0

    def has_room(self) -> bool:
        """True if the feed may be asked: not for the first task of a round while the last one is under way."""
        return not self._is_between or not self.areas

    def tasks(self) -> Iterator[tuple[int, int, list[TileTask]]]:
        counted: dict[tuple[int, tuple[object, ...]], Any] = {}
        for number, statistic in enumerate(self._run._plan.statistics if self.left else ()):
            key = id(statistic.stage), statistic.key
            if key not in counted:
                self._statistic, self._sum = number, statistic.zero()
                areas = [] if statistic.seen.is_empty else statistic.seen.blocks(max(self._run.tile, 256))
                yield from self._round(enumerate(areas), len(areas))
                counted[key] = self._sum
            self._tables.append(statistic.resolve(counted[key]))
            statistic.set(self._tables[-1])
        self._statistic = -1
        yield from self._round((one for one in enumerate(self._run._tiles) if one[0] not in self._done), self.left)

    def _round(self, areas: Iterator[tuple[int, Area]], left: int) -> Iterator[tuple[int, int, list[TileTask]]]:
        """``areas``: with their numbers; ``left``: how many."""
        threads, tables, statistic = max(1, self._run.engine.num_threads), tuple(self._tables), self._statistic
        while some := list(islice(areas, threads)):
            start = self._next
            self._next += len(some)
            self.areas.update(zip(range(start, self._next), some, strict=True))
            left -= len(some)
            self._is_between = left == 0
            yield start, self._next, [TileTask(area, tables, statistic) for _, area in some]
        # Whoever asks for more finds that all of it is in: see ``drive``.

    def settle(self, item: int, made: Any) -> Area | None:
        """Settle an item -> the tile that was made, if it was one."""
        number, area = self.areas.pop(item)
        if self._statistic >= 0:
            self._sum += made
            return None
        if self._progress is not None:
            self._progress.add(number)
        self.left -= 1
        self._run.done += 1
        return area


def _absolute(file: Any) -> Any:
    return replace(file, path=os.path.abspath(file.path)) if hasattr(file, "path") else file


def _placed(image: npt.NDArray[Any], into: npt.NDArray[Any], feed: Iterator[Any]) -> Iterator[Any]:
    """``feed``, once the image is where workers see it."""
    np.copyto(into, image)
    yield from feed


def pixel_file(image: Any) -> reading.PixelFile:
    """Open what ``map_image`` takes. Raises TypeError, ValueError or SourceError naming what is accepted."""
    if isinstance(image, (str, os.PathLike)):
        return reading.file_of(image)
    if not isinstance(image, np.ndarray):
        name = type(image).__name__
        raise TypeError(f"image: got {name}; accepted: a uint8 array [H, W, C] or [H, W], or the path of a file")
    try:
        shape = reading.checked_shape(image.shape, image.dtype, "image")
    except SourceError as error:
        raise ValueError(str(error)) from None
    is_whole = type(image.base).__name__ == "mmap" and image.flags.c_contiguous
    if isinstance(image, np.memmap) and is_whole and image.filename is not None:
        return reading.RawFile(str(image.filename), int(image.offset), shape)
    return reading.HeldArray(np.asarray(image))


def _stamp_of(image: reading.PixelFile) -> Any:
    """Stamp of a file; None for an image in memory, of which nothing is taken up."""
    path = getattr(image, "path", None)
    if path is None:
        return None
    if os.path.isdir(path):
        marks = [(p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(Path(path).glob("*")) if p.is_file()]
        return [os.path.abspath(path), marks]
    known = os.stat(path)
    return [os.path.abspath(path), known.st_size, known.st_mtime_ns]
