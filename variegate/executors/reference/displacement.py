"""Where a grid of displacements reads, in integers.

A node has a displacement along x and along y, two int16 in units of 2**(unit - 6) pixels. Node (0, 0) lies at the
centre of the first pixel; ``step`` / 2**26 nodes follow for every pixel. Between four nodes their displacements are
weighed by 14-bit shares of the way, along x and along y; the sum of the four products is exact, and rounded half up,
once, to the fraction bits of a place. So it does not matter in which order executors add.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Instruction
from variegate.executors.reference.places import Places

Integers = npt.NDArray[np.integer]

STEP_BITS, WEIGHT_BITS, NODE_BITS = 26, 14, 6


def displaced(ins: Instruction, size: tuple[int, int], bits: int) -> Places:
    """The place of every pixel's centre, moved by the instruction's grid. ``size``: height and width of the image."""
    first, lines, columns, _, step_y, step_x, unit = ins.integers(7)
    nodes = ins.side_tables().grids[first : first + 2 * lines * columns].reshape(lines, columns, 2).astype(np.int64)
    height, width = size
    i, down = _cells(height, step_y)
    j, across = _cells(width, step_x)
    upper, lower = nodes[i[:, None], j], nodes[i[:, None] + 1, j]
    upper_right, lower_right = nodes[i[:, None], j + 1], nodes[i[:, None] + 1, j + 1]
    across, down = across[:, None], down[:, None, None]
    one = 1 << WEIGHT_BITS
    total = (upper * (one - across) + upper_right * across) * (one - down)
    total += (lower * (one - across) + lower_right * across) * down
    shift = NODE_BITS + 2 * WEIGHT_BITS - unit - bits
    moved = total + (1 << shift - 1) >> shift
    half = 1 << bits - 1
    x = (np.arange(width) << bits) + half + moved[..., 0]
    y = (np.arange(height)[:, None] << bits) + half + moved[..., 1]
    return Places(x, y, (x >= 0) & (x < width << bits) & (y >= 0) & (y < height << bits))


def _cells(side: int, step: int) -> tuple[Integers, Integers]:
    """Of every pixel along a side: the last node that is not beyond it, and its way from there to the next one."""
    at = np.arange(side, dtype=np.int64) * step
    return at >> STEP_BITS, at >> STEP_BITS - WEIGHT_BITS & (1 << WEIGHT_BITS) - 1
