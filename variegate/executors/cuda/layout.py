"""The packed program: what lies where in the one buffer that travels to the device. Read by the packer and the kernels.

``heads[P, R, HEAD]`` (int64) describes pass p of row r. ``code[R K, CODE]`` (int32) are the instructions, ``args[R K,
8]`` (float64) their real arguments. Slots are counted over all rows: slot k of row r is ``r * K + k``. Offsets are
bytes from the start of the buffer.
"""

from __future__ import annotations

import zlib

from variegate.program.ops import Interpolation, Op

# Fields of a head. A pass's source is ``in_height x in_width`` pixels from ``source`` on, a byte address.
(
    KIND,  # how rows are read: see below
    BEGIN,  # first slot of the pass
    END,  # one past its last slot
    MAPS_END,  # one past the last map (of what a filter reads: the filter itself)
    FIRST,  # first map, or the filter, or the resample
    VALUES,  # slot from which value operations act on what was read
    SOURCE,
    STRIDE_Y,
    STRIDE_X,
    STRIDE_C,
    CHANNELS,
    IN_HEIGHT,
    IN_WIDTH,
    OUT_HEIGHT,
    OUT_WIDTH,
    TARGET,  # byte address: a canvas, or the result
    IS_FINAL,  # writes the result; else a canvas
    ID_LOW,
    ID_HIGH,
    NEEDS,  # what the statistics of this pass are made of: NEEDS_LUMA, NEEDS_COUNTS
    PREFIX_END,  # the first statistic
    STATISTICS_END,  # one past the last statistic
    TOP,  # the part of the source that they see
    LEFT,
    BOTTOM,
    RIGHT,
    OUTSIDE,  # pixels besides, of the map's fill colour
    TAPS_X,
    TAPS_Y,
    WEIGHTS,  # offset of int32 lows_x[w], lows_y[h], weights_x[taps_x, w], weights_y[taps_y, h]
    ERASES,  # has an ERASE in the normalised output
    KEY,  # the stream key: its first word in the low half
) = range(32)
HEAD = 32

# KIND: nearest maps (or none), interpolating maps, tables of columns and lines, a filter, a resample.
CHAIN, REAL, TABLE, FILTER, RESAMPLE = range(5)

NEEDS_LUMA, NEEDS_COUNTS = 1, 2

# Fields of an instruction.
(
    OP,
    CLASS,  # what the value loop does with it
    FLAG,  # interpolation; of a CONVOLVE: is separable
    ARG,  # offset of its table, matrix, weights, rectangles or columns; the number of a point function
    COUNT,  # of rectangles
    WINDOW,  # top, left, bottom, right
) = range(6)
FILL = 9  # red in the lowest byte
COEFFICIENT = 10  # six of a fixed map; kernel sizes of a CONVOLVE; offset of the lines of a table map
CODE = 16

# CLASS.
SKIP, LOOKUP, VALUE, PLACE, PLACE_NORMALIZED = range(5)

# How pixels of a source lie in memory: interleaved bytes; 4 bytes a pixel (canvases); channels STRIDE_C apart.
INTERLEAVED, CANVAS, PLANAR = range(3)

# What is measured of a row, in int32 words of the workspace: counts[3, 256], counts[256] after tables, the sum of lumas
# (int64), and how many tiles have added theirs. All zero between launches.
COUNTS, REMAPPED, LUMA, ARRIVED = 0, 768, 1024, 1026
WORKSPACE = 1028

# What kernels read from here and from the instruction set, as one number. Every kernel takes it as a compile-time
# argument: Triton keeps machine code on disk by a kernel's source and arguments, which these constants are no part of,
# and would go on running with those of an older version.
VERSION = zlib.crc32(
    repr(
        sorted(
            [(name, value) for name, value in globals().items() if isinstance(value, int)]
            + [(str(member), int(member)) for members in (Op, Interpolation) for member in members]
        )
    ).encode()
)
