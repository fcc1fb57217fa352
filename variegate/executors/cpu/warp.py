"""Zooms, fringes of color and scattered pixels: a row of levels from other places of an image held in planes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate.executors.cpu import simd_values as V
from variegate.executors.cpu.kernel import address_of, bytes_at, inlined, longs_at
from variegate.executors.cpu.values import draw_words
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Op


class Frame(NamedTuple):
    """A part of an image that planes hold: ``height`` x ``width`` pixels from ``top``, ``left``."""

    first: int  # address of the first plane's first row; rows lie 3 strides apart
    stride: int
    height: int
    width: int
    top: int
    left: int
    image_height: int
    image_width: int


@inlined
def warp_row(row: Any, slot: Any, y: Any, frame: Any, channels: Any, scratch: Any) -> None:
    """Row ``y`` of ``frame`` into ``scratch.planes``."""
    op, a, out = row.opcode[slot], row.args[slot], address_of(scratch.planes)
    if op == Op.ZOOM_BLUR:
        totals = longs_at(address_of(scratch.row_words), frame.width)
        _zoom_row(int(a[0]), a[1], y, frame, channels, scratch.lines, totals, out)
    elif op == Op.SCATTER:
        _scatter_row(int(a[0]), int(a[1]), int(a[2]), y, frame, channels, row.noise, out)
    else:
        for c in range(channels):
            if op == Op.ABERRATION and c != 1 and channels == 3:
                first, second = (a[0], a[1]) if c == 0 else (a[2], a[3])
                _bend_row(np.float32(first), np.float32(second), y, frame, scratch.column, scratch.line)
                _read_row(c, frame, scratch.column, scratch.line, out + c * frame.stride)
            else:
                row_of, target = _row(frame, y, c), bytes_at(out + c * frame.stride, frame.width)
                for x in range(frame.width):
                    target[x] = row_of[x]


@inlined
def _row(frame: Any, y: Any, c: Any) -> Any:
    return bytes_at(frame.first + (3 * y + c) * frame.stride, frame.width)


@inlined
def _held(place: Any, begin: Any, size: Any) -> Any:
    """Number of a row or column of the image among those in the planes. What lies beyond is of no use to anybody."""
    return min(max(place - begin, 0), size - 1)


# Levels of three channels in one word, with room for the sum of all zooms of each.
_GREEN, _BLUE = 21, 42
_MASK = (1 << _GREEN) - 1


@inner_kernel()
def _zoom_row(zooms: Any, step: Any, y: Any, frame: Any, channels: Any, line: Any, totals: Any, out: Any) -> None:
    """``line``, ``totals``: room for a word of each pixel, and one more. Places are in units of 2**-4 pixels."""
    width = frame.width
    _mix_rows(frame, y, y, 0, channels, line)
    for x in range(width):
        totals[x] = line[x] << 5
    for zoom in range(1, zooms + 1):
        nearer = np.int64(np.floor(32768.0 / (1.0 + zoom * step) + 0.5))
        last = frame.image_height - 1
        at = ((2 * (frame.top + y) - last) * nearer + last * 32768 + 2048) >> 12
        above, below = _held(at >> 4, frame.top, frame.height), _held((at >> 4) + 1, frame.top, frame.height)
        _mix_rows(frame, above, below, at & 15, channels, line)
        line[width] = line[width - 1]
        last = frame.image_width - 1
        place, end = (2 * frame.left - last) * nearer + last * 32768 + 2048 - (frame.left << 16), 16 * (width - 1)
        for x in range(width):
            here = min(max(place >> 12, 0), end)
            place += 2 * nearer
            column, right = np.uintp(here >> 4), here & 15
            totals[x] += line[column] * (16 - right) + line[column + np.uintp(1)] * right
    count, half = zooms + 2, np.float32(0.5)
    share = np.float32(1.0) / np.float32(count)
    for c in range(channels):
        target, shift = bytes_at(out + c * frame.stride, width), _GREEN * c
        for x in range(width):
            # The quotient of integers below 2**13, exactly.
            whole = (((totals[x] >> shift) & _MASK) + 128 * count) >> 8
            target[x] = np.int32((np.float32(whole) + half) * share)


@inner_kernel()
def _mix_rows(frame: Any, above: Any, below: Any, down: Any, channels: Any, line: Any) -> None:
    """Levels between two rows, times 16, packed."""
    up = 16 - down
    for x in range(frame.width):
        line[x] = np.int64(_row(frame, above, 0)[x]) * up + np.int64(_row(frame, below, 0)[x]) * down
    if channels == 3:
        for x in range(frame.width):
            green = np.int64(_row(frame, above, 1)[x]) * up + np.int64(_row(frame, below, 1)[x]) * down
            blue = np.int64(_row(frame, above, 2)[x]) * up + np.int64(_row(frame, below, 2)[x]) * down
            line[x] |= green << _GREEN | blue << _BLUE


@inner_kernel()
def _bend_row(first: Any, second: Any, y: Any, frame: Any, columns: Any, lines: Any) -> None:
    """Places in the planes, in units of 2**-8 pixels: whole numbers below 2**24, which float32 holds."""
    half, scale, limit, zero = np.float32(0.5), np.float32(256.0), np.float32(1 << 23), np.float32(0.0)
    height, width = frame.image_height, frame.image_width
    in_x, in_y = np.float32(1.0) / np.float32(width), np.float32(1.0) / np.float32(height)
    away_y = half * np.float32(2 * (frame.top + y) - (height - 1))
    squared_y = (away_y * in_y) * (away_y * in_y)
    here, left = np.float32(256 * (frame.top + y)), np.float32(256 * frame.left)
    last_x, last_y = np.float32(256 * (width - 1)), np.float32(256 * (height - 1))
    top, end_x, end_y = (
        np.float32(256 * frame.top),
        np.float32(256 * (frame.width - 1)),
        np.float32(256 * (frame.height - 1)),
    )
    origin = np.float32(2 * frame.left - (width - 1))
    for x in range(frame.width):
        at = np.float32(np.int32(x))
        away = half * (at + at + origin)
        squared = (away * in_x) * (away * in_x) + squared_y
        bend = (first + second * squared) * squared
        along = np.floor(min(max(away * bend * scale + half, -limit), limit)) + (left + scale * at)
        down = np.floor(min(max(away_y * bend * scale + half, -limit), limit)) + here
        columns[x] = np.int32(min(max(min(max(along, zero), last_x) - left, zero), end_x))
        lines[x] = np.int32(min(max(min(max(down, zero), last_y) - top, zero), end_y))


@inner_kernel()
def _read_row(c: Any, frame: Any, columns: Any, lines: Any, out: Any) -> None:
    height, width, step = frame.height, frame.width, 3 * frame.stride
    plane, target = bytes_at(frame.first + c * frame.stride, height * step), bytes_at(out, width)
    last = (height - 1) * step
    for x in range(width):
        dx, dy = np.int64(columns[x] & 255), np.int64(lines[x] & 255)
        # Behind the last column lies what counts for nothing.
        above = np.int64(lines[x] >> 8) * step
        upper = np.uintp(above + (columns[x] >> 8))
        lower = np.uintp(min(above + step, last) + (columns[x] >> 8))
        over = (256 - dx) * plane[upper] + dx * plane[upper + np.uintp(1)]
        under = (256 - dx) * plane[lower] + dx * plane[lower + np.uintp(1)]
        target[x] = ((256 - dy) * over + dy * under + 32768) >> 16


@inner_kernel()
def _scatter_row(distance: Any, times: Any, slot: Any, y: Any, frame: Any, channels: Any, noise: Any, out: Any) -> None:
    words, span, width = V.chunk_memory(), np.int64(2 * distance + 1), frame.width
    pixel = (frame.top + y) * frame.image_width + frame.left
    for start in range(0, width, V.CHUNK):
        count = min(V.CHUNK, width - start)
        draw_words(pixel + start, count, slot, noise, words)
        for x in range(count):
            column, line = frame.left + start + x - times * distance, frame.top + y - times * distance
            for t in range(times):
                drawn = bytes_at(words + t * V.CHUNK_STRIDE + 4 * x, 4)
                low, high = np.int64(drawn[0]) | np.int64(drawn[1]) << 8, np.int64(drawn[2]) | np.int64(drawn[3]) << 8
                column += (low * span) >> 16
                line += (high * span) >> 16
            u = _held(min(max(column, 0), frame.image_width - 1), frame.left, width)
            v = _held(min(max(line, 0), frame.image_height - 1), frame.top, frame.height)
            for c in range(channels):
                bytes_at(out + c * frame.stride, width)[start + x] = _row(frame, v, c)[u]
