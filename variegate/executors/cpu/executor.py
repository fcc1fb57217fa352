"""Run fused programs on the CPU: threads over rows, then blends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, ImageArray, Int64Array
from variegate.executors.batches import ROWS_AT_A_TIME, check_fits, depth_of_batch, shapes_of, share_out
from variegate.executors.cpu import kernels
from variegate.executors.cpu.blends import blend_rows
from variegate.executors.cpu.kernels import NativeBatch, ResultFormat, pack_batch, result_format
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import data_ptr
from variegate.native.structs import Storage
from variegate.program.lowering import lower
from variegate.program.program import Program

Image = ImageArray


# (row, place) -> the image that the row reads; valid until the thread's next load into the same place.
Load = Callable[[int, int], Image]
# Makes the Load of a fused program. Loading may replace a row's first resize, e.g. by a crop of the decoded part.
Loader = Callable[[Program], Load]
# (begin, end, sources): write the addresses of these rows' images to ``sources`` -> their owner, which keeps them
# alive until the thread's next load.
LoadRows = Callable[[int, int, Int64Array], object]


Result = AnyArray

# A small image takes microseconds, so threads take more of them at a time.
_MAX_ROWS = 64
_CHUNK_PIXELS = ROWS_AT_A_TIME * 224 * 224
# Batches of this size or more bypass the caches: they would be evicted before they are read, and a streaming
# store need not load the cache line first. Measured; the exact limit matters little.
STREAM_FROM_BYTES = 8 << 20
# Alignment of the images that a blend reads, in bytes.
_APART = 64
# Decoded images per thread: at least two, and as many as fit into these bytes, so that they stay in its cache until
# they are used.
_LOADED_AT_LEAST = 2
_LOADED_BYTES = 1 << 19


def run(
    program: Program,
    images: Sequence[Image],
    num_threads: int | None = None,
    geometry: str = "composed",
) -> list[Result]:
    """Execute a program, lowered here if it is not yet -> one array per output, CHW or HWC, of the images' dtype or
    float32.

    GPU counterpart: ``cuda.executor.run_on_host_arrays``; definition: ``tests/oracle/executor.py``.
    """
    check_fits(program, shapes_of(images), depth_of_batch(images))
    fused = program if program.stage == "fused" else lower(program, geometry)
    results = allocate(fused)
    run_into(fused, images, addresses(results), num_threads)
    return list(results)


def allocate(program: Program) -> Result | list[Result]:
    """Allocate all outputs: one array if their shapes agree, else a list."""
    if (shape := program.common_shape()) is not None:
        return take_results(program, (program.num_outputs, *shape))
    return [take_results(program, tuple(each)) for each in program.result_shapes().tolist()]


def take_results(program: Program, shape: tuple[int, ...]) -> Result:
    """Take an array of the program's result dtype from the pool."""
    dtype = program.result_dtype
    return RESULTS.take(prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def run_into(
    program: Program,
    images: Sequence[Image] | Image | None,
    targets: Int64Array,
    num_threads: int | None = None,
    loader: Loader | None = None,
    together: int = 1,
) -> None:
    """Execute a fused program, writing output n to the address ``targets[n]`` (see ``allocate``).

    Either pass all ``images``, or load them row by row with ``loader(program)``. Its ``load(row, place)`` runs on the
    thread that needs the image, just before it runs the row. The image must remain valid until the thread's next load
    with the same place. The same thread runs each group of ``together`` consecutive rows.
    """
    load = None if loader is None else partial(_load_each, loader(program))
    run_together([prepare_run(program, images, targets, load)], num_threads, together)


def run_together(runs: Sequence[ProgramRun], num_threads: int | None, together: int = 1) -> None:
    """Run programs that have equal numbers of rows: all programs on one chunk of rows, then on the next."""
    _run_rows(runs, num_threads, together)
    for run in runs:
        if run.program.blend is not None:
            blend_rows(run.program, run.made, run.targets, run.result, run.streams, num_threads)


class ProgramRun(NamedTuple):
    """A program with the memory that it reads and writes."""

    program: Program
    batch: NativeBatch
    result: ResultFormat
    streams: bool
    sources: Int64Array  # addresses of images
    targets: Int64Array  # of outputs
    load: LoadRows | None
    made: Int64Array  # addresses of the rows' images: the outputs, or the canvases to blend
    memory: Any  # owners of the memory behind these addresses


def prepare_run(
    program: Program,
    images: Sequence[Image] | Image | None,
    targets: Int64Array,
    load: LoadRows | None,
) -> ProgramRun:
    """Pack a program and allocate its canvases. ``images`` and ``targets``: see ``run_into``."""
    kept: Any = []
    sources = np.zeros(program.num_rows, np.int64)
    if images is not None:
        is_stacked = isinstance(images, np.ndarray)
        kept = np.ascontiguousarray(images) if is_stacked else [np.ascontiguousarray(image) for image in images]
        sources = addresses(kept)[program.source]
    result = result_format(program.output, program.depth)
    made = targets
    canvases: Any = None
    of_row_results = result
    if program.blend is not None:
        sizes = program.final_sizes().prod(axis=1, dtype=np.int64) * program.in_shape[:, 2]
        sizes *= program.depth.dtype.itemsize
        rooms = -(-sizes // _APART) * _APART
        canvases = RESULTS.take(int(rooms.sum()))
        made = data_ptr(canvases) + np.cumsum(rooms) - rooms
        is_planar = program.output.layout == "NCHW"
        of_row_results = result._replace(storage=Storage.BYTES_CHW if is_planar else Storage.BYTES_HWC)
    streams = _streams(program)
    batch = pack_batch(program, sources, made, of_row_results, streams)
    return ProgramRun(program, batch, result, streams, sources, targets, load, made, (kept, canvases))


def _load_each(load: Load, begin: int, end: int, sources: Int64Array) -> list[Image]:
    loaded = [load(row, place) for place, row in enumerate(range(begin, end))]
    sources[begin:end] = [data_ptr(image) for image in loaded]
    return loaded


def addresses(arrays: Sequence[Result] | Result) -> Int64Array:
    """Return the address of each array, or of each item of one contiguous array."""
    if isinstance(arrays, np.ndarray):
        return data_ptr(arrays) + np.arange(len(arrays), dtype=np.int64) * (arrays.strides[0] if len(arrays) else 0)
    return np.array([data_ptr(array) for array in arrays], np.int64)


def _streams(program: Program) -> bool:
    if not program.num_rows:
        return False
    height, width = program.final_size(0)
    values = height * width * int(program.in_shape[0, 2]) * program.num_rows
    dtype = program.depth.dtype if program.output.mean is None else np.dtype(np.float32)
    return bool(values * dtype.itemsize >= STREAM_FROM_BYTES)


def _run_rows(runs: Sequence[ProgramRun], num_threads: int | None, together: int = 1) -> None:
    program = runs[0].program
    load = runs[0].load
    in_pixels = int(program.in_shape[:, :2].prod(axis=1, dtype=np.int64).max(initial=1))
    at_a_time = max(_LOADED_AT_LEAST, _LOADED_BYTES // max(3 * program.depth.dtype.itemsize * in_pixels, 1))

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
    chunk = min(_MAX_ROWS, max(ROWS_AT_A_TIME, _CHUNK_PIXELS // max(pixels, 1)))
    share_out(work, program.num_rows // together, num_threads, max(1, chunk // together))
