"""Sharpness, blurs, medians, erosion, CLAHE: a row of the filtered image, from an image held row by row in planes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu import kernel as K
from variegate.executors.cpu import simd_filter as F
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import address_of, bytes_at, floats_at, inlined, part_kernel
from variegate.executors.cpu.layout import row_program
from variegate.executors.cpu.simd_values import COLOUR_LANES, sharpen_block
from variegate.executors.cpu.values import luma
from variegate.executors.cpu.warp import Frame, warp_row
from variegate.program.compiled import inner_kernel
from variegate.program.lowering.blurs import AMOUNT_BITS
from variegate.program.ops import IS_WARP, MAX_TILES, Op
from variegate.program.places import reflect


@inlined
def filtered_planes(row: Any, slot: Any, scratch: Any) -> Any:
    """The address of the image that the filter at ``slot`` sees: each row as ``scratch.planes`` is.

    A plane's row is continued to both sides by a full kernel's radius, or a median's, for which there is room between
    them.
    """
    op, a = row.opcode[slot], row.args[slot]
    is_window = op == Op.MEDIAN or op == Op.MORPHOLOGY
    return address_of(scratch.plane_image) + int(a[1] if op == Op.CONVOLVE else a[0] if is_window else 0.0) // 2


@part_kernel
def filtered_row(batch: Any, scratch: Any, r: Any, slot: Any, y: Any) -> Any:
    """Row ``y`` of the filter at ``slot``, of the image in planes."""
    held, own = batch_at(batch), scratch_at(scratch)
    row, sweep = row_program(held.program, r, held.side), own.sweep
    op = row.opcode[slot]
    if op == Op.CLAHE:
        height, width, channels, stride = (
            sweep[K.RESULT_HEIGHT],
            sweep[K.RESULT_WIDTH],
            sweep[K.CHANNELS],
            own.planes.shape[1],
        )
        first = filtered_planes(row, slot, own)
        if y == 0:
            prepare_tiles(row.args[slot], first, stride, height, width, channels, own)
        equalize_row(row.args[slot], first, stride, height, width, y, channels, own)
        return nb.int64(0)
    if IS_WARP[op]:
        height, width = sweep[K.RESULT_HEIGHT], sweep[K.RESULT_WIDTH]
        first, stride = filtered_planes(row, slot, own), nb.int64(own.planes.shape[1])
        frame = Frame(first, stride, height, width, nb.int64(0), nb.int64(0), height, width)
        warp_row(row, slot, y, frame, sweep[K.CHANNELS], own)
        return nb.int64(0)
    if y == 0 and (op == Op.CONVOLVE or op == Op.MEDIAN or op == Op.MORPHOLOGY):
        _prepare(batch, scratch, r, slot)
    filter_row(row, slot, sweep[K.RESULT_HEIGHT], sweep[K.RESULT_WIDTH], y, sweep[K.CHANNELS], own)
    return nb.int64(0)


@inner_kernel()
def _prepare(batch: Any, scratch: Any, r: Any, slot: Any) -> None:
    """Prepare a convolution or a median, once the planes are filled: lines, and rows continued to both sides."""
    held, scratch = batch_at(batch), scratch_at(scratch)
    row, sweep = row_program(held.program, r, held.side), scratch.sweep
    height, width, channels = sweep[K.RESULT_HEIGHT], sweep[K.RESULT_WIDTH], sweep[K.CHANNELS]
    a, stride, lines = row.args[slot], scratch.planes.shape[1], scratch.lines
    radius_x, radius_y = int(a[1]) // 2, max(int(a[2]) // 2, F.FEW[0] - 1)
    if row.opcode[slot] == Op.MEDIAN or row.opcode[slot] == Op.MORPHOLOGY:
        radius_x = int(a[0]) // 2
    elif a[3] != 0.0:
        # One more on both sides, for the weight of 0 that makes their number even.
        for i in range(height + 2 * radius_y + 2):
            lines[i] = 3 * stride * reflect(i - radius_y - 1, height)
        return
    first = filtered_planes(row, slot, scratch)
    for y in range(height):
        for c in range(channels):
            at = bytes_at(first + (3 * y + c) * stride - radius_x, width + 2 * radius_x)
            at[:radius_x] = at[radius_x]
            at[radius_x + width :] = at[radius_x + width - 1]


@inlined
def filter_row(row: Any, slot: Any, height: Any, width: Any, y: Any, channels: Any, scratch: Any) -> None:
    a, stride = row.args[slot], scratch.planes.shape[1]
    first, out, lines = filtered_planes(row, slot, scratch), address_of(scratch.planes), address_of(scratch.lines)
    if row.opcode[slot] == Op.MEDIAN:
        _find_medians(int(a[0]), first, height, width, y, channels, scratch)
        return
    if row.opcode[slot] == Op.MORPHOLOGY:
        count, flip = (
            _list_element(int(a[0]), int(a[1]), 3 * stride, height, y, scratch.lines),
            0 if a[2] != 0.0 else 255,
        )
        for c in range(channels):
            for x in range(0, width, F.MEDIANS):
                F.most_of_cells(first + c * stride + x, lines, count, flip, out + c * stride + x)
        return
    if row.opcode[slot] == Op.SHARPNESS:
        for c in range(channels):
            _sharpen_row(first + c * stride, 3 * stride, height, width, y, nb.float32(a[0]), out + c * stride)
        return
    if a[3] == 0.0:
        _weigh_row(row, slot, height, width, y, channels, scratch)
        return
    apart, weights = int(a[4]), address_of(row.side.kernels[int(a[0]) :])
    # Weights of 0 stand behind those that are fewer.
    radius_x, radius_y = max(int(a[1]) // 2, F.FEW[0] - 1), max(int(a[2]) // 2, F.FEW[0] - 1)
    for c in range(channels):
        plane, to = first + c * stride, out + c * stride
        lines_at = lines + 8 * (y + radius_y + 1)
        _blur_row(plane, lines_at, width, weights, weights + 2 * apart, radius_x, radius_y, scratch.blurred, to)
        if a[6] != 0.0:
            _unsharpen_row(plane + 3 * y * stride, width, int(a[6]) - 1, int(a[7]), to)


@inlined
def _find_medians(size: Any, first: Any, height: Any, width: Any, y: Any, channels: Any, scratch: Any) -> None:
    stride, lines, radius = scratch.planes.shape[1], scratch.lines, size // 2
    for i in range(size):
        lines[i] = 3 * stride * min(max(y + i - radius, 0), height - 1)
    for c in range(channels):
        plane, to = first + c * stride - radius, address_of(scratch.planes) + c * stride
        _median_row(size, plane, address_of(lines), width, address_of(scratch.row_words), stride, to)


@inner_kernel()
def _median_row(size: Any, plane: Any, lines: Any, width: Any, columns: Any, stride: Any, target: Any) -> None:
    """``plane``: from half a window left of the image on. ``columns``: room for ``size`` rows of ``stride`` bytes."""
    for x in range(0, width + size - 1, F.MEDIANS):
        if size == 3:
            F.sort_columns_3(plane + x, lines, columns + x, stride)
        elif size == 5:
            F.sort_columns_5(plane + x, lines, columns + x, stride)
        else:
            F.sort_columns_7(plane + x, lines, columns + x, stride)
    for x in range(0, width, F.MEDIANS):
        if size == 3:
            F.find_medians_3(columns + x, stride, target + x)
        elif size == 5:
            F.find_medians_5(columns + x, stride, target + x)
        else:
            F.find_medians_7(columns + x, stride, target + x)


@inner_kernel()
def _list_element(columns: Any, rows: Any, step: Any, height: Any, y: Any, cells: Any) -> Any:
    """Offsets of the cells of OpenCV's ellipse around row ``y`` -> how many. Rows beyond the image's count as its
    outermost, whose cells the element has as well."""
    count, radius, middle = 0, rows // 2, columns // 2
    for row in range(rows):
        away, half = row - radius, 0
        line = min(max(y + away, 0), height - 1) * step
        while radius and half < middle:
            odd = (2 * half + 1) * radius
            if odd * odd > 4 * middle * middle * (radius * radius - away * away):
                break
            half += 1
        for column in range(max(middle - half, 0), min(middle + half + 1, columns)):
            cells[count] = line + column - middle
            count += 1
    return count


@inlined
def _weigh_row(row: Any, slot: Any, height: Any, width: Any, y: Any, channels: Any, scratch: Any) -> None:
    """Full kernels, one after another: the first into the planes, and what the others make is added."""
    a, stride = row.args[slot], scratch.planes.shape[1]
    first, lines = filtered_planes(row, slot, scratch), address_of(scratch.lines)
    apart, cells = int(a[4]), int(a[5])
    for number in range(int(a[6]) + 1):
        table = row.side.kernels[int(a[0]) + 3 * number * apart :]
        for i in range(cells):
            line = min(max(y + table[2 * apart + i], 0), height - 1)
            scratch.lines[i] = 3 * line * stride + table[apart + i]
        to = address_of(scratch.planes) if number == 0 else address_of(scratch.spare)
        for c in range(channels):
            for x in range(0, width, F.COLUMNS):
                F.weigh_cells(first + c * stride + x, lines, address_of(table), cells, to + c * stride + x)
            if number > 0:
                _add_row(scratch.planes[c], scratch.spare[c], width)


@inner_kernel()
def _add_row(levels: Any, more: Any, width: Any) -> None:
    for x in range(width):
        levels[x] = min(nb.int32(levels[x]) + nb.int32(more[x]), 255)


@inner_kernel()
def _unsharpen_row(plane: Any, width: Any, amount: Any, threshold: Any, blurred: Any) -> None:
    row, out = bytes_at(plane, width), bytes_at(blurred, width)
    for x in range(width):
        away = nb.int64(row[x]) - nb.int64(out[x])
        added = (away * amount + (1 << AMOUNT_BITS - 1)) >> AMOUNT_BITS
        out[x] = min(max(row[x] + (added if abs(away) > threshold else 0), 0), 255)


@inner_kernel()
def _sharpen_row(plane: Any, stride: Any, height: Any, width: Any, y: Any, factor: Any, target: Any) -> None:
    """Pillow's blend with SMOOTH; the one-pixel border stays as it is."""
    at = plane + y * stride
    row, out = bytes_at(at, width), bytes_at(target, width)
    if y == 0 or y == height - 1 or height < 3 or width < 3:
        for x in range(width):
            out[x] = row[x]
        return
    for x in range(1, width - 1, COLOUR_LANES):
        sharpen_block(at - stride + x, at + x, at + stride + x, factor, target + x)
    out[0], out[width - 1] = row[0], row[width - 1]


