"""Finished rows written to their place in the result, and blends: weighted sums of rows, or rectangles of them.

Blends go plane by plane, and sums a few thousand at a time, so that they stay in the nearest cache.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from variegate.executors.cpu import kernel as K
from variegate.executors.cpu.batch import batch_at, scratch_at
from variegate.executors.cpu.kernel import address_of, bytes_at, call_part, floats_at, inlined, set_target
from variegate.executors.cpu.layout import BYTES_CHW, FLOATS_CHW, target_at
from variegate.executors.cpu.simd import BLOCK
from variegate.executors.cpu.simd_pixels import STREAMED, copy_block, join_rgb, scale_block, stream_levels
from variegate.program.compiled import inner_kernel, pixel_kernel


@inner_kernel(forceinline=True)
def store_row(planes: Any, y: Any, target: Any) -> None:
    if target.kind >= FLOATS_CHW:
        _store_floats(planes, y, target)
    else:
        _store_bytes(planes, y, target)


@inner_kernel(forceinline=True)
def _store_bytes(planes: Any, y: Any, target: Any) -> None:
    """As uint8, interleaved or planar."""
    height, width, channels = target.height, target.width, target.channels
    source, stride = address_of(planes), planes.shape[1]
    # The last block overlaps the one before it, so that no write leaves the row.
    blocks, last = (width + BLOCK - 1) // BLOCK, width - BLOCK
    if width < BLOCK:
        levels = bytes_at(target.address, height * width * channels)
        is_planar = target.kind == BYTES_CHW or channels == 1
        for c in range(channels):
            for x in range(width):
                at = (c * height + y) * width + x if is_planar else channels * (y * width + x) + c
                levels[at] = planes[c, x]
    elif target.kind == BYTES_CHW or channels == 1:
        for c in range(channels):
            to = target.address + (c * height + y) * width
            for block in range(blocks):
                x = min(block * BLOCK, last)
                copy_block(source + c * stride + x, to + x)
    else:
        to = target.address + 3 * y * width
        for block in range(blocks):
            x = min(block * BLOCK, last)
            join_rgb(source + x, stride, to + 3 * x)


@inner_kernel(forceinline=True)
def _store_floats(planes: Any, y: Any, target: Any) -> None:
    """As ``x * scale + bias`` in float32, interleaved or planar; past the caches, if wished, where rows are aligned for
    it.
    """
    width, channels, scale, bias = target.width, target.channels, target.scale, target.bias
    floats = floats_at(target.address, target.height * width * channels)
    for c in range(channels):
        if target.kind != FLOATS_CHW and channels == 3:
            at = 3 * y * width + c
            for x in range(width):
                floats[at + 3 * x] = np.float32(planes[c, x]) * scale[c] + bias[c]
            continue
        at = (c * target.height + y) * width
        source, to = address_of(planes) + c * planes.shape[1], target.address + 4 * at
        _scale_levels(source, to, width, scale[c], bias[c], target.streams)


@inner_kernel(forceinline=True)
def _scale_levels(source: Any, to: Any, size: Any, scale: Any, bias: Any, streams: Any) -> None:
    if streams and size % STREAMED == 0 and to % (4 * STREAMED) == 0:
        for x in range(0, size, STREAMED):
            stream_levels(source + x, to + 4 * x, scale, bias)
    elif size >= BLOCK:
        for block in range((size + BLOCK - 1) // BLOCK):
            x = min(block * BLOCK, size - BLOCK)  # the last one overlaps the one before it
            scale_block(source + x, to + 4 * x, scale, bias)
    else:
        levels, floats = bytes_at(source, size), floats_at(to, size)
        for x in range(size):
            floats[x] = np.float32(levels[x]) * scale + bias


# Sums of whole images are made so many at a time.
SPAN = 4096


@pixel_kernel
def blend_outputs(
    outputs: Any, entries: Any, batch: Any, canvases: Any, targets: Any, form: Any, sums: Any, levels: Any, scratch: Any
) -> None:
    """Join the rows of each output of the batch at address ``batch``. ``canvases`` and ``targets`` are addresses;
    ``sums`` is float32 scratch of SPAN or of a line of all channels, ``levels`` uint8 of an image, ``scratch`` the
    address of the thread's.
    """
    program, own = batch_at(batch).program, scratch_at(scratch)
    is_planar = form.kind == FLOATS_CHW or form.kind == BYTES_CHW
    for n in outputs:
        row = entries.row[entries.begins[n]]
        channels, last = nb.int64(program.in_shape[row, 2]), program.length[row] - 1
        h = nb.int64(program.out_size[row, last, 0]) if last >= 0 else nb.int64(program.in_shape[row, 0])
        w = nb.int64(program.out_size[row, last, 1]) if last >= 0 else nb.int64(program.in_shape[row, 1])
        step = 1 if is_planar else channels  # values of a pixel that lie side by side
        size = h * w * step
        target = target_at(targets[n], form.kind, h, w, channels, form)
        for plane in range(channels // step):
            if form.kind < FLOATS_CHW:
                _join(entries, n, canvases, plane * size, h, w, step, sums, bytes_at(targets[n] + plane * size, size))
            else:
                _join(entries, n, canvases, plane * size, h, w, step, sums, levels)
                _store(levels, size, step, targets[n] + 4 * plane * size, target, plane)
        if form.kind >= FLOATS_CHW:
            own.sweep[K.CHANNELS] = channels
            set_target(target, own.sweep)
            call_part(own.parts[K.ERASED], batch, scratch, row, 0, program.length[row])


@inner_kernel()
def _join(entries: Any, n: Any, canvases: Any, offset: Any, h: Any, w: Any, step: Any, sums: Any, levels: Any) -> None:
    """Output ``n``, of the planes that begin ``offset`` bytes into its canvases, into ``levels``."""
    begin, end, width, boxes = entries.begins[n], entries.begins[n + 1], w * step, entries.box
    if entries.pastes[n]:
        for at in range(begin, end):
            canvas, first = canvases[entries.row[at]] + offset, entries.alpha_at[at]
            if first < 0:
                _paste(canvas, boxes[at], h, width, step, levels)
            else:
                _lay_over(canvas, boxes[at], width, step, entries.alpha[first:], levels)
        return
    is_whole = True
    for at in range(begin, end):
        is_whole &= boxes[at, 0] == 0 and boxes[at, 1] == 0 and boxes[at, 2] >= h and boxes[at, 3] >= w
    span = SPAN if is_whole else width
    for first in range(0, h * width, span):
        count, y = min(span, h * width - first), first // width
        to = levels[first : first + count]
        if is_whole and end - begin == 2:
            _sum_of_two(entries, n, canvases, offset + first, to)
            continue
        for i in range(count):
            sums[i] = entries.start[n]
        for at in range(begin, end):
            left, right = 0, count
            if not is_whole:
                if not boxes[at, 0] <= y < boxes[at, 2]:
                    continue
                left, right = nb.int64(boxes[at, 1]) * step, min(nb.int64(boxes[at, 3]) * step, width)
            pixels = bytes_at(canvases[entries.row[at]] + offset + first + left, right - left)
            share, part = entries.weight[at], sums[left:right]
            for i in range(right - left):
                part[i] += share * np.float32(pixels[i])
        for i in range(count):
            to[i] = _level(sums[i])


@inlined
def _sum_of_two(entries: Any, n: Any, canvases: Any, offset: Any, to: Any) -> None:
    """Two whole rows: the same sum, without a stop in memory."""
    at, start = entries.begins[n], entries.start[n]
    first = bytes_at(canvases[entries.row[at]] + offset, to.shape[0])
    second = bytes_at(canvases[entries.row[at + 1]] + offset, to.shape[0])
    share, rest = entries.weight[at], entries.weight[at + 1]
    for i in range(to.shape[0]):
        to[i] = _level(start + share * np.float32(first[i]) + rest * np.float32(second[i]))


@inlined
def _paste(canvas: Any, box: Any, h: Any, width: Any, step: Any, levels: Any) -> None:
    """A rectangle as it is; lines that reach from side to side at once."""
    top, bottom = nb.int64(box[0]), min(nb.int64(box[2]), h)
    left, right = nb.int64(box[1]) * step, min(nb.int64(box[3]) * step, width)
    length = right - left
    if length == width:
        length *= bottom - top
        bottom = min(bottom, top + 1)
    for y in range(top, bottom):
        pixels, to = bytes_at(canvas + y * width + left, length), levels[y * width + left :]
        for i in range(length):
            to[i] = pixels[i]


@inlined
def _lay_over(canvas: Any, box: Any, width: Any, step: Any, alpha: Any, levels: Any) -> None:
    """A rectangle, within the image, in shares of ``alpha`` / 255, rounded to the nearest."""
    left, columns = nb.int64(box[1]), nb.int64(box[3]) - nb.int64(box[1])
    for line in range(nb.int64(box[2]) - nb.int64(box[0])):
        at = (nb.int64(box[0]) + line) * width + left * step
        pixels, to, shares = bytes_at(canvas + at, columns * step), levels[at:], alpha[line * columns :]
        if step == 1:
            for x in range(columns):
                to[x] = _over(to[x], pixels[x], shares[x])
        else:
            for x in range(columns):
                for c in range(step):
                    to[x * step + c] = _over(to[x * step + c], pixels[x * step + c], shares[x])


@inlined
def _over(below: Any, above: Any, alpha: Any) -> Any:
    share = nb.int32(alpha)
    total = nb.int32(below) * (255 - share) + nb.int32(above) * share + 128
    return np.uint8((total + (total >> 8)) >> 8)


@inlined
def _level(value: Any) -> Any:
    return np.uint8(np.int32(min(max(value, np.float32(0.0)), np.float32(255.0))))


@inlined
def _store(levels: Any, size: Any, step: Any, to: Any, target: Any, plane: Any) -> None:
    """As ``x * scale + bias`` in float32."""
    if step == 1:
        _scale_levels(address_of(levels), to, size, target.scale[plane], target.bias[plane], target.streams)
        return
    floats = floats_at(to, size)
    for c in range(step):
        for i in range(c, size, step):
            floats[i] = np.float32(levels[i]) * target.scale[plane + c] + target.bias[plane + c]
