"""One row of a pass's source, in planes: copied, or gathered through nearest maps.

Functions write ``planes[channel, x]`` for the part of the row that lies inside and return that part, ``(first, end)``;
where inside is not one stretch, ``scratch.stage[x]`` holds the slot of the map at which the pixel left, or -1.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.kernel import address_of
from variegate.executors.cpu.simd import BLOCK, split_rgb, split_rgb_reversed
from variegate.executors.cpu.simd_gather import begin_walk, fill_block, gather_rgb, gather_rgb_affine, step_back
from variegate.program.compiled import inner_kernel
from variegate.program.coordinate_tables import may_hit

_SHIFT = 16
_GATHER = 16


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
        for block in range(blocks):
            i = min(block * BLOCK, last)
            split_rgb_reversed(source + 3 * (last - i), target + i, stride)
    else:
        for block in range(blocks):
            i = min(block * BLOCK, last)
            split_rgb(source + 3 * i, target + i, stride)


@inner_kernel(forceinline=True)
def stretch_of(image: Any, a: Any, window: Any, y: Any, out_width: Any) -> Any:
    """What row ``y`` of a whole-pixel map that is not transposed copies -> (first and end column, first pixel,
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
def fixed_row(image: Any, a: Any, window: Any, y: Any, out_width: Any, planes: Any) -> Any:
    """Row ``y`` of one 16.16 map: solve for the stretch that lies inside, then gather it without tests."""
    dx, dy = int(a[0]), int(a[3])
    x0, y0 = int(a[1]) * y + int(a[2]), int(a[4]) * y + int(a[5])
    first_x, end_x = _solve(x0, dx, window[1] << _SHIFT, window[3] << _SHIFT, out_width)
    first_y, end_y = _solve(y0, dy, window[0] << _SHIFT, window[2] << _SHIFT, out_width)
    first, end = max(first_x, first_y), min(end_x, end_y)
    levels, width, channels = image.levels, image.width, image.channels
    if end <= first:
        first, end = 0, 0
    elif channels == 1 or levels.size < 4:
        for x in range(first, end):
            pixel = ((y0 + dy * x) >> _SHIFT) * width + ((x0 + dx * x) >> _SHIFT)
            for c in range(channels):
                planes[c, x] = levels[channels * pixel + c]
    else:
        base, last = address_of(levels), nb.int32(levels.size - 4)
        target, stride = address_of(planes), planes.shape[1]
        step_x, step_y, row = nb.int32(dx), nb.int32(dy), nb.int32(width)
        for x in range(first, end, _GATHER):
            at_x, at_y = nb.int32(x0 + dx * x), nb.int32(y0 + dy * x)
            gather_rgb_affine(base, at_x, at_y, step_x, step_y, row, last, target + x, stride)
    return first, end


@inner_kernel(forceinline=True)
def pack_maps(row: Any, slots: Any, count: Any, maps: Any) -> None:
    """The maps of a chain as ``simd_gather.step_back`` reads them, int32[count, 16]."""
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
    column, line, offset = scratch.column, scratch.line, scratch.offset
    columns, lines, stages = address_of(column), address_of(line), address_of(scratch.stage)
    map_at = address_of(scratch.maps)
    for x in range(0, out_width, _GATHER):
        begin_walk(nb.int32(x), nb.int32(y), columns + 4 * x, lines + 4 * x, stages + 4 * x)
        for i in range(count - 1, -1, -1):
            step_back(columns + 4 * x, lines + 4 * x, stages + 4 * x, map_at + 64 * i)
    levels, channels = image.levels, image.channels
    pixel_bytes, row_bytes = nb.int32(channels), nb.int32(channels * image.width)
    for x in range(out_width):
        offset[x] = nb.int32(line[x] * row_bytes) + nb.int32(column[x] * pixel_bytes)
    planes = scratch.planes
    if channels == 1 or levels.size < 4:
        for x in range(out_width):
            for c in range(channels):
                planes[c, x] = levels[offset[x] + c]
    else:
        base, last = address_of(levels), nb.int32(levels.size - 4)
        target, stride, offsets = address_of(planes), planes.shape[1], address_of(offset)
        for x in range(0, out_width, _GATHER):
            gather_rgb(base, offsets + 4 * x, last, target + x, stride)


@inner_kernel(forceinline=True)
def fill_outside(planes: Any, channels: Any, colour: Any, first: Any, end: Any, out_width: Any) -> None:
    """One colour left of ``first`` and from ``end`` on."""
    for c in range(channels):
        planes[c, :first] = colour[c]
        planes[c, end:out_width] = colour[c]


@inner_kernel(forceinline=True)
def fill_by_stage(out_width: Any, scratch: Any) -> None:
    """The colour of the map at which each pixel left."""
    planes, stride = address_of(scratch.planes), scratch.planes.shape[1]
    stages, colours = address_of(scratch.stage), address_of(scratch.colours)
    for x in range(0, out_width, _GATHER):
        fill_block(stages + 4 * x, colours, planes + x, stride)
