"""Passes of a fused program on bands of lines, in memory that several workers share (``native/kernels/split.h``).

Pixels are equal to the output of ``run_rows`` for the full image: the same kernels run on a range of lines. Work that
needs the full image (statistics, a JPEG) is a separate step. GPU counterpart: ``cuda/regions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_void_p
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, Int64Array
from variegate.executors.cpu.kernels import pack_batch, result_format, scratch_address
from variegate.native.library import check_status, data_ptr, entry
from variegate.native.structs import BAND_CALL, BandStep, pack_struct
from variegate.program.program import Program

_run_band = entry("vg_run_band", c_void_p)
_input_bytes = entry("vg_input_bytes", c_void_p)
_MEMORY = ("source", "input", "target", "tables", "tiles")


class BandProgram:
    """A fused program, packed once for all its steps."""

    def __init__(self, program: Program) -> None:
        none = np.zeros(program.num_rows, np.int64)
        self._batch = pack_batch(program, none, none, result_format(program.output, program.depth), streams=False)

    def input_bytes(self, row: int, number: int, shape: tuple[int, int, int]) -> int:
        """Return the bytes that the INPUT step of pass ``number`` writes for an image of ``shape``; 0 without one."""
        call = self._call(row, number, shape, {})
        return int(_input_bytes(data_ptr(call)))

    def run(
        self,
        step: BandStep,
        row: int,
        number: int,
        shape: tuple[int, int, int],
        lines: tuple[int, int],
        memory: Mapping[str, AnyArray],
        is_last: bool,
    ) -> None:
        """Run a step on ``lines``, on this thread.

        Args:
            step: the kind of step; all steps before it are complete.
            row, number: the row of the program, and its pass.
            shape: height, width and channels of the image that the pass reads.
            lines: begin and end of the lines of the target to write.
            memory: the buffers that the step uses: ``source``, ``target``, ``input``, ``tables``, ``tiles``.
            is_last: write in the output's format, else [H, W, C] in the image's dtype.

        Raises:
            MemoryError: if the thread's scratch cannot be allocated.
        """
        call = self._call(row, number, shape, memory, step=step, begin=lines[0], end=lines[1], is_last=is_last)
        check_status(_run_band(data_ptr(call)))

    def _call(
        self, row: int, number: int, shape: tuple[int, int, int], memory: Mapping[str, AnyArray], **fields: int
    ) -> Int64Array:
        height, width, channels = shape
        values: dict[str, Any] = dict.fromkeys((*_MEMORY, "step", "begin", "end", "is_last"), 0)
        values |= {"batch": self._batch.memory, "scratch": scratch_address(), "row": row, "pass": number}
        values |= {"height": height, "width": width, "channels": channels}
        return pack_struct(BAND_CALL, **{**values, **fields, **memory})
