"""Augment one image on several devices: ``ImageRun`` has workers run its steps, band by band."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.arrays import AnyArray
from variegate.checks import PIXEL_VERSION, integer
from variegate.data.base import SourceError
from variegate.executors.steps import Step, Steps, Work
from variegate.jobs.mapping import MapSpec
from variegate.jobs.output.run_folder import RunFolder
from variegate.jobs.output.run_log import RunLog
from variegate.jobs.regions import reading
from variegate.jobs.regions.memory import MappedFile, Memory, SharedArray, mapped, num_bytes
from variegate.jobs.regions.worker import Band, BandSpec
from variegate.jobs.regions.writing import ResultFile, checked_result, remove, reserve
from variegate.program.depth import in_native_order
from variegate.program.lowering import lower
from variegate.program.program import Program
from variegate.workers.protocol import EngineError
from variegate.workers.run import FailedItem

if TYPE_CHECKING:
    from variegate.jobs.engine import Engine

MOST_TILE = 16_384
# Of every thread: bands that are under way.
_AHEAD = 3
# The first entry of a log: all files have been made.
_BEGUN = "begun"


@dataclass
class ImageRun:
    """One image and one result, in ``total`` bands over all steps."""

    engine: Engine
    work: MapSpec
    image: reading.PixelFile
    id: int = 0
    out: str | None = None
    tile: int = 1024
    conditions: dict[str, Any] | None = None
    resume: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError, SourceError or ImportError for invalid arguments, before anything is written."""
        self.tile = integer("tile", self.tile, 1, MOST_TILE)
        if "bfloat16" in str(self.work.dtype):
            raise ValueError("dtype: got bfloat16, which arrays do not have; accepted: float32 or float16")
        if self.out is not None:
            self.out = checked_result(self.out, self.tile)
        self._reader = self.image.open()
        shape = self._reader.shape
        work = self.work
        self.sampled: Program
        # GPUs run the passes of the CPU, which measures statistics.
        self.sampled, program = work.augmenter("cpu", 1).plan_one(
            shape, self.id, work.epoch, work.copy, self.conditions, self._reader.depth
        )
        is_cuda = self.engine.executor == "cuda"
        if is_cuda and program.depth.is_deep:
            # Except that GPUs have no tables of values before maps and filters of deep images.
            program = lower(self.sampled, work.geometry, measured_once=True)
        self._is_planar = work.layout == "NCHW" and self.out is None
        program = program.replace(output=replace(program.output, layout="NCHW" if self._is_planar else "NHWC"))
        if is_cuda:
            from variegate.executors.cuda.regions import refuse_regions

            refuse_regions(program)
        self.dtype = np.dtype(program.output.dtype) if program.output.is_float else program.depth.dtype
        # A pass writes into the result; a conversion to another dtype is a separate step.
        is_mapped = self.out is None or self.out.lower().endswith(".npy")
        self.plan = Steps(program, shape, self.tile, is_mapped and self.dtype != np.float16, is_cuda)
        self.shape = self.plan.made
        if not self._is_in_place:
            lines = self._reader.lines
            band = lines * max(1, self.plan.band(shape[0]) // lines)
            self.plan.steps.insert(0, Step(Work.READ, "", "source", shape, shape[0], band))
        self.total = sum(len(step.bands()) for step in self.plan.steps)

    @property
    def _is_in_place(self) -> bool:
        """True if workers see the image without reading it first."""
        return isinstance(self.image, reading.HeldArray) or self._reader.mapped is not None

    def run(self) -> AnyArray | None:
        """-> the result, in the engine's layout; None if it is in a file."""
        with ExitStack() as stack:
            if self.out is None:
                try:
                    return self._run_in_memory(stack)
                except MemoryError:
                    size = f"{self.shape[0]:,} x {self.shape[1]:,} x {self.shape[2]} {self.dtype.name}"
                    raise EngineError(f"out: got None for {size}, more than memory holds; accepted: a file") from None
            result = ResultFile(os.path.abspath(self.out), self.shape, self.dtype.name, self.tile)
            settings = self._settings()
            # Nothing identifies an image in memory. A result may have got its name already.
            resume = self.resume and settings["source"] is not None and result.partial.exists()
            try:
                if not result.folder.exists():
                    self._check_room(result)
                folder = stack.enter_context(RunFolder(result.folder, settings, resume, file=self.out))
                # Bands are not synced either: after a power failure, a run starts over.
                log = stack.enter_context(folder.open_log("bands", is_synced=False))
                memory: dict[str, Memory] = {**self._files(result.folder)}
                if not log.entries:
                    result.begin()
                    for file in self._files(result.folder).values():
                        reserve(Path(file.path), 0, num_bytes(file.shape, file.dtype))
                    log.append(_BEGUN)
                if self.plan.is_direct:
                    memory["result"] = result.mapped()
                self._make(memory, result, log)
                result.finish()
                folder.remove()
            except OSError as error:
                raise EngineError(f"{self.out}: cannot be written ({error})") from error
        return None

    def _run_in_memory(self, stack: ExitStack) -> AnyArray:
        """Raises MemoryError."""
        sizes = self._sizes()
        shape = self.shape
        if self._is_planar:
            shape = shape[2], shape[0], shape[1]
        of_result = num_bytes(shape, self.dtype.name)
        if sum(sizes.values()) + of_result > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
            raise MemoryError
        shapes = {name: ((size,), "uint8") for name, size in sizes.items()} | {"result": (shape, self.dtype.name)}
        memory: dict[str, Memory] = {}
        if self.engine.workers == "ray":
            # Actors may be other processes of this machine, or of others that see its files.
            folder = tempfile.mkdtemp(prefix="variegate-tiles-")
            stack.callback(remove, Path(folder))
            for name, (sides, dtype) in shapes.items():
                memory[name] = MappedFile(os.path.join(folder, name), sides, dtype)
                reserve(Path(folder, name), 0, num_bytes(sides, dtype))
        elif self.engine.workers == "process":
            for name, (sides, dtype) in shapes.items():
                memory[name] = shared = SharedArray.of(sides, dtype)
                stack.callback(shared.close)
        else:
            memory = {name: np.empty(sides, dtype) for name, (sides, dtype) in shapes.items()}
        made = mapped(memory["result"])
        self._make(memory, None, None)
        return made

    def _sizes(self) -> dict[str, int]:
        """Bytes of memory by its name, without the result."""
        sizes = dict(self.plan.sizes)
        is_copied = isinstance(self.image, reading.HeldArray) and self.engine.workers == "process"
        if not self._is_in_place or is_copied:
            sizes["source"] = num_bytes(self._reader.shape, str(self._reader.depth))
        return sizes

    def _files(self, folder: Path) -> dict[str, MappedFile]:
        return {name: MappedFile(str(folder / name), (size,), "uint8") for name, size in self._sizes().items()}

    def _check_room(self, result: ResultFile) -> None:
        """Raises OSError."""
        wanted = sum(self._sizes().values()) + num_bytes(self.shape, self.dtype.name)
        if wanted > (free := shutil.disk_usage(result.folder.parent).free):
            raise OSError(errno.ENOSPC, f"{wanted:,} bytes, of which its disk has {free:,}")

    def _make(self, memory: dict[str, Memory], file: ResultFile | None, log: RunLog | None) -> None:
        rounds = _Rounds(self, log)
        feed = rounds.tasks()
        if isinstance(self.image, reading.HeldArray):
            array = self.image.array.reshape(self._reader.shape)
            if "source" in memory:
                # Processes start meanwhile.
                feed = _copied(array, mapped(memory["source"]).view(array.dtype).reshape(array.shape), feed)
            else:
                memory["source"] = np.ascontiguousarray(array)
        elif self._reader.mapped is not None:
            memory["source"] = self._reader.mapped
        is_ray = self.engine.workers == "ray"
        image = None if self._is_in_place else _absolute(self.image)
        results = self.engine.run(
            BandSpec(self.plan, image, file, memory, self._is_planar, is_ray),
            feed,
            ordered=False,
            max_items=_AHEAD * len(self.engine.devices) * max(1, self.engine.num_threads),
            has_room=rounds.has_room,
        )
        with closing(results):
            for finished in results:
                if isinstance(finished, FailedItem):
                    raise EngineError(f"lines {rounds.under_way[finished.item]}: {finished.reason}")
                for item in range(finished.start, finished.stop):
                    rounds.settle(item)

    def _settings(self) -> dict[str, Any]:
        work = self.work
        given = self.conditions
        return {
            "command": "map_image",
            "transform": work.transform.to_dict(),
            "seed": int(work.seed),
            "epoch": work.epoch,
            "copy": work.copy,
            "geometry": work.geometry,
            "id": self.id,
            "tile": self.tile,
            "shape": list(self.shape),
            "dtype": self.dtype.name,
            "executor": self.engine.executor,
            "conditions": None if given is None else {name: repr(value) for name, value in given.items()},
            "source": _stamp_of(self.image),
            "pixels": PIXEL_VERSION,
        }


class _Rounds:
    """Bands of one step after another; each step begins when the one before it is complete."""

    def __init__(self, run: ImageRun, log: RunLog | None) -> None:
        self._run = run
        self._log = log
        self._done = frozenset(entry for entry in (log.entries if log else ()) if isinstance(entry, int))
        self.under_way: dict[int, Band] = {}
        self._is_between = False

    def has_room(self) -> bool:
        """True if the feed may be asked: not for the first task of a step while the one before is under way."""
        return not self._is_between or not self.under_way

    def tasks(self) -> Iterator[tuple[int, int, list[Band]]]:
        """Items are numbers of bands."""
        first = 0
        for number, step in enumerate(self._run.plan.steps):
            bands = {first + i: Band(number, *lines) for i, lines in enumerate(step.bands())}
            first += len(bands)
            yield from self._step({item: band for item, band in bands.items() if item not in self._done})
        # Consumers that request more find that all of it is submitted: see ``drive``.

    def _step(self, bands: dict[int, Band]) -> Iterator[tuple[int, int, list[Band]]]:
        left = sorted(bands)
        threads = max(1, self._run.engine.num_threads)
        while left:
            # Items of a task follow each other.
            count = next((i for i, item in enumerate(left[:threads]) if item != left[0] + i), len(left[:threads]))
            items = left[:count]
            left = left[count:]
            self.under_way.update((item, bands[item]) for item in items)
            self._is_between = not left
            yield items[0], items[-1] + 1, [bands[item] for item in items]

    def settle(self, item: int) -> None:
        del self.under_way[item]
        if self._log is not None:
            self._log.append(item)


def _absolute(file: Any) -> Any:
    """Other machines find files by their whole paths."""
    return replace(file, path=os.path.abspath(file.path)) if hasattr(file, "path") else file


def _copied(image: AnyArray, into: AnyArray, feed: Iterator[Any]) -> Iterator[Any]:
    """``feed``, once the image is where workers see it."""
    np.copyto(into, image)
    yield from feed


def pixel_file(image: Any) -> reading.PixelFile:
    """Open what ``map_image`` takes. Raises TypeError, ValueError or SourceError naming accepted values."""
    if isinstance(image, (str, os.PathLike)):
        return reading.file_of(image)
    if not isinstance(image, np.ndarray):
        name = type(image).__name__
        raise TypeError(f"image: got {name}; accepted: an array [H, W, C] or [H, W], or the path of a file")
    image = in_native_order(image)
    try:
        shape, depth = reading.checked_shape(image.shape, image.dtype, "image")
    except SourceError as error:
        raise ValueError(str(error)) from None
    is_whole = type(image.base).__name__ == "mmap" and image.flags.c_contiguous
    if isinstance(image, np.memmap) and is_whole and image.filename is not None:
        return reading.RawFile(str(image.filename), int(image.offset), shape, depth)
    return reading.HeldArray(np.asarray(image), depth)


def _stamp_of(image: reading.PixelFile) -> Any:
    """The stamp of a file; None for an image in memory, for which nothing is resumed."""
    path = getattr(image, "path", None)
    if path is None:
        return None
    if os.path.isdir(path):
        marks = [(p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(Path(path).glob("*")) if p.is_file()]
        return [os.path.abspath(path), marks]
    known = os.stat(path)
    return [os.path.abspath(path), known.st_size, known.st_mtime_ns]