@inner_kernel()
def _blur_row(
    plane: Any,
    lines: Any,
    width: Any,
    along_x: Any,
    along_y: Any,
    radius_x: Any,
    radius_y: Any,
    blurred: Any,
    target: Any,
) -> None:
    """Separable blur, reflect padding: columns first, then along the row. ``lines``: see ``blur_columns``."""
    # Room for the continuation to the left, in whole blocks.
    begin = (radius_x + F.COLUMNS) // F.COLUMNS * F.COLUMNS
    row = address_of(blurred) + 2 * begin
    for x in range(0, width, F.COLUMNS):
        F.blur_columns(plane + x, lines, along_y, radius_y + 1, row + 2 * x)
    last = begin + width - 1
    if radius_x + 1 < width:
        for i in range(1, radius_x + 2):
            blurred[begin - i], blurred[last + i] = blurred[begin + i], blurred[last - i]
    else:
        for i in range(1, radius_x + 2):
            blurred[begin - i] = blurred[begin + reflect(-i, width)]
            blurred[last + i] = blurred[begin + reflect(width - 1 + i, width)]
    for x in range(0, width, F.COLUMNS):
        F.blur_along(row + 2 * x, along_x, radius_x + 1, target + x)


_HALF, _ONE = np.float32(0.5), np.float32(1.0)


