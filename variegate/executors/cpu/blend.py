"""Blends: weighted sums of rows, truncated to uint8, then stored (and erased after Normalize) as an unblended
row would be.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import bytes_at, floats_at
from variegate.executors.cpu.layout import FLOATS_CHW, target_at
from variegate.executors.cpu.part_calls import CHANNELS, ERASED, call_part, tell_target
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.program import Program

TILE = 3072
"""Values of an image that are summed at a time, few enough to stay near the processor: whole pixels, of 1 or 3."""


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
    ``total`` is float32[TILE], ``scratch`` the address of the thread's.
    """
    program, own, order = batch_at(batch).program, scratch_at(scratch), blending.order
    for n in outputs:
        begin, end = blending.begins[n], blending.begins[n + 1]
        row = order[begin]
        channels, last = nb.int64(program.in_shape[row, 2]), program.length[row] - 1
        h = nb.int64(program.out_size[row, last, 0]) if last >= 0 else nb.int64(program.in_shape[row, 0])
        w = nb.int64(program.out_size[row, last, 1]) if last >= 0 else nb.int64(program.in_shape[row, 1])
        target = target_at(targets[n], form.kind, h, w, channels, form)
        # Of one channel, or of all side by side.
        planes = channels if form.kind == FLOATS_CHW else 1
        size = h * w * channels // planes
        for plane in range(planes):
            for start in range(plane * size, (plane + 1) * size, TILE):
                number = min(TILE, (plane + 1) * size - start)
                total[:number] = 0.0
                for at in range(begin, end):
                    _add(total, canvases[order[at]] + start, number, blending.weight[order[at]])
                if form.kind < FLOATS_CHW:
                    _store_bytes(total, number, targets[n] + start)
                else:
                    _store_floats(total, number, targets[n] + 4 * start, plane, channels // planes, target)
        if form.kind >= FLOATS_CHW:
            own.sweep[CHANNELS] = channels
            tell_target(target, own.sweep)
            call_part(own.parts[ERASED], batch, scratch, row, 0, program.length[row])


@inner_kernel()
def _add(total: Any, canvas: Any, number: Any, share: Any) -> None:
    pixels = bytes_at(canvas, number)
    for i in range(number):
        total[i] += share * np.float32(pixels[i])


@inner_kernel()
def _store_bytes(total: Any, number: Any, target: Any) -> None:
    levels = bytes_at(target, number)
    for i in range(number):
        levels[i] = np.uint8(_truncated(total[i]))


@inner_kernel()
def _store_floats(total: Any, number: Any, at: Any, first: Any, channels: Any, target: Any) -> None:
    """Values of ``channels`` channels side by side, the first of which is ``first``."""
    floats = floats_at(at, number)
    if channels == 1:  # side by side, which takes vectors
        scale, bias = target.scale[first], target.bias[first]
        for i in range(number):
            floats[i] = _truncated(total[i]) * scale + bias
        return
    for c in range(channels):
        scale, bias = target.scale[first + c], target.bias[first + c]
        for i in range(c, number, channels):
            floats[i] = _truncated(total[i]) * scale + bias


@pixel_kernel(inline="always")
def _truncated(value: Any) -> Any:
    return np.floor(min(max(value, np.float32(0.0)), np.float32(255.0)))
