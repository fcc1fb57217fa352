"""Antialiased resize of a box, bit for bit as Pillow's ImagingResample: horizontal pass, 8-bit rows, vertical pass."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.simd import BLOCK, address_of, split_rgbx, split_rgbx_reversed
from variegate.executors.cpu.simd_gather import weigh_block
from variegate.executors.cpu.simd_resize import HAS_BYTE_DOT, WINDOW, resize_block, split_weight, weigh_rows_block
from variegate.program.compiled import pixel_kernel

_PRECISION = 22
_LANES = 16
_BILINEAR = 1


@pixel_kernel(forceinline=True)
def _filter(x: Any, kind: Any) -> float:
    x = abs(x)
    if kind == _BILINEAR:
        return 1.0 - x if x < 1.0 else 0.0
    a = -0.5
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    if x < 2.0:
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return 0.0


@pixel_kernel
def coefficients(
    in_size: Any, start: Any, extent: Any, out_size: Any, kind: Any, bounds: Any, weights: Any, real: Any
) -> int:
    """Per output i its first source index and number of weights, ``bounds[i]``, and weight j, ``weights[j * padded +
    i]``.

    Weights have 22 fraction bits; ``padded`` is ``out_size`` rounded up to whole vectors. Returns the greatest number
    of weights. The box is float32 as in Pillow; weights are normalised in double.
    """
    first = np.float32(start)
    scale = np.float64(np.float32(np.float32(start + extent) - first)) / out_size
    filter_scale = max(scale, 1.0)
    support = (1.0 if kind == _BILINEAR else 2.0) * filter_scale
    stride = pad_to_vector(out_size)
    taps = int(np.ceil(support)) * 2 + 1
    weights[: taps * stride] = 0
    inverse = 1.0 / filter_scale
    most = 0
    for i in range(out_size):
        centre = np.float64(first) + (i + 0.5) * scale
        low = max(int(centre - support + 0.5), 0)
        high = min(int(centre + support + 0.5), in_size)
        total = 0.0
        for j in range(high - low):
            real[j] = _filter((j + low - centre + 0.5) * inverse, kind)
            total += real[j]
        for j in range(high - low):
            w = real[j] / total if total != 0.0 else real[j]
            weights[j * stride + i] = np.int32(w * (1 << _PRECISION) + (0.5 if w >= 0 else -0.5))
        bounds[i, 0], bounds[i, 1] = low, high - low
        most = max(most, high - low)
    return most


@pixel_kernel(inline="always")
def pad_to_vector(n: Any) -> Any:
    return (n + _LANES - 1) // _LANES * _LANES


@pixel_kernel
def pick_tables(bounds: Any, weights: Any, taps: Any, out_width: Any, picks: Any, digits: Any) -> bool:
    """What ``simd_resize.resize_block`` reads, per block of outputs; False where a block spans more than its window."""
    stride = pad_to_vector(out_width)
    groups = (taps + 3) // 4
    for block in range(stride // _LANES):
        base = bounds[block * _LANES, 0]
        for lane in range(_LANES):
            x = block * _LANES + lane
            for j in range(4 * groups):
                at = ((block * groups + j // 4) * 3) * 64 + 4 * lane + j % 4
                is_used = x < out_width and j < bounds[x, 1]
                w = np.int64(weights[j * stride + x]) if is_used else 0
                first = 3 * (bounds[x, 0] + j - base) if is_used else 0
                if first + 2 >= WINDOW:
                    return False
                picks[at], picks[at + 64], picks[at + 128] = first, first + 1, first + 2
                digits[at], digits[at + 64], digits[at + 128] = split_weight(w)
    return True


@pixel_kernel(forceinline=True)
def horizontal_row(
    image: Any,
    start: Any,
    readable: Any,
    channels: Any,
    bounds: Any,
    weights: Any,
    taps: Any,
    shift: Any,
    out_width: Any,
    picks: Any,
    digits: Any,
    has_picks: Any,
    offset: Any,
    out: Any,
    at: Any,
) -> None:
    """One row, pixels from byte ``start`` on, resized along x into ``out`` from ``at``: RGBX for colour, bytes for
    gray.

    ``shift``: the source column that ``start`` stands for. No byte of ``image`` from ``readable`` on is touched.
    ``out`` has room for whole vectors.
    """
    stride = pad_to_vector(out_width)
    if channels == 3 and has_picks:
        # The last rows of an image have fewer readable bytes after them than a window.
        last_block = 3 * (bounds[stride - _LANES, 0] - shift)
        if start + last_block + WINDOW <= readable:
            groups = (taps + 3) // 4
            source, t = address_of(image) + start, address_of(out) + at
            p, d = address_of(picks), address_of(digits)
            for x in range(0, out_width, _LANES):
                table = (x // _LANES) * groups * 192
                resize_block(source + 3 * (bounds[x, 0] - shift), p + table, d + table, groups, t + 4 * x)
            return
    if channels == 3 and readable >= 4:
        for x in range(out_width):
            offset[x] = 3 * (bounds[x, 0] - shift)
        source, last = address_of(image) + start, nb.int32(readable - start - 4)
        w, o, t = address_of(weights), address_of(offset), address_of(out) + at
        for x in range(0, out_width, _LANES):
            weigh_block(source, o + 4 * x, w + 4 * x, 4 * stride, taps, last, t + 4 * x)
        return
    for x in range(out_width):
        first = start + channels * (bounds[x, 0] - shift)
        for c in range(channels):
            total = np.int64(1 << (_PRECISION - 1))
            for j in range(bounds[x, 1]):
                total += np.int64(image[first + channels * j + c]) * weights[j * stride + x]
            out[at + (4 * x + c if channels == 3 else x)] = min(max(total >> _PRECISION, 0), 255)


@pixel_kernel(forceinline=True)
def vertical_row(
    image: Any, first: Any, stride: Any, n: Any, count: Any, weights: Any, at: Any, step: Any, scratch: Any, row: Any
) -> None:
    """``count`` stretches of ``n`` bytes, ``stride`` apart from byte ``first`` on, weighed into one, ``row``.

    Weight j is ``weights[at + j * step]``. ``row`` has room for whole vectors.
    """
    if HAS_BYTE_DOT and n >= BLOCK:
        groups = (count + 3) // 4
        digits = scratch.row_digits
        for j in range(4 * groups):
            w = np.int64(weights[at + j * step]) if j < count else 0
            i = 12 * (j // 4) + j % 4
            digits[i], digits[i + 4], digits[i + 8] = split_weight(w)
        source, d, r = address_of(image) + first, address_of(digits), address_of(row)
        for block in range((n + BLOCK - 1) // BLOCK):
            # The last block overlaps the one before it, so that no read leaves the stretch.
            x = min(block * BLOCK, n - BLOCK)
            weigh_rows_block(source + x, stride, d, groups, count, r + x)
        return
    total = scratch.row_words
    for x in range(n):
        total[x] = 1 << (_PRECISION - 1)
    for j in range(count):
        weight = weights[at + j * step]
        line = image[first + j * stride : first + j * stride + n]
        for x in range(n):
            total[x] += np.int32(line[x]) * weight
    for x in range(n):
        row[x] = np.uint8(min(max(total[x] >> _PRECISION, 0), 255))


@pixel_kernel
def prepare_resize(
    image: Any, height: Any, width: Any, channels: Any, a: Any, flag: Any, h: Any, w: Any, scratch: Any
) -> Any:
    """Weights of both passes, and the horizontal pass of all rows where it comes first -> (greatest number of
    weights along x, has picks).
    """
    bounds_x, bounds_y = scratch.bounds[0], scratch.bounds[1]
    taps_x = coefficients(width, a[1], a[3], w, flag, bounds_x, scratch.weights[0], scratch.taps)
    coefficients(height, a[0], a[2], h, flag, bounds_y, scratch.weights[1], scratch.taps)
    # The picks hold positions relative to a block's first column, so that they serve either order of passes.
    has_picks = False
    if HAS_BYTE_DOT and channels == 3 and 3 * taps_x < WINDOW:
        has_picks = pick_tables(bounds_x, scratch.weights[0], taps_x, w, scratch.picks, scratch.digits)
    if a[7] == 0.0:
        row_size = 4 * pad_to_vector(w) if channels == 3 else w
        first, end = bounds_y[0, 0], bounds_y[h - 1, 0] + bounds_y[h - 1, 1]
        for v in range(first, end):
            horizontal_row(
                image,
                v * width * channels,
                image.size,
                channels,
                bounds_x,
                scratch.weights[0],
                taps_x,
                0,
                w,
                scratch.picks,
                scratch.digits,
                has_picks,
                scratch.offset,
                scratch.plane_image,
                (v - first) * row_size,
            )
    return taps_x, has_picks


@pixel_kernel(forceinline=True)
def resized_row(
    image: Any,
    width: Any,
    channels: Any,
    a: Any,
    taps_x: Any,
    has_picks: Any,
    y: Any,
    h: Any,
    w: Any,
    scratch: Any,
    planes: Any,
) -> None:
    """Output row ``y`` in planes, after ``prepare_resize``."""
    bounds_x, bounds_y = scratch.bounds[0], scratch.bounds[1]
    low, count = bounds_y[y, 0], bounds_y[y, 1]
    row, step = scratch.row_bytes, pad_to_vector(h)
    if a[7] == 0.0:
        n = 4 * pad_to_vector(w) if channels == 3 else w
        first = (low - bounds_y[0, 0]) * n
        vertical_row(scratch.plane_image, first, n, n, count, scratch.weights[1], y, step, scratch, row)
    else:
        left, right = bounds_x[0, 0], bounds_x[w - 1, 0] + bounds_x[w - 1, 1]
        n = channels * (right - left)
        stride = channels * width
        vertical_row(
            image,
            low * stride + channels * left,
            stride,
            n,
            count,
            scratch.weights[1],
            y,
            step,
            scratch,
            scratch.row_pixels,
        )
        horizontal_row(
            scratch.row_pixels,
            0,
            scratch.row_pixels.size,
            channels,
            bounds_x,
            scratch.weights[0],
            taps_x,
            left,
            w,
            scratch.picks,
            scratch.digits,
            has_picks,
            scratch.offset,
            row,
            0,
        )
    spread_row(row, w, channels, a[6] != 0.0, planes)


@pixel_kernel
def spread_row(row: Any, out_width: Any, channels: Any, mirrored: Any, planes: Any) -> None:
    """A row in temp's layout into planes, mirrored on request."""
    if channels == 1 or out_width < BLOCK:
        step = 4 if channels == 3 else 1
        for x in range(out_width):
            i = step * (out_width - 1 - x if mirrored else x)
            for c in range(channels):
                planes[c, x] = row[i + c]
        return
    source, stride = address_of(row), planes.shape[1]
    r = address_of(planes)
    for block in range((out_width + BLOCK - 1) // BLOCK):
        i = min(block * BLOCK, out_width - BLOCK)
        if mirrored:
            split_rgbx_reversed(source + 4 * (out_width - BLOCK - i), r + i, r + stride + i, r + 2 * stride + i)
        else:
            split_rgbx(source + 4 * i, r + i, r + stride + i, r + 2 * stride + i)