@inlined
def prepare_tiles(a: Any, first: Any, stride: Any, height: Any, width: Any, channels: Any, scratch: Any) -> None:
    """Tables of all tiles, and which of them each column reads. ``first``: the image in planes, rows 3 strides apart.

    ``scratch.column, line``: where the tables of the tiles to the left and to the right begin, in a row of tiles;
    ``tap_weights``: the right one's share, as float32.
    """
    tiles_x, tiles_y = int(a[1]), int(a[2])
    tile_h, tile_w = tile_sides(height, width, tiles_y, tiles_x)
    shares = floats_at(address_of(scratch.tap_weights), width)
    scale = _ONE / np.float32(tile_w)
    for x in range(width):
        at = np.float32(x) * scale - _HALF
        tile = int(np.floor(at))
        shares[x] = at - np.float32(tile)
        scratch.column[x], scratch.line[x] = 256 * max(tile, 0), 256 * min(tile + 1, tiles_x - 1)
    limit = max(int(a[0] * (tile_h * tile_w) / 256.0), 1)
    row, counts, luts = address_of(scratch.row_bytes), scratch.tile_counts, scratch.tile_luts
    for tile_y in range(tiles_y):
        counts[:tiles_x] = 0
        for y in range(tile_y * tile_h, (tile_y + 1) * tile_h):
            lumas_of(first + 3 * stride * reflect(y, height), stride, width, channels, row)
            count_row(row, width, tile_w, tiles_x, counts)
        for tile_x in range(tiles_x):
            fill_table(counts[tile_x], limit, tile_h * tile_w, luts[tile_y * tiles_x + tile_x])


