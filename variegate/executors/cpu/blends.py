"""Blend the rows of a program into outputs: weighted sums, rectangles or alpha masks (``native/kernels/blend.cpp``).

GPU counterpart: ``blend_rows`` in ``cuda/kernels/store.py``.
"""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any

from variegate.arrays import Int64Array
from variegate.executors.batches import share_out
from variegate.executors.cpu.kernels import NativeBatch, ResultFormat, pack_batch, scratch_address
from variegate.native.library import check_status, data_ptr, entry
from variegate.native.structs import BLEND_CALL, pack_struct
from variegate.program.program import Program

_blend = entry("vg_blend", c_void_p)


def blend_rows(
    program: Program,
    canvases: Int64Array,
    targets: Int64Array,
    result: ResultFormat,
    streams: bool,
    num_threads: int | None,
) -> None:
    """Blend rows into outputs. ``canvases``: addresses of the rows' images, in the output's layout; ``targets``: of the
    outputs."""
    assert program.blend is not None
    entries = program.blend.entries()
    batch: NativeBatch = pack_batch(program, canvases, targets, result, streams)
    arrays: dict[str, Any] = entries._asdict()

    def work(outputs: Int64Array) -> None:
        if len(outputs) == 0:
            return
        call = pack_struct(
            BLEND_CALL,
            **arrays,
            batch=batch.memory,
            scratch=scratch_address(),
            begin=int(outputs[0]),
            end=int(outputs[-1]) + 1,
            canvases=canvases,
            targets=targets,
            storage=int(result.storage),
            streams=int(streams),
        )
        check_status(_blend(data_ptr(call)))

    share_out(work, program.num_outputs, num_threads)
