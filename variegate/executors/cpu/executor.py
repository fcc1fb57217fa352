"""Run fused programs on the CPU: threads over rows, then blends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.batch import NEEDS, BatchArrays, held_batch, measure, new_batch
from variegate.executors.cpu.blend import TILE, blend_outputs, rows_by_output
from variegate.executors.cpu.layout import (
    BYTES_CHW,
    BYTES_HWC,
    FLOATS_CHW,
    FLOATS_HWC,
    Blending,
    Instructions,
    ResultFormat,
    SideTables,
)
from variegate.executors.cpu.memory import RESULTS, place_of, scratch_for
from variegate.executors.cpu.passes import run_rows
from variegate.executors.images import check_fits, shapes_of
from variegate.executors.threads import ROWS_AT_A_TIME, share_out
from variegate.program.compiled import TURN
from variegate.program.held import plain
from variegate.program.lowering import lower
from variegate.program.program import Output, Program, Tables

Image = npt.NDArray[np.uint8]
Result = npt.NDArray[Any]
Load = Callable[[int, int], Image]

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
    load: Load | None = None,
    together: int = 1,
) -> None:
    """Execute a fused program, writing output n into ``results[n]`` (contiguous, of ``result_shape``; see
    ``allocate``).

    Images are either all given, or brought row by row: ``load(row, place)`` runs on the thread that needs the image,
    just before; what it returned must last until the thread's next load with the same place. ``together`` rows, one
    after another, go to the same thread.
    """
    kept: Sequence[Image] = []
    sources = np.zeros(program.num_rows, np.int64)
    if images is not None:
        whole = isinstance(images, np.ndarray)
        kept = np.ascontiguousarray(images) if whole else [np.ascontiguousarray(image) for image in images]  # type: ignore[assignment]
        sources = _addresses(kept, kept if whole else None)[program.source]
    targets, form = _addresses(results, stacked), _format(program)
    batch = new_batch(_instructions(program), side_tables(program.tables), sources, targets)
    batch = batch._replace(scale=form.scale, bias=form.bias)
    if program.blend is None:
        _run_rows(program, batch, form, num_threads, load, together)
    else:
        canvases = [RESULTS.take(prod(result_shape(program, row))) for row in range(program.num_rows)]
        at = _addresses(canvases, None)
        bytes_kind = BYTES_CHW if program.output.layout == "NCHW" else BYTES_HWC
        _run_rows(program, batch._replace(targets=at), form._replace(kind=bytes_kind), num_threads, load)
        _blend(program, batch, at, form, num_threads)
    TURN.finish()


def _addresses(arrays: Sequence[Result], stacked: Any) -> npt.NDArray[np.int64]:
    """Where each array begins; they lie one after another in ``stacked``, if that is given."""
    if stacked is not None and len(arrays):
        return place_of(stacked) + np.arange(len(arrays), dtype=np.int64) * (stacked.nbytes // len(arrays))
    return np.array([place_of(array) for array in arrays], np.int64)


def _format(program: Program) -> ResultFormat:
    height, width = program.final_size(0) if program.num_rows else (0, 0)
    streams = bool(12 * height * width * program.num_rows >= STREAM_FROM_BYTES)
    return form_of(program.output)._replace(streams=streams)


def form_of(output: Output) -> ResultFormat:
    """How results are stored, within the caches."""
    scale, bias = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    if output.is_float:
        scale[0], bias[0] = output.scale_and_bias(1)
        scale[1], bias[1] = output.scale_and_bias(3)
    is_planar = output.layout == "NCHW"
    kind = (FLOATS_CHW if is_planar else FLOATS_HWC) if output.is_float else (BYTES_CHW if is_planar else BYTES_HWC)
    return ResultFormat(kind, False, scale, bias)


def _run_rows(
    program: Program,
    batch: BatchArrays,
    form: ResultFormat,
    num_threads: int | None,
    load: Load | None,
    together: int = 1,
) -> None:
    # Asked now: ``load`` may put smaller images in place of the ones that the program was made for, never larger.
    memory = held_batch(batch)
    at, sources = place_of(memory), batch.sources
    measure(at)
    needs = tuple(batch.needs.tolist())
    kind, streams = form.kind, form.streams
    in_pixels = int(program.in_shape[:, :2].prod(axis=1, dtype=np.int64).max(initial=1))
    at_a_time = max(_LOADED_AT_LEAST, _LOADED_BYTES // max(3 * in_pixels, 1))

    def work(groups: npt.NDArray[np.int64]) -> None:
        if len(groups) == 0:
            return
        scratch, begin, end = scratch_for(needs), int(groups[0]) * together, (int(groups[-1]) + 1) * together
        if load is None:
            run_rows(begin, end, at, scratch, kind, streams)
            return
        for i in range(begin, end, at_a_time):
            stop = min(i + at_a_time, end)
            loaded = [load(row, place) for place, row in enumerate(range(i, stop))]
            sources[i:stop] = [place_of(image) for image in loaded]
            run_rows(i, stop, at, scratch, kind, streams)

    height, width = program.final_size(0) if program.num_rows else (0, 0)
    pixels = height * width if load is None else max(height * width, in_pixels)
    chunk = min(_MOST_ROWS, max(ROWS_AT_A_TIME, _CHUNK_PIXELS // max(pixels, 1)))
    share_out(work, program.num_rows // together, num_threads, max(1, chunk // together))


def _instructions(program: Program) -> Instructions:
    return Instructions(*(plain(getattr(program, name)) for name in Instructions._fields))


def side_tables(tables: Tables) -> SideTables:
    return SideTables(
        luts=plain(tables.luts),
        matrices=plain(tables.matrices),
        kernels=plain(tables.kernels),
        rectangles=plain(tables.rectangles),
        grids=plain(tables.grids),
        points=np.array([point.address for point in tables.points], np.int64),
    )


def _blend(
    program: Program, batch: BatchArrays, canvases: npt.NDArray[np.int64], form: ResultFormat, num_threads: int | None
) -> None:
    assert program.blend is not None
    blending = Blending(*rows_by_output(program), program.blend.weight)
    memory = held_batch(batch)
    at = place_of(memory)

    def work(outputs: npt.NDArray[np.int64]) -> None:
        total = np.empty(TILE, np.float32)
        blend_outputs(outputs, blending, at, canvases, batch.targets, form, total, scratch_for((1,) * NEEDS))

    share_out(work, program.num_outputs, num_threads)
