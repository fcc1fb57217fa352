"""The geometry of a sampled Program as a table of steps that move or erase pixels, for masks, boxes and key points.

Pixel i covers [i, i + 1). ``back`` maps output coordinates of a step to input coordinates; ``ahead`` is its inverse. A
map with a border mode becomes two steps: a pad of width 0 that repeats the image, and the map of an endless image.
"""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any, NamedTuple

import numpy as np

from variegate.native.library import as_c_contiguous, data_ptr, entry
from variegate.native.structs import STAGES, STAGES_CALL, pack_struct
from variegate.program.ops import MAX_OPCODE, SPECS, Kind, Op
from variegate.program.program import Program

_count_stages = entry("vg_count_stages", c_void_p, c_void_p, result=None)
_write_stages = entry("vg_write_stages", c_void_p, c_void_p)

# Kinds of steps. MAP: projective. GRID: displacements interpolated between nodes. REPEAT: a non-constant pad, which
# shifts points. ERASE: erased rectangles. SCALE: nearest scale with a table of source columns and rows.
MAP, GRID, REPEAT, ERASE, SCALE = range(5)

# Columns of ``numbers`` for GRID. REPEAT uses ``LEFT``, ``TOP``, ``MODE``; ERASE ``FIRST``, ``COUNT``; SCALE ``FIRST``,
# an index into ``tables``.
NUMBERS_PER_STEP = 6
FIRST, LINES, COLUMNS, STEP_Y, STEP_X, UNIT = range(NUMBERS_PER_STEP)
LEFT, TOP, MODE = range(3)
COUNT = 1
NUMBERS = ("FIRST", "LINES", "COLUMNS", "STEP_Y", "STEP_X", "UNIT", "LEFT", "TOP", "MODE", "COUNT")

# STEP_X and STEP_Y of a grid are in units of this many nodes per pixel.
NODES_PER_STEP = 2.0**-26
# Side of an endless image in pixels. It extends equally far to the other side of pixel 0.
ENDLESS = 1 << 52


class Stages(NamedTuple):
    """S steps. Row r has steps ``begin[r]`` up to ``begin[r + 1]``, in the order in which they apply to the image."""

    begin: Any  # int64[R + 1]
    kind: Any  # int64[S]
    back: Any  # float64[S, 9]: 3x3 matrix of a map in row-major order; the identity for other kinds
    ahead: Any  # float64[S, 9]: the inverse of ``back``; NaN if singular
    before: Any  # int64[S, 2]: input height and width
    after: Any  # int64[S, 2]: output height and width
    is_aligned: Any  # bool[S]: True if axis-aligned rectangles stay axis-aligned
    rounds: Any  # bool[S]: True if the image is read at the nearest pixel in this step
    numbers: Any  # int64[S, 6]
    grids: Any  # int16[...]
    rectangles: Any  # int32[T, 4]
    tables: Any  # float64[...]: source positions of each scale's columns, then of its rows
    packed: Any  # the native struct of these arrays


# Indexed by opcode: operations that move or erase pixels.
IS_FOLLOWED = np.zeros(MAX_OPCODE, np.bool_)
IS_FOLLOWED[[op for op, spec in SPECS.items() if op < Op.MAP_FIXED and spec.kind in (Kind.GEOMETRY, Kind.RESAMPLE)]] = (
    True
)
IS_FOLLOWED[Op.ERASE] = True

_READ = ("opcode", "args", "flags", "out_size", "length", "in_shape")


def stages_of(program: Program) -> Stages:
    """Return the steps of all rows of a sampled program."""
    rows, slots = program.opcode.shape
    read = {name: as_c_contiguous(getattr(program, name)) for name in _READ}
    call = pack_struct(STAGES_CALL, rows=rows, slots=slots, **read)
    counts = np.empty(2, np.int64)
    _count_stages(data_ptr(call), data_ptr(counts))
    number, most_places = counts.tolist()
    arrays = {
        "begin": np.empty(rows + 1, np.int64),
        "kind": np.empty(number, np.int64),
        "back": np.empty((number, 9)),
        "ahead": np.empty((number, 9)),
        "before": np.empty((number, 2), np.int64),
        "after": np.empty((number, 2), np.int64),
        "is_aligned": np.empty(number, np.bool_),
        "rounds": np.empty(number, np.bool_),
        "numbers": np.empty((number, NUMBERS_PER_STEP), np.int64),
        "grids": as_c_contiguous(program.tables.grids),
        "rectangles": as_c_contiguous(program.tables.rectangles),
        "tables": np.empty(most_places),
    }
    packed = pack_struct(STAGES, rows=rows, **arrays)
    places = _write_stages(data_ptr(call), data_ptr(packed))
    arrays["tables"] = arrays["tables"][:places]
    return Stages(**arrays, packed=packed)
