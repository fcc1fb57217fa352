"""Copy-paste of objects from other images by their masks. ``targets/copying.py`` computes the masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from variegate.arrays import BoolArray, Int64Array
from variegate.ops.arguments import Number, Probability
from variegate.ops.magnitude import between
from variegate.ops.mix import Mixer, NumClasses
from variegate.ops.schema import Range
from variegate.program.boxes import SampledBoxes, known_boxes
from variegate.program.mixing import Mix, paste_parts
from variegate.program.program import MAX_SIDE
from variegate.program.rng import sample_words, to_unit
from variegate.program.sampling import Floats, Rows, Sampling

# Mask pixels of a square are counted in uint8: (2 * 7 + 1) ** 2 = 225.
_MAX_FEATHER = 7


@dataclass(frozen=True)
class CopyPaste(Mixer):
    """Paste objects of a partner into the image, by their masks (Ghiasi et al. 2021, arXiv:2012.07177).

    The partner is scaled, randomly mirrored, and placed at a random position, cropped if it is larger. A random subset
    of its objects is pasted, with their boxes, labels, masks and key points. Hidden pixels are removed from the image's
    masks, and its boxes shrink accordingly. The partner may have another size.

    Args:
        share: probability of pasting each object of the partner, 0 to 1.
        scale: range of the partner's scale. The paper also uses (0.1, 2.0).
        flip: probability of mirroring the partner.
        feather: pixels, 0 to 7, over which the edges of objects are blended to either side: alpha is the mean of the
            mask's square of ``2 * feather + 1`` pixels. Masks stay hard.
        min_visibility: drop objects of the image if a smaller share of their mask remains visible, 0 to 1. Fully hidden
            objects are always dropped.
        num_classes: as for the other mixing transforms. The label of the output is the image's label.

    Raises TypeError for samples without boxes and masks of objects; ValueError while sampling after ``AugMix``.
    """

    share: Probability = 0.5
    scale: Annotated[Number, Range(0.01, 100.0)] = (0.8, 1.25)
    flip: Probability = 0.5
    feather: Annotated[int, Range(0, _MAX_FEATHER)] = 1
    min_visibility: Probability = 0.05
    num_classes: NumClasses = None
    num_slots = 2

    def _mix(self, sampling: Sampling, samples: Rows, slot: int) -> Mix:
        known_boxes(sampling, type(self).__name__)
        if sampling.is_blended:
            raise ValueError("CopyPaste after AugMix, whose images are sums of several. Use one of them.")
        count = len(samples)
        of, column = np.tile(np.arange(count), 2), np.repeat([0, 1], count)
        box = np.tile(np.array([0, 0, MAX_SIDE, MAX_SIDE]), (2 * count, 1))
        shares, weight = np.tile(np.array([1.0, 0.0], np.float32), (count, 1)), np.ones(2 * count, np.float32)
        place = partial(self._place, slot)
        return Mix("CopyPaste", samples, shares, of, column, weight, box, place, self.feather, self.min_visibility)

    def _place(
        self, slot: int, sampling: Sampling, rows: Rows, outputs: Int64Array, boxes: Int64Array
    ) -> tuple[Rows, Int64Array]:
        """Fork partners' ``rows``, crop them to their chosen objects, and return them with their boxes in the outputs.

        A box is empty if no object is chosen.
        """
        objects, draw = known_boxes(sampling, "CopyPaste"), sampling.uniform(outputs, slot)
        size, whole = sampling.size[rows].astype(np.int64), sampling.size[outputs].astype(np.int64)
        inner = np.maximum(np.rint(between(self.scale, draw[:, :1]) * size).astype(np.int64), 1)
        room, factor, is_mirrored = whole - inner, inner / size, draw[:, 1] < self.flip
        first = np.sign(room) * np.floor(draw[:, 2:] * (np.abs(room) + 1)).astype(np.int64)
        edges, chosen = self._chosen(sampling, objects, rows, outputs, slot + 1)
        width = size[:, 1:]
        edges[is_mirrored] = np.stack(
            [edges[..., 0], width - edges[..., 3], edges[..., 2], width - edges[..., 1]], axis=2
        )[is_mirrored]
        low = np.where(chosen[..., None], edges[..., :2], np.inf).min(axis=1, initial=np.inf)
        high = np.where(chosen[..., None], edges[..., 2:], -np.inf).max(axis=1, initial=-np.inf)
        some = np.flatnonzero(chosen.any(axis=1))
        rows, seen = rows.copy(), np.zeros((len(rows), 4), np.int64)
        first, factor, margin = first[some], factor[some], 1 + self.feather
        begin = np.floor(first + low[some] * factor).astype(np.int64) - margin
        end = np.ceil(first + high[some] * factor).astype(np.int64) + margin
        begin = np.maximum(begin, np.maximum(first, 0))
        end = np.minimum(end, np.minimum(first + inner[some], whole[some]))
        is_seen = (begin < end).all(axis=1)
        some, begin, end, first, factor = (values[is_seen] for values in (some, begin, end, first, factor))
        if not len(some):
            return rows, seen
        top_left, bottom_right = (begin - first) / factor, np.minimum((end - first) / factor, size[some])
        flipped = is_mirrored[some]
        left = np.where(flipped, size[some, 1] - bottom_right[:, 1], top_left[:, 1])
        height, width = (bottom_right - top_left).T
        parts = np.stack([top_left[:, 0], np.maximum(left, 0.0), height, width, flipped], axis=1)
        seen[some] = np.concatenate([begin, end], axis=1)
        rows[some] = paste_parts(sampling, rows[some], parts, sampling.size[outputs[some]], seen[some])
        objects.drop(rows[some], ~chosen[some])
        return rows, seen

    def _chosen(
        self, sampling: Sampling, objects: SampledBoxes, rows: Rows, outputs: Int64Array, slot: int
    ) -> tuple[Floats, BoolArray]:
        """Return top, left, bottom, right of partners' objects, float64[P, M, 4], and the chosen ones, bool[P, M]."""
        edges = objects.edges(sampling, rows)[..., [1, 0, 3, 2]]
        keys = np.ascontiguousarray(sampling.words(outputs, slot)[:, 0, :2])
        blocks = -(-edges.shape[1] // 4)
        unit = to_unit(sample_words(np.zeros(len(rows), np.uint64), keys, blocks)).reshape(len(rows), 4 * blocks)
        return edges, np.isfinite(edges[..., 0]) & (unit[:, : edges.shape[1]] < self.share)
