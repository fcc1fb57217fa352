"""Run fused programs on the CPU: threads over rows, then blends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.blend import blend_outputs, rows_by_output
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
from variegate.executors.cpu.memory import RESULTS, scratch_for, scratch_needs
from variegate.executors.cpu.passes import run_rows
from variegate.executors.images import check_fits, shapes_of
from variegate.executors.threads import ROWS_AT_A_TIME, share_out
from variegate.program.compiled import TURN
from variegate.program.lowering import lower
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]
Result = npt.NDArray[Any]
Load = Callable[[int, int], Image]

# Small images, of which one takes microseconds, are handed out by larger numbers.
_MOST_ROWS, _CHUNK_PIXELS = 64, ROWS_AT_A_TIME * 224 * 224
# Float batches from this size on are written past the caches: nobody reads them before they would have been evicted,
# and the memory need not be read before it is written. Measured; the exact place matters little.
STREAM_FROM_BYTES = 8 << 20
# Decoded images held per thread: few enough to stay in its cache until they are used.
_LOADED_AT_A_TIME = 2


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
    channels = int(program.in_shape[row, 2])
    return (channels, height, width) if program.output.layout == "NCHW" else (height, width, channels)


def allocate(program: Program) -> tuple[Result | None, list[Result]]:
    """Room for every output -> (the stacked batch if all shapes agree, else None; one array per output)."""
    shapes = [result_shape(program, row) for row in range(program.num_outputs)]
    kind = np.dtype(np.float32) if program.output.is_float else np.dtype(np.uint8)
    if shapes and all(shape == shapes[0] for shape in shapes):
        size = len(shapes) * int(np.prod(shapes[0])) * kind.itemsize
        stacked = RESULTS.take(size).view(kind).reshape(len(shapes), *shapes[0])
        return stacked, list(stacked)
    single = [RESULTS.take(int(np.prod(s)) * kind.itemsize).view(kind).reshape(s) for s in shapes]
    return None, single


def run_into(
    program: Program,
    images: Sequence[Image] | Image | None,
    results: list[Result],
    stacked: Result | None = None,
    num_threads: int | None = None,
    load: Load | None = None,
) -> None:
    """Execute a fused program, writing output n into ``results[n]`` (contiguous, of ``result_shape``; see
    ``allocate``).

    Images are either all given, or brought row by row: ``load(row, place)`` runs on the thread that needs the image,
    just before; what it returned must last until the thread's next load with the same place.
    """
    kept: Sequence[Image] = []
    sources = np.zeros(program.num_rows, np.int64)
    if images is not None:
        whole = isinstance(images, np.ndarray)
        kept = np.ascontiguousarray(images) if whole else [np.ascontiguousarray(image) for image in images]  # type: ignore[assignment]
        sources = _addresses(kept, kept if whole else None)[program.source]
    targets, form = _addresses(results, stacked), _format(program)
    if program.blend is None:
        _run_rows(program, sources, targets, form, num_threads, load)
    else:
        canvases = [RESULTS.take(int(np.prod(result_shape(program, row)))) for row in range(program.num_rows)]
        at = _addresses(canvases, None)
        bytes_kind = BYTES_CHW if program.output.layout == "NCHW" else BYTES_HWC
        _run_rows(program, sources, at, form._replace(kind=bytes_kind), num_threads, load)
        _blend(program, at, targets, form, num_threads)
    TURN.finish()


def _addresses(arrays: Sequence[Result], stacked: Any) -> npt.NDArray[np.int64]:
    """Where each array begins; they lie one after another in ``stacked``, if that is given."""
    if stacked is not None and len(arrays):
        return _address(stacked) + np.arange(len(arrays), dtype=np.int64) * (stacked.nbytes // len(arrays))
    return np.array([_address(array) for array in arrays], np.int64)


def _address(array: Result) -> int:
    # Several times cheaper than array.ctypes.data, and this is asked for every image of a batch.
    return int(array.__array_interface__["data"][0])


def _format(program: Program) -> ResultFormat:
    output, scale, bias = program.output, np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    if output.is_float:
        scale[0], bias[0] = output.scale_and_bias(1)
        scale[1], bias[1] = output.scale_and_bias(3)
    is_planar = output.layout == "NCHW"
    kind = (FLOATS_CHW if is_planar else FLOATS_HWC) if output.is_float else (BYTES_CHW if is_planar else BYTES_HWC)
    height, width = program.final_size(0) if program.num_rows else (0, 0)
    return ResultFormat(kind, bool(12 * height * width * program.num_rows >= STREAM_FROM_BYTES), scale, bias)


def _run_rows(
    program: Program,
    sources: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    form: ResultFormat,
    num_threads: int | None,
    load: Load | None,
) -> None:
    instructions, side = _instructions(program), _side_tables(program)
    # Asked now: ``load`` may put smaller images in place of the ones that the program was made for, never larger.
    needs = scratch_needs(program)

    def work(rows: npt.NDArray[np.int64]) -> None:
        scratch = scratch_for(needs)
        if load is None:
            run_rows(rows, instructions, side, sources, targets, form, scratch)
            return
        for i in range(0, len(rows), _LOADED_AT_A_TIME):
            part = rows[i : i + _LOADED_AT_A_TIME]
            loaded = [load(int(row), place) for place, row in enumerate(part)]
            sources[part] = [_address(image) for image in loaded]
            run_rows(part, instructions, side, sources, targets, form, scratch)

    chunk = ROWS_AT_A_TIME
    if load is None:
        height, width = program.final_size(0) if program.num_rows else (0, 0)
        chunk = min(_MOST_ROWS, max(chunk, _CHUNK_PIXELS // max(height * width, 1)))
    share_out(work, program.num_rows, num_threads, chunk)


def _instructions(program: Program) -> Instructions:
    return Instructions(*(getattr(program, name) for name in Instructions._fields))


def _side_tables(program: Program) -> SideTables:
    tables = program.tables
    return SideTables(
        luts=tables.luts,
        matrices=tables.matrices,
        kernels=tables.kernels,
        rectangles=tables.rectangles,
        points=np.array([point.address for point in tables.points], np.int64),
    )


def _blend(
    program: Program,
    canvases: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    form: ResultFormat,
    num_threads: int | None,
) -> None:
    assert program.blend is not None
    instructions, side = _instructions(program), _side_tables(program)
    blending = Blending(*rows_by_output(program), program.blend.weight)
    largest = max(int(np.prod(result_shape(program, row))) for row in range(program.num_rows))

    def work(outputs: npt.NDArray[np.int64]) -> None:
        total = RESULTS.take(4 * largest).view(np.float32)
        blend_outputs(outputs, blending, instructions, side, canvases, targets, form, total)

    share_out(work, program.num_outputs, num_threads)
