"""Boxes drawn at random: area uniform, aspect log-uniform, place uniform, tried up to ten times (torchvision)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import kernel
from variegate.program.sampling import Rows, Sampling

TRIES = 10  # one slot each: area, aspect, top, left

Boxes = npt.NDArray[np.int64]


def sample_boxes(
    sampling: Sampling,
    rows: Rows,
    slot: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    upright: bool = False,
) -> tuple[Boxes, npt.NDArray[np.bool_]]:
    """Draw a box for every row from slots ``slot .. slot + TRIES - 1``.

    ``scale``: range of the box's share of the area. ``ratio``: range of width / height, of boxes of at least one
    pixel that fit in the image; or with ``upright``, of height / width, of boxes smaller than the image on both sides,
    which may be empty (that is ``RandomErasing``'s rule).

    Returns int[R, 4] of top, left, height, width, and bool[R]: whether one of the ten tries fitted.
    """
    boxes = np.zeros((len(rows), 4), np.int64)
    found = np.zeros(len(rows), np.bool_)
    log_ratio = math.log(ratio[0]), math.log(ratio[1])
    limits = float(scale[0]), float(scale[1]), *log_ratio
    _draw(sampling.words(rows, slot, TRIES), sampling.size[rows], limits, upright, boxes, found)
    return boxes, found


@kernel
def _draw(words: Any, size: Any, limits: Any, upright: Any, boxes: Any, found: Any) -> None:
    # Most boxes fit at the first try, so that a loop that stops there beats ten tries for every row in NumPy.
    low_scale, high_scale, low_ratio, high_ratio = limits
    for n in range(words.shape[0]):
        height, width = np.float64(size[n, 0]), np.float64(size[n, 1])
        for k in range(words.shape[1]):
            share = low_scale + (high_scale - low_scale) * (words[n, k, 0] * 2.0**-32)
            aspect = math.exp(low_ratio + (high_ratio - low_ratio) * (words[n, k, 1] * 2.0**-32))
            area = height * width * share
            w, h = np.rint(math.sqrt(area * aspect)), np.rint(math.sqrt(area / aspect))
            if upright:
                w, h = h, w
                fits = h < height and w < width
            else:
                fits = 0 < w <= width and 0 < h <= height
            if fits:
                boxes[n, 0] = int(words[n, k, 2] * 2.0**-32 * (height - h + 1))
                boxes[n, 1] = int(words[n, k, 3] * 2.0**-32 * (width - w + 1))
                boxes[n, 2] = int(h)
                boxes[n, 3] = int(w)
                found[n] = True
                break
