"""Run fused programs on the CPU: threads over rows, then blends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, Int64Array, UInt8Array
from variegate.executors.batches import ROWS_AT_A_TIME, check_fits, shapes_of, share_out
from variegate.executors.cpu import kernels
from variegate.executors.cpu.blends import blend_rows
from variegate.executors.cpu.kernels import NativeBatch, ResultFormat, pack_batch, result_format
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import data_ptr
from variegate.native.structs import Storage
from variegate.program.lowering import lower
from variegate.program.program import Output, Program

Image = UInt8Array


# (row, place) -> the image that the row reads, which lasts until the thread's next load into the same place.
Load = Callable[[int, int], Image]
# Of a fused program, whose first resizes it may rewrite as it loads.
Loader = Callable[[Program], Load]
# (begin, end, sources): writes the addresses of the images of these rows -> what keeps them alive, until the thread's
# next load.
LoadRows = Callable[[int, int, Int64Array], object]


Result = AnyArray

# Small images, of which one takes microseconds, are handed out by larger numbers.
_MOST_ROWS = 64
_CHUNK_PIXELS = ROWS_AT_A_TIME * 224 * 224
# Float batches from this size on are written past the caches: nobody reads them before they would have been evicted,
# and the memory need not be read before it is written. Measured; the exact place matters little.
STREAM_FROM_BYTES = 8 << 20
# Decoded images held per thread, two or as many as these bytes hold: few enough to stay in its cache until they are
# used.
_LOADED_AT_LEAST = 2
_LOADED_BYTES = 1 << 19


def run(
    program: Program,
    images: Sequence[Image],
    num_threads: int | None = None,
    geometry: str = "composed",
) -> list[Result]:
    """Execute a program (lowered here if it is not yet) -> one array per output: uint8 or float32, CHW or HWC."""
    check_fits(program, shapes_of(images))
    fused = program if program.stage == "fused" else lower(program, geometry)
    stacked, results = allocate(fused)
    run_into(fused, images, results, stacked, num_threads)
    return results


def result_shape(program: Program, row: int) -> tuple[int, ...]:
    height, width = program.final_size(row)
    return _shape(program, height, width, int(program.in_shape[row, 2]))


def _shape(program: Program, height: int, width: int, channels: int) -> tuple[int, ...]:
    return (channels, height, width) if program.output.layout == "NCHW" else (height, width, channels)


def allocate(program: Program) -> tuple[Result | None, list[Result]]:
    """Room for every output -> (the stacked batch if all shapes agree, else None; one array per output)."""
    number = program.num_outputs
    sizes = program.final_sizes()[:number].tolist()
    channels = program.in_shape[:number, 2].tolist()
    shapes = [_shape(program, h, w, c) for (h, w), c in zip(sizes, channels, strict=True)]
    kind = np.dtype(np.float32) if program.output.is_float else np.dtype(np.uint8)
    if shapes and shapes.count(shapes[0]) == number:
        size = number * prod(shapes[0]) * kind.itemsize
        stacked = RESULTS.take(size).view(kind).reshape(number, *shapes[0])
        return stacked, list(stacked)
    single = [RESULTS.take(prod(s) * kind.itemsize).view(kind).reshape(s) for s in shapes]
    return None, single


def take_results(output: Output, shape: tuple[int, ...]) -> Result:
    """Memory for results."""
    kind = np.dtype(np.float32) if output.is_float else np.dtype(np.uint8)
    return RESULTS.take(prod(shape) * kind.itemsize).view(kind).reshape(shape)


def run_into(
    program: Program,
    images: Sequence[Image] | Image | None,
    results: list[Result],
    stacked: Result | None = None,
    num_threads: int | None = None,
    loader: Loader | None = None,
    together: int = 1,
) -> None:
    """Execute a fused program, writing output n into ``results[n]`` (contiguous, of ``result_shape``; see
    ``allocate``).

    Images are either all given, or brought row by row by ``loader(program)``: its ``load(row, place)`` runs on the
    thread that needs the image, just before; what it returned must last until the thread's next load with the same
    place. ``together`` rows, one after another, go to the same thread.
    """
    load = None if loader is None else partial(_load_each, loader(program))
    run_together([prepare_run(program, images, results, stacked, load)], num_threads, together)


def run_together(runs: Sequence[ProgramRun], num_threads: int | None, together: int = 1) -> None:
    """Run programs of equally many rows, one after another for every few rows."""
    _run_rows(runs, num_threads, together)
    for run in runs:
        if run.program.blend is not None:
            blend_rows(run.program, run.canvases, run.targets, run.result, run.streams, num_threads)


class ProgramRun(NamedTuple):
    """A program with its memory."""

    program: Program
    batch: NativeBatch
    result: ResultFormat
    streams: bool
    sources: Int64Array  # addresses of images
    targets: Int64Array  # of outputs
    load: LoadRows | None
    canvases: list[Result]  # results of rows, where they are blended
    images: Any  # what ``sources`` points to


def prepare_run(
    program: Program,
    images: Sequence[Image] | Image | None,
    results: list[Result],
    stacked: Result | None,
    load: LoadRows | None,
) -> ProgramRun:
    """``images`` and ``results``: as of ``run_into``."""
    kept: Sequence[Image] = []
    sources = np.zeros(program.num_rows, np.int64)
    if images is not None:
        is_stacked = isinstance(images, np.ndarray)
        kept = np.ascontiguousarray(images) if is_stacked else [np.ascontiguousarray(image) for image in images]  # type: ignore[assignment]
        sources = _addresses(kept, kept if is_stacked else None)[program.source]
    targets = _addresses(results, stacked)
    result = result_format(program.output)
    canvases: list[Result] = []
    of_rows = targets
    of_row_results = result
    if program.blend is not None:
        canvases = [RESULTS.take(prod(result_shape(program, row))) for row in range(program.num_rows)]
        of_rows = _addresses(canvases, None)
        is_planar = program.output.layout == "NCHW"
        of_row_results = result._replace(storage=Storage.BYTES_CHW if is_planar else Storage.BYTES_HWC)
    streams = _streams(program)
    batch = pack_batch(program, sources, of_rows, of_row_results, streams)
    return ProgramRun(program, batch, result, streams, sources, targets, load, canvases, kept)


def _load_each(load: Load, begin: int, end: int, sources: Int64Array) -> list[Image]:
    loaded = [load(row, place) for place, row in enumerate(range(begin, end))]
    sources[begin:end] = [data_ptr(image) for image in loaded]
    return loaded


def _addresses(arrays: Sequence[Result], stacked: Any) -> Int64Array:
    """Address of each array; they lie one after another in ``stacked``, if that is given."""
    if stacked is not None and len(arrays):
        return data_ptr(stacked) + np.arange(len(arrays), dtype=np.int64) * (stacked.nbytes // len(arrays))
    return np.array([data_ptr(array) for array in arrays], np.int64)


def _streams(program: Program) -> bool:
    height, width = program.final_size(0) if program.num_rows else (0, 0)
    return bool(12 * height * width * program.num_rows >= STREAM_FROM_BYTES)


def _run_rows(runs: Sequence[ProgramRun], num_threads: int | None, together: int = 1) -> None:
    program = runs[0].program
    load = runs[0].load
    in_pixels = int(program.in_shape[:, :2].prod(axis=1, dtype=np.int64).max(initial=1))
    at_a_time = max(_LOADED_AT_LEAST, _LOADED_BYTES // max(3 * in_pixels, 1))

    def work(groups: Int64Array) -> None:
        if len(groups) == 0:
            return
        begin = int(groups[0]) * together
        end = (int(groups[-1]) + 1) * together
        if load is None:
            for run in runs:
                kernels.run_rows(run.batch.memory, begin, end)
            return
        for i in range(begin, end, at_a_time):
            stop = min(i + at_a_time, end)
            for run in runs:
                assert run.load is not None
                _loaded = run.load(i, stop, run.sources)
                kernels.run_rows(run.batch.memory, i, stop)

    height, width = program.final_size(0) if program.num_rows else (0, 0)
    pixels = height * width if load is None else max(height * width, in_pixels)
    chunk = min(_MOST_ROWS, max(ROWS_AT_A_TIME, _CHUNK_PIXELS // max(pixels, 1)))
    share_out(work, program.num_rows // together, num_threads, max(1, chunk // together))
