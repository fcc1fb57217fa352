"""One image at a time: a thread's own memory for one program, in which an image is lowered and made by two calls.

A batch's arrays are made anew for every batch, and kernels get their addresses. For one image that takes longer than
its pixels; so each thread keeps a workspace: the arrays of one program, at addresses that kernels know. Programs that
do not fit it are run as batches.
"""

from __future__ import annotations

import threading
from copy import copy
from struct import Struct

import numpy as np

from variegate.arrays import AnyArray, UInt8Array
from variegate.executors.cpu.executor import STREAM_FROM_BYTES, run
from variegate.executors.cpu.kernels import result_format, run_rows
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import data_ptr
from variegate.native.structs import BATCH, FUSED_ARRAYS, pack_struct
from variegate.program import lowering
from variegate.program.lowering.rewrites import RECORD, empty_program, new_work
from variegate.program.one_image import OneImage
from variegate.program.program import Output, Tables
from variegate.program.rng import SEGMENTS

# Instructions, rectangles and, to begin with, weights of blurs that a workspace has room for.
SLOTS = 16
RECTANGLES = 16
WEIGHTS = 1024
# Results below this many bytes are not worth a place in the pool.
_SMALL_BYTES = 1 << 15

_RECORD = Struct("8q8d")
_HEADER = Struct("3qQ3q")
_ENDS = Struct("2q")
_BYTE = np.dtype(np.uint8)
_FLOAT = np.dtype(np.float32)
_FIELD = {name: i for i, (name, _) in enumerate(BATCH)}


class SingleImageWorkspace:
    """The memory of one thread."""

    def __init__(self) -> None:
        records = np.zeros((SLOTS + 1, RECORD), np.int64)
        none = Tables()
        program = empty_program(1, SLOTS)
        self.work = new_work(program, SLOTS, WEIGHTS, none.luts, none.filters, records)
        self.records = memoryview(records.data).cast("B")
        self.rectangles = np.zeros((RECTANGLES, 4), np.int32)
        self._ends = np.zeros(2, np.int64)  # addresses of the image and of its result
        self.ends = memoryview(self._ends.data).cast("B")
        self.scale = np.ones((2, 3), np.float32)
        self.bias = np.zeros((2, 3), np.float32)
        self.batch = pack_struct(
            BATCH,
            **{name: getattr(program, name) for name in FUSED_ARRAYS},
            rows=1,
            slots=SLOTS,
            max_passes=SLOTS,
            luts=self.work.luts,
            matrices=0,
            kernels=self.work.kernels,
            rectangles=self.rectangles,
            grids=0,
            grid_values=0,
            points=0,
            segments=SEGMENTS,
            sources=self._ends[:1],
            targets=self._ends[1:],
            scale=self.scale,
            bias=self.bias,
            storage=0,
            streams=0,
        )
        self._output: Output | None = None

    def lower(self, composed: bool) -> None:
        """Lower the program whose records were written."""
        self.work.set("composed", composed)
        self.work.lower()
        self.batch[_FIELD["kernels"]] = data_ptr(self.work.kernels)

    def set_output(self, output: Output, streams: bool) -> None:
        self.batch[_FIELD["streams"]] = streams
        if output is not self._output:
            result = result_format(output)
            self.scale[:], self.bias[:] = result.scale, result.bias
            self.batch[_FIELD["storage"]] = result.storage
            self._output = output


_local = threading.local()


def run_one(image: OneImage, pixels: UInt8Array, output: Output, composed: bool = True) -> AnyArray:
    """Execute what was sampled for one image -> its result: uint8 or float32, CHW or HWC.

    ``pixels``: contiguous uint8[H, W, C] of the image's shape.
    """
    records = image.records
    if lowering.DEBUG:
        lowering.lower(copy(image).finish(output), _geometry(composed))  # which validates every stage
    if image.sampling is not image or len(records) > SLOTS or image.has_tables or image.num_rectangles > RECTANGLES:
        return run(image.finish(output), [pixels], 1, _geometry(composed))[0]
    try:
        workspace: SingleImageWorkspace = _local.workspace
    except AttributeError:
        workspace = _local.workspace = SingleImageWorkspace()
    height, width, channels = image.in_shape
    _HEADER.pack_into(workspace.records, 0, height, width, channels, image.sample_id, *image.stream, len(records))
    at = 8 * RECORD
    for record in records:
        _RECORD.pack_into(workspace.records, at, *record)
        at += 8 * RECORD
    if image.num_rectangles:
        workspace.rectangles[: image.num_rectangles] = image.rectangles()
    workspace.lower(composed)
    height = image.height
    width = image.width
    workspace.set_output(output, 12 * height * width >= STREAM_FROM_BYTES)
    size = height * width * channels
    kind = _FLOAT if output.mean is not None else _BYTE
    shape = (channels, height, width) if output.layout == "NCHW" else (height, width, channels)
    if size < _SMALL_BYTES:
        result: AnyArray = np.empty(shape, kind)
    else:
        result = RESULTS.take(size * kind.itemsize).view(kind).reshape(shape)
    _ENDS.pack_into(workspace.ends, 0, data_ptr(pixels), data_ptr(result))
    run_rows(workspace.batch, 0, 1)
    return result


def _geometry(composed: bool) -> str:
    return "composed" if composed else "exact"
