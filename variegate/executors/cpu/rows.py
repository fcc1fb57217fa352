"""One row of a pass's source, in planes: copied, or gathered through nearest maps.

Functions write ``planes[channel, x]`` for the part of the row that lies inside and return that part, ``(first, end)``;
where inside is not one stretch, ``scratch.stage[x]`` holds the slot of the map at which the pixel left, or -1.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu import simd_walk as W
from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import prefetch, split_rgb, split_rgb_reversed, split_rgbx
from variegate.program.compiled import inner_kernel
from variegate.program.places import may_hit

_SHIFT, _ROWS_AHEAD = 16, 8
# The largest image that fits into a second-level cache beside the one at hand.
PREFETCHED = 1 << 18
_WIDEST, _LARGEST = (1 << 15) - 1, (1 << 31) - 1
# Bytes of an image that a cache holds beside all else.
_CACHED = 1 << 19
# How many lines of the source a processor can follow at a time.
_FOLLOWED = 8.0


@inner_kernel()
def fetch_ahead(image: Any, slant: Any, width: Any) -> None:
    """Bring an image into the cache in one go if it is read along slanted rows, which no processor foresees. ``slant``:
    by how many lines of the image a row of ``width`` pixels falls, per pixel."""
    if abs(slant) * width > _FOLLOWED and image.levels.size <= _CACHED:
        prefetch(address_of(image.levels), image.levels.size)


@inner_kernel(forceinline=True)
def copy_pixels(image: Any, start: Any, n: Any, mirrored: Any, planes: Any, at: Any) -> None:
    """``n`` pixels from pixel index ``start`` on into planes from column ``at``."""
    levels = image.levels
    if image.channels == 1:
        if mirrored:
            for i in range(n):
                planes[0, at + i] = levels[start + n - 1 - i]
        else:
            for i in range(n):
                planes[0, at + i] = levels[start + i]
        return
    if n < BLOCK:
        for i in range(n):
            j = 3 * (start + (n - 1 - i if mirrored else i))
            planes[0, at + i], planes[1, at + i], planes[2, at + i] = levels[j], levels[j + 1], levels[j + 2]
        return
    source = address_of(levels) + 3 * start
    target, stride = address_of(planes) + at, planes.shape[1]
    # The last block overlaps the one before it, so that no read leaves the stretch.
    blocks, last = (n + BLOCK - 1) // BLOCK, n - BLOCK
    if mirrored:
        # Processors foresee what is read upwards.
        prefetch(source + 3 * image.width, 3 * n)
        for block in range(blocks):
            i = min(block * BLOCK, last)
            split_rgb_reversed(source + 3 * (last - i), target + i, stride)
    else:
        for block in range(blocks):
            i = min(block * BLOCK, last)
            split_rgb(source + 3 * i, target + i, stride)


@inner_kernel(forceinline=True)
def stretch_of(image: Any, a: Any, window: Any, y: Any, out_width: Any) -> Any:
    """Stretch that row ``y`` of an untransposed whole-pixel map copies -> (first and end column, first pixel,
    whether mirrored)."""
    is_mirrored, shift = a[0] <= 0.0, int(a[2]) >> _SHIFT
    v = (y if a[4] > 0.0 else -y) + (int(a[5]) >> _SHIFT)
    if is_mirrored:
        first, end = max(0, shift - window[3] + 1), min(out_width, shift - window[1] + 1)
        u = shift - end + 1
    else:
        first, end = max(0, window[1] - shift), min(out_width, window[3] - shift)
        u = first + shift
    if v < window[0] or v >= window[2] or end <= first:
        first, end = 0, 0
    return first, end, v * image.width + u, is_mirrored


@inner_kernel(forceinline=True)
def _solve(start: Any, step: Any, low: Any, high: Any, n: Any) -> Any:
    """The x in 0..n with ``low <= start + step x < high`` -> (first, end)."""
    if step > 0:
        first = -((start - low) // step)
        end = -((start - high) // step)
    elif step < 0:
        first = (start - high) // -step + 1
        end = (start - low) // -step + 1
    else:
        return (0, n) if low <= start < high else (0, 0)
    return max(0, first), min(n, end)


@inner_kernel(forceinline=True)
def fixed_row(image: Any, a: Any, window: Any, y: Any, out_width: Any, planes: Any, scratch: Any) -> Any:
    """Row ``y`` of one 16.16 map: solve for the stretch that lies inside, then gather it without tests."""
    dx, dy = int(a[0]), int(a[3])
    x0, y0 = int(a[1]) * y + int(a[2]), int(a[4]) * y + int(a[5])
    first_x, end_x = _solve(x0, dx, window[1] << _SHIFT, window[3] << _SHIFT, out_width)
    first_y, end_y = _solve(y0, dy, window[0] << _SHIFT, window[2] << _SHIFT, out_width)
    first, end = max(first_x, first_y), min(end_x, end_y)
    levels, width = image.levels, image.width
    if end <= first:
        first, end = 0, 0
    elif image.channels == 1 or levels.size < 4:
        for x in range(first, end):
            pixel = ((y0 + dy * x) >> _SHIFT) * width + ((x0 + dx * x) >> _SHIFT)
            for c in range(image.channels):
                planes[c, x] = levels[image.channels * pixel + c]
    else:
        at_x, at_y = nb.int32(x0 + dx * first), nb.int32(y0 + dy * first)
        n, last, offsets = end - first, nb.int32(levels.size - 4), address_of(scratch.offset)
        has_last = W.affine_offsets(at_x, at_y, nb.int32(dx), nb.int32(dy), nb.int32(width), last, n, offsets)
        # Where the pixel a few rows further down is read. A small image is in the cache already.
        ahead = (width * (int(a[4]) * _ROWS_AHEAD >> _SHIFT) + (int(a[1]) * _ROWS_AHEAD >> _SHIFT)) * 3
        _gather(levels, n, has_last, planes, first, ahead if levels.size > PREFETCHED else 0, scratch)
    return first, end


@inner_kernel(forceinline=True)
def _gather(levels: Any, n: Any, has_last: Any, planes: Any, first: Any, ahead: Any, scratch: Any) -> None:
    """The RGB pixels at the first ``n`` of ``scratch.offset`` into planes from column ``first`` on; see
    ``load_pixels``."""
    offset, words = scratch.offset, scratch.row_words
    W.load_pixels(address_of(levels), address_of(offset), n, ahead, address_of(words))
    if has_last != 0:
        # The last pixel of an image is read one byte early, so that no load leaves it. No other pixel begins there.
        for x in range(n):
            if offset[x] == levels.size - 4:
                words[x] >>= 8
    source, target, stride = address_of(words), address_of(planes) + first, planes.shape[1]
    for x in range(0, n, BLOCK):
        split_rgbx(source + 4 * x, target + x, stride)


@inner_kernel(forceinline=True)
def pack_maps(row: Any, slots: Any, count: Any, maps: Any) -> None:
    """The maps of a chain as ``simd_walk.step_back`` reads them, int32[count, 16]."""
    for i in range(count):
        slot = slots[i]
        a = row.args[slot]
        maps[i] = 0
        maps[i, 10] = slot
        # Else nothing of it is inside, perhaps by more than 32 bits can tell.
        if may_hit(a, row.window[slot], row.out_size[slot]):
            for j in range(6):
                maps[i, j] = np.int32(a[j])
            for j in range(4):
                maps[i, 6 + j] = row.window[slot, j]


@inner_kernel(forceinline=True)
def chain_row(image: Any, count: Any, y: Any, out_width: Any, scratch: Any) -> None:
    """Row ``y`` of several 16.16 maps run backwards, each rounding as it would alone. The whole row; see ``stage``."""
    columns, lines, stages = address_of(scratch.column), address_of(scratch.line), address_of(scratch.stage)
    maps = address_of(scratch.maps)
    W.begin_walk(nb.int32(y), maps + 64 * (count - 1), out_width, columns, lines, stages)
    for i in range(count - 2, -1, -1):
        W.step_back(maps + 64 * i, out_width, columns, lines, stages)
    read_places(image, y, out_width, scratch)


@inner_kernel(forceinline=True)
def read_places(image: Any, y: Any, out_width: Any, scratch: Any) -> None:
    """Row ``y``: the pixels at ``scratch.column`` and ``scratch.line``, all inside the image, into the planes."""
    column, line, levels, planes = scratch.column, scratch.line, image.levels, scratch.planes
    # The vectors multiply lines by widths of 15 bits, to offsets of 31.
    if image.channels == 1 or levels.size < 4 or image.width > _WIDEST or levels.size > _LARGEST:
        for x in range(out_width):
            pixel = nb.int64(line[x]) * image.width + column[x]
            for c in range(image.channels):
                planes[c, x] = levels[image.channels * pixel + c]
        return
    width, last, offsets = nb.int32(image.width), nb.int32(levels.size - 4), address_of(scratch.offset)
    middle = out_width // 2
    before = nb.int64(scratch.offset[middle])
    has_last = W.walked_offsets(address_of(column), address_of(line), width, last, out_width, offsets)
    # On from the row before as from there to here.
    ahead = (scratch.offset[middle] - before) * _ROWS_AHEAD if y > 0 and levels.size > PREFETCHED else 0
    _gather(levels, out_width, has_last, planes, 0, ahead, scratch)


@inner_kernel()
def table_row(image: Any, columns: Any, line: Any, slot: Any, out_width: Any, stage: Any, planes: Any) -> None:
    """Pixels of one source line at the columns of a table; -1 marks the outside."""
    channels = image.channels
    for x in range(out_width):
        is_outside = line < 0 or columns[x] < 0
        stage[x] = slot if is_outside else -1
        if not is_outside:
            at = channels * (line * image.width + columns[x])
            for c in range(channels):
                planes[c, x] = image.levels[at + c]


@inner_kernel(forceinline=True)
def fill_outside(planes: Any, channels: Any, colour: Any, first: Any, end: Any, out_width: Any) -> None:
    """One colour left of ``first`` and from ``end`` on."""
    for c in range(channels):
        planes[c, :first] = colour[c]
        planes[c, end:out_width] = colour[c]


@inner_kernel(forceinline=True)
def fill_by_stage(count: Any, out_width: Any, scratch: Any) -> None:
    """The colour of the map at which each pixel left, of a pass's ``count`` maps."""
    stages, planes, stride = address_of(scratch.stage), address_of(scratch.planes), scratch.planes.shape[1]
    for i in range(count):
        slot = scratch.slots[i]
        W.fill_row(stages, out_width, nb.int32(slot), scratch.colours[slot], planes, stride)
