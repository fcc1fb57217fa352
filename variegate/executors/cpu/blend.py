"""Blends: weighted sums of rows, truncated to uint8, then stored (and erased after Normalize) as an unblended
row would be.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import bytes_at, call_part, floats_at
from variegate.executors.cpu.layout import CHANNELS, ERASED, FLOATS_CHW, target_at, tell_target
from variegate.program.compiled import pixel_kernel
from variegate.program.program import Program


def rows_by_output(program: Program) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(rows ordered by the output they go to, where each output's rows begin, with the end appended)."""
    assert program.blend is not None
    order = np.argsort(program.blend.target, kind="stable").astype(np.int64)
    counts = np.bincount(program.blend.target, minlength=program.num_outputs)
    return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@pixel_kernel
def blend_outputs(
    outputs: Any, blending: Any, batch: Any, canvases: Any, targets: Any, form: Any, total: Any, scratch: Any
) -> None:
    """Join the rows of each output of the batch at address ``batch``. ``canvases`` and ``targets`` are addresses;
    ``total`` is float32 memory of an image, ``scratch`` the address of the thread's.
    """
    program, own, order = batch_at(batch).program, scratch_at(scratch), blending.order
    for n in outputs:
        begin, end = blending.begins[n], blending.begins[n + 1]
        row = order[begin]
        channels, last = nb.int64(program.in_shape[row, 2]), program.length[row] - 1
        h = nb.int64(program.out_size[row, last, 0]) if last >= 0 else nb.int64(program.in_shape[row, 0])
        w = nb.int64(program.out_size[row, last, 1]) if last >= 0 else nb.int64(program.in_shape[row, 1])
        size = h * w * channels
        for i in range(size):
            total[i] = 0.0
        for at in range(begin, end):
            pixels, share = bytes_at(canvases[order[at]], size), blending.weight[order[at]]
            for i in range(size):
                total[i] += share * np.float32(pixels[i])
        for i in range(size):
            total[i] = np.floor(min(max(total[i], np.float32(0.0)), np.float32(255.0)))
        if form.kind < FLOATS_CHW:
            levels = bytes_at(targets[n], size)
            for i in range(size):
                levels[i] = np.uint8(total[i])
            continue
        floats = floats_at(targets[n], size)
        target = target_at(targets[n], form.kind, h, w, channels, form)
        step, stride = (1, h * w) if form.kind == FLOATS_CHW else (channels, 1)
        for c in range(channels):
            for i in range(h * w):
                at = c * stride + i * step
                floats[at] = total[at] * target.scale[c] + target.bias[c]
        own.sweep[CHANNELS] = channels
        tell_target(target, own.sweep)
        call_part(own.parts[ERASED], batch, scratch, row, 0, program.length[row])
