"""Operations on a row of planes, in place: values, noise by Philox, erased rectangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiling.levels import HAS_BYTE_SHUFFLE
from variegate.executors.cpu import kernel as K
from variegate.executors.cpu import simd_values as V
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import address_of, bytes_at, floats_at, inlined, part_kernel
from variegate.executors.cpu.layout import FLOATS_CHW, row_program
from variegate.executors.cpu.overlay import overlay_row
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import call_point
from variegate.program.compiled import inner_kernel
from variegate.program.ops import KIND_OF, LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, Kind, Op
from variegate.program.rng import SEGMENTS

_VALUE, _STATISTIC = int(Kind.VALUE), int(Kind.STATISTIC)


@inner_kernel(forceinline=True)
def look_up(plane: Any, table: Any, first: Any, end: Any) -> None:
    """``plane[x] = table[plane[x]]`` for first <= x < end (and, harmlessly, some padding after it)."""
    if HAS_BYTE_SHUFFLE:
        V.lookup_row(address_of(plane) + first, end - first, address_of(table))
    else:
        for x in range(first, end):
            plane[x] = table[plane[x]]


@inner_kernel(forceinline=True)
def apply_value(row: Any, k: Any, channels: Any, stat_luts: Any, planes: Any, first: Any, end: Any) -> None:
    """Run slot ``k`` on columns first..end if it holds a value or statistic operation."""
    op = row.opcode[k]
    kind = KIND_OF[op]
    if kind == _STATISTIC or op == Op.LUT:
        table = stat_luts[k] if kind == _STATISTIC else row.side.luts[int(row.args[k, 0])]
        for c in range(channels):
            look_up(planes[c], table[c], first, end)
    elif kind == _VALUE and (channels == 3 or op == Op.COLOR_MATRIX or op == Op.POINT):
        a, r, g, b = row.args[k], planes[0], planes[1], planes[2]
        if channels == 1:
            for x in range(first, end):
                g[x] = r[x]
                b[x] = r[x]
        if op == Op.MIX:
            factor, address, stride = np.float32(a[0]), address_of(planes), planes.shape[1]
            # Pillow's ImageEnhance.Color. Runs over into the padding.
            for x in range(first, end, V.COLOUR_LANES):
                V.mix_block(address + x, stride, factor)
        elif op == Op.HUE:
            shift, address, stride = np.int32(int(a[0] * 255.0) & 255), address_of(planes), planes.shape[1]
            for x in range(first, end, V.HUE_LANES):
                V.hue_block(address + x, stride, shift)
        elif op == Op.PERMUTE:
            address, stride = address_of(planes), planes.shape[1]
            red, green, blue = int(a[0]) * stride, int(a[1]) * stride, int(a[2]) * stride
            for x in range(first, end, BLOCK):
                V.permute_block(address + x, stride, red, green, blue)
        elif op == Op.COLOR_MATRIX:
            address, stride, matrix = address_of(planes), planes.shape[1], address_of(row.side.matrices[int(a[0])])
            for x in range(first, end, V.COLOUR_LANES):
                V.matrix_block(address + x, stride, matrix)
        elif op == Op.POINT:
            red, green, blue = address_of(r) + first, address_of(g) + first, address_of(b) + first
            call_point(row.side.points[int(a[0])], red, green, blue, end - first, np.float32(a[1]))


@inner_kernel()
def apply_values(row: Any, begin: Any, stop: Any, channels: Any, stat_luts: Any, planes: Any, columns: Any) -> None:
    """Run the value and statistic operations of slots begin..stop on a few columns, once per pass."""
    for k in range(begin, stop):
        apply_value(row, k, channels, stat_luts, planes, 0, columns)


@inlined
def joined_luts(row: Any, begin: Any, stop: Any, channels: Any, stat_luts: Any, table: Any) -> None:
    """The tables of slots begin..stop, of which no other value operation is one, as one: uint8[3, 256]."""
    for c in range(3):
        for i in range(256):
            table[c, i] = i
    apply_values(row, begin, stop, channels, stat_luts, table, 256)


@inner_kernel()
def luma(r: Any, g: Any, b: Any) -> Any:
    """Pillow's L of one pixel."""
    return (np.int64(r) * LUMA_RED + np.int64(g) * LUMA_GREEN + np.int64(b) * LUMA_BLUE + LUMA_HALF) >> LUMA_SHIFT


