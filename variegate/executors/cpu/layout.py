"""Arguments of kernels: named tuples of arrays, and the scratch memory of one thread."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.kernel import PARTS, SWEEP_FIELDS, inlined
from variegate.executors.cpu.resizing import DIGITS
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import EXTREMES, TABLES
from variegate.program.ops import MAX_TILES
from variegate.program.passes import PASS_FIELDS
from variegate.program.places import RECORD

Array = npt.NDArray[Any]

# How the rows of a pass are stored: in planes for a filter, or as a result.
PLANES, BYTES_HWC, BYTES_CHW, FLOATS_CHW, FLOATS_HWC = range(5)
# How many sizes a scratch is made by.
NEEDS = 9
# A table of quantization of a JPEG: int32 steps, then float32 factors and summands, each 8 lines of as many columns.
TABLE_COLUMNS = 16
JPEG_TABLE = 3 * 8 * TABLE_COLUMNS


# Of ``Scratch.grid_lines``: whether a grid is among a pass's real maps, or one that folds; which lines ``along`` holds,
# the even one and the odd one, -1 for none; and whether neighbours across a border are others than those along it.
HAS_GRID, EVEN_LINE, ODD_LINE, HAS_SEAM = range(4)


class Instructions(NamedTuple):
    """The per-row arrays of a fused Program."""

    opcode: Array  # int16[R, K]
    args: Array  # float64[R, K, 8]
    flags: Array  # int16[R, K]
    fill: Array  # uint8[R, K, 3]
    out_size: Array  # int32[R, K, 2]
    window: Array  # int32[R, K, 4]
    passes: Array  # int32[R, P, PASS_FIELDS]
    length: Array  # int32[R]
    num_passes: Array  # int32[R]
    in_shape: Array  # int32[R, 3]
    ids: Array  # uint64[R]
    key: Array  # uint32[R, 2]


class SideTables(NamedTuple):
    """The side tables, flattened for Numba."""

    luts: Array  # uint8[T, 3, 256]
    matrices: Array  # float32[M, 3, 4]
    kernels: Array  # int16[sum of sizes]
    rectangles: Array  # int32[Q, 4]
    grids: Array  # int16[sum of sizes], see program/places.py
    points: Array  # int64[P], addresses


class ResultFormat(NamedTuple):
    """Storage format of results."""

    kind: int
    streams: bool  # past the caches
    scale: Array  # float32[2, 3]: for images of one channel, and of three
    bias: Array  # float32[2, 3]


class NoiseKey(NamedTuple):
    """Key of an image's noise."""

    sample_id: int
    key_low: int
    key_high: int


class RowProgram(NamedTuple):
    """One row of ``Instructions``, with the tables it refers to."""

    opcode: Array  # int16[K]
    args: Array  # float64[K, 8]
    flags: Array  # int16[K]
    fill: Array  # uint8[K, 3]
    out_size: Array  # int32[K, 2]
    window: Array  # int32[K, 4]
    noise: NoiseKey
    side: SideTables


class Target(NamedTuple):
    """Memory that the rows of a pass are stored to, and its format."""

    address: int
    kind: int
    height: int
    width: int
    channels: int
    streams: bool
    scale: Array  # float32[3]
    bias: Array  # float32[3]


@inlined
def row_program(program: Any, r: Any, side: Any) -> Any:
    noise = NoiseKey(program.ids[r], program.key[r, 0], program.key[r, 1])
    opcode, args, flags, fill = program.opcode[r], program.args[r], program.flags[r], program.fill[r]
    return RowProgram(opcode, args, flags, fill, program.out_size[r], program.window[r], noise, side)


@inlined
def target_at(address: Any, kind: Any, height: Any, width: Any, channels: Any, form: Any) -> Any:
    of = 0 if channels == 1 else 1
    return Target(address, kind, height, width, channels, form.streams, form.scale[of], form.bias[of])


def padded(width: int) -> int:
    return (width + BLOCK - 1) // BLOCK * BLOCK + BLOCK


