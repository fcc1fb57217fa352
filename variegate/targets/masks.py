"""Masks through rows of a program (``native/kernels/masks.cpp``): pixels are followed back as real places, to the pixel
that the last one lies in.

Places are rounded on the way only where the image takes the nearest pixel. What falls outside has the mask's fill."""

from __future__ import annotations

from ctypes import c_int64, c_void_p

from variegate.arrays import Int64Array
from variegate.executors.batches import share_out
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.targets.stages import Stages

_native_read = entry("vg_read_masks", c_void_p, c_void_p, c_int64, c_void_p)

# Results that a thread is handed at a time.
_AT_A_TIME = 2


def read_masks(
    stages: Stages,
    begin: Int64Array,
    regions: Int64Array,
    layers: Int64Array,
    num_threads: int | None,
) -> None:
    """Read ``regions``, of result n ``begin[n]:begin[n + 1]``, later ones on top.

    ``regions``: int64[G, 8], MASK_REGION of ``native/structs.py``; ``layers``: int64[L, 5], MASK_LAYER, whose memory is
    the caller's.
    """
    if not len(regions):
        return
    regions = as_c_contiguous(regions)
    layers = as_c_contiguous(layers)

    def work(results: Int64Array) -> None:
        some = regions[begin[results[0]] : begin[results[-1] + 1]]
        if len(some):
            check_status(_native_read(data_ptr(stages.packed), data_ptr(some), len(some), data_ptr(layers)))

    share_out(work, len(begin) - 1, num_threads, _AT_A_TIME)
