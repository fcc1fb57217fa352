"""One image at a time: a thread's own memory for one program, in which an image is planned and made by three calls.

A batch's arrays are made anew for every batch, and kernels get their addresses. For one image that takes longer than
its pixels; so each thread keeps a workspace: the arrays of one program, at addresses that kernels know. What does not
fit it goes the way of batches.
"""

from __future__ import annotations

import threading
from copy import copy
from struct import Struct
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.batch import NO_TABLES, form_of, held_batch, keep_batch, measure, new_batch
from variegate.executors.cpu.executor import STREAM_FROM_BYTES, run
from variegate.executors.cpu.layout import NEEDS, Instructions
from variegate.executors.cpu.memory import RESULTS, place_of, scratch_for, scratch_sizes
from variegate.executors.cpu.passes import run_rows
from variegate.program import lowering
from variegate.program.compiled import TURN
from variegate.program.lowering.blurs import blurs_to_kernels
from variegate.program.lowering.joint import RECORD, held_work, new_work, rewrite
from variegate.program.one_image import OneImage
from variegate.program.program import Output, Program

# What a workspace has room for: instructions, rectangles and, to begin with, weights of blurs.
SLOTS, RECTANGLES, WEIGHTS = 16, 16, 1024
# Results below this many bytes are not worth a place in the pool.
_SMALL_BYTES = 1 << 15

_RECORD = Struct("8q8d")
_HEADER = Struct("3qQ3q")
_ENDS = Struct("2q")
_BYTE, _FLOAT = np.dtype(np.uint8), np.dtype(np.float32)


class SingleImageWorkspace:
    """Of one thread."""

    def __init__(self) -> None:
        work = self.work = new_work(1, SLOTS, SLOTS, SLOTS + 1)
        self._work_memory = held_work(work)
        self.work_at = place_of(self._work_memory)
        self.records = memoryview(work.records.data).cast("B")
        self.rectangles = np.zeros((RECTANGLES, 4), np.int32)
        ends = np.zeros(2, np.int64)
        self.ends = memoryview(ends.data).cast("B")
        program = Instructions(*(getattr(work.program, name) for name in Instructions._fields))
        side = NO_TABLES._replace(
            luts=work.luts,
            rectangles=self.rectangles,
            kernels=np.zeros(WEIGHTS, NO_TABLES.kernels.dtype),
        )
        self.batch = new_batch(program, side, ends[:1], ends[1:])
        self._batch_memory = held_batch(self.batch)
        self.batch_at = place_of(self._batch_memory)
        self.scratch_at = scratch_for((1,) * NEEDS)
        self.batch.have[:] = scratch_sizes()
        self._output: Output | None = None
        self.kind = 0

    def hold_blurs(self) -> None:
        """Give the blurs of the program their weights."""
        kernels = blurs_to_kernels(cast(Program, self.work.program))
        if kernels.size > self.batch.side.kernels.size:
            self.batch = self.batch._replace(side=self.batch.side._replace(kernels=np.zeros_like(kernels)))
            keep_batch(self.batch_at, self.batch)
        self.batch.side.kernels[: kernels.size] = kernels

    def grow(self) -> None:
        """Have the scratch that the program needs."""
        scratch_for(tuple(self.batch.needs.tolist()))
        self.batch.have[:] = scratch_sizes()

    def set_output(self, output: Output) -> None:
        if output is not self._output:
            form = form_of(output)
            self.kind = form.kind
            self.batch.scale[:], self.batch.bias[:] = form.scale, form.bias
            self._output = output


_local = threading.local()


def run_one(image: OneImage, pixels: npt.NDArray[np.uint8], output: Output, composed: bool = True) -> npt.NDArray[Any]:
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
    if rewrite(workspace.work, workspace.work_at, composed, False):
        workspace.hold_blurs()
    if not measure(workspace.batch_at):
        workspace.grow()
    height, width = image.height, image.width
    workspace.set_output(output)
    size = height * width * channels
    kind = _FLOAT if output.mean is not None else _BYTE
    shape = (channels, height, width) if output.layout == "NCHW" else (height, width, channels)
    if size < _SMALL_BYTES:
        result: npt.NDArray[Any] = np.empty(shape, kind)
    else:
        result = RESULTS.take(size * kind.itemsize).view(kind).reshape(shape)
    _ENDS.pack_into(workspace.ends, 0, place_of(pixels), place_of(result))
    run_rows(0, 1, workspace.batch_at, workspace.scratch_at, workspace.kind, 12 * height * width >= STREAM_FROM_BYTES)
    TURN.finish()
    return result


def _geometry(composed: bool) -> str:
    return "composed" if composed else "exact"
