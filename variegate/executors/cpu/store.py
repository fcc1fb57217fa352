"""Write a finished row of planes to its place in the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.kernel import address_of, bytes_at, floats_at
from variegate.executors.cpu.layout import BYTES_CHW, FLOATS_CHW
from variegate.executors.cpu.simd import BLOCK, STREAMED, copy_block, join_rgb, scale_block, stream_levels
from variegate.program.compiled import inner_kernel


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
        if target.streams and width % STREAMED == 0 and to % (4 * STREAMED) == 0:
            for x in range(0, width, STREAMED):
                stream_levels(source + x, to + 4 * x, scale[c], bias[c])
        elif width >= BLOCK:
            for block in range((width + BLOCK - 1) // BLOCK):
                x = min(block * BLOCK, width - BLOCK)
                scale_block(source + x, to + 4 * x, scale[c], bias[c])
        else:
            for x in range(width):
                floats[at + x] = np.float32(planes[c, x]) * scale[c] + bias[c]
