"""The native executor: batches written down for it, and calls of it."""

from __future__ import annotations

import os
import threading
import weakref
from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.native.structs import BATCH, RUN_CALL, pack_struct
from variegate.program.program import Program
from variegate.program.rng import SEGMENTS

_run = entry("vg_run", c_void_p)
_supports = entry("vg_supports", c_void_p)
_new_scratch = entry("vg_new_scratch", result=c_void_p)
_free_scratch = entry("vg_free_scratch", c_void_p, result=None)

_INSTRUCTIONS = (
    "opcode", "args", "flags", "fill", "out_size", "window", "passes", "length", "num_passes", "in_shape", "ids", "key",
)  # fmt: skip
_TABLES = ("luts", "matrices", "kernels", "rectangles", "grids")


@dataclass(frozen=True)
class NativeBatch:
    """A batch in memory, with the arrays that it points to."""

    memory: npt.NDArray[np.int64]
    arrays: tuple[npt.NDArray[Any], ...]
    is_supported: bool


def pack_batch(
    program: Program,
    sources: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    storage: int,
    streams: bool,
    form: Any,
) -> NativeBatch:
    """``sources`` and ``targets``: addresses of images and results, read when rows are run."""
    arrays = {name: as_c_contiguous(getattr(program, name)) for name in _INSTRUCTIONS}
    arrays |= {name: as_c_contiguous(getattr(program.tables, name)) for name in _TABLES}
    arrays["points"] = np.array([point.address for point in program.tables.points], np.int64)
    arrays |= {"segments": SEGMENTS, "sources": sources, "targets": targets, "scale": form.scale, "bias": form.bias}
    assert program.passes is not None
    rows, slots = program.opcode.shape
    memory = pack_struct(
        BATCH,
        rows=rows,
        slots=slots,
        max_passes=program.passes.shape[1],
        grid_values=arrays["grids"].size,
        storage=storage,
        streams=int(streams),
        **arrays,
    )
    is_supported = os.environ.get("VARIEGATE_NATIVE", "1") == "1" and bool(_supports(data_ptr(memory)))
    return NativeBatch(memory, tuple(arrays.values()), is_supported)


class _Memory:
    """Scratch memory of the library, freed with this object."""

    def __init__(self) -> None:
        address = _new_scratch()
        if not address:
            raise MemoryError("the native library found no memory for its scratch")
        self.address: int = address
        weakref.finalize(self, _free_scratch, address).atexit = False


class _ThreadScratch(threading.local):
    """A thread's memory, and the argument of its calls."""

    def __init__(self) -> None:
        self.memory = _Memory()
        self.call = pack_struct(RUN_CALL, batch=0, scratch=self.memory.address, begin=0, end=0)
        self.call_address = data_ptr(self.call)


_scratch = _ThreadScratch()


def run_rows(batch: NativeBatch, begin: int, end: int) -> None:
    """Run rows ``begin..end``, on this thread. Raises MemoryError."""
    call = _scratch.call
    call[0], call[2], call[3] = data_ptr(batch.memory), begin, end
    check_status(_run(_scratch.call_address))
