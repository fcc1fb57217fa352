"""The crop that a row of a program begins with: which part of its picture is read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from variegate.program.ops import Interpolation, Op
from variegate.program.program import Program

# First row, first column, and those after the last.
Box = tuple[int, int, int, int]

# Reach of the resampling filters, in source pixels at scale 1. (Members of an enumeration take a while to look up.)
_SUPPORT = {
    int(Interpolation.BILINEAR): 1.0,
    int(Interpolation.BICUBIC): 2.0,
    int(Interpolation.BOX): 0.5,
    int(Interpolation.HAMMING): 1.0,
    int(Interpolation.LANCZOS): 3.0,
}
_RESIZED_CROP = int(Op.RESIZED_CROP)


def shift_crop(fused: Program, row: int, top: int, left: int, height: int, width: int) -> None:
    """Rewrite the row's first resize to a part of the picture that begins at ``top``, ``left``."""
    fused.args[row, 0, 0] -= top
    fused.args[row, 0, 1] -= left
    fused.in_shape[row, :2] = height, width


def crop_support(fused: Program, row: int) -> float | None:
    """How far the filter reaches of the resized crop that the row begins with; None where it begins otherwise, or where
    the filter sees nothing beyond the crop (``lowering/merge.py``)."""
    if fused.length[row] == 0 or fused.opcode[row, 0] != _RESIZED_CROP or fused.args[row, 0, 0] < 0.0:
        return None
    return _SUPPORT.get(int(fused.flags[row, 0]))


def crop_supports(fused: Program) -> npt.NDArray[np.float64]:
    """``crop_support`` of every row, NaN for None."""
    supports = np.full(fused.num_rows, np.nan)
    if not fused.opcode.shape[1]:
        return supports
    is_crop = (fused.length > 0) & (fused.opcode[:, 0] == _RESIZED_CROP) & (fused.args[:, 0, 0] >= 0.0)
    for interpolation, support in _SUPPORT.items():
        supports[is_crop & (fused.flags[:, 0] == interpolation)] = support
    return supports


def crop_boxes(
    args: npt.NDArray[np.float64],
    supports: npt.NDArray[np.float64],
    in_heights: npt.NDArray[np.int64],
    in_widths: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """int64[N, 4]: ``crop_reach`` of many resized crops."""
    out = np.empty((len(args), 4), np.int64)
    for axis, most in enumerate((in_heights, in_widths)):
        first, length, out_length = args[:, axis], args[:, 2 + axis], args[:, 4 + axis]
        reach = np.ceil(supports * np.maximum(length / out_length, 1.0)) + 1
        out[:, axis] = np.maximum(0, np.floor(first) - reach)
        out[:, 2 + axis] = np.minimum(most, np.ceil(first + length) + reach)
    return out


def join_boxes(boxes: Sequence[Box | None]) -> Box | None:
    """The smallest that holds them all; None stands for all of the picture."""
    if not boxes or None in boxes:
        return None
    tops, lefts, bottoms, rights = zip(*boxes, strict=True)
    return min(tops), min(lefts), max(bottoms), max(rights)


def crop_reach(args: npt.NDArray[np.float64], support: float, in_height: int, in_width: int, margin: int = 0) -> Box:
    """What a resized crop reads: the filter reaches past the box, further the more it shrinks."""
    top, left, height, width, out_height, out_width = (float(v) for v in args[:6])
    reach_y = math.ceil(support * max(height / out_height, 1.0)) + 1 + margin
    reach_x = math.ceil(support * max(width / out_width, 1.0)) + 1 + margin
    return (
        max(0, math.floor(top) - reach_y),
        max(0, math.floor(left) - reach_x),
        min(in_height, math.ceil(top + height) + reach_y),
        min(in_width, math.ceil(left + width) + reach_x),
    )