def _arrays(
    max_side: int,
    canvas_bytes: int,
    filtered_lines: int,
    resized_bytes: int,
    slots: int,
    max_kernel: int,
    weights: int,
    taps: int,
    coded_bytes: int,
) -> dict[str, Array]:
    """Memory of one thread. Rows are padded by a block, so that vector moves may run past their end."""
    wp = padded(max_side)
    return {
        "planes": np.zeros((3, wp), np.uint8),  # the row being made
        "spare": np.zeros((3, wp), np.uint8),
        "stage": np.zeros(wp, np.int32),  # slot of the map at which a pixel left the image, -1 inside
        "column": np.zeros(wp, np.int32),
        "line": np.zeros(wp, np.int32),
        "offset": np.zeros(wp, np.int32),
        "records": np.zeros((slots, RECORD), np.int64),  # the interpolating maps of a pass, see program/places.py
        "tap_weights": np.zeros(4 * wp, np.int32),  # what simd_interpolate.py writes
        "masks": np.zeros(wp // 16, np.int32),  # likewise
        "terms": np.zeros(11, np.int64),  # what it reads
        # displacements along two lines of a grid's nodes, x and y of each, see displace.py
        "along": np.zeros((4, wp), np.int32),
        # two lines of each plane of an overlaid layer, and weights and colours of a row, see overlay.py
        "layers": np.zeros((14, wp), np.int16),
        "layer_lines": np.zeros(3, np.int64),
        "grid_lines": np.zeros(4, np.int64),  # see HAS_GRID
        "tap_frame": np.zeros(7, np.int32),  # likewise
        "filter_input": np.zeros(PASS_FIELDS, np.int32),  # what a filter sees, as a pass
        "canvas": np.zeros((2, canvas_bytes + BLOCK), np.uint8),  # images between passes, HWC
        # a whole image for filters, each row as ``planes``; or resized rows
        "plane_image": np.zeros(max(filtered_lines * wp + max_kernel, resized_bytes) + BLOCK, np.uint8),
        "coded": np.zeros(coded_bytes, np.uint8),  # an image after a JPEG, and what that was made in
        "blurred": np.zeros(wp + 2 * padded(max_kernel), np.int16),  # a row between the passes of a separable blur
        "lines": np.zeros(wp + 2 * padded(max_kernel), np.int64),  # where a filter finds lines, or cells of its kernel
        "stat_luts": np.zeros((slots, 3, 256), np.uint8),
        # colour of pixels that left at slot k, at the end of the value operations
        "fills": np.zeros((slots, 3), np.uint8),
        "colours": np.zeros(slots, np.int32),  # the same, packed
        "slots": np.zeros(slots, np.int64),  # the slots of a pass's maps
        "maps": np.zeros((slots, 16), np.int32),  # the maps of a chain, packed
        "row_bytes": np.zeros(4 * wp, np.uint8),
        "row_words": np.zeros(4 * wp, np.int32),
        "tap_lut": np.zeros((3, 256), np.uint8),  # LUTs applied to what a statistic sees
        "row_pixels": np.zeros(4 * wp, np.uint8),
        "counts": np.zeros((3, TABLES, 256), np.int32),  # histograms per channel, filled in turn
        "extremes": np.zeros((2, EXTREMES), np.uint8),  # least and greatest levels, R, G, B and so on
        # first source index and number of weights, per output column and row
        "bounds": np.zeros((2, wp if weights else 0, 2), np.int64),
        "weights": np.zeros((2, weights), np.int32),  # of a resize, along x and along y
        "taps": np.zeros(taps, np.float64),
        # greatest number of weights along x, whether ``picks`` and ``digits`` are there
        "resize": np.zeros(2, np.int64),
        "tile_counts": np.zeros((MAX_TILES, 256), np.int32),  # levels in a row of tiles
        "tile_luts": np.zeros((MAX_TILES * MAX_TILES, 256), np.uint8),
        "picks": np.zeros(DIGITS * weights, np.uint8),  # what resizing.resize_block reads
        "digits": np.zeros(DIGITS * weights, np.int8),
        "row_digits": np.zeros(DIGITS * taps, np.int8),  # of one output row
        "halves": np.zeros(8 * weights, np.int16),  # what resizing.resize_pixels reads
        "row_halves": np.zeros(2 * taps, np.int16),  # of one output row
        "sweep": np.zeros(SWEEP_FIELDS, np.int64),
        "parts": np.zeros(PARTS, np.int64),  # addresses
    }


Scratch: Any = namedtuple("Scratch", _arrays(*(1,) * NEEDS))  # type: ignore[misc]


def make_scratch(*needs: int) -> Any:
    """A ``Scratch`` with room for ``needs``, int[NEEDS]: see ``batch.measure``."""
    return Scratch(**_arrays(*needs))
