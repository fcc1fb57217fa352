"""Antialiased resize of a box, bit for bit as Pillow's ImagingResample: horizontal pass, 8-bit rows, vertical pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiling.levels import HAS_BYTE_DOT
from variegate.executors.cpu import resizing as R
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import RESULT_HEIGHT, RESULT_WIDTH, address_of, image_of_sweep, inlined, part_kernel
from variegate.executors.cpu.simd import BLOCK, REGISTER
from variegate.executors.cpu.simd_pixels import split_rgbx, split_rgbx_reversed
from variegate.program.compiled import inner_kernel


@part_kernel
def prepare_resize(batch: Any, scratch: Any, r: Any, slot: Any, _: Any) -> Any:
    """Weights of both passes, ``scratch.resize``, and the horizontal pass of all rows where it comes first."""
    _prepare(batch_at(batch).program, r, slot, scratch_at(scratch))
    return np.int64(0)


@inlined
def _prepare(program: Any, r: Any, slot: Any, scratch: Any) -> None:
    image, height, width = image_of_sweep(scratch.sweep), scratch.sweep[RESULT_HEIGHT], scratch.sweep[RESULT_WIDTH]
    a, flag = program.args[r, slot], program.flags[r, slot]
    channels, bounds_x, bounds_y = image.channels, scratch.bounds[0], scratch.bounds[1]
    taps = R.coefficients(image.width, a[1], a[3], width, flag, bounds_x, scratch.weights[0], scratch.taps)
    R.coefficients(image.height, a[0], a[2], height, flag, bounds_y, scratch.weights[1], scratch.taps)
    # The picks hold positions relative to a block's first column, so that they serve either order of passes.
    has_picks = False
    if HAS_BYTE_DOT and channels == 3 and 3 * taps < R.WINDOW:
        has_picks = R.pick_tables(bounds_x, scratch.weights[0], taps, width, scratch.picks, scratch.digits)
    scratch.resize[0], scratch.resize[1] = taps, has_picks
    if channels == 3 and not has_picks:
        R.pair_weights(scratch.weights[0], taps, width, scratch.halves)
    shift = 0 if a[7] == 0.0 else bounds_x[0, 0]
    for x in range(R.pad_to_vector(width)):
        scratch.offset[x] = 3 * (bounds_x[x, 0] - shift) if x < width else 0
    if a[7] == 0.0:
        row_size = 4 * R.pad_to_vector(width) if channels == 3 else width
        first, end = bounds_y[0, 0], bounds_y[height - 1, 0] + bounds_y[height - 1, 1]
        for v in range(first, end):
            start, at = v * image.width * channels, (v - first) * row_size
            _horizontal_row(image.levels, start, 0, channels, width, scratch, scratch.plane_image, at)


@inner_kernel(forceinline=True)
def resized_row(image: Any, a: Any, y: Any, height: Any, width: Any, scratch: Any) -> None:
    """Output row ``y`` in planes, after ``prepare_resize``."""
    channels, bounds_x, bounds_y = image.channels, scratch.bounds[0], scratch.bounds[1]
    low, count, first_column = bounds_y[y, 0], bounds_y[y, 1], bounds_x[0, 0]
    weights, step = scratch.weights[1, y:], R.pad_to_vector(height)
    if a[7] == 0.0:
        n = 4 * R.pad_to_vector(width) if channels == 3 else width
        first = (low - bounds_y[0, 0]) * n
        _vertical_row(scratch.plane_image, first, n, n, count, weights, step, scratch, scratch.row_bytes)
    else:
        stride = channels * image.width
        first, n = (
            low * stride + channels * first_column,
            bounds_x[width - 1, 0] + bounds_x[width - 1, 1] - first_column,
        )
        _vertical_row(image.levels, first, stride, channels * n, count, weights, step, scratch, scratch.row_pixels)
        _horizontal_row(scratch.row_pixels, 0, first_column, channels, width, scratch, scratch.row_bytes, 0)
    _spread_row(scratch.row_bytes, width, channels, a[6] != 0.0, scratch.planes)


@inner_kernel(forceinline=True)
def _horizontal_row(
    levels: Any, start: Any, shift: Any, channels: Any, out_width: Any, scratch: Any, out: Any, at: Any
) -> None:
    """One row, pixels from byte ``start`` on, resized along x into ``out`` from ``at``: RGBX for colour, bytes for
    gray.

    ``shift``: the source column that ``start`` stands for. ``out`` has room for whole vectors.
    """
    bounds, weights, taps = scratch.bounds[0], scratch.weights[0], scratch.resize[0]
    stride, source, target = R.pad_to_vector(out_width), address_of(levels) + start, address_of(out) + at
    # The last rows of an image have fewer readable bytes after them than a window.
    if (
        channels == 3
        and scratch.resize[1] != 0
        and start + 3 * (bounds[stride - R.LANES, 0] - shift) + R.WINDOW <= levels.size
    ):
        groups, picks, digits = (taps + 3) // 4, address_of(scratch.picks), address_of(scratch.digits)
        for x in range(0, out_width, R.LANES):
            table = (x // R.LANES) * groups * 192
            R.resize_block(source + 3 * (bounds[x, 0] - shift), picks + table, digits + table, groups, target + 4 * x)
    elif (
        channels == 3
        and scratch.resize[1] == 0
        and start + scratch.offset[out_width - 1] + 6 * ((taps + 1) // 2 - 1) + R.READ <= levels.size
    ):
        pairs, halves, offsets = (taps + 1) // 2, address_of(scratch.halves), address_of(scratch.offset)
        for x in range(0, out_width, R.PIXELS):
            table = x // R.PIXELS * pairs * 8 * REGISTER
            R.resize_pixels(source, offsets + 4 * x, halves + table, pairs, target + 4 * x)
    else:
        for x in range(out_width):
            first = start + channels * (bounds[x, 0] - shift)
            for c in range(channels):
                total = np.int64(1 << (R.PRECISION - 1))
                for j in range(bounds[x, 1]):
                    total += np.int64(levels[first + channels * j + c]) * weights[j * stride + x]
                out[at + (4 * x + c if channels == 3 else x)] = min(max(total >> R.PRECISION, 0), 255)


@inner_kernel(forceinline=True)
def _vertical_row(
    levels: Any, first: Any, stride: Any, n: Any, count: Any, weights: Any, step: Any, scratch: Any, out: Any
) -> None:
    """``count`` stretches of ``n`` bytes, ``stride`` apart from byte ``first`` on, weighed into one, ``out``.

    Weight j is ``weights[j * step]``. ``out`` has room for whole vectors.
    """
    if HAS_BYTE_DOT and n >= BLOCK:
        groups = (count + 3) // 4
        digits = scratch.row_digits
        for j in range(4 * groups):
            w = np.int64(weights[j * step]) if j < count else 0
            i = 12 * (j // 4) + j % 4
            digits[i], digits[i + 4], digits[i + 8] = R.split_weight(w)
        source, d, target = address_of(levels) + first, address_of(digits), address_of(out)
        for block in range((n + BLOCK - 1) // BLOCK):
            # The last block overlaps the one before it, so that no read leaves the stretch.
            x = min(block * BLOCK, n - BLOCK)
            R.weigh_rows_block(source + x, stride, d, groups, count, target + x)
        return
    if n >= REGISTER:
        pairs, halves = (count + 1) // 2, scratch.row_halves
        for j in range(2 * pairs):
            low, high = R.split_in_two(np.int64(weights[j * step]) if j < count else 0)
            i = 4 * (j // 2) + j % 2
            halves[i], halves[i + 2] = low, high
        source, w, target = address_of(levels) + first, address_of(halves), address_of(out)
        for block in range((n + REGISTER - 1) // REGISTER):
            x = min(block * REGISTER, n - REGISTER)
            R.weigh_row_pairs(source + x, stride, w, pairs, count, target + x)
        return
    total = scratch.row_words
    for x in range(n):
        total[x] = 1 << (R.PRECISION - 1)
    for j in range(count):
        weight = weights[j * step]
        line = levels[first + j * stride : first + j * stride + n]
        for x in range(n):
            total[x] += np.int32(line[x]) * weight
    for x in range(n):
        out[x] = np.uint8(min(max(total[x] >> R.PRECISION, 0), 255))


@inner_kernel()
def _spread_row(row: Any, out_width: Any, channels: Any, mirrored: Any, planes: Any) -> None:
    """A resized row into planes, mirrored on request."""
    if channels == 1 or out_width < BLOCK:
        step = 4 if channels == 3 else 1
        for x in range(out_width):
            i = step * (out_width - 1 - x if mirrored else x)
            for c in range(channels):
                planes[c, x] = row[i + c]
        return
    source, target, stride = address_of(row), address_of(planes), planes.shape[1]
    for block in range((out_width + BLOCK - 1) // BLOCK):
        i = min(block * BLOCK, out_width - BLOCK)
        if mirrored:
            split_rgbx_reversed(source + 4 * (out_width - BLOCK - i), target + i, stride)
        else:
            split_rgbx(source + 4 * i, target + i, stride)
