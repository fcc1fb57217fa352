"""The pixels of one kernel program."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def places(tile, tiles_x, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    """Columns and lines of tile number ``tile``, ``tiles_x`` of which lie side by side, as flat int32 tensors."""
    i = tl.arange(0, BLOCK_Y * BLOCK_X)
    x = (tile % tiles_x) * BLOCK_X + i % BLOCK_X
    y = (tile // tiles_x) * BLOCK_Y + i // BLOCK_X
    return x, y