_MASK32 = np.uint64(0xFFFFFFFF)


@inner_kernel()
def draw_words(pixel: Any, count: Any, slot: Any, noise: Any, target: Any) -> None:
    """The words of ``count`` pixels, at most a CHUNK, from ``pixel`` on: uint32[3, CHUNK] at the address ``target``."""
    low, high = np.int64(noise.sample_id & _MASK32), np.int64(noise.sample_id >> np.uint64(32))
    key_low, key_high = np.int64(noise.key_low), np.int64(noise.key_high)
    for x in range(0, count, V.NOISE_LANES):
        V.words_block(pixel + x, slot, low, high, key_low, key_high, target + 4 * x)


@part_kernel
def add_noise(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """GAUSSIAN_NOISE, SHOT_NOISE, SALT_AND_PEPPER, OVERLAY, or ERASE with noise, on row ``y``, in place."""
    held, own = batch_at(batch), scratch_at(scratch)
    row, width, channels = row_program(held.program, r, held.side), own.sweep[K.RESULT_WIDTH], own.sweep[K.CHANNELS]
    noise_row(row, slot, y, y * width, width, channels, own)
    return np.int64(0)


@inlined
def noise_row(row: Any, slot: Any, y: Any, pixel: Any, width: Any, channels: Any, own: Any) -> None:
    """Slot ``slot`` on row ``y`` of ``row``'s rectangles and layers, whose first pixel is number ``pixel`` of the
    image."""
    op, a = row.opcode[slot], row.args[slot]
    if op == Op.OVERLAY:
        overlay_row(a, row.flags[slot], row.fill[slot], slot, y, width, channels, row.side.grids, own)
    elif op != Op.ERASE:
        add_noise_row(op, a, pixel, width, channels, row.noise, own.planes)
    else:
        _erase_with_noise(a, row.side.rectangles, y, pixel, width, channels, row.noise, own.planes)


@inlined
def add_noise_row(op: Any, a: Any, pixel: Any, width: Any, channels: Any, noise: Any, planes: Any) -> None:
    """Runs over into the padding."""
    slot = int(a[1]) if op == Op.SHOT_NOISE else int(a[2])
    first, second = np.float32(a[0]), np.float32(a[1])
    words, segments, stride = V.chunk_memory(), address_of(SEGMENTS), planes.shape[1]
    for start in range(0, width, V.CHUNK):
        count, levels = min(V.CHUNK, width - start), address_of(planes) + start
        draw_words(pixel + start, count, slot, noise, words)
        if op == Op.SALT_AND_PEPPER:
            for x in range(0, count, V.NOISE_LANES):
                V.salt_block(levels + x, stride, words + 4 * x, first, second)
            continue
        for c in range(channels):
            row, drawn = levels + c * stride, words + c * V.CHUNK_STRIDE
            if op == Op.GAUSSIAN_NOISE:
                for x in range(0, count, V.NOISE_LANES):
                    V.gaussian_block(row + x, drawn + 4 * x, segments, first, second)
            else:
                for x in range(0, count, V.NOISE_LANES):
                    V.shot_block(row + x, drawn + 4 * x, segments, first)


@inner_kernel()
def columns_of(rectangle: Any, y: Any, width: Any) -> Any:
    """The part of row ``y`` that a rectangle (top, left, height, width) covers -> (first, end)."""
    if y < rectangle[0] or y >= rectangle[0] + rectangle[2]:
        return 0, 0
    first = max(0, rectangle[1])
    return first, max(first, min(width, rectangle[1] + rectangle[3]))


@inlined
def _erase_with_noise(
    a: Any, rectangles: Any, y: Any, pixel: Any, width: Any, channels: Any, noise: Any, planes: Any
) -> None:
    words = V.chunk_memory()
    for q in range(int(a[0]), int(a[0]) + int(a[1])):
        first, end = columns_of(rectangles[q], y, width)
        for start in range(first, end, V.CHUNK):
            count = min(V.CHUNK, end - start)
            draw_words(pixel + start, count, int(a[3]), noise, words)
            for c in range(channels):
                # The highest byte of a word is the level.
                drawn = bytes_at(words + c * V.CHUNK_STRIDE, V.CHUNK_STRIDE)
                for x in range(count):
                    planes[c, start + x] = drawn[4 * x + 3]


@inlined
def erase_row(a: Any, fill: Any, rectangles: Any, y: Any, width: Any, channels: Any, planes: Any) -> Any:
    """ERASE on row ``y``, in place, with a colour -> whether it is noise that belongs there instead."""
    wants_noise = False
    for q in range(int(a[0]), int(a[0]) + int(a[1])):
        # Of many rectangles few meet a row.
        if y < rectangles[q, 0] or y >= rectangles[q, 0] + rectangles[q, 2]:
            continue
        first, end = columns_of(rectangles[q], y, width)
        if a[2] != 0.0:
            wants_noise = wants_noise or first < end
        else:
            for c in range(channels):
                planes[c, first:end] = fill[c]
    return wants_noise


@part_kernel
def erase_normalized(batch: Any, scratch: Any, r: Any, begin: Any, end: Any) -> Any:
    """Each ERASE of slots begin..end that comes after Normalize: constants or standard normal noise in the float
    result.
    """
    held, sweep = batch_at(batch), scratch_at(scratch).sweep
    erase_result(row_program(held.program, r, held.side), sweep, begin, end, np.int64(0), sweep[K.RESULT_WIDTH])
    return np.int64(0)


@inlined
def erase_result(row: Any, sweep: Any, begin: Any, end: Any, first: Any, step: Any) -> None:
    """The result's first pixel has the number ``first`` in the image, and the one below it ``step`` more."""
    height, width, channels = sweep[K.RESULT_HEIGHT], sweep[K.RESULT_WIDTH], sweep[K.CHANNELS]
    out, rectangles = floats_at(sweep[K.RESULT], height * width * channels), row.side.rectangles
    words, segments = V.chunk_memory(), address_of(SEGMENTS)
    pixel_step, channel_step = (1, height * width) if sweep[K.RESULT_KIND] == FLOATS_CHW else (channels, 1)
    for k in range(begin, end):
        a = row.args[k]
        if row.opcode[k] != Op.ERASE or a[7] == 0.0:
            continue
        for q in range(int(a[0]), int(a[0]) + int(a[1])):
            top, left = max(0, rectangles[q, 0]), max(0, rectangles[q, 1])
            bottom = min(height, rectangles[q, 0] + rectangles[q, 2])
            right = min(width, rectangles[q, 1] + rectangles[q, 3])
            for y in range(top, bottom):
                if a[2] == 0.0:
                    for c in range(channels):
                        value, at = np.float32(a[4 + c]), c * channel_step + y * width * pixel_step
                        for x in range(left, right):
                            out[at + x * pixel_step] = value
                    continue
                for start in range(left, right, V.CHUNK):
                    pixel, count = y * width + start, min(V.CHUNK, right - start)
                    draw_words(first + y * step + start, count, int(a[3]), row.noise, words)
                    for c in range(channels):
                        drawn = words + c * V.CHUNK_STRIDE
                        for x in range(0, count, V.NOISE_LANES):
                            V.normal_block(drawn + 4 * x, segments)
                        normals, at = floats_at(drawn, V.CHUNK), c * channel_step + pixel * pixel_step
                        for x in range(count):
                            out[at + x * pixel_step] = normals[x]
