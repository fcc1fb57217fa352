"""The packed program: what lies where in the one buffer that travels to the device. Read by the packer and the kernels.

``headers[P, R, HEADER]`` (int64) describes pass p of row r. ``code[R K, CODE]`` (int32) are the instructions, ``args[R
K, 8]`` (float64) their real arguments. Slots are counted over all rows: slot k of row r is ``r * K + k``. Offsets are
bytes from the start of the buffer.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import NamedTuple

from variegate.program import coords, elementary, ops, passes, rng
from variegate.program.lowering import blurs

# A header begins with the pass's row of the pass table (program/passes.py). These fields follow; its source is
# ``in_height x in_width`` pixels from the byte address ``image`` on.
(
    IMAGE,
    STRIDE_Y,
    STRIDE_X,
    STRIDE_C,
    CHANNELS,
    IN_HEIGHT,
    IN_WIDTH,
    TARGET,  # byte address: a canvas, or the result
    IS_FINAL,  # writes the result; else a canvas
    ID_LOW,
    ID_HIGH,
    TAPS_X,
    TAPS_Y,
    WEIGHTS,  # offset of int32 lows_x[w], lows_y[h], weights_x[taps_x, w], weights_y[taps_y, h]
    ERASES,  # has an ERASE in the normalized output
    KEY,  # the stream key: its first word in the low half
    REGION_X,  # where a region begins in a larger image; else 0
    REGION_Y,
    WHOLE_WIDTH,  # of the whole image
    WHOLE_HEIGHT,
) = range(passes.PASS_FIELDS, passes.PASS_FIELDS + 20)
HEADER = 40

# Fields of an instruction.
(
    OP,
    CLASS,  # what the value loop does with it
    FLAG,  # interpolation alone; of a CONVOLVE_FIXED: is separable; of a SHARPNESS: sees its source as it is or flipped
    ARG,  # offset of its table, matrix, weights, rectangles, columns or record (program/coords.py); the number of a
    # pixel function
    COUNT,  # of rectangles; the strength of a layer, with 15 fraction bits; of a map, the PadMode beyond its image
    WINDOW,  # top, left, bottom, right
) = range(6)
FILL = 9  # red in the lowest byte
PARAMS = 10  # six integers: a fixed map; the arguments of a CONVOLVE_FIXED from its sizes on; those of an OVERLAY from
# its lines on; the offset of the lines of a table map, or of a grid's nodes
CODE = 16

# CLASS.
SKIP, LOOKUP, VALUE, POSITION, POSITION_NORMALIZED, MAP = range(6)

# How pixels of a source lie in memory: interleaved bytes; 4 bytes a pixel (canvases); channels STRIDE_C apart.
INTERLEAVED, CANVAS, PLANAR = range(3)

# What is measured of a row, in int32 words of the workspace: counts[3, 256], counts[256] after tables, the sum of lumas
# (int64), and how many tiles have added theirs. All zero between launches.
COUNTS, REMAPPED, LUMA, ARRIVED = 0, 768, 1024, 1026
WORKSPACE = 1028

# Where the table of normal numbers begins in ``constants``: behind scale and bias, for one channel and for three.
SEGMENTS = 12

# Fraction bits of a CONVOLVE_FIXED's weights, of levels between its two passes, and of the amount of an unsharp mask.
WEIGHT_BITS = blurs.WEIGHT_BITS
LEVEL_BITS = blurs.LEVEL_BITS
AMOUNT_BITS = blurs.AMOUNT_BITS

# Rows along the second axis of a launch's grid; more of them lie along the third.
ROWS_SIDE_BY_SIDE = 1 << 15

# Bytes of a table of three channels.
TABLE = 768
# Columns or lines of a resize whose weights one program works out.
WEIGHTS_BLOCK = 128


class KernelFeature(IntEnum):
    """Code that a launch needs beyond nearest maps and tables: the kernels' compile-time arguments."""

    HAS_SUBPIXEL = 1
    HAS_FILTER = 2
    HAS_RESAMPLE = 4
    HAS_HUE = 8
    HAS_NOISE = 16
    MEASURES = 32
    HAS_GRID = 64
    HAS_CLAHE = 128
    HAS_FOLD = 256
    HAS_OVERLAY = 512
    HAS_WARP = 1024
    IS_REGION = 2048


# Fields of a launch: rows in its list, tiles of the largest, features.
NUM_ROWS, NUM_TILES, FEATURES = range(3)
LAUNCH = 3


class Sections(NamedTuple):
    """Offsets of the sections of the buffer, in order. Each is aligned to 16 bytes."""

    headers: int  # int64[P, R, HEADER]
    code: int  # int32[R, K, CODE]
    args: int  # float64[R, K, 8]
    constants: int  # float32: scale and bias for one channel and for three; rng.SEGMENTS, if the program draws noise
    lists: int  # int32[1 + P, n]: headers that need preparation, then the rows of every pass; -1 behind them
    luts: int
    matrices: int
    kernels: int
    rectangles: int
    grids: int
    indices: int  # int32: source columns and lines of maps that are tables
    maps: int  # int64[maps, RECORD]: see program/coords.py
    # Of a program with a blend (program.BlendEntries); else empty.
    blend_headers: int  # int64[outputs, HEADER]: of each output's first row
    begins: int  # int32[outputs + 1]
    starts: int  # float32[outputs]
    last_canvases: int  # int64[entries]: addresses of what their rows' last passes write
    blend_weights: int  # float32[entries]
    boxes: int  # int32[entries, 4]
    alpha_at: int  # int64[entries]
    alpha: int  # uint8
    # Not uploaded: written on the device.
    statistics: int  # uint8[statistics, TABLE]
    resize_weights: int  # int32
    # The images between passes are in memory of their own.
    canvases: int


# What kernels read from here and from the program's modules, as one number. Every kernel takes it as a compile-time
# argument: Triton keeps machine code on disk by a kernel's source and arguments, which these constants are no part of,
# and would go on running with those of an older version.
_CONSTANTS = {**vars(ops), **vars(passes), **vars(coords), **vars(rng), **globals()}
VERSION = zlib.crc32(
    repr(
        sorted(
            [(name, value) for name, value in _CONSTANTS.items() if isinstance(value, int)]
            + [(name, value) for name, value in vars(elementary).items() if isinstance(value, (float, tuple))]
            + [
                (str(member), int(member))
                for members in (ops.Op, ops.Interpolation, ops.PadMode, ops.LayerMode, passes.PassSource)
                for member in members
            ]
        )
    ).encode()
)
