"""What a kernel is handed: named tuples of arrays, and the scratch memory of one thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.kernel import PARTS, SWEEP_FIELDS, inlined
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_resize import DIGITS
from variegate.executors.cpu.simd_statistics import EXTREMES, TABLES
from variegate.program.ops import MAX_TILES
from variegate.program.passes import PASS_FIELDS
from variegate.program.places import RECORD

Array = npt.NDArray[Any]

# How the rows of a pass are stored: in planes for a filter, or as a result.
PLANES, BYTES_HWC, BYTES_CHW, FLOATS_CHW, FLOATS_HWC = range(5)


# Of ``Scratch.grid_lines``: whether a grid is among a pass's real maps, and which lines ``along`` holds, the even one
# and the odd one; -1 for none.
HAS_GRID, EVEN_LINE, ODD_LINE = range(3)


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
    """How results are stored."""

    kind: int
    streams: bool  # past the caches
    scale: Array  # float32[2, 3]: for images of one channel, and of three
    bias: Array  # float32[2, 3]


class NoiseKey(NamedTuple):
    """What the noise of an image is drawn by."""

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
    """Where the rows of a pass are stored, and how."""

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


class Scratch(NamedTuple):
    """Memory of one thread. Rows are padded by a block, so that vector moves may run past their end."""

    planes: Array  # uint8[3, Wp]: the row being made
    spare: Array  # uint8[3, Wp]
    stage: Array  # int32[Wp]: slot of the map at which a pixel left the image, -1 inside
    column: Array  # int32[Wp]
    line: Array  # int32[Wp]
    offset: Array  # int32[Wp]
    records: Array  # int64[K, RECORD]: the interpolating maps of a pass, see program/places.py
    tap_weights: Array  # int32[4 Wp]: what simd_places.py writes
    masks: Array  # int32[Wp / 16]: likewise
    terms: Array  # int64[11]: what it reads
    along: Array  # int32[4, Wp]: displacements along two lines of a grid's nodes, x and y of each, see displace.py
    grid_lines: Array  # int64[3]: see HAS_GRID
    tap_frame: Array  # int32[7]: likewise
    filter_input: Array  # int32[PASS_FIELDS]: what a filter sees, as a pass
    canvas: Array  # uint8[2, bytes]: images between passes, HWC
    plane_image: Array  # uint8[bytes]: a whole image for filters, each row as ``planes``; or resized rows
    blurred: Array  # int16[Wp + padding]: a row between the passes of a separable blur
    lines: Array  # int64[Hp + padding]: where a filter finds lines, or cells of its kernel
    stat_luts: Array  # uint8[K, 3, 256]
    fills: Array  # uint8[K, 3]: colour of pixels that left at slot k, at the end of the value operations
    colours: Array  # int32[K]: the same, packed
    slots: Array  # int64[K]: the slots of a pass's maps
    maps: Array  # int32[K, 16]: the maps of a chain, packed
    row_bytes: Array  # uint8[4 Wp]
    row_words: Array  # int32[4 Wp]
    tap_lut: Array  # uint8[3, 256]: LUTs applied to what a statistic sees
    row_pixels: Array  # uint8[4 Wp]
    counts: Array  # int32[3, TABLES, 256]: histograms per channel, filled in turn
    extremes: Array  # uint8[2, EXTREMES]: least and greatest levels, R, G, B and so on
    bounds: Array  # int64[2, Wp, 2]: first source index and number of weights, per output column and row
    weights: Array  # int32[2, weights]: of a resize, along x and along y
    taps: Array  # float64[taps]
    resize: Array  # int64[2]: greatest number of weights along x, whether ``picks`` and ``digits`` are there
    tile_counts: Array  # int32[MAX_TILES, 256]: levels in a row of tiles
    tile_luts: Array  # uint8[MAX_TILES**2, 256]
    picks: Array  # uint8[weights]: what simd_resize.resize_block reads
    digits: Array  # int8[weights]
    row_digits: Array  # int8[weights]: of one output row
    halves: Array  # int16[weights]: what simd_pairs.resize_pixels reads
    row_halves: Array  # int16[weights]: of one output row
    sweep: Array  # int64[SWEEP_FIELDS]
    parts: Array  # int64[PARTS]: addresses


def padded(width: int) -> int:
    return (width + BLOCK - 1) // BLOCK * BLOCK + BLOCK


def make_scratch(
    max_side: int,
    canvas_bytes: int,
    filtered_lines: int,
    resized_bytes: int,
    slots: int,
    max_kernel: int,
    weights: int,
    taps: int,
) -> Scratch:
    wp = padded(max_side)
    return Scratch(
        planes=np.zeros((3, wp), np.uint8),
        spare=np.zeros((3, wp), np.uint8),
        stage=np.zeros(wp, np.int32),
        column=np.zeros(wp, np.int32),
        line=np.zeros(wp, np.int32),
        offset=np.zeros(wp, np.int32),
        records=np.zeros((slots, RECORD), np.int64),
        tap_weights=np.zeros(4 * wp, np.int32),
        masks=np.zeros(wp // 16, np.int32),
        terms=np.zeros(11, np.int64),
        along=np.zeros((4, wp), np.int32),
        grid_lines=np.zeros(3, np.int64),
        tap_frame=np.zeros(7, np.int32),
        filter_input=np.zeros(PASS_FIELDS, np.int32),
        canvas=np.zeros((2, canvas_bytes + BLOCK), np.uint8),
        plane_image=np.zeros(max(filtered_lines * wp + max_kernel, resized_bytes) + BLOCK, np.uint8),
        blurred=np.zeros(wp + 2 * padded(max_kernel), np.int16),
        lines=np.zeros(wp + 2 * padded(max_kernel), np.int64),
        stat_luts=np.zeros((slots, 3, 256), np.uint8),
        fills=np.zeros((slots, 3), np.uint8),
        colours=np.zeros(slots, np.int32),
        slots=np.zeros(slots, np.int64),
        maps=np.zeros((slots, 16), np.int32),
        row_bytes=np.zeros(4 * wp, np.uint8),
        row_words=np.zeros(4 * wp, np.int32),
        tap_lut=np.zeros((3, 256), np.uint8),
        row_pixels=np.zeros(4 * wp, np.uint8),
        counts=np.zeros((3, TABLES, 256), np.int32),
        extremes=np.zeros((2, EXTREMES), np.uint8),
        bounds=np.zeros((2, wp if weights else 0, 2), np.int64),
        weights=np.zeros((2, weights), np.int32),
        taps=np.zeros(taps, np.float64),
        resize=np.zeros(2, np.int64),
        tile_counts=np.zeros((MAX_TILES, 256), np.int32),
        tile_luts=np.zeros((MAX_TILES * MAX_TILES, 256), np.uint8),
        picks=np.zeros(DIGITS * weights, np.uint8),
        digits=np.zeros(DIGITS * weights, np.int8),
        row_digits=np.zeros(DIGITS * taps, np.int8),
        halves=np.zeros(8 * weights, np.int16),
        row_halves=np.zeros(2 * taps, np.int16),
        sweep=np.zeros(SWEEP_FIELDS, np.int64),
        parts=np.zeros(PARTS, np.int64),
    )
