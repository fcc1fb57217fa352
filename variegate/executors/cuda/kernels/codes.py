"""Layout and opcodes as the compile-time constants that kernels name.

Kernels must import these by name: Triton keeps compiled kernels on disk, and only a ``constexpr`` that a kernel names
is part of the key. A kernel that read ``layout.KIND`` would go on running with the numbers of an older version.
"""

from __future__ import annotations

import triton.language as tl

from variegate.executors.cuda import layout
from variegate.program.ops import Interpolation, Op

KIND = tl.constexpr(layout.KIND)
BEGIN = tl.constexpr(layout.BEGIN)
END = tl.constexpr(layout.END)
MAPS_END = tl.constexpr(layout.MAPS_END)
FIRST = tl.constexpr(layout.FIRST)
VALUES = tl.constexpr(layout.VALUES)
SOURCE = tl.constexpr(layout.SOURCE)
STRIDE_Y = tl.constexpr(layout.STRIDE_Y)
STRIDE_X = tl.constexpr(layout.STRIDE_X)
STRIDE_C = tl.constexpr(layout.STRIDE_C)
CHANNELS = tl.constexpr(layout.CHANNELS)
IN_HEIGHT = tl.constexpr(layout.IN_HEIGHT)
IN_WIDTH = tl.constexpr(layout.IN_WIDTH)
OUT_HEIGHT = tl.constexpr(layout.OUT_HEIGHT)
OUT_WIDTH = tl.constexpr(layout.OUT_WIDTH)
TARGET = tl.constexpr(layout.TARGET)
IS_FINAL = tl.constexpr(layout.IS_FINAL)
ID_LOW = tl.constexpr(layout.ID_LOW)
ID_HIGH = tl.constexpr(layout.ID_HIGH)
NEEDS = tl.constexpr(layout.NEEDS)
PREFIX_END = tl.constexpr(layout.PREFIX_END)
STATISTICS_END = tl.constexpr(layout.STATISTICS_END)
TOP = tl.constexpr(layout.TOP)
LEFT = tl.constexpr(layout.LEFT)
BOTTOM = tl.constexpr(layout.BOTTOM)
RIGHT = tl.constexpr(layout.RIGHT)
OUTSIDE = tl.constexpr(layout.OUTSIDE)
TAPS_X = tl.constexpr(layout.TAPS_X)
TAPS_Y = tl.constexpr(layout.TAPS_Y)
WEIGHTS = tl.constexpr(layout.WEIGHTS)
ERASES = tl.constexpr(layout.ERASES)
HEAD = tl.constexpr(layout.HEAD)

CHAIN = tl.constexpr(layout.CHAIN)
REAL = tl.constexpr(layout.REAL)
TABLE = tl.constexpr(layout.TABLE)
FILTER = tl.constexpr(layout.FILTER)
RESAMPLE = tl.constexpr(layout.RESAMPLE)

NEEDS_LUMA = tl.constexpr(layout.NEEDS_LUMA)
NEEDS_COUNTS = tl.constexpr(layout.NEEDS_COUNTS)

OP = tl.constexpr(layout.OP)
CLASS = tl.constexpr(layout.CLASS)
FLAG = tl.constexpr(layout.FLAG)
ARG = tl.constexpr(layout.ARG)
COUNT = tl.constexpr(layout.COUNT)
WINDOW = tl.constexpr(layout.WINDOW)
FILL = tl.constexpr(layout.FILL)
COEFFICIENT = tl.constexpr(layout.COEFFICIENT)
CODE = tl.constexpr(layout.CODE)

LOOKUP = tl.constexpr(layout.LOOKUP)
VALUE = tl.constexpr(layout.VALUE)
PLACE = tl.constexpr(layout.PLACE)
PLACE_NORMALIZED = tl.constexpr(layout.PLACE_NORMALIZED)

INTERLEAVED = tl.constexpr(layout.INTERLEAVED)
CANVAS = tl.constexpr(layout.CANVAS)
PLANAR = tl.constexpr(layout.PLANAR)

COUNTS = tl.constexpr(layout.COUNTS)
REMAPPED = tl.constexpr(layout.REMAPPED)
LUMA = tl.constexpr(layout.LUMA)
ARRIVED = tl.constexpr(layout.ARRIVED)
WORKSPACE = tl.constexpr(layout.WORKSPACE)

MAP_FIXED = tl.constexpr(int(Op.MAP_FIXED))
MAP_FLOAT = tl.constexpr(int(Op.MAP_FLOAT))
MAP_PERSPECTIVE = tl.constexpr(int(Op.MAP_PERSPECTIVE))
MIX = tl.constexpr(int(Op.MIX))
HUE = tl.constexpr(int(Op.HUE))
PERMUTE = tl.constexpr(int(Op.PERMUTE))
COLOR_MATRIX = tl.constexpr(int(Op.COLOR_MATRIX))
POINT = tl.constexpr(int(Op.POINT))
CONTRAST = tl.constexpr(int(Op.CONTRAST))
AUTOCONTRAST = tl.constexpr(int(Op.AUTOCONTRAST))
EQUALIZE = tl.constexpr(int(Op.EQUALIZE))
SHARPNESS = tl.constexpr(int(Op.SHARPNESS))
GAUSSIAN_NOISE = tl.constexpr(int(Op.GAUSSIAN_NOISE))
SALT_AND_PEPPER = tl.constexpr(int(Op.SALT_AND_PEPPER))
SHOT_NOISE = tl.constexpr(int(Op.SHOT_NOISE))
ERASE = tl.constexpr(int(Op.ERASE))

NEAREST = tl.constexpr(int(Interpolation.NEAREST))
BILINEAR = tl.constexpr(int(Interpolation.BILINEAR))
