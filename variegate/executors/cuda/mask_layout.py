"""Layout of a batch of masks in the one buffer that travels to the device.

All records are rows of int64; places and factors in them are float64, bit for bit. An output has entries: boxes of it,
each of which shows a row's result; an entry has planes: masks of the row's image, each with the mask of the output that
it becomes. Of the steps of all rows those of an entry stand in the order of the image. Offsets are bytes from the start
of the buffer.
"""

from __future__ import annotations

import zlib

from variegate.executors.cuda.layout import ROWS_SIDE_BY_SIDE
from variegate.program.ops import PadMode

# An output: its sides, and its entries.
HEIGHT, WIDTH, ENTRIES, ENTRIES_END = range(4)
OUTPUT = 4

# An entry: its box, its steps, the width of its masks, its planes, and whether one of these is first.
LEFT, TOP, RIGHT, BOTTOM, STEPS, STEPS_END, COLUMNS, PLANES, PLANES_END, HAS_FIRST = range(10)
ENTRY = 10

# A plane: where it is read and written, and the kinds of numbers there. The first of a mask writes its fill beyond the
# box as well.
(
    SOURCE,  # address, or offset
    IS_IN_BUFFER,
    SOURCE_KIND,
    TARGET,  # address
    TARGET_KIND,
    FILL,
    IS_FIRST,
) = range(7)
PLANE = 7

# Kinds of numbers: uint8, int16, int32, int64.
BYTE, SHORT, INT, LONG = range(4)

# A step: its kind, whether the nearest pixel is taken, the sides of what it reads (float64), and what the kind needs.
STEP_KIND, ROUNDS, BEFORE_HEIGHT, BEFORE_WIDTH, NUMBERS = range(5)
STEP = 13

# Kinds of steps, and their numbers: a projective map's nine, line by line.
MAP, GRID, REPEAT, SCALE = range(4)
# Of a grid: offset of its int16 nodes, their lines and columns; nodes per pixel, and pixels per unit, float64.
NODES, NODE_LINES, NODE_COLUMNS, NODES_PER_LINE, NODES_PER_COLUMN, UNIT = range(6)
# Of a pad that repeats the image: how much is added, float64, and its ``PadMode``.
PAD_LEFT, PAD_TOP, PAD_MODE = range(3)
EDGE = int(PadMode.EDGE)
REFLECT = int(PadMode.REFLECT)
WRAP = int(PadMode.WRAP)
# A side of an image that reaches as far to the other side of its first pixel (targets/stages.py).
ENDLESS = 1 << 52
# Of a scale: offsets of the float64 places that columns and lines read.
COLUMN_PLACES, LINE_PLACES = range(2)

# As ``layout.VERSION``: what the kernel reads from here, and from there.
VERSION = zlib.crc32(
    repr([ROWS_SIDE_BY_SIDE, *sorted((n, value) for n, value in globals().items() if isinstance(value, int))]).encode()
)
