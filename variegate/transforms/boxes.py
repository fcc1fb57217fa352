"""Boxes drawn at random: area uniform, aspect log-uniform, place uniform, tried up to ten times (torchvision)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.program import rng
from variegate.program.sampling import Floats, Rows, Sampling

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
    size = sampling.size[rows]
    boxes = np.zeros((len(rows), 4), np.int64)
    found = np.zeros(len(rows), np.bool_)
    open_rows = np.arange(len(rows))
    words = sampling.words(rows, slot, TRIES)
    # Most boxes fit at once; the other nine tries are worth computing only for the few that did not.
    for first, last in ((0, 1), (1, TRIES)):
        unit = rng.to_unit(words[open_rows, first:last])
        tried, fits = _try(unit, size[open_rows], scale, ratio, upright)
        at = np.argmax(fits, axis=1)
        pick = np.arange(len(open_rows)), at
        ok = fits[pick]
        done = open_rows[ok]
        boxes[done] = tried[pick][ok]
        found[done] = True
        open_rows = open_rows[~ok]
        if len(open_rows) == 0:
            break
    return boxes, found


def _try(
    unit: Floats,
    size: npt.NDArray[np.int32],
    scale: tuple[float, float],
    ratio: tuple[float, float],
    upright: bool,
) -> tuple[Boxes, npt.NDArray[np.bool_]]:
    """Boxes int64[R, tries, 4] from unit[R, tries, 4], and which of them fit."""
    height, width = size[:, None, 0].astype(np.float64), size[:, None, 1].astype(np.float64)
    area = height * width * (scale[0] + (scale[1] - scale[0]) * unit[..., 0])
    low, high = np.log(ratio[0]), np.log(ratio[1])
    aspect = np.exp(low + (high - low) * unit[..., 1])
    w, h = np.rint(np.sqrt(area * aspect)), np.rint(np.sqrt(area / aspect))
    if upright:
        w, h = h, w
        fits = (h < height) & (w < width)
    else:
        fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)
    top = np.floor(unit[..., 2] * (height - h + 1))
    left = np.floor(unit[..., 3] * (width - w + 1))
    return np.stack([top, left, h, w], axis=-1).astype(np.int64), fits
