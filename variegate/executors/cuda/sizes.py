"""How much memory a program needs on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program import passes as P
from variegate.program.compiled import pixel_kernel
from variegate.program.ops import IS_REAL_MAP, KIND_OF, Interpolation, Kind, Op


@pixel_kernel
def tap_count(args: Any, flag: Any) -> Any:
    """Weights per output (along x, along y) of a RESIZED_CROP, at most."""
    radius = 2.0 if flag == Interpolation.BICUBIC else 3.0 if flag == Interpolation.LANCZOS else 1.0
    taps_x = 2 * int(np.ceil(radius * max(_scale(args[1], args[3], args[5]), 1.0))) + 1
    taps_y = 2 * int(np.ceil(radius * max(_scale(args[0], args[2], args[4]), 1.0))) + 1
    return taps_x, taps_y


@pixel_kernel
def _scale(start: Any, extent: Any, size: Any) -> Any:
    # A negative start stands for a crop (lowering/merge.py), whose scale is that of whole pixels.
    start = max(start, 0.0)
    first = np.float32(start)
    return np.float64(np.float32(np.float32(start + extent) - first)) / size


@pixel_kernel
def measure(program: Any, is_blended: Any) -> Any:
    """(int32 indices of separable maps, real maps, statistics, int32 resize weights, canvas pixels) of a program."""
    indices, maps, statistics, weights, pixels = 0, 0, 0, 0, 0
    for r in range(program.opcode.shape[0]):
        for k in range(program.length[r]):
            op, h, w = program.opcode[r, k], int(program.out_size[r, k, 0]), int(program.out_size[r, k, 1])
            if op == Op.MAP_SCALE or op == Op.MAP_PAD:
                indices += h + w
            elif IS_REAL_MAP[op]:
                maps += 1
            elif KIND_OF[op] == Kind.STATISTIC:
                statistics += 1
            elif KIND_OF[op] == Kind.RESAMPLE:
                taps_x, taps_y = tap_count(program.args[r, k], program.flags[r, k])
                weights += (taps_x + 1) * w + (taps_y + 1) * h
        first, second = canvas_pixels(program.passes[r], program.num_passes[r], is_blended)
        pixels += first + second
    return indices, maps, statistics, weights, pixels


@pixel_kernel
def canvas_pixels(passes: Any, num_passes: Any, is_blended: Any) -> Any:
    """Pixels of a row's two canvases, which its passes write in turn. The last pass writes none, unless rows blend.

    In whole groups of four, so that what lies behind a canvas stays aligned.
    """
    first, second = 0, 0
    for p in range(num_passes if is_blended else num_passes - 1):
        pixels = (int(passes[p, P.HEIGHT]) * int(passes[p, P.WIDTH]) + 3) // 4 * 4
        if p % 2 == 0:
            first = max(first, pixels)
        else:
            second = max(second, pixels)
    return first, second
