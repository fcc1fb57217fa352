"""One row of a pass's source, in planes: copied, or gathered through nearest maps.

Every function writes ``planes[channel, x]`` for the part of the row that lies inside and returns that part, ``(first,
end)``; where inside is not one stretch, ``stage[x]`` holds the slot of the map at which the pixel left, or -1.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu.simd import BLOCK, address_of, split_rgb, split_rgb_reversed
from variegate.executors.cpu.simd_gather import begin_walk, fill_block, gather_rgb, gather_rgb_affine, step_back
from variegate.program.compiled import pixel_kernel
from variegate.program.coordinate_tables import may_hit

_SHIFT = 16
_GATHER = 16


@pixel_kernel(forceinline=True)
def copy_pixels(image: Any, start: Any, n: Any, mirrored: Any, channels: Any, planes: Any, at: Any) -> None:
    """``n`` pixels from pixel index ``start`` of an HWC image into planes from column ``at``."""
    if channels == 1:
        if mirrored:
            for i in range(n):
                planes[0, at + i] = image[start + n - 1 - i]
        else:
            for i in range(n):
                planes[0, at + i] = image[start + i]
        return
    if n < BLOCK:
        for i in range(n):
            j = 3 * (start + (n - 1 - i if mirrored else i))
            planes[0, at + i], planes[1, at + i], planes[2, at + i] = image[j], image[j + 1], image[j + 2]
        return
    source = address_of(image) + 3 * start
    stride = planes.shape[1]
    r = address_of(planes) + at
    for block in range((n + BLOCK - 1) // BLOCK):
        # The last block overlaps the one before it, so that no read leaves the stretch.
        i = min(block * BLOCK, n - BLOCK)
        if mirrored:
            split_rgb_reversed(source + 3 * (n - BLOCK - i), r + i, r + stride + i, r + 2 * stride + i)
        else:
            split_rgb(source + 3 * i, r + i, r + stride + i, r + 2 * stride + i)


@pixel_kernel(forceinline=True)
def whole_row(image: Any, width: Any, channels: Any, a: Any, window: Any, y: Any, out_width: Any, planes: Any) -> Any:
    """Row ``y`` of a whole-pixel map that is not transposed."""
    step, shift = a[0] > 0.0, int(a[2]) >> _SHIFT
    v = (y if a[4] > 0.0 else -y) + (int(a[5]) >> _SHIFT)
    if v < window[0] or v >= window[2]:
        return 0, 0
    if step:
        first, end = max(0, window[1] - shift), min(out_width, window[3] - shift)
        u = first + shift
    else:
        first, end = max(0, shift - window[3] + 1), min(out_width, shift - window[1] + 1)
        u = shift - end + 1
    if end <= first:
        return 0, 0
    copy_pixels(image, v * width + u, end - first, not step, channels, planes, first)
    return first, end


@pixel_kernel(forceinline=True)
def _stretch(start: Any, step: Any, low: Any, high: Any, n: Any) -> Any:
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


@pixel_kernel(forceinline=True)
def fixed_row(image: Any, width: Any, channels: Any, a: Any, window: Any, y: Any, out_width: Any, planes: Any) -> Any:
    """Row ``y`` of one 16.16 map: solve for the stretch that lies inside, then gather it without tests."""
    dx, dy = int(a[0]), int(a[3])
    x0, y0 = int(a[1]) * y + int(a[2]), int(a[4]) * y + int(a[5])
    first, end = _stretch(x0, dx, window[1] << _SHIFT, window[3] << _SHIFT, out_width)
    first_y, end_y = _stretch(y0, dy, window[0] << _SHIFT, window[2] << _SHIFT, out_width)
    first, end = max(first, first_y), min(end, end_y)
    if end <= first:
        return 0, 0
    if channels == 1 or image.size < 4:
        for x in range(first, end):
            pixel = ((y0 + dy * x) >> _SHIFT) * width + ((x0 + dx * x) >> _SHIFT)
            for c in range(channels):
                planes[c, x] = image[channels * pixel + c]
        return first, end
    base, last = address_of(image), nb.int32(image.size - 4)
    stride = planes.shape[1]
    r = address_of(planes)
    for x in range(first, end, _GATHER):
        gather_rgb_affine(
            base,
            nb.int32(x0 + dx * x),
            nb.int32(y0 + dy * x),
            nb.int32(dx),
            nb.int32(dy),
            nb.int32(width),
            last,
            r + x,
            r + stride + x,
            r + 2 * stride + x,
        )
    return first, end


@pixel_kernel
def pack_maps(args: Any, windows: Any, out_size: Any, slots: Any, count: Any, maps: Any) -> None:
    """The maps of a chain as ``simd.step_back`` reads them, int32[count, 16]."""
    for i in range(count):
        slot = slots[i]
        a = args[slot]
        if not may_hit(a, windows[slot], out_size[slot]):
            # Nothing of it is inside, perhaps by more than 32 bits can tell.
            maps[i] = 0
            maps[i, 10] = slot
            continue
        for j in range(6):
            maps[i, j] = np.int32(a[j])
        for j in range(4):
            maps[i, 6 + j] = windows[slot, j]
        maps[i, 10] = slot


@pixel_kernel(forceinline=True)
def chain_row(
    image: Any, width: Any, channels: Any, maps: Any, count: Any, y: Any, out_width: Any, scratch: Any, planes: Any
) -> Any:
    """Row ``y`` of several 16.16 maps run backwards, each rounding as it would alone. The whole row; see ``stage``."""
    column, line, offset = scratch.column, scratch.line, scratch.offset
    columns, lines, stages = address_of(column), address_of(line), address_of(scratch.stage)
    map_at = address_of(maps)
    for x in range(0, out_width, _GATHER):
        begin_walk(nb.int32(x), nb.int32(y), columns + 4 * x, lines + 4 * x, stages + 4 * x)
        for i in range(count - 1, -1, -1):
            step_back(columns + 4 * x, lines + 4 * x, stages + 4 * x, map_at + 64 * i)
    pixel_bytes, row_bytes = nb.int32(channels), nb.int32(channels * width)
    for x in range(out_width):
        offset[x] = nb.int32(line[x] * row_bytes) + nb.int32(column[x] * pixel_bytes)
    gather_offsets(image, channels, offset, 0, out_width, planes)
    return 0, out_width


@pixel_kernel
def gather_offsets(image: Any, channels: Any, offset: Any, first: Any, end: Any, planes: Any) -> None:
    """Pixels at byte offsets ``offset[first:end]`` into planes."""
    if channels == 1 or image.size < 4:
        for x in range(first, end):
            for c in range(channels):
                planes[c, x] = image[offset[x] + c]
        return
    base, last = address_of(image), nb.int32(image.size - 4)
    stride = planes.shape[1]
    r, o = address_of(planes), address_of(offset)
    for x in range(first, end, _GATHER):
        gather_rgb(base, o + 4 * x, last, r + x, r + stride + x, r + 2 * stride + x)


@pixel_kernel(forceinline=True)
def fill_outside(planes: Any, channels: Any, colour: Any, first: Any, end: Any, out_width: Any) -> None:
    """One colour left of ``first`` and from ``end`` on."""
    for c in range(channels):
        planes[c, :first] = colour[c]
        planes[c, end:out_width] = colour[c]


@pixel_kernel(forceinline=True)
def fill_by_stage(planes: Any, colours: Any, stage: Any, out_width: Any) -> None:
    """The colour of the map at which each pixel left; ``colours``: int32[slots], red in the lowest byte."""
    stride = planes.shape[1]
    r, s, c = address_of(planes), address_of(stage), address_of(colours)
    for x in range(0, out_width, _GATHER):
        fill_block(s + 4 * x, c, r + x, r + stride + x, r + 2 * stride + x)
