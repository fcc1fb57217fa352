"""Bands of one image on one device. For a CPU, it loads no torch."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray
from variegate.data.base import SourceError
from variegate.executors.cpu.bands import BandProgram
from variegate.executors.steps import Step, Steps, Work
from variegate.jobs.regions.memory import Memory, SharedArray, flush, mapped
from variegate.jobs.regions.reading import PixelFile
from variegate.jobs.regions.writing import ResultFile, written_into
from variegate.native.structs import BandStep
from variegate.threads import Threads
from variegate.workers.protocol import FatalError, Job, Result

# Memory of steps that is no image; all workers see it.
_SHARED = ("input", "tables", "tiles")
# Between signs of life while a band is made.
_BEAT_SECONDS = 5.0


class Band(NamedTuple):
    """Lines of a step, by its number."""

    step: int
    begin: int
    end: int


@dataclass(frozen=True)
class BandSpec:
    """The plan of one image's bands. Pickled to every worker."""

    plan: Steps
    image: PixelFile | None  # for READ
    file: ResultFile | None  # for WRITE; None: into memory
    memory: Mapping[str, Memory]
    result_is_planar: bool  # [C, H, W]
    flushes: bool  # workers on other machines see files alone
    # Nothing writes to its arrays: Ray's actors read them in the object store.
    shares_arrays: ClassVar[bool] = True

    @property
    def descriptors(self) -> list[int]:
        """Open files that a process needs."""
        return [memory.descriptor for memory in self.memory.values() if isinstance(memory, SharedArray)]

    def open(self, device: str, num_threads: int) -> BandJob:
        return BandJob(self, device, num_threads)


class BandJob(Job):
    """Makes bands on one device, each thread a band. ``on``: an existing ``DeviceBands``, if there is one."""

    def __init__(self, spec: BandSpec, device: str, num_threads: int, on: Any = None) -> None:
        self._spec = spec
        self._depth = spec.plan.program.depth
        self._local = threading.local()
        self._device = on
        if device.startswith("cuda"):
            from variegate.executors.cuda.executor import executor_of
            from variegate.executors.cuda.regions import DeviceBands

            self._device = DeviceBands(executor_of(device))
        self._programs = [BandProgram(program) for program in spec.plan.programs]
        self._pool = Threads(num_threads, "variegate-bands")

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Raises FatalError where the image cannot be read, or the result not written: trying again is of no use."""
        made = [self._pool.submit(self._make, band) for band in payload]
        pending = set(made)
        while pending:
            beat()
            pending = wait(pending, _BEAT_SECONDS).not_done
        try:
            return Result([future.result() for future in made], {})
        except (SourceError, OSError) as error:
            raise FatalError(str(error)) from error

    def _make(self, band: Band) -> None:
        spec = self._spec
        step = self._spec.plan.steps[band.step]
        if step.work == Work.READ:
            self._read(band)
        elif step.work == Work.PICK:
            self._pick(step, band)
        elif step.work == Work.BLEND:
            self._blend(step, band)
        elif step.work == Work.WRITE:
            self._write(band)
        elif self._device is not None and step.work in (BandStep.INPUT, BandStep.PASS):
            self._run_on_device(step, band)
        else:
            memory = {name: mapped(spec.memory[name]) for name in _SHARED if name in spec.memory}
            memory |= {"source": mapped(spec.memory[step.source]), "target": mapped(spec.memory[step.target])}
            lines = band.begin, band.end
            program = self._programs[step.program]
            program.run(step.work, step.row, step.number, step.shape, lines, memory, step.is_last)
            self._flush(*memory.values())

    def _read(self, band: Band) -> None:
        """Files are opened by each thread."""
        assert self._spec.image is not None
        if not hasattr(self._local, "reader"):
            self._local.reader = self._spec.image.open()
        reader = self._local.reader
        target = self._image("source", reader.shape)
        reader.read(band.begin, band.end, target[band.begin : band.end])
        self._flush(target)

    def _pick(self, step: Step, band: Band) -> None:
        source = self._image(step.source, step.shape)
        target = self._image(step.target, (*step.shape[:2], 3))
        for i, channel in enumerate(step.read):
            target[band.begin : band.end, :, i] = source[band.begin : band.end, :, channel]
        self._flush(target)

    def _blend(self, step: Step, band: Band) -> None:
        blend = self._spec.plan.programs[step.program].blend
        assert blend is not None
        entries = blend.entries()
        target = self._image(step.target, step.shape)
        lines = slice(band.begin, band.end)
        is_float = target.dtype == np.float32
        total = np.full(target[lines].shape, 0.0 if is_float else entries.start[0], np.float32)
        for row, weight in zip(entries.row, entries.weight, strict=True):
            total += weight * self._image(f"row{row}", step.shape)[lines].astype(np.float32)
        target[lines] = total if is_float else np.clip(total, 0.0, self._depth.white, out=total)
        self._flush(target)

    def _write(self, band: Band) -> None:
        spec = self._spec
        output = spec.plan.program.output
        dtype = "float32" if output.is_float else None
        made = [
            self._image(part.name, part.shape, dtype)[band.begin : band.end, :, part.begin : part.end]
            for part in spec.plan.parts
        ]
        levels = np.concatenate(made, axis=2)
        if output.is_float:
            levels = levels.astype(output.dtype, copy=False)
        if not hasattr(self._local, "write"):
            self._local.write = written_into(self._result()) if spec.file is None else spec.file.open()
        self._local.write(band.begin, levels)

    def _run_on_device(self, step: Step, band: Band) -> None:
        spec = self._spec
        tables = mapped(spec.memory["tables"]) if "tables" in spec.memory else None
        levels = self._image(step.source, step.shape)
        made = self._device.run(spec.plan.programs[step.program], step, levels, tables, (band.begin, band.end))
        if step.target == "result":
            target = self._result()
        else:
            target = self._image(step.target, (step.lines, *made.shape[1:]), made.dtype)
        target[band.begin : band.end] = made
        self._flush(target)

    def _flush(self, *arrays: AnyArray) -> None:
        if self._spec.flushes:
            for array in arrays:
                flush(array)

    def _result(self) -> AnyArray:
        """[H, W, C]."""
        result = mapped(self._spec.memory["result"])
        return result.transpose(1, 2, 0) if self._spec.result_is_planar else result

    def _image(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike | None = None) -> AnyArray:
        """The image that is at the beginning of memory. ``dtype``: None for that of the source."""
        dtype = self._depth.dtype if dtype is None else dtype
        memory = mapped(self._spec.memory[name]).reshape(-1).view(np.uint8)
        return memory[: math.prod(shape) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
