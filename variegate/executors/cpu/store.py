"""Write a finished row of planes to its place in the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.layout import BYTES_CHW, FLOATS_CHW
from variegate.executors.cpu.simd import (
    BLOCK,
    STREAMED,
    address_of,
    copy_block,
    join_rgb,
    scale_block,
    stream_levels,
)
from variegate.program.compiled import pixel_kernel


@pixel_kernel(forceinline=True)
def store_bytes(planes: Any, channels: Any, kind: Any, y: Any, height: Any, width: Any, target: Any) -> None:
    """As uint8, interleaved or planar."""
    if kind == BYTES_CHW or channels == 1:
        source, stride = address_of(planes), planes.shape[1]
        for c in range(channels):
            at = (c * height + y) * width
            if width >= BLOCK:
                t = address_of(target) + at
                for block in range((width + BLOCK - 1) // BLOCK):
                    x = min(block * BLOCK, width - BLOCK)
                    copy_block(source + c * stride + x, t + x)
            else:
                for x in range(width):
                    target[at + x] = planes[c, x]
    elif width >= BLOCK:
        source, stride = address_of(planes), planes.shape[1]
        t = address_of(target) + 3 * y * width
        for block in range((width + BLOCK - 1) // BLOCK):
            x = min(block * BLOCK, width - BLOCK)
            join_rgb(source + x, source + stride + x, source + 2 * stride + x, t + 3 * x)
    else:
        at = 3 * y * width
        for x in range(width):
            for c in range(3):
                target[at + 3 * x + c] = planes[c, x]


@pixel_kernel(forceinline=True)
def store_floats(
    planes: Any,
    channels: Any,
    kind: Any,
    y: Any,
    height: Any,
    width: Any,
    scale: Any,
    bias: Any,
    streams: Any,
    target: Any,
) -> None:
    """As ``x * scale + bias`` in float32, interleaved or planar. ``streams``: past the caches, where rows are
    aligned for it.
    """
    if kind == FLOATS_CHW or channels == 1:
        source, stride = address_of(planes), planes.shape[1]
        for c in range(channels):
            at = (c * height + y) * width
            t = address_of(target) + 4 * at
            if streams and width % STREAMED == 0 and t % (4 * STREAMED) == 0:
                for x in range(0, width, STREAMED):
                    stream_levels(source + c * stride + x, t + 4 * x, scale[c], bias[c])
            elif width >= BLOCK:
                for block in range((width + BLOCK - 1) // BLOCK):
                    x = min(block * BLOCK, width - BLOCK)
                    scale_block(source + c * stride + x, t + 4 * x, scale[c], bias[c])
            else:
                for x in range(width):
                    target[at + x] = np.float32(planes[c, x]) * scale[c] + bias[c]
    else:
        at = 3 * y * width
        for c in range(3):
            for x in range(width):
                target[at + 3 * x + c] = np.float32(planes[c, x]) * scale[c] + bias[c]
