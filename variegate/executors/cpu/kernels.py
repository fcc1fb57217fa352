"""Batches packed for the native executor, and calls of it."""

from __future__ import annotations

import threading
import weakref
from ctypes import c_void_p
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import Float32Array, Int64Array
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.native.structs import BATCH, FUSED_ARRAYS, RUN_CALL, TABLES, Storage, pack_struct
from variegate.program.depth import Depth
from variegate.program.program import Output, Program
from variegate.program.rng import SEGMENTS

_run = entry("vg_run", c_void_p)
_new_scratch = entry("vg_new_scratch", result=c_void_p)
_free_scratch = entry("vg_free_scratch", c_void_p, result=None)


class ResultFormat(NamedTuple):
    """Storage format of results."""

    storage: Storage
    scale: Float32Array  # [2, 3]: for images of one channel, and of three
    bias: Float32Array  # [2, 3]


@lru_cache(maxsize=64)
def result_format(output: Output, depth: Depth) -> ResultFormat:
    scale = np.ones((2, 3), np.float32)
    bias = np.zeros((2, 3), np.float32)
    if output.is_float:
        scale[0], bias[0] = output.scale_and_bias(1, depth)
        scale[1], bias[1] = output.scale_and_bias(3, depth)
    is_planar = output.layout == "NCHW"
    if output.is_float:
        storage = Storage.FLOATS_CHW if is_planar else Storage.FLOATS_HWC
    else:
        storage = Storage.BYTES_CHW if is_planar else Storage.BYTES_HWC
    return ResultFormat(storage, scale, bias)


@dataclass(frozen=True)
class NativeBatch:
    """A packed ``Batch`` struct (``native/kernels/executor.h``), with the arrays that it points to."""

    memory: Int64Array
    arrays: tuple[Any, ...]


def pack_batch(
    program: Program,
    sources: Int64Array,
    targets: Int64Array,
    result: ResultFormat,
    streams: bool,
) -> NativeBatch:
    """Pack a fused program into a ``Batch`` struct.

    ``sources``, ``targets``: addresses of images and results; the arrays are read only when rows run. ``streams``:
    write results with stores that bypass the caches.
    """
    arrays = {name: as_c_contiguous(getattr(program, name)) for name in FUSED_ARRAYS}
    arrays |= {name: as_c_contiguous(getattr(program.tables, name)) for name in (*TABLES, "curves")}
    arrays["pixel_functions"] = np.array([point.packed for point in program.tables.pixel_functions], np.int64)
    arrays |= {"sources": sources, "targets": targets, "scale": result.scale, "bias": result.bias}
    memory = pack_struct(
        BATCH,
        rows=program.opcode.shape[0],
        slots=program.opcode.shape[1],
        max_passes=arrays["passes"].shape[1],
        grid_values=arrays["grids"].size,
        segments=SEGMENTS,
        storage=int(result.storage),
        streams=int(streams),
        depth=int(program.depth),
        **arrays,
    )
    return NativeBatch(memory, tuple(arrays.values()))


class _Memory:
    """Scratch memory allocated by the native library, freed with this object."""

    def __init__(self) -> None:
        address = _new_scratch()
        if not address:
            raise MemoryError("the native library found no memory for its scratch")
        self.address: int = address
        weakref.finalize(self, _free_scratch, address).atexit = False


class _ThreadScratch(threading.local):
    """A thread's scratch memory, and the argument struct of its calls."""

    def __init__(self) -> None:
        self.memory = _Memory()
        self.call = pack_struct(RUN_CALL, batch=0, scratch=self.memory.address, begin=0, end=0)
        self.call_address = data_ptr(self.call)


_scratch = _ThreadScratch()


def scratch_address() -> int:
    """Return the address of this thread's scratch memory."""
    return _scratch.memory.address


def run_rows(batch: Int64Array, begin: int, end: int) -> None:
    """Run rows ``begin..end`` of the packed ``batch`` on this thread. Raises MemoryError."""
    call = _scratch.call
    call[0], call[2], call[3] = data_ptr(batch), begin, end
    check_status(_run(_scratch.call_address))
