"""What a kernel is handed: named tuples of arrays, and the scratch memory of one thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_resize import DIGITS

Array = npt.NDArray[Any]

# How a result is stored.
BYTES_HWC, BYTES_CHW, FLOATS_CHW, FLOATS_HWC = range(4)


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
    kernels: Array  # float32[sum of sizes]
    kernel_start: Array  # int64[kernels]
    rectangles: Array  # int32[Q, 4]
    points: Array  # int64[P], addresses


class Scratch(NamedTuple):
    """Memory of one thread. Rows are padded by a block, so that vector moves may run past their end."""

    planes: Array  # uint8[3, Wp]: the row being made
    spare: Array  # uint8[3, Wp]
    stage: Array  # int32[Wp]: slot of the map at which a pixel left the image, -1 inside
    column: Array  # int32[Wp]
    line: Array  # int32[Wp]
    offset: Array  # int32[Wp]
    real: Array  # float64[2, Wp]
    canvas: Array  # uint8[2, bytes]: images between passes, HWC
    plane_image: Array  # uint8[bytes]: a whole image in planes for filters, or resized rows
    sums: Array  # float32[Wp + padding]
    stat_luts: Array  # uint8[K, 3, 256]
    fills: Array  # uint8[K, 3]: colour of pixels that left at slot k, at the end of the value operations
    colours: Array  # int32[K]: the same, packed
    slots: Array  # int64[K]: the slots of a pass's maps
    maps: Array  # int32[K, 16]: the maps of a chain, packed
    row_bytes: Array  # uint8[4 Wp]
    row_words: Array  # int32[4 Wp]
    tap_lut: Array  # uint8[3, 256]: LUTs applied to what an interpolating map reads
    row_pixels: Array  # uint8[4 Wp]
    counts: Array  # int32[3, 8, 256]: histograms per channel, eight that are filled in turn
    extremes: Array  # uint8[2, 3]: least and greatest level
    bounds: Array  # int64[2, Wp, 2]: first source index and number of weights, per output column and row
    weights: Array  # int32[2, weights]: of a resize, along x and along y
    taps: Array  # float64[taps]
    picks: Array  # uint8[weights]: see simd_resize.resize_block
    digits: Array  # int8[weights]
    row_digits: Array  # int8[weights]: of one output row


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
        real=np.zeros((2, wp), np.float64),
        canvas=np.zeros((2, canvas_bytes + BLOCK), np.uint8),
        plane_image=np.zeros(max(filtered_lines * wp, resized_bytes) + BLOCK, np.uint8),
        sums=np.zeros(wp + 2 * max_kernel + BLOCK, np.float32),
        stat_luts=np.zeros((slots, 3, 256), np.uint8),
        fills=np.zeros((slots, 3), np.uint8),
        colours=np.zeros(slots, np.int32),
        slots=np.zeros(slots, np.int64),
        maps=np.zeros((slots, 16), np.int32),
        row_bytes=np.zeros(4 * wp, np.uint8),
        row_words=np.zeros(4 * wp, np.int32),
        tap_lut=np.zeros((3, 256), np.uint8),
        row_pixels=np.zeros(4 * wp, np.uint8),
        counts=np.zeros((3, 8, 256), np.int32),
        extremes=np.zeros((2, 3), np.uint8),
        bounds=np.zeros((2, wp if weights else 0, 2), np.int64),
        weights=np.zeros((2, weights), np.int32),
        taps=np.zeros(taps, np.float64),
        picks=np.zeros(DIGITS * weights, np.uint8),
        digits=np.zeros(DIGITS * weights, np.int8),
        row_digits=np.zeros(DIGITS * taps, np.int8),
    )