@inner_kernel()
def tile_sides(height: Any, width: Any, tiles_y: Any, tiles_x: Any) -> Any:
    """Of the image continued below and to the right, by a whole number of tiles where either side is none."""
    if height % tiles_y == 0 and width % tiles_x == 0:
        return height // tiles_y, width // tiles_x
    return height // tiles_y + 1, width // tiles_x + 1


@inner_kernel()
def lumas_of(row: Any, stride: Any, width: Any, channels: Any, target: Any) -> None:
    r, g, b = bytes_at(row, width), bytes_at(row + stride, width), bytes_at(row + 2 * stride, width)
    out = bytes_at(target, width)
    if channels == 1:
        for x in range(width):
            out[x] = r[x]
    else:
        for x in range(width):
            out[x] = luma(r[x], g[x], b[x])


@inner_kernel()
def count_row(row: Any, width: Any, tile_w: Any, tiles_x: Any, counts: Any) -> None:
    levels = bytes_at(row, width)
    for tile in range(tiles_x):
        begin, end = tile * tile_w, (tile + 1) * tile_w
        for x in range(begin, min(end, width)):
            counts[tile, levels[x]] += 1
        for x in range(max(begin, width), end):
            counts[tile, levels[reflect(x, width)]] += 1


@inner_kernel()
def fill_table(counts: Any, limit: Any, total: Any, table: Any) -> None:
    """OpenCV's: counts above the limit are cut off and given to all levels alike, then summed up."""
    clipped = nb.int64(0)
    for i in range(256):
        clipped += max(counts[i] - limit, 0)
    batch, rest = clipped // 256, clipped % 256
    step = max(256 // max(rest, 1), 1)
    scale, running = np.float32(255.0) / np.float32(total), nb.int64(0)
    for i in range(256):
        running += min(counts[i], limit) + batch + (1 if i % step == 0 and i // step < rest else 0)
        table[i] = min(int(np.rint(np.float32(running) * scale)), 255)


@inlined
def equalize_row(a: Any, first: Any, stride: Any, height: Any, width: Any, y: Any, channels: Any, scratch: Any) -> None:
    """Row ``y`` into ``scratch.planes``, each channel moved as far as the luma is."""
    tiles_x, tiles_y = int(a[1]), int(a[2])
    tile_h, _ = tile_sides(height, width, tiles_y, tiles_x)
    at = np.float32(y) * (_ONE / np.float32(tile_h)) - _HALF
    tile = int(np.floor(at))
    share = at - np.float32(tile)
    row, moved = address_of(scratch.row_bytes), address_of(scratch.row_pixels)
    lumas_of(first + 3 * stride * y, stride, width, channels, row)
    above = address_of(scratch.tile_luts) + 256 * tiles_x * max(tile, 0)
    below = address_of(scratch.tile_luts) + 256 * tiles_x * min(tile + 1, tiles_y - 1)
    shares = address_of(scratch.tap_weights)
    look_up_row(row, width, above, below, scratch.column, scratch.line, shares, share, moved)
    for c in range(channels):
        move_row(first + (3 * y + c) * stride, row, moved, width, address_of(scratch.planes) + c * stride)


@inner_kernel()
def look_up_row(
    row: Any, width: Any, above: Any, below: Any, left: Any, right: Any, shares_at: Any, share: Any, target: Any
) -> None:
    levels, out, shares = bytes_at(row, width), bytes_at(target, width), floats_at(shares_at, width)
    size = 256 * MAX_TILES
    top, bottom = bytes_at(above, size), bytes_at(below, size)
    for x in range(width):
        level = nb.int64(levels[x])
        a, b, t = left[x] + level, right[x] + level, shares[x]
        rest = _ONE - t
        upper = np.float32(top[a]) * rest + np.float32(top[b]) * t
        lower = np.float32(bottom[a]) * rest + np.float32(bottom[b]) * t
        out[x] = min(int(np.rint(upper * (_ONE - share) + lower * share)), 255)


@inner_kernel()
def move_row(row: Any, before: Any, after: Any, width: Any, target: Any) -> None:
    levels, old, new = bytes_at(row, width), bytes_at(before, width), bytes_at(after, width)
    out = bytes_at(target, width)
    for x in range(width):
        out[x] = min(max(nb.int32(levels[x]) + nb.int32(new[x]) - nb.int32(old[x]), 0), 255)
