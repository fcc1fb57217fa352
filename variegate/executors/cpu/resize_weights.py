"""The weights of a resize, as Pillow's ImagingResample computes them, and the tables that its vector form reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from variegate.executors.cpu.kernel import inlined
from variegate.executors.cpu.simd_resize import PIXELS, WINDOW, split_in_two, split_weight
from variegate.program.compiled import inner_kernel
from variegate.program.ops import Interpolation

PRECISION = 22
LANES = 16
_BILINEAR, _BICUBIC = int(Interpolation.BILINEAR), int(Interpolation.BICUBIC)
_BOX, _HAMMING, _LANCZOS = int(Interpolation.BOX), int(Interpolation.HAMMING), int(Interpolation.LANCZOS)
# Pillow has these in single precision.
_HAMMING_MEAN, _HAMMING_SWING = float(np.float32(0.54)), float(np.float32(0.46))


@inlined
def filter_radius(kind: Any) -> float:
    """Reach of a filter at scale 1, in source pixels."""
    if kind == _BICUBIC:
        return 2.0
    return 3.0 if kind == _LANCZOS else 0.5 if kind == _BOX else 1.0


@inlined
def _sinc(x: Any) -> float:
    return 1.0 if x == 0.0 else math.sin(x * math.pi) / (x * math.pi)


@inner_kernel()
def _filter(x: Any, kind: Any) -> float:
    if kind == _BOX:
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    x = abs(x)
    if kind == _BILINEAR:
        return 1.0 - x if x < 1.0 else 0.0
    if kind == _HAMMING:
        return _sinc(x) * (_HAMMING_MEAN + _HAMMING_SWING * math.cos(x * math.pi)) if x < 1.0 else 0.0
    if kind == _LANCZOS:
        return _sinc(x) * _sinc(x / 3.0) if x < 3.0 else 0.0
    a = -0.5
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    if x < 2.0:
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return 0.0


@inner_kernel()
def coefficients(
    in_size: Any, start: Any, extent: Any, out_size: Any, kind: Any, bounds: Any, weights: Any, real: Any
) -> int:
    """Per output i its first source index and number of weights, ``bounds[i]``, and weight j, ``weights[j * padded +
    i]``.

    Weights have 22 fraction bits; ``padded`` is ``out_size`` rounded up to whole vectors. Returns the greatest number
    of weights. The box is float32 as in Pillow; weights are normalised in double.

    ``start`` -1 - s stands for whole pixels from s on that are cropped first: the filter does not see beyond them.
    """
    skipped = np.int64(0)
    if start < 0.0:
        skipped, in_size, start = np.int64(-1.0 - start), np.int64(extent), 0.0
    first = np.float32(start)
    scale = np.float64(np.float32(np.float32(start + extent) - first)) / out_size
    filter_scale = max(scale, 1.0)
    support = filter_radius(kind) * filter_scale
    stride = pad_to_vector(out_size)
    taps = int(np.ceil(support)) * 2 + 1
    weights[: taps * stride] = 0
    inverse = 1.0 / filter_scale
    most = 0
    for i in range(out_size):
        low, count = weigh_output(np.float64(first) + (i + 0.5) * scale, support, inverse, in_size, kind, real)
        for j in range(count):
            weights[j * stride + i] = fixed_weight(real[j])
        bounds[i, 0], bounds[i, 1] = skipped + low, count
        most = max(most, count)
    return most


@inner_kernel()
def weigh_output(centre: Any, support: Any, inverse: Any, in_size: Any, kind: Any, real: Any) -> Any:
    """Weights of the output whose centre in the source this is, into ``real`` -> (first source index, their number)."""
    low = max(int(centre - support + 0.5), 0)
    high = min(int(centre + support + 0.5), in_size)
    total = 0.0
    for j in range(high - low):
        real[j] = _filter((j + low - centre + 0.5) * inverse, kind)
        total += real[j]
    for j in range(high - low):
        real[j] = real[j] / total if total != 0.0 else real[j]
    return low, high - low


@inlined
def fixed_weight(w: Any) -> Any:
    return np.int32(w * (1 << PRECISION) + (0.5 if w >= 0 else -0.5))


@inlined
def pad_to_vector(n: Any) -> Any:
    return (n + LANES - 1) // LANES * LANES


@inner_kernel()
def pick_tables(bounds: Any, weights: Any, taps: Any, out_width: Any, picks: Any, digits: Any) -> bool:
    """Fill the tables of ``simd_resize.resize_block``; False where a block of outputs spans more than its window."""
    stride = pad_to_vector(out_width)
    groups = (taps + 3) // 4
    for block in range(stride // LANES):
        base = bounds[block * LANES, 0]
        for lane in range(LANES):
            x = block * LANES + lane
            for j in range(4 * groups):
                at = ((block * groups + j // 4) * 3) * 64 + 4 * lane + j % 4
                is_used = x < out_width and j < bounds[x, 1]
                w = np.int64(weights[j * stride + x]) if is_used else 0
                first = 3 * (bounds[x, 0] + j - base) if is_used else 0
                if first + 2 >= WINDOW:
                    return False
                picks[at], picks[at + 64], picks[at + 128] = first, first + 1, first + 2
                digits[at], digits[at + 64], digits[at + 128] = split_weight(w)
    return True


@inner_kernel()
def pair_weights(weights: Any, taps: Any, out_width: Any, halves: Any) -> None:
    """Fill the weights of ``simd_resize.resize_pixels``: per block of outputs and pair of weights, low parts, then the
    high ones of every fourth output, for each channel both weights."""
    stride, pairs = pad_to_vector(out_width), (taps + 1) // 2
    for x in range(stride):
        block, lane = x // PIXELS, x % PIXELS
        for j in range(2 * pairs):
            low, high = split_in_two(np.int64(weights[j * stride + x]) if j < taps and x < out_width else 0)
            # Both parts of 16 bytes for every output.
            at = ((block * pairs + j // 2) * 8 + lane % 4 * 2) * (2 * PIXELS) + lane // 4 * 8 + j % 2
            for c in range(4):
                halves[at + 2 * c], halves[at + 2 * PIXELS + 2 * c] = low, high
