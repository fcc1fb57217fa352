"""Maps that 16.16 fixed point does not hold: what is worked out before the rows of one, and rows of a nearest one."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.layout import EVEN_LINE, HAS_GRID, ODD_LINE
from variegate.executors.cpu.part_calls import DISPLACED, RESULT_WIDTH, call_part, image_told, part_kernel
from variegate.executors.cpu.rows import read_places
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Op
from variegate.program.places import GRID, write_records

_PERSPECTIVE, _GRID_MAP = int(Op.MAP_PERSPECTIVE), int(Op.MAP_GRID)


@part_kernel
def prepare_maps(batch: Any, scratch: Any, r: Any, first: Any, end: Any) -> Any:
    """``scratch.records`` of the real maps in slots first..end -> how many they are."""
    program, own = batch_at(batch).program, scratch_at(scratch)
    opcode, args, flags, window = program.opcode[r], program.args[r], program.flags[r], program.window[r]
    count = write_records(opcode, args, flags, window, program.out_size[r], first, end, own.records)
    lines = own.grid_lines
    lines[HAS_GRID], lines[EVEN_LINE], lines[ODD_LINE] = 0, -1, -1
    for i in range(count):
        if own.records[i, GRID] != 0:
            lines[HAS_GRID] = 1
    return np.int64(count)


@part_kernel
def real_nearest_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """Row ``y`` of a nearest map that 16.16 fixed point does not hold."""
    program, own = batch_at(batch).program, scratch_at(scratch)
    a, window, is_perspective = program.args[r, slot], program.window[r, slot], program.opcode[r, slot] == _PERSPECTIVE
    if program.opcode[r, slot] == _GRID_MAP:
        call_part(own.parts[DISPLACED], batch, scratch, r, 1, y)
        read_places(image_told(own.sweep), y, own.sweep[RESULT_WIDTH], own)
        return np.int64(0)
    _nearest_row(image_told(own.sweep), a, window, slot, is_perspective, y, own.sweep[RESULT_WIDTH], own)
    return np.int64(0)


@inner_kernel(forceinline=True)
def _nearest_row(
    image: Any, a: Any, window: Any, slot: Any, perspective: Any, y: Any, width: Any, scratch: Any
) -> None:
    """Pillow's arithmetic. The whole row."""
    top, left, bottom, right = (
        np.float64(window[0]), np.float64(window[1]), np.float64(window[2]), np.float64(window[3]),
    )  # fmt: skip
    stage, column, line = scratch.stage, scratch.column, scratch.line
    g, h = (a[6], a[7]) if perspective else (0.0, 0.0)
    a0, a1, a2, a3, a4, a5, yc = a[0], a[1], a[2], a[3], a[4], a[5], y + 0.5
    for x in range(width):
        xc = x + 0.5
        # Of an affine map the depth is exactly 1, which changes nothing.
        depth = g * xc + h * yc + 1.0
        u, v = (a0 * xc + a1 * yc + a2) / depth, (a3 * xc + a4 * yc + a5) / depth
        # False for NaN, a point at infinity.
        is_inside = (u >= left) & (u < right) & (v >= top) & (v < bottom)
        stage[x] = -1 if is_inside else slot
        column[x], line[x] = np.int32(u if is_inside else 0.0), np.int32(v if is_inside else 0.0)
    read_places(image, y, width, scratch)
