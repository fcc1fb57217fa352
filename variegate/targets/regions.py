"""Points and boxes through rows of a program (``native/targets``)."""

from __future__ import annotations

from ctypes import c_int64, c_void_p

import numpy as np

from variegate.arrays import Float32Array, Float64Array, Int64Array, IntArray, RealArray, UInt8Array
from variegate.native.library import check_status, data_ptr, entry
from variegate.native.structs import PointState
from variegate.program.stages import Stages

_native_points = entry("vg_move_points", c_void_p, c_void_p, c_int64, c_void_p, c_void_p, result=None)
_native_boxes = entry("vg_move_boxes", c_void_p, c_void_p, c_int64, c_void_p, c_void_p, c_void_p, c_void_p)

LEFT_IMAGE, ERASED, SEEN = PointState


def move_points(stages: Stages, row: Int64Array, points: RealArray) -> tuple[Float32Array, UInt8Array]:
    """Points [P, 2] of images of ``row`` [P] -> places in the results, float32[P, 2] (NaN where a map leads nowhere),
    and uint8[P]: LEFT_IMAGE, ERASED or SEEN."""
    moved = np.array(points, np.float64, order="C")
    state = np.empty(len(moved), np.uint8)
    rows = np.ascontiguousarray(row, np.int64)
    _native_points(data_ptr(stages.packed), data_ptr(rows), len(moved), data_ptr(moved), data_ptr(state))
    return moved.astype(np.float32), state


def where_mirrored(stages: Stages, row: Int64Array, counts: Int64Array, order: tuple[int, ...]) -> Int64Array:
    """Index of the mirrored counterpart of each point, int64[P]; lists of ``len(order)`` points, ``counts``."""
    matrices = stages.back.reshape(-1, 3, 3)
    turns = np.linalg.det(matrices) * np.sign(matrices[:, 2, 2]) < 0
    before = np.concatenate([[0], np.cumsum(turns)])
    is_mirrored = (before[stages.begin[1:]] - before[stages.begin[:-1]]) % 2 == 1
    lists = np.arange(int(counts.sum())).reshape(-1, len(order))
    swapped = np.repeat(is_mirrored[row], counts // len(order))
    lists[swapped] = lists[swapped][:, np.array(order)]
    return lists.ravel()


def move_boxes(
    stages: Stages, row: Int64Array, corners: RealArray, size: IntArray
) -> tuple[Float64Array, Float64Array]:
    """Move boxes [B, 4, 2] of images of ``row`` [B], ``size`` [B, 2].

    Returns visible edges and edges before the last frame cut them, float64[B, 2, 4] (inverted or empty if invisible).
    Also the share left by earlier frames, float64[B]."""
    rows = np.ascontiguousarray(row, np.int64)
    sizes = np.ascontiguousarray(size, np.int64)
    boxes = np.ascontiguousarray(corners, np.float64)
    seen = np.empty((len(boxes), 2, 4))
    share = np.empty(len(boxes))
    addresses = map(data_ptr, (boxes, sizes, seen, share))
    check_status(_native_boxes(data_ptr(stages.packed), data_ptr(rows), len(boxes), *addresses))
    return seen, share
