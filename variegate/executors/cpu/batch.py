"""Arguments of kernels: fused programs, and what one call of run_rows needs, written down in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import layout as L
from variegate.executors.cpu.kernel import bytes_at
from variegate.executors.cpu.resizing import filter_radius
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import PICK_MARGIN, pick_channels
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.held import held_as, plain, tuple_kind, words_of
from variegate.program.ops import KIND_OF, NUM_ARGS, Kind, Op
from variegate.program.passes import BEGIN, FIRST, PASS_FIELDS, SOURCE, PassSource
from variegate.program.program import Output, Program, Tables

Array = npt.NDArray[Any]


class BatchArrays(NamedTuple):
    """Fused programs, and where their pixels are."""

    program: L.Instructions
    side: L.SideTables
    sources: Array  # int64[R]: addresses of images
    targets: Array  # int64[R]: of results
    scale: Array  # float32[2, 3], as in ResultFormat
    bias: Array  # float32[2, 3]
    needs: Array  # int64[NEEDS]: arguments of make_scratch, see ``measure``
    have: Array  # int64[NEEDS]: of the scratch that there is


_SIDE, _CANVAS, _LINES, _RESIZED, _SLOTS, _KERNEL, _WEIGHTS, _TAPS, _CODED = range(L.NEEDS)

NO_TABLES = L.SideTables(
    luts=np.empty((0, 3, 256), np.uint8),
    matrices=np.empty((0, 3, 4), np.float32),
    kernels=np.empty(0, np.int16),
    rectangles=np.empty((0, 4), np.int32),
    grids=np.empty(0, np.int16),
    points=np.empty(0, np.int64),
)
_NOTHING = L.Instructions(
    opcode=np.empty((0, 0), np.int16),
    args=np.empty((0, 0, NUM_ARGS), np.float64),
    flags=np.empty((0, 0), np.int16),
    fill=np.empty((0, 0, 3), np.uint8),
    out_size=np.empty((0, 0, 2), np.int32),
    window=np.empty((0, 0, 4), np.int32),
    passes=np.empty((0, 0, PASS_FIELDS), np.int32),
    length=np.empty(0, np.int32),
    num_passes=np.empty(0, np.int32),
    in_shape=np.empty((0, 3), np.int32),
    ids=np.empty(0, np.uint64),
    key=np.empty((0, 2), np.uint32),
)


def new_batch(program: L.Instructions, side: L.SideTables, sources: Array, targets: Array) -> BatchArrays:
    unit = np.ones((2, 3), np.float32)
    needs = np.zeros((2, L.NEEDS), np.int64)
    return BatchArrays(program, side, sources, targets, unit, np.zeros((2, 3), np.float32), needs[0], needs[1])


_ADDRESSES = np.empty(0, np.int64)
BATCH = tuple_kind(new_batch(_NOTHING, NO_TABLES, _ADDRESSES, _ADDRESSES))
SCRATCH = tuple_kind(L.make_scratch(*(1,) * L.NEEDS))
_BATCH_WORDS = words_of(BATCH)
_keep_batch, batch_at = held_as(BATCH)
_keep_scratch, scratch_at = held_as(SCRATCH)


@pixel_kernel
def keep_batch(address: Any, batch: Any) -> None:
    """Write down ``batch`` at ``address``, for ``run_rows`` and ``measure``."""
    _keep_batch(address, batch)


@pixel_kernel
def keep_scratch(address: Any, scratch: Any) -> None:
    """Write down ``scratch`` at ``address``, for ``run_rows``."""
    _keep_scratch(address, scratch)


def held_batch(batch: BatchArrays) -> npt.NDArray[np.int64]:
    """Memory that holds ``batch``, whose arrays must outlive it."""
    memory = np.zeros(_BATCH_WORDS, np.int64)
    keep_batch(memory.ctypes.data, batch)
    return memory


@pixel_kernel
def measure(address: Any) -> bool:
    """Work out ``needs``, the arguments of make_scratch, for the batch at ``address`` -> whether ``have`` suffices."""
    batch = batch_at(address)
    program, needs = batch.program, batch.needs
    needs[:] = 0
    needs[_SIDE], needs[_SLOTS] = 1, program.opcode.shape[1]
    full_kernel, tabled = 0, np.int64(0)
    for r in range(program.opcode.shape[0]):
        h, w = np.int64(program.in_shape[r, 0]), np.int64(program.in_shape[r, 1])
        needs[_SIDE] = max(needs[_SIDE], h, w)
        largest, filters = 3 * h * w, False
        for k in range(program.length[r]):
            h, w = np.int64(program.out_size[r, k, 0]), np.int64(program.out_size[r, k, 1])
            needs[_SIDE] = max(needs[_SIDE], h, w)
            largest = max(largest, 3 * h * w)
            if program.num_passes[r] > 1:
                needs[_CANVAS] = max(needs[_CANVAS], 3 * h * w)
            op = program.opcode[r, k]
            # Sharpness and blurs hold the whole image in planes, as wide as the thread's rows.
            filters = filters or KIND_OF[op] == Kind.NEIGHBOURHOOD
            if op == Op.CONVOLVE:
                a = program.args[r, k]
                # Kernel sizes, and the number of a full one's cells.
                needs[_KERNEL] = max(needs[_KERNEL], int(a[1]), int(a[2]), int(a[5]))
                if a[3] == 0.0:
                    full_kernel = max(full_kernel, int(a[1]), int(a[2]))
            elif op == Op.MEDIAN or op == Op.MORPHOLOGY:
                size, lines = int(program.args[r, k, 0]), int(program.args[r, k, 1])
                needs[_KERNEL], full_kernel = max(needs[_KERNEL], size, size * lines), max(full_kernel, size)
            elif op == Op.JPEG:
                needs[_CODED] = max(needs[_CODED], 3 * h * w + BLOCK + jpeg_memory(h, w))
            elif KIND_OF[op] == Kind.RESAMPLE:
                _measure_resize(program.args[r, k], program.flags[r, k], needs)
        needs[_LINES] = max(needs[_LINES], 3 if filters else 0)
        for p in range(program.num_passes[r]):
            plan = program.passes[r, p]
            # The same memory holds the image that an interpolating map reads through tables.
            if plan[SOURCE] == PassSource.INTERPOLATED and plan[FIRST] > plan[BEGIN]:
                tabled = max(tabled, largest)
    # Of the largest image of all, since a thread keeps one memory for them all.
    needs[_LINES] *= needs[_SIDE]
    needs[_RESIZED] = max(needs[_RESIZED] * 4 * needs[_SIDE], tabled)
    # Full kernels and medians see rows in planes continued to both sides.
    needs[_SIDE] += full_kernel
    suffices = True
    for i in range(L.NEEDS):
        suffices = suffices and batch.have[i] >= needs[i]
    return suffices


@pixel_kernel
def jpeg_memory(height: Any, width: Any) -> int:
    """Bytes that ``jpeg.code_image`` works in: its tables, then luma and half as much of chroma, each to whole blocks,
    and nine lines."""
    stride = (width + BLOCK - 1) // BLOCK * BLOCK
    return 4 * 2 * L.JPEG_TABLE + stride * (2 * height + 32)


@inner_kernel()
def _measure_resize(a: Any, flag: Any, needs: Any) -> None:
    """Room for the weights of a resize along one axis, for those of one output, and for rows at the new width.

    See ``resizing.coefficients``. Weights come in groups of four, outputs in vectors of sixteen.
    """
    radius = filter_radius(flag)
    for axis in range(2):
        extent, size = a[2 + axis], a[4 + axis]
        # One more than Pillow's formula, for a scale that rounds up in float32.
        taps = 2 * int(np.ceil(radius * max(extent / size, 1.0))) + 2
        taps = (taps + 3) // 4 * 4
        needs[_WEIGHTS] = max(needs[_WEIGHTS], taps * ((int(size) + 15) // 16 * 16))
        needs[_TAPS] = max(needs[_TAPS], taps)
    needs[_RESIZED] = max(needs[_RESIZED], (int(a[5]) + BLOCK - 1) // BLOCK * BLOCK + BLOCK)


@pixel_kernel
def pick_planes(images: Any, begin: Any, end: Any, channels: Any, target: Any, sources: Any) -> None:
    """Three channels of ``images[begin:end]``, int64[N, 4], one after another from the address ``target`` on; of two
    channels the second twice. An image begins, with the first of them, at an address, and has so many bytes from line
    to line, lines, and pixels in each. ``sources``: where those made begin."""
    last = min(2, channels - 1)
    for n in range(begin, end):
        source, line, height, width = images[n]
        sources[n] = target
        if line == width * channels:
            height, width = 1, height * width
        for y in range(height):
            count = width if y < height - 1 and width >= PICK_MARGIN else max(0, width - PICK_MARGIN)
            pick_channels(source, target, count, channels)
            levels, planes = bytes_at(source, width * channels), bytes_at(target, 3 * width)
            for x in range(count, width):
                planes[3 * x] = levels[channels * x]
                planes[3 * x + 1] = levels[channels * x + 1]
                planes[3 * x + 2] = levels[channels * x + last]
            source, target = source + line, target + 3 * width


def form_of(output: Output) -> L.ResultFormat:
    """The format of results, stored within the caches."""
    scale, bias = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    if output.is_float:
        scale[0], bias[0] = output.scale_and_bias(1)
        scale[1], bias[1] = output.scale_and_bias(3)
    is_planar = output.layout == "NCHW"
    kind = (
        (L.FLOATS_CHW if is_planar else L.FLOATS_HWC)
        if output.is_float
        else (L.BYTES_CHW if is_planar else L.BYTES_HWC)
    )
    return L.ResultFormat(kind, False, scale, bias)


def instructions_of(program: Program) -> L.Instructions:
    return L.Instructions(*(plain(getattr(program, name)) for name in L.Instructions._fields))


def side_tables(tables: Tables) -> L.SideTables:
    return L.SideTables(
        luts=plain(tables.luts),
        matrices=plain(tables.matrices),
        kernels=plain(tables.kernels),
        rectangles=plain(tables.rectangles),
        grids=plain(tables.grids),
        points=np.array([point.address for point in tables.points], np.int64),
    )
