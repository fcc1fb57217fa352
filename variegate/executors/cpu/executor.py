"""Run fused programs on the CPU: threads over rows, then blends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.executors.batches import ROWS_AT_A_TIME, check_fits, shapes_of, share_out
from variegate.executors.cpu import kernels, passes
from variegate.executors.cpu.batch import (
    BatchArrays,
    form_of,
    held_batch,
    instructions_of,
    measure,
    new_batch,
    side_tables,
)
from variegate.executors.cpu.layout import BYTES_CHW, BYTES_HWC, NEEDS, ResultFormat
from variegate.executors.cpu.memory import RESULTS, place_of, scratch_for
from variegate.executors.cpu.store import SPAN, blend_outputs
from variegate.program.compiled import TURN
from variegate.program.lowering import lower
from variegate.program.program import Output, Program

Image = npt.NDArray[np.uint8]


# (row, place) -> the image that the row reads, which lasts until the thread's next load into the same place.
Load = Callable[[int, int], Image]
# Of a fused program, whose first resizes it may rewrite as it loads; of one with ``planes`` see ``plane_loader``.
Loader = Callable[[Program], Any]


Result = npt.NDArray[Any]

# Small images, of which one takes microseconds, are handed out by larger numbers.
_MOST_ROWS, _CHUNK_PIXELS = 64, ROWS_AT_A_TIME * 224 * 224
# Float batches from this size on are written past the caches: nobody reads them before they would have been evicted,
# and the memory need not be read before it is written. Measured; the exact place matters little.
STREAM_FROM_BYTES = 8 << 20
# Decoded images held per thread, two or as many as these bytes hold: few enough to stay in its cache until they are
# used.
_LOADED_AT_LEAST, _LOADED_BYTES = 2, 1 << 19


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
    sizes, channels = program.final_sizes()[:number].tolist(), program.in_shape[:number, 2].tolist()
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

    Of a program with ``planes``, results are [C, H, W] with three channels at least. Its parts take turns every few
    rows, the last one first: the planes that it makes of another's channels, that one makes once more.
    """
    runs = [_prepared(program, images, results, stacked, loader)]
    for part in program.further:
        runs.insert(0, _prepared(part, images, results, None, loader))
    _run_rows(runs, num_threads, together)
    for run in runs:
        if run.program.blend is not None:
            _blend(run, num_threads)
    TURN.finish()


class _Run(NamedTuple):
    """A program with its memory. ``canvases``: addresses of what rows make where they are blended, else empty."""

    program: Program
    batch: BatchArrays
    form: ResultFormat
    load: Any  # (begin, end, sources) -> what is to live until these rows are done
    canvases: npt.NDArray[np.int64]
    kept: Any


def _prepared(
    program: Program,
    images: Sequence[Image] | Image | None,
    results: list[Result],
    stacked: Result | None,
    loader: Loader | None,
) -> _Run:
    if program.planes is not None:
        first = program.planes.first
        results, stacked = [result[first : first + 3] for result in results], None
    kept: Sequence[Image] = []
    sources = np.zeros(program.num_rows, np.int64)
    if images is not None:
        whole = isinstance(images, np.ndarray)
        kept = np.ascontiguousarray(images) if whole else [np.ascontiguousarray(image) for image in images]  # type: ignore[assignment]
        sources = _addresses(kept, kept if whole else None)[program.source]
    load: Any = None
    if loader is not None:
        load = loader(program) if program.planes is not None else partial(_load_each, loader(program))
    targets, form = _addresses(results, stacked), _format(program)
    batch = new_batch(instructions_of(program), side_tables(program.tables), sources, targets)
    batch = batch._replace(scale=form.scale, bias=form.bias)
    canvases: list[Result] = []
    if program.blend is not None:
        canvases = [RESULTS.take(prod(result_shape(program, row))) for row in range(program.num_rows)]
    return _Run(program, batch, form, load, _addresses(canvases, None), (kept, canvases))


