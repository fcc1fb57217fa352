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


# (row, place) -> the image that the row reads, which lasts until the thread's next load into the same place.
Load = Callable[[int, int], Image]
# Of a fused program, whose first resizes it may rewrite as it loads.
Loader = Callable[[Program], Load]
# (begin, end, sources): writes the addresses of the images of these rows -> what keeps them alive, until the thread's
# next load.
LoadRows = Callable[[int, int, Int64Array], object]


Result = AnyArray

# Small images, of which one takes microseconds, are handed out by larger numbers.
_MAX_ROWS = 64
_CHUNK_PIXELS = ROWS_AT_A_TIME * 224 * 224
# Float batches from this size on are written past the caches: nobody reads them before they would have been evicted,
# and the memory need not be read before it is written. Measured; the exact place matters little.
STREAM_FROM_BYTES = 8 << 20
# Images between the passes of a blend begin at multiples of this many bytes.
_APART = 64
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
    """Execute a program (lowered here if it is not yet) -> one array per output: of the images'
    dtype, or float32; CHW or HWC."""
    check_fits(program, shapes_of(images), depth_of_batch(images))
    fused = program if program.stage == "fused" else lower(program, geometry)
    results = allocate(fused)
    run_into(fused, images, addresses(results), num_threads)
    return list(results)


def allocate(program: Program) -> Result | list[Result]:
    """Room for every output: one array of all if their shapes agree."""
    if (shape := program.common_shape()) is not None:
        return take_results(program, (program.num_outputs, *shape))
    return [take_results(program, tuple(each)) for each in program.result_shapes().tolist()]


def take_results(program: Program, shape: tuple[int, ...]) -> Result:
    """Memory for results of a program."""
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

    Images are either all given, or brought row by row by ``loader(program)``: its ``load(row, place)`` runs on the
    thread that needs the image, just before; what it returned must last until the thread's next load with the same
    place. ``together`` rows, one after another, go to the same thread.
    """
    load = None if loader is None else partial(_load_each, loader(program))
    run_together([prepare_run(program, images, targets, load)], num_threads, together)


def run_together(runs: Sequence[ProgramRun], num_threads: int | None, together: int = 1) -> None:
    """Run programs of equally many rows, one after another for every few rows."""
    _run_rows(runs, num_threads, together)
    for run in runs:
        if run.program.blend is not None:
            blend_rows(run.program, run.made, run.targets, run.result, run.streams, num_threads)


class ProgramRun(NamedTuple):
    """A program with its memory."""

    program: Program
    batch: NativeBatch
    result: ResultFormat
    streams: bool
    sources: Int64Array  # addresses of images
    targets: Int64Array  # of outputs
    load: LoadRows | None
    made: Int64Array  # addresses of what rows make: the outputs, or what is blended to them
    memory: Any  # what these addresses point to


def prepare_run(
    program: Program,
    images: Sequence[Image] | Image | None,
    targets: Int64Array,
    load: LoadRows | None,
) -> ProgramRun:
    """``images`` and ``targets``: as of ``run_into``."""
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
    """Address of each array, or of each part of a contiguous one."""
    if isinstance(arrays, np.ndarray):
        return data_ptr(arrays) + np.arange(len(arrays), dtype=np.int64) * (arrays.strides[0] if len(arrays) else 0)
    return np.array([data_ptr(array) for array in arrays], np.int64)


def _streams(program: Program) -> bool:
    height, width = program.final_size(0) if program.num_rows else (0, 0)
    return bool(12 * height * width * program.num_rows >= STREAM_FROM_BYTES)


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
