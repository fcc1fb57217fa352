"""Every instruction of a program as the kernels read it (``layout.py``), with the tables or integers of its maps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate.executors.cuda import layout as L
from variegate.program import passes as P
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import IS_REAL_MAP, KIND_OF, Kind, Op
from variegate.program.places import RECORD, may_hit, pad_table, scale_table, write_records


class Offsets(NamedTuple):
    """Offsets of the tables that instructions point into."""

    kernels: Any
    luts: Any
    matrices: Any
    rectangles: Any
    grids: Any
    indices: Any  # of separable maps: source columns and lines
    statistics: Any  # tables made on the device


@pixel_kernel
def fill_instructions(program: Any, at: Any, code: Any, indices: Any) -> None:
    """Every instruction, and the tables of columns and lines. ``at``: Offsets."""
    used_indices, used_statistics = 0, 0
    code[:] = 0
    for r in range(program.opcode.shape[0]):
        height, width = int(program.in_shape[r, 0]), int(program.in_shape[r, 1])
        for k in range(program.length[r]):
            op, a, flag, c = program.opcode[r, k], program.args[r, k], program.flags[r, k], code[r, k]
            size, window, fill = program.out_size[r, k], program.window[r, k], program.fill[r, k]
            h, w = int(size[0]), int(size[1])
            kind = KIND_OF[op]
            c[L.OP], c[L.FLAG] = op, flag
            c[L.FILL] = np.int32(fill[0]) | np.int32(fill[1]) << 8 | np.int32(fill[2]) << 16
            if kind == Kind.GEOMETRY:
                c[L.CLASS] = L.MAP
            if op == Op.MAP_FIXED:
                # Nothing of a map that misses is inside, perhaps by more than 32 bits can tell.
                if may_hit(a, window, size):
                    for i in range(6):
                        c[L.COEFFICIENT + i] = np.int32(a[i])
                    _copy_window(window, c)
            elif op == Op.MAP_SCALE or op == Op.MAP_PAD:
                columns, lines = indices[used_indices:], indices[used_indices + w :]
                if op == Op.MAP_SCALE:
                    scale_table(a[1], a[0], width, columns, w, a[4] != 0.0)
                    scale_table(a[3], a[2], height, lines, h, False)
                else:
                    pad_table(int(a[0]), flag, width, columns, w)
                    pad_table(int(a[1]), flag, height, lines, h)
                c[L.ARG] = at.indices + 4 * used_indices
                c[L.COEFFICIENT] = at.indices + 4 * (used_indices + w)
                used_indices += h + w
            elif kind == Kind.GEOMETRY:
                _copy_window(window, c)
                if op == Op.MAP_GRID:
                    c[L.COEFFICIENT] = at.grids + 2 * int(a[0])
            elif op == Op.CONVOLVE:
                c[L.ARG], c[L.FLAG] = at.kernels + 2 * int(a[0]), int(a[3])
                c[L.COEFFICIENT], c[L.COEFFICIENT + 1] = int(a[1]), int(a[2])
                c[L.COEFFICIENT + 2], c[L.COEFFICIENT + 3] = int(a[4]), int(a[5])
                c[L.COEFFICIENT + 4], c[L.COEFFICIENT + 5] = int(a[6]), int(a[7])
            elif op == Op.SHARPNESS:
                c[L.FLAG] = _sees_source_plainly(program, r, k)
            elif kind == Kind.STATISTIC:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, at.statistics + L.TABLE * used_statistics
                used_statistics += 1
            elif op == Op.LUT:
                c[L.CLASS], c[L.ARG] = L.LOOKUP, at.luts + L.TABLE * int(a[0])
            elif kind == Kind.VALUE:
                c[L.CLASS] = L.VALUE
                c[L.ARG] = at.matrices + 48 * int(a[0]) if op == Op.COLOR_MATRIX else int(a[0])
            elif kind == Kind.POSITION:
                c[L.CLASS] = L.POSITION
                if op == Op.ERASE:
                    c[L.CLASS] = L.POSITION_NORMALIZED if a[7] != 0.0 else L.POSITION
                    c[L.ARG], c[L.COUNT] = at.rectangles + 16 * int(a[0]), int(a[1])
            height, width = h, w


@pixel_kernel
def _sees_source_plainly(program: Any, r: Any, k: Any) -> bool:
    """True if nothing or a flip comes in its pass before the filter in slot k: maps that keep every pixel
    and who its neighbours are."""
    begin = 0
    for p in range(program.num_passes[r]):
        if program.passes[r, p, P.BEGIN] <= k:
            begin = program.passes[r, p, P.BEGIN]
    if begin == k:
        return True
    a, window, size = program.args[r, begin], program.window[r, begin], program.out_size[r, begin]
    if begin + 1 < k or program.opcode[r, begin] != Op.MAP_FIXED or a[1] != 0.0 or a[3] != 0.0:
        return False
    u, v = a[2] / 65536.0, a[5] / 65536.0
    far_u, far_v = u + a[0] / 65536.0 * (size[1] - 1), v + a[4] / 65536.0 * (size[0] - 1)
    in_x = min(u, far_u) >= window[1] and max(u, far_u) < window[3]
    in_y = min(v, far_v) >= window[0] and max(v, far_v) < window[2]
    return bool(abs(a[0]) == 65536.0 and abs(a[4]) == 65536.0 and in_x and in_y)


@pixel_kernel
def fill_maps(program: Any, at: Any, code: Any, records: Any) -> None:
    """The records of all real maps (program/places.py), which begin at the offset ``at``."""
    used = 0
    for r in range(program.opcode.shape[0]):
        for p in range(program.num_passes[r]):
            plan = program.passes[r, p]
            if plan[P.SOURCE] != P.PassSource.INTERPOLATED:
                continue
            write_records(
                program.opcode[r], program.args[r], program.flags[r], program.window[r], program.out_size[r],
                plan[P.FIRST], plan[P.MAPS_END], records[used:],
            )  # fmt: skip
            for k in range(plan[P.FIRST], plan[P.MAPS_END]):
                if IS_REAL_MAP[program.opcode[r, k]]:
                    code[r, k, L.ARG] = at + 8 * RECORD * used
                    used += 1


@pixel_kernel
def _copy_window(window: Any, c: Any) -> None:
    for side in range(4):
        c[L.WINDOW + side] = window[side]
