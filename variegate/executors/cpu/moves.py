"""Apply fused programs of nearest-neighbor maps to masks: copies elements of any width (``native/kernels/moves.cpp``).

GPU counterpart: ``CudaRunner.move``.
"""

from __future__ import annotations

from ctypes import c_void_p

from variegate.arrays import Int64Array
from variegate.executors.batches import share_out
from variegate.executors.cpu.kernels import pack_batch, result_format, scratch_address
from variegate.native.library import check_status, data_ptr, entry
from variegate.native.structs import MOVE_CALL, pack_struct
from variegate.program.program import Program

_move = entry("vg_move", c_void_p)

# Masks that a thread takes at a time.
_AT_A_TIME = 4


def move(
    program: Program, sources: Int64Array, targets: Int64Array, element_bytes: int, fill: int, num_threads: int | None
) -> None:
    """Apply row n to the mask at address ``sources[n]``, and write to address ``targets[n]``.

    ``fill``: the element outside the image, as its bits.
    """
    batch = pack_batch(program, sources, targets, result_format(program.output, program.depth), streams=False)
    bits = element_bytes.bit_length() - 1

    def work(rows: Int64Array) -> None:
        if len(rows) == 0:
            return
        call = pack_struct(
            MOVE_CALL,
            batch=batch.memory,
            scratch=scratch_address(),
            begin=int(rows[0]),
            end=int(rows[-1]) + 1,
            bits=bits,
            fill=fill,
        )
        check_status(_move(data_ptr(call)))

    share_out(work, program.num_rows, num_threads, _AT_A_TIME)