def _load_each(load: Load, begin: int, end: int, sources: npt.NDArray[np.int64]) -> list[Image]:
    loaded = [load(row, place) for place, row in enumerate(range(begin, end))]
    sources[begin:end] = [place_of(image) for image in loaded]
    return loaded


def _addresses(arrays: Sequence[Result], stacked: Any) -> npt.NDArray[np.int64]:
    """Address of each array; they lie one after another in ``stacked``, if that is given."""
    if stacked is not None and len(arrays):
        return place_of(stacked) + np.arange(len(arrays), dtype=np.int64) * (stacked.nbytes // len(arrays))
    return np.array([place_of(array) for array in arrays], np.int64)


def _format(program: Program) -> ResultFormat:
    height, width = program.final_size(0) if program.num_rows else (0, 0)
    streams = bool(12 * height * width * program.num_rows >= STREAM_FROM_BYTES)
    return form_of(program.output)._replace(streams=streams)


def _run_rows(runs: Sequence[_Run], num_threads: int | None, together: int = 1) -> None:
    """The rows of programs of equal rows."""
    program, load = runs[0].program, runs[0].load
    held, needs = [], (0,) * NEEDS
    for run in runs:
        batch, kind, streams = run.batch, run.form.kind, run.form.streams
        if run.program.blend is not None:
            batch = batch._replace(targets=run.canvases)
            kind = BYTES_CHW if run.program.output.layout == "NCHW" else BYTES_HWC
        memory = held_batch(batch)
        # Asked now: ``load`` may put smaller images in place of the ones that the program was made for, never larger.
        measure(place_of(memory))
        needs = tuple(map(max, needs, batch.needs.tolist()))
        native = kernels.pack_batch(run.program, batch.sources, batch.targets, kind, streams, run.form)
        held.append((memory, place_of(memory), kind, streams, run.load, batch.sources, native))
    in_pixels = int(program.in_shape[:, :2].prod(axis=1, dtype=np.int64).max(initial=1))
    at_a_time = max(_LOADED_AT_LEAST, _LOADED_BYTES // max(3 * in_pixels, 1))

    def work(groups: npt.NDArray[np.int64]) -> None:
        if len(groups) == 0:
            return
        begin, end = int(groups[0]) * together, (int(groups[-1]) + 1) * together
        is_native = all(run[-1].is_supported for run in held)
        scratch = 0 if is_native else scratch_for(needs)
        if load is None:
            ((_, at, kind, streams, _, _, native),) = held
            if is_native:
                kernels.run_rows(native, begin, end)
            else:
                passes.run_rows(begin, end, at, scratch, kind, streams)
            return
        for i in range(begin, end, at_a_time):
            stop = min(i + at_a_time, end)
            for _, at, kind, streams, load_many, sources, native in held:
                _loaded = load_many(i, stop, sources)
                if is_native:
                    kernels.run_rows(native, i, stop)
                else:
                    passes.run_rows(i, stop, at, scratch, kind, streams)

    height, width = program.final_size(0) if program.num_rows else (0, 0)
    pixels = height * width if load is None else max(height * width, in_pixels)
    chunk = min(_MOST_ROWS, max(ROWS_AT_A_TIME, _CHUNK_PIXELS // max(pixels, 1)))
    share_out(work, program.num_rows // together, num_threads, max(1, chunk // together))


def _blend(run: _Run, num_threads: int | None) -> None:
    program, batch, canvases, form = run.program, run.batch, run.canvases, run.form
    assert program.blend is not None
    entries = program.blend.entries()
    largest = max(prod(result_shape(program, row)) for row in range(program.num_rows))
    longest = max(SPAN, int((program.final_sizes()[:, 1] * program.in_shape[:, 2]).max(initial=1)))
    memory = held_batch(batch)
    at = place_of(memory)

    def work(outputs: npt.NDArray[np.int64]) -> None:
        sums, levels = RESULTS.take(4 * longest).view(np.float32), RESULTS.take(largest)
        scratch = scratch_for((1,) * NEEDS)
        blend_outputs(outputs, entries, at, canvases, batch.targets, form, sums, levels, scratch)

    share_out(work, program.num_outputs, num_threads)
