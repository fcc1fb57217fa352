"""Boxes of a batch during sampling, for transforms such as ``RandomBoxSafeCrop`` that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.arrays import BoolArray, Float64Array, Int64Array, IntArray
from variegate.program.mixing import mixed_by
from variegate.program.program import Output, Program

if TYPE_CHECKING:
    from variegate.program.sampling import Rows, Sampling

# (program, row of each box int64[B], corners float64[B, 4, 2]) -> left, top, right, bottom of each box's visible part,
# float64[B, 4].
Move = Callable[[Program, Int64Array, Float64Array], Float64Array]


class SampledBoxes:
    """Boxes of N images, padded to the largest number M of boxes per image.

    Args:
        corners: per image float64[m, 4, 2], the corners of its boxes in order, x and y in pixels of the input image.
        move: transforms boxes by the geometry of a program.
        are_turned: whether boxes have angles. Rotated boxes are not clipped to their image.
    """

    def __init__(self, corners: Sequence[Float64Array], move: Move, are_turned: bool) -> None:
        counts = np.array([len(of_one) for of_one in corners], np.int64)
        # bool[R, M]: True for boxes that transforms dropped, and for padding.
        self.dropped_boxes = np.arange(counts.max(initial=0)) >= counts[:, None]
        self.are_turned = are_turned
        # float64[N, 2]: least shorter side in pixels, and least area in square pixels, of boxes in the final output.
        self.min_box = np.zeros((len(corners), 2))
        self._corners = np.zeros((*self.dropped_boxes.shape, 4, 2))
        self._corners[~self.dropped_boxes] = np.concatenate([np.empty((0, 4, 2)), *corners])
        self._move = move

    def edges(self, sampling: Sampling, rows: Rows) -> Float64Array:
        """Return left, top, right, bottom of each box after the instructions so far, in pixels, float64[R, M, 4].

        NaN for boxes that are dropped or not visible.
        """
        edges = np.full((len(rows), self.dropped_boxes.shape[1], 4), np.nan)
        row, box = np.nonzero(~self.dropped_boxes[rows])
        if len(row):
            seen = self._move(_so_far(sampling, rows), row, self._corners[sampling.source[rows[row]], box])
            seen[~((seen[:, :2] < seen[:, 2:]).all(axis=1) & np.isfinite(seen).all(axis=1))] = np.nan
            edges[row, box] = seen
        return edges

    def of_rows(self, rows: Rows, image: int) -> SampledBoxes:
        """Copy the boxes of ``rows``, all of image ``image``, into a batch of one image."""
        boxes = copy(self)
        boxes.dropped_boxes = self.dropped_boxes[rows]
        boxes.min_box = self.min_box[image : image + 1].copy()
        boxes._corners = self._corners[image : image + 1]
        return boxes

    def drop(self, rows: Rows, which: BoolArray) -> None:
        """Drop the boxes of ``rows`` that are True in ``which``, bool[R, M]."""
        self.dropped_boxes[rows] |= which

    def fork(self, again: Rows) -> None:
        """Append copies of rows ``again``, as ``Sampling.fork`` does."""
        self.dropped_boxes = np.concatenate([self.dropped_boxes, self.dropped_boxes[again]])

    def demand(self, images: IntArray, side: float, area: float) -> None:
        """Drop boxes of ``images`` with a final shorter side below ``side`` pixels, or an area below ``area``."""
        self.min_box[images] = np.maximum(self.min_box[images], (side, area))


def boxes_to_choose_by(sampling: Sampling, rows: Rows, title: str) -> Float64Array:
    """Return ``SampledBoxes.edges`` for a transform that depends on boxes.

    Raises TypeError for images without boxes, ValueError for images that are already blended or mixed.
    """
    boxes = known_boxes(sampling, title)
    source = sampling.source[rows]
    if sampling.is_blended and len(np.unique(source)) < np.count_nonzero(np.isin(sampling.source, source)):
        raise ValueError(f"{title} after AugMix, whose images show boxes in several places. Put it before AugMix.")
    if mixer := mixed_by(sampling.mixes, source):
        raise ValueError(f"{title} after {mixer}: images are already mixed with others there. Put it before {mixer}.")
    return boxes.edges(sampling, rows)


def known_boxes(sampling: Sampling, title: str) -> SampledBoxes:
    if sampling.boxes is None:
        raise TypeError(
            f"{title}: got images without boxes, by which it chooses; accepted: samples that are dicts with 'boxes', "
            "or a source with annotations"
        )
    return sampling.boxes


def _so_far(sampling: Sampling, rows: Rows) -> Program:
    """Return the instructions that were emitted into ``rows`` so far, as a program."""
    arrays: dict[str, Any] = {name: grid[rows] for name, grid in sampling.instructions.items()}
    source = sampling.source[rows]
    ids, key = sampling.streams(rows)
    return Program(
        **arrays,
        length=sampling.length[rows],
        source=source,
        in_shape=sampling.shape[rows],
        ids=ids,
        key=key,
        output=Output(),
        tables=sampling.tables(),
    )
