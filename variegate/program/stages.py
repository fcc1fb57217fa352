"""The geometry of a sampled Program as a table: a line for every step that moves pixels or erases them.

Pixel i covers [i, i + 1). ``back`` leads from a place of a step's output to the one that it reads, ``ahead`` forwards.
A map whose image goes on beyond its edges is two steps: a pad that adds nothing, and the map, of an endless image.
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

# Kinds of steps: a projective map; displacements between the nodes of a grid; a pad that repeats the image, which for
# points is a shift; rectangles that are erased; a map that scales columns and lines, to the nearest pixel.
MAP, GRID, REPEAT, ERASE, SCALE = range(5)

# What ``numbers`` holds of a grid, and of a pad (``LEFT``, ``TOP``, ``MODE``), of rectangles (``FIRST``, ``COUNT``),
# and of a scale (``FIRST``, in ``tables``).
NUMBERS_PER_STEP = 6
FIRST, LINES, COLUMNS, STEP_Y, STEP_X, UNIT = range(NUMBERS_PER_STEP)
LEFT, TOP, MODE = range(3)
COUNT = 1
NUMBERS = ("FIRST", "LINES", "COLUMNS", "STEP_Y", "STEP_X", "UNIT", "LEFT", "TOP", "MODE", "COUNT")

# A step of a grid, STEP_X or STEP_Y, is so many nodes in a pixel.
NODES_PER_STEP = 2.0**-26
# Sides of an endless image, which reaches as far to the other side of its first pixel.
ENDLESS = 1 << 52


class Stages(NamedTuple):
    """S steps; those of row r are ``begin[r]`` up to ``begin[r + 1]``, in the order of the image."""

    begin: Any  # int64[R + 1]
    kind: Any  # int64[S]
    back: Any  # float64[S, 9]: of a map, line by line; else the identity
    ahead: Any  # float64[S, 9]: its inverse, NaN where it has none
    before: Any  # int64[S, 2]: height and width that the step reads
    after: Any  # int64[S, 2]
    is_aligned: Any  # bool[S]: sides of a rectangle stay along the axes
    rounds: Any  # bool[S]: the image takes the nearest pixel here
    numbers: Any  # int64[S, 6]
    grids: Any  # int16[...]
    rectangles: Any  # int32[T, 4]
    tables: Any  # float64[...]: the places that a scale's columns read, then those of its lines
    packed: Any  # the native struct of all these


# By opcode: operations that move pixels or erase them.
IS_FOLLOWED = np.zeros(MAX_OPCODE, np.bool_)
IS_FOLLOWED[[op for op, spec in SPECS.items() if op < Op.MAP_FIXED and spec.kind in (Kind.GEOMETRY, Kind.RESAMPLE)]] = (
    True
)
IS_FOLLOWED[Op.ERASE] = True

_READ = ("opcode", "args", "flags", "out_size", "length", "in_shape")


def stages_of(program: Program) -> Stages:
    """The steps of every row of a sampled program."""
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
