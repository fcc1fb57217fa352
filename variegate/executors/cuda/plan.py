"""What a launch must be able to do, and how much room a program needs on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import kernel
from variegate.program.ops import KIND_OF, Interpolation, Kind, Op
from variegate.program.passes import END

_RESAMPLE, _STATISTIC = int(Kind.RESAMPLE), int(Kind.STATISTIC)
_SCALE, _PAD = int(Op.MAP_SCALE), int(Op.MAP_PAD)
_BICUBIC = int(Interpolation.BICUBIC)

# What a launch must be able to do, beyond nearest maps and tables.
REAL, FILTER, RESAMPLE, HUE, NOISE, MEASURES = 1, 2, 4, 8, 16, 32
# Fields of a launch: rows in its list, tiles of the largest, features.
NUM_ROWS, NUM_TILES, FEATURES = range(3)
# Columns or lines of a resize whose weights one program works out.
WEIGHTS_BLOCK = 128
# Bytes of a table of three channels.
TABLE = 768


@kernel
def tap_count(args: Any, flag: Any) -> Any:
    """Weights per output (along x, along y) of a RESIZED_CROP, at most."""
    radius = 2.0 if flag == _BICUBIC else 1.0
    taps_x = 2 * int(np.ceil(radius * max(_scale(args[1], args[3], args[5]), 1.0))) + 1
    taps_y = 2 * int(np.ceil(radius * max(_scale(args[0], args[2], args[4]), 1.0))) + 1
    return taps_x, taps_y


@kernel
def _scale(start: Any, extent: Any, size: Any) -> Any:
    first = np.float32(start)
    return np.float64(np.float32(np.float32(start + extent) - first)) / size


@kernel
def measure(
    opcode: Any,
    args: Any,
    flags: Any,
    out_size: Any,
    length: Any,
    passes: Any,
    num_passes: Any,
    in_shape: Any,
    is_blended: Any,
) -> Any:
    """Room that a program needs: (int32 indices, statistics, int32 resize weights, canvas pixels)."""
    indices, statistics, weights, pixels = 0, 0, 0, 0
    for r in range(opcode.shape[0]):
        for k in range(length[r]):
            op, h, w = opcode[r, k], int(out_size[r, k, 0]), int(out_size[r, k, 1])
            kind = KIND_OF[op]
            if op == _SCALE or op == _PAD:
                indices += h + w
            elif kind == _STATISTIC:
                statistics += 1
            elif kind == _RESAMPLE:
                taps_x, taps_y = tap_count(args[r, k], flags[r, k])
                weights += (taps_x + 1) * w + (taps_y + 1) * h
        first, second = canvas_pixels(out_size[r], passes[r], num_passes[r], in_shape[r], is_blended)
        pixels += first + second
    return indices, statistics, weights, pixels


@kernel
def canvas_pixels(out_size: Any, passes: Any, num_passes: Any, in_shape: Any, is_blended: Any) -> Any:
    """Pixels of a row's two canvases, which its passes write in turn. The last pass writes none, unless rows blend."""
    sizes = (0, 0)
    written = num_passes if is_blended else num_passes - 1
    for p in range(written):
        # A row without instructions has one pass, which copies its image.
        end = passes[p, END]
        size = _pixels(out_size[end - 1]) if end > 0 else _pixels(in_shape)
        sizes = (max(sizes[0], size), sizes[1]) if p % 2 == 0 else (sizes[0], max(sizes[1], size))
    return sizes


@kernel
def _pixels(size: Any) -> Any:
    """Of an image, in whole groups of four, so that what lies behind it stays aligned."""
    return (np.int64(size[0]) * size[1] + 3) // 4 * 4
