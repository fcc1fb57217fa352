"""Zooms, fringes of color and scattered pixels: a row of levels from other places of an image held in planes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate.executors.cpu import simd_values as V
from variegate.executors.cpu.kernel import address_of, bytes_at, inlined
from variegate.executors.cpu.values import draw_words
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Op


class Frame(NamedTuple):
    """What the planes hold: ``height`` x ``width`` pixels from ``top``, ``left`` of an image of the last two sizes."""

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
        _zoom_row(int(a[0]), a[1], y, frame, channels, scratch.column, scratch.tap_weights, scratch.row_words, out)
    elif op == Op.SCATTER:
        _scatter_row(int(a[0]), int(a[1]), int(a[2]), y, frame, channels, row.noise, out)
    else:
        for c in range(channels):
            if op == Op.ABERRATION and c != 1 and channels == 3:
                first, second = (a[0], a[1]) if c == 0 else (a[2], a[3])
                _bend_row(np.float32(first), np.float32(second), y, frame, scratch.column, scratch.line)
                _read_row(y, c, frame, scratch.column, scratch.line, out + c * frame.stride)
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


@inner_kernel()
def _zoom_row(
    zooms: Any, step: Any, y: Any, frame: Any, channels: Any, places: Any, line: Any, totals: Any, out: Any
) -> None:
    width, room = frame.width, totals.size // 4
    for c in range(channels):
        own, total = _row(frame, y, c), totals[c * room : (c + 1) * room]
        for x in range(width):
            total[x] = np.int32(own[x]) << np.int32(17)
    for zoom in range(1, zooms + 1):
        nearer = np.int64(np.floor(32768.0 / (1.0 + zoom * step) + 0.5))
        last = frame.image_height - 1
        at = ((2 * (frame.top + y) - last) * nearer + last * 32768 + 128) >> 8
        above, below = _held(at >> 8, frame.top, frame.height), _held((at >> 8) + 1, frame.top, frame.height)
        down, factor, last = np.int32(at & 255), np.int32(nearer), np.int32(frame.image_width - 1)
        origin, shift = np.int32(2 * frame.left) - last, np.int32(256 * frame.left)
        for x in range(width):
            at_x = (np.int32(2 * x) + origin) * factor + last * np.int32(32768) + np.int32(128)
            places[x] = min(max((at_x >> np.int32(8)) - shift, np.int32(0)), np.int32(256 * (width - 1)))
        for c in range(channels):
            upper, lower, total = _row(frame, above, c), _row(frame, below, c), totals[c * room : (c + 1) * room]
            for x in range(width):
                line[x] = np.int32(upper[x]) * (np.int32(256) - down) + np.int32(lower[x]) * down
            line[width] = line[width - 1]
            for x in range(width):
                column, right = np.uintp(places[x] >> np.int32(8)), places[x] & np.int32(255)
                total[x] += line[column] * (np.int32(256) - right) + line[column + np.uintp(1)] * right
    count, half = np.int32(zooms + 2), np.float32(0.5)
    share = np.float32(1.0) / np.float32(count)
    for c in range(channels):
        total, target = totals[c * room : (c + 1) * room], bytes_at(out + c * frame.stride, width)
        for x in range(width):
            # The quotient of integers up to 2**15, exactly.
            whole = (total[x] + count * np.int32(32768)) >> np.int32(16)
            target[x] = np.int32((np.float32(whole) + half) * share)


@inner_kernel()
def _bend_row(first: Any, second: Any, y: Any, frame: Any, columns: Any, lines: Any) -> None:
    """Places in the planes, in units of 2**-8 pixels."""
    half, scale, limit = np.float32(0.5), np.float32(256.0), np.float32(1 << 23)
    height, width = np.int32(frame.image_height), np.int32(frame.image_width)
    in_x, in_y = np.float32(1.0) / np.float32(width), np.float32(1.0) / np.float32(height)
    top, left = np.int32(256 * frame.top), np.int32(256 * frame.left)
    away_y = half * np.float32(2 * (frame.top + y) - (height - 1))
    squared_y = (away_y * in_y) * (away_y * in_y)
    here, origin = np.int32(256 * (frame.top + y)), np.int32(2 * frame.left) - (width - np.int32(1))
    last_x, last_y = np.int32(256) * (width - np.int32(1)), np.int32(256) * (height - np.int32(1))
    for x in range(frame.width):
        away = half * np.float32(np.int32(2 * x) + origin)
        squared = (away * in_x) * (away * in_x) + squared_y
        bend = (first + second * squared) * squared
        along = np.int32(np.floor(min(max(away * bend * scale + half, -limit), limit)))
        down = np.int32(np.floor(min(max(away_y * bend * scale + half, -limit), limit)))
        columns[x] = min(max(left + np.int32(256 * x) + along, np.int32(0)), last_x) - left
        lines[x] = min(max(here + down, np.int32(0)), last_y) - top


@inner_kernel()
def _read_row(y: Any, c: Any, frame: Any, columns: Any, lines: Any, out: Any) -> None:
    height, width, step = frame.height, frame.width, 3 * frame.stride
    plane, target = bytes_at(frame.first + c * frame.stride, height * step), bytes_at(out, width)
    for x in range(width):
        dx, dy = columns[x] & np.int32(255), lines[x] & np.int32(255)
        left, top = _held(np.int64(columns[x] >> np.int32(8)), 0, width), _held(np.int64(lines[x] >> 8), 0, height)
        right, bottom = min(left + 1, width - 1), min(top + 1, height - 1)
        upper, lower = np.uintp(top * step), np.uintp(bottom * step)
        a, b = np.int32(plane[upper + np.uintp(left)]), np.int32(plane[upper + np.uintp(right)])
        p, q = np.int32(plane[lower + np.uintp(left)]), np.int32(plane[lower + np.uintp(right)])
        over = (np.int32(256) - dx) * a + dx * b
        under = (np.int32(256) - dx) * p + dx * q
        target[x] = ((np.int32(256) - dy) * over + dy * under + np.int32(32768)) >> np.int32(16)


@inner_kernel()
def _scatter_row(
    distance: Any, times: Any, slot: Any, y: Any, frame: Any, channels: Any, noise: Any, out: Any
) -> None:
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
