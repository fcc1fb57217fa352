"""A resize, one axis at a time: each needs few pixels of a huge image at once, where both together may need all of it.

Weights, sums and rounding are those of ``cpu/resample.py``, without its vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.executors.cpu.resize_weights import PRECISION, filter_radius, fixed_weight, weigh_output
from variegate.program.compiled import pixel_kernel


@pixel_kernel
def axis_taps(start: Any, extent: Any, out_size: Any, kind: Any) -> int:
    """The greatest number of weights of an output."""
    scale = np.float64(np.float32(np.float32(max(start, 0.0) + extent) - np.float32(max(start, 0.0)))) / out_size
    return int(np.ceil(filter_radius(kind) * max(scale, 1.0))) * 2 + 2


@pixel_kernel
def axis_weights(
    in_size: Any, start: Any, extent: Any, out_size: Any, kind: Any, begin: Any, bounds: Any, weights: Any, real: Any
) -> None:
    """Of the outputs from ``begin`` on: first source index and number of weights, bounds int64[N, 2], and the weights,
    int32[N, taps]. See ``resize_weights.coefficients``."""
    skipped = np.int64(0)
    if start < 0.0:
        skipped, in_size, start = np.int64(-1.0 - start), np.int64(extent), 0.0
    first = np.float32(start)
    scale = np.float64(np.float32(np.float32(start + extent) - first)) / out_size
    filter_scale = max(scale, 1.0)
    support, inverse = filter_radius(kind) * filter_scale, 1.0 / filter_scale
    for i in range(bounds.shape[0]):
        centre = np.float64(first) + (begin + i + 0.5) * scale
        low, count = weigh_output(centre, support, inverse, in_size, kind, real)
        for j in range(count):
            weights[i, j] = fixed_weight(real[j])
        bounds[i, 0], bounds[i, 1] = skipped + low, count


@pixel_kernel
def resize_columns(levels: Any, bounds: Any, weights: Any, left: Any, out: Any) -> None:
    """Levels uint8[H, W, C], which begin at column ``left``, into out uint8[H, N, C]."""
    channels = levels.shape[2]
    for y in range(levels.shape[0]):
        for x in range(out.shape[1]):
            first, count = bounds[x, 0] - left, bounds[x, 1]
            for c in range(channels):
                total: Any = np.int32(1 << (PRECISION - 1))
                for j in range(count):
                    total += np.int32(levels[y, first + j, c]) * weights[x, j]
                out[y, x, c] = np.uint8(min(max(total >> PRECISION, 0), 255))


@pixel_kernel
def resize_lines(levels: Any, bounds: Any, weights: Any, top: Any, totals: Any, out: Any) -> None:
    """Levels uint8[H, W C], which begin at line ``top``, into out uint8[N, W C]. ``totals``: room, int32[W C]."""
    for y in range(out.shape[0]):
        first, count = bounds[y, 0] - top, bounds[y, 1]
        totals[:] = np.int32(1 << (PRECISION - 1))
        for j in range(count):
            weight, line = weights[y, j], levels[first + j]
            for x in range(totals.shape[0]):
                totals[x] += np.int32(line[x]) * weight
        for x in range(totals.shape[0]):
            out[y, x] = np.uint8(min(max(totals[x] >> PRECISION, 0), 255))
