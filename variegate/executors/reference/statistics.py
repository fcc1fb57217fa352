"""Operations that need a statistic of the image (as in Pillow 13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.reference.instruction import Image, Instruction, to_uint8
from variegate.executors.reference.values import blend, luma
from variegate.program import matching

Ints = npt.NDArray[np.int64]


def contrast(img_HWC: Image, ins: Instruction) -> Image:
    gray = luma(img_HWC)
    mean = int(int(gray.sum(dtype=np.int64)) / gray.size + 0.5)
    return blend(mean, img_HWC, ins.args[0])


def autocontrast(img_HWC: Image, _: Instruction) -> Image:
    return _per_channel(img_HWC, _stretching_table)


def equalize(img_HWC: Image, _: Instruction) -> Image:
    return _per_channel(img_HWC, _equalizing_table)


def _per_channel(img_HWC: Image, make_table: Callable[[Ints], npt.NDArray[np.uint8]]) -> Image:
    out = np.empty_like(img_HWC)
    for c in range(img_HWC.shape[2]):
        histogram = np.bincount(img_HWC[..., c].reshape(-1), minlength=256)
        out[..., c] = make_table(histogram)[img_HWC[..., c]]
    return out


def _stretching_table(histogram: Ints) -> npt.NDArray[np.uint8]:
    used = np.flatnonzero(histogram)
    low, high = int(used[0]), int(used[-1])
    if low == high:
        return np.arange(256, dtype=np.uint8)
    scale = 255.0 / (high - low)
    return to_uint8(np.arange(256) * scale + -low * scale)


def _equalizing_table(histogram: Ints) -> npt.NDArray[np.uint8]:
    used = np.flatnonzero(histogram)
    step = int(histogram.sum() - histogram[used[-1]]) // 255
    if len(used) <= 1 or step == 0:
        return np.arange(256, dtype=np.uint8)
    before = np.cumsum(histogram) - histogram
    return to_uint8((step // 2 + before) // step)


def match(img_HWC: Image, ins: Instruction) -> Image:
    """Each channel matched to that of a reference (program/matching.py), by so much."""
    share, first, method = float(ins.args[0]), int(ins.args[1]), int(ins.args[2])
    parts = ins.side_tables().grids[first : first + 3 * matching.REFERENCE].reshape(3, -1).astype(np.int64)
    out, levels = np.empty_like(img_HWC), np.arange(256)
    for c in range(img_HWC.shape[2]):
        histogram = np.bincount(img_HWC[..., c].reshape(-1), minlength=256)
        matched = _MATCHED[method](histogram, parts[c])
        out[..., c] = to_uint8(np.floor(levels + share * (matched - levels) + 0.5))[img_HWC[..., c]]
    return out


def _matched_shares(histogram: Ints, part: Ints) -> Ints:
    """Levels of the same rank in the reference, straight between those that it has and rounded (scikit-image's)."""
    total, shares = histogram.sum(), part[:256]
    rank = histogram.cumsum() * matching.WHOLE
    above = np.minimum(np.searchsorted(shares * total, rank), 255)
    share = np.where(above > 0, shares[above - 1], 0)
    below, divisor = np.searchsorted(shares, share), 2 * np.maximum(shares[above] - share, 1) * total
    between = below + (2 * (above - below) * (rank - share * total) + divisor // 2) // divisor
    return np.where(share == 0, above, between)


def _matched_moments(histogram: Ints, part: Ints) -> npt.NDArray[np.float64]:
    levels, total = np.arange(256), float(histogram.sum())
    mean = float((levels * histogram).sum()) / total
    deviation = np.sqrt(max(float((levels * levels * histogram).sum()) / total - mean * mean, 0.0))
    return _line(mean, deviation, *part[[matching.DEVIATION, matching.MEAN]])


def _matched_ends(histogram: Ints, part: Ints) -> npt.NDArray[np.float64]:
    used = np.flatnonzero(histogram)
    low, high = part[[matching.LOW, matching.HIGH]]
    return _line(float(used[0]), float(used[-1] - used[0]), high - low, low)


def _line(origin: float, span: float, wanted_span: int, wanted_origin: int) -> npt.NDArray[np.float64]:
    scale = wanted_span / matching.LEVEL / span if span > 0 else 1.0
    levels = (np.arange(256) - origin) * scale + wanted_origin / matching.LEVEL
    return np.clip(levels, 0.0, 255.0)


_MATCHED: tuple[Callable[[Ints, Ints], npt.NDArray[Any]], ...] = (_matched_shares, _matched_moments, _matched_ends)
