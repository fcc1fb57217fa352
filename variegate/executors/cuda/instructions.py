"""Every instruction of a program as the kernels read it (``layout.py``), and the tables of separable maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.plan import TABLE
from variegate.program.compiled import kernel
from variegate.program.coordinate_tables import may_hit, pad_table, scale_table
from variegate.program.ops import KIND_OF, Kind, Op

_GEOMETRY, _VALUE, _STATISTIC, _POSITION = (
    int(kind) for kind in (Kind.GEOMETRY, Kind.VALUE, Kind.STATISTIC, Kind.POSITION)
)
_FIXED, _SCALE, _PAD, _CONVOLVE, _LUT, _MATRIX, _ERASE = (
    int(op) for op in (Op.MAP_FIXED, Op.MAP_SCALE, Op.MAP_PAD, Op.CONVOLVE, Op.LUT, Op.COLOR_MATRIX, Op.ERASE)
)


@kernel
def fill_instructions(
    opcode: Any,
    args: Any,
    flags: Any,
    fill: Any,
    out_size: Any,
    window: Any,
    in_shape: Any,
    length: Any,
    kernel_at: Any,
    luts_at: Any,
    matrices_at: Any,
    rectangles_at: Any,
    indices_at: Any,
    statistics_at: Any,
    code: Any,
    indices: Any,
) -> None:
    """Every instruction, and the tables of columns and lines. ``*_at``: offsets; ``kernel_at``: one per kernel."""
    used_indices, used_statistics = 0, 0
    code[:] = 0
    for r in range(opcode.shape[0]):
        height, width = int(in_shape[r, 0]), int(in_shape[r, 1])
        for k in range(length[r]):
            op, a, c = opcode[r, k], args[r, k], code[r, k]
            h, w = int(out_size[r, k, 0]), int(out_size[r, k, 1])
            kind = KIND_OF[op]
            c[L.OP], c[L.FLAG] = op, flags[r, k]
            c[L.FILL] = np.int32(fill[r, k, 0]) | np.int32(fill[r, k, 1]) << 8 | np.int32(fill[r, k, 2]) << 16
            if op == _FIXED:
                # Nothing of a map that misses is inside, perhaps by more than 32 bits can tell.
                if may_hit(a, window[r, k], out_size[r, k]):
                    for i in range(6):
                        c[L.COEFFICIENT + i] = np.int32(a[i])
                    c[L.WINDOW : L.WINDOW + 4] = window[r, k]
            elif op == _SCALE or op == _PAD:
                columns, lines = indices[used_indices:], indices[used_indices + w :]
                if op == _SCALE:
                    scale_table(a[1], a[0], width, columns, w, a[4] != 0.0)
                    scale_table(a[3], a[2], height, lines, h, False)
                else:
                    pad_table(int(a[0]), flags[r, k], width, columns, w)
                    pad_table(int(a[1]), flags[r, k], height, lines, h)
                c[L.ARG] = indices_at + 4 * used_indices
                c[L.COEFFICIENT] = indices_at + 4 * (used_indices + w)
                used_indices += h + w
            elif kind == _GEOMETRY:
                c[L.WINDOW : L.WINDOW + 4] = window[r, k]
            elif op == _CONVOLVE:
                c[L.ARG], c[L.FLAG] = kernel_at[int(a[0])], int(a[3])
                c[L.COEFFICIENT], c[L.COEFFICIENT + 1] = int(a[1]), int(a[2])
            elif kind == _STATISTIC:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, statistics_at + TABLE * used_statistics
                used_statistics += 1
            elif op == _LUT:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, luts_at + TABLE * int(a[0])
            elif kind == _VALUE:
                c[L.CLASS] = L.VALUE
                c[L.ARG] = matrices_at + 48 * int(a[0]) if op == _MATRIX else int(a[0])
            elif kind == _POSITION:
                c[L.CLASS] = L.PLACE
                if op == _ERASE:
                    c[L.CLASS] = L.PLACE_NORMALIZED if a[7] != 0.0 else L.PLACE
                    c[L.ARG], c[L.COUNT] = rectangles_at + 16 * int(a[0]), int(a[1])
            height, width = h, w
