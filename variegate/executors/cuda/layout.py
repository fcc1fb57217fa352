"""Layout of the packed program: the one buffer that is copied to the device. Used by the packer and the kernels.

``headers[P, R, HEADER]`` (int64) describes pass p of row r. ``code[R K, CODE]`` (int32) has the instructions,
``args[R K, 8]`` (float64) their real arguments. Slots are counted over all rows: slot k of row r is ``r * K + k``.
Offsets are bytes from the start of the buffer.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import NamedTuple

from variegate.program import coords, elementary, ops, passes, rng
from variegate.program.depth import Depth
from variegate.program.lowering import blurs

# A header begins with the fields of the pass (program/passes.py), followed by these. The pass reads an image of
# IN_HEIGHT x IN_WIDTH pixels at the byte address IMAGE.
(
    IMAGE,
    STRIDE_Y,
    STRIDE_X,
    STRIDE_C,
    CHANNELS,
    IN_HEIGHT,
    IN_WIDTH,
    TARGET,  # byte address: a canvas, or the result
    IS_FINAL,  # whether the pass writes the result, else a canvas
    ID_LOW,
    ID_HIGH,
    TAPS_X,
    TAPS_Y,
    WEIGHTS,  # offset of int32 lows_x[w], lows_y[h], weights_x[taps_x, w], weights_y[taps_y, h]
    ERASES,  # whether the row has an ERASE after Normalize
    KEY,  # the stream key, with its first word in the low half
    REGION_X,  # column of the region in a larger image; 0 without regions
    REGION_Y,
    WHOLE_WIDTH,  # width of the larger image
    WHOLE_HEIGHT,
) = range(passes.PASS_FIELDS, passes.PASS_FIELDS + 20)
HEADER = 40

# Fields of an instruction.
(
    OP,
    CLASS,  # SKIP to MAP, below: how the loop over instructions applies it
    FLAG,  # a map's Interpolation; 1 for a separable CONVOLVE_FIXED, and for a SHARPNESS with at most a flip before it
    ARG,  # offset of the table, matrix, weights, rectangles, columns or record (program/coords.py); the index of a
    # pixel function
    COUNT,  # number of rectangles; strength of a layer, with 15 fraction bits; a map's PadMode
    WINDOW,  # top, left, bottom, right
) = range(6)
FILL = 9  # red in the lowest byte
PARAMS = 10  # six integers: coefficients of a fixed map; arguments of a CONVOLVE_FIXED, beginning with its sizes;
# arguments of an OVERLAY, beginning with its lines; offset of a table map's lines, or of a grid's nodes; as float32:
# arguments of a per-channel operation on a deep image
CODE = 16

# Values of CLASS.
SKIP, LOOKUP, VALUE, POSITION, POSITION_NORMALIZED, MAP = range(6)

# Memory layouts of a source. Of uint8: adjacent bytes per pixel; 4 bytes per pixel (canvases); channels STRIDE_C bytes
# apart. Of deep images: any strides, which are in elements.
INTERLEAVED, CANVAS, PLANAR, UINT16, FLOAT32 = range(5)
# By layout: white; a unit of uint8; and the scale from 0..1, for integers almost white + 1, so that truncation maps
# values just below 1 to white.
WHITE = (255, 255, 255, Depth.UINT16.white, Depth.FLOAT32.white)
UNIT = tuple(white / 255 for white in WHITE)
GREATEST = (255.999, 255.999, 255.999, 65535.999, 1.0)

# Statistics of a row, as offsets in the workspace in int32 words: counts[3, 256], counts[256] after tables, the sum of
# lumas (int64; of deep images float64), and the number of tiles that have been added. All zero between launches.
COUNTS, REMAPPED, LUMA, ARRIVED = 0, 768, 1024, 1026
WORKSPACE = 1028
# Of deep images, instead of counts after tables: int64[3, 2] with a channel's extremes, see ``statistics.py``, or
# int32[3, 2, 2] with the values at its percentiles, see ``percentiles.py``.
EXTREMES = REMAPPED
PERCENTILES = REMAPPED
# And after ARRIVED: counts[3, 256] for the second percentile.
SECOND_COUNTS = WORKSPACE
DEEP_WORKSPACE = WORKSPACE + 768
# The greatest of the keys that sort float32, see ``deep.key_of``.
LAST_KEY = (1 << 31) - 1
# By layout: rounds in which PERCENTILE_STRETCH searches values, DIGIT_BITS bits in each.
ROUNDS = (1, 1, 1, 2, 4)
DIGIT_BITS = 8

# Offset of the table of normal noise in ``constants``, after scale and bias for one channel and for three.
SEGMENTS = 12

# Fraction bits of the weights of a resize.
RESIZE_BITS = 22
# Fraction bits of a CONVOLVE_FIXED's weights, of values between its two passes, and of the amount of an unsharp mask.
WEIGHT_BITS = blurs.WEIGHT_BITS
LEVEL_BITS = blurs.LEVEL_BITS
AMOUNT_BITS = blurs.AMOUNT_BITS

# Rows along the second axis of a launch's grid, which CUDA limits to 65,535; more rows use the third axis.
ROWS_SIDE_BY_SIDE = 1 << 15

# Bytes of a table of three channels.
TABLE = 768
# Columns or lines whose resize weights one kernel program computes.
WEIGHTS_BLOCK = 128


class KernelFeature(IntEnum):
    """Optional code of a kernel beyond nearest maps and tables; the names are its compile-time arguments."""

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


# Fields of a launch: rows in its list, tiles of its largest image, features; 1 if it begins a search for percentiles.
NUM_ROWS, NUM_TILES, FEATURES, PERCENTILES_BEGIN = range(4)
LAUNCH = 4


class Sections(NamedTuple):
    """Offsets of the sections of the buffer, in order. Each is aligned to 16 bytes."""

    headers: int  # int64[P, R, HEADER]
    code: int  # int32[R, K, CODE]
    args: int  # float64[R, K, 8]
    constants: int  # float32: scale and bias for one channel and for three; rng.SEGMENTS, if the program draws noise
    lists: int  # int32[1 + P, n]: rows that need preparation, then the rows of every pass; padded with -1
    luts: int
    matrices: int
    kernels: int
    rectangles: int
    grids: int
    indices: int  # int32: source columns and lines of maps that are tables
    maps: int  # int64[maps, RECORD]: see program/coords.py
    # Sections of a blend (program.BlendEntries), else empty.
    blend_headers: int  # int64[outputs, HEADER]: of each output's first row
    begins: int  # int32[outputs + 1]
    starts: int  # float32[outputs]
    last_canvases: int  # int64[entries]: addresses of the canvases of the rows' last passes
    blend_weights: int  # float32[entries]
    boxes: int  # int32[entries, 4]
    alpha_at: int  # int64[entries]
    alpha: int  # uint8
    # Not uploaded: written on the device.
    statistics: int  # uint8[statistics, TABLE]
    resize_weights: int  # int32
    # Not in the buffer: the images between passes have separate memory.
    canvases: int


# Hash of all constants of this module and the program's modules. Every kernel takes it as a compile-time argument,
# because Triton's disk cache hashes a kernel's source and arguments only: without it, a kernel compiled with older
# constants would be reused.
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
