"""Mixing of samples: MixUp, CutMix, ResizeMix and Mosaic. Labels are mixed by the same shares.

The caller chooses partners and passes them to ``Sampling.partners``. Transforms draw all parameters per image, from its
id. In torchvision, a batch shares one draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from variegate.arrays import Int64Array
from variegate.ops.arguments import Number, ShareRange
from variegate.ops.base import Transform, set_field
from variegate.ops.magnitude import between
from variegate.ops.schema import Range
from variegate.program import rng
from variegate.program.mixing import Mix, Place, outputs_among, paste_resized
from variegate.program.program import MAX_SIDE
from variegate.program.sampling import Floats, Rows, Sampling, after_steps

# Limit of one-hot labels, which would otherwise exceed images in memory.
MAX_CLASSES = 1 << 20
NumClasses = Annotated[int, Range(1, MAX_CLASSES)] | None


class Mixer(Transform, abstract=True):
    """Base class of transforms that mix an image with ``num_partners`` others. Only ``Normalize`` may follow.

    Args:
        alpha: parameter of the distribution Beta(``alpha``, ``alpha``) of the image's share.
        num_classes: labels become float32 [N, num_classes]. None: ``MixedLabels`` of labels, partners and weights.
    """

    num_partners: ClassVar[int] = 1
    num_classes: NumClasses
    _changes_bytes = False

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "_mixers", (self,))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if sampling.output.steps:
            raise after_steps(type(self).__name__, sampling.output.steps)
        if len(rows):
            samples = outputs_among(sampling, rows, type(self).__name__)
            sampling.mix(self._mix(sampling, samples, slot))

    def _mix(self, sampling: Sampling, samples: Rows, slot: int) -> Mix:
        raise NotImplementedError


@dataclass(frozen=True)
class MixUp(Mixer):
    """Blend the image with a partner (Zhang et al. 2017, arXiv:1710.09412).

    The weights are ``lam`` and ``1 - lam``, with ``lam`` drawn from Beta(``alpha``, ``alpha``) for each image. Levels
    are rounded to the nearest.
    """

    alpha: Annotated[float, Range(0.05, 1e6)] = 1.0
    num_classes: NumClasses = None

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", _beta_slots(self.alpha))

    def _mix(self, sampling: Sampling, samples: Rows, slot: int) -> Mix:
        share = _beta(sampling, samples, slot, self.alpha).astype(np.float32)
        shares = np.stack([share, np.float32(1.0) - share], axis=1)
        count = len(samples)
        of, column = np.tile(np.arange(count), 2), np.repeat([0, 1], count)
        box = np.tile(np.array([0, 0, MAX_SIDE, MAX_SIDE]), (2 * count, 1))
        return Mix("MixUp", samples, shares, of, column, shares.T.ravel(), box)


@dataclass(frozen=True)
class CutMix(Mixer):
    """Paste a rectangle of a partner into the same place of the image (Yun et al. 2019, arXiv:1905.04899).

    It covers ``1 - lam`` of the image, with ``lam`` drawn from Beta(``alpha``, ``alpha``), about a uniform point, and
    is clipped at the image's edge. Labels are mixed by the remaining area.
    """

    alpha: Annotated[float, Range(0.05, 1e6)] = 1.0
    num_classes: NumClasses = None

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 1 + _beta_slots(self.alpha))

    def _mix(self, sampling: Sampling, samples: Rows, slot: int) -> Mix:
        size, draw = sampling.size[samples].astype(np.int64), sampling.uniform(samples, slot)
        half = 0.5 * np.sqrt(1.0 - _beta(sampling, samples, slot + 1, self.alpha))[:, None]
        center, reach = (draw[:, :2] * size).astype(np.int64), (half * size).astype(np.int64)
        box = np.concatenate([np.maximum(center - reach, 0), np.minimum(center + reach, size)], axis=1)
        return _pasted("CutMix", samples, size, box)


@dataclass(frozen=True)
class ResizeMix(Mixer):
    """Paste a full partner, scaled down, at a random position of the image (Qin et al. 2020, arXiv:2012.11101).

    Its sides are a share of the image's, drawn from ``scale``. The partner may have another size.
    """

    scale: Annotated[Number, Range(1e-3, 1.0)] = (0.1, 0.8)
    num_classes: NumClasses = None
    num_slots = 1

    def _mix(self, sampling: Sampling, samples: Rows, slot: int) -> Mix:
        size, draw = sampling.size[samples].astype(np.int64), sampling.uniform(samples, slot)
        inner = np.maximum((between(self.scale, draw[:, 0])[:, None] * size).astype(np.int64), 1)
        first = (draw[:, 1:3] * (size - inner + 1)).astype(np.int64)
        return _pasted("ResizeMix", samples, size, np.concatenate([first, first + inner], axis=1), paste_resized)


@dataclass(frozen=True)
class Mosaic(Mixer):
    """Combine four images in the quadrants about a random point (Bochkovskiy et al. 2020, arXiv:2004.10934).

    The point is drawn from ``center_range`` of height and width. The image is at the top left. Its three partners are
    to the right, below, and diagonally opposite. Each image shows its pixels at the same position. The paper also
    scales the images down: put a ``RandomResizedCrop`` before this. Labels are mixed by the quadrants' areas.
    """

    center_range: ShareRange = (0.3, 0.7)
    num_classes: NumClasses = None
    num_slots = 1
    num_partners = 3

    def _mix(self, sampling: Sampling, samples: Rows, slot: int) -> Mix:
        size, draw = sampling.size[samples].astype(np.int64), sampling.uniform(samples, slot)
        y, x = (between(self.center_range, draw[:, :2]) * size).astype(np.int64).T
        (height, width), zero, count = size.T, np.zeros(len(size), np.int64), len(samples)
        box = [(zero, zero, y, x), (zero, x, y, width), (y, zero, height, x), (y, x, height, width)]
        boxes = np.concatenate([np.stack(each, axis=1) for each in box])
        of, column = np.tile(np.arange(count), 4), np.repeat(np.arange(4), count)
        areas = _area(boxes).reshape(4, count).T / size.prod(axis=1, keepdims=True)
        return Mix("Mosaic", samples, areas.astype(np.float32), of, column, np.ones(4 * count, np.float32), boxes)


def _pasted(name: str, samples: Rows, size: Int64Array, box: Int64Array, place: Place | None = None) -> Mix:
    """Return the mix with partners in ``box`` [S, 4], and the images in the four rectangles around it."""
    (height, width), (top, left, bottom, right), zero = size.T, box.T, np.zeros(len(size), np.int64)
    around = [(zero, zero, top, width), (bottom, zero, height, width), (top, zero, bottom, left)]
    boxes = [np.stack(each, axis=1) for each in [*around, (top, right, bottom, width)]]
    visible = np.stack([_area(each) > 0 for each in boxes])
    visible[0] |= ~visible.any(axis=0)  # every image needs an entry, even if the partner covers it completely
    is_pasted = _area(box) > 0
    of = np.concatenate([np.nonzero(visible)[1], np.flatnonzero(is_pasted)])
    column = np.repeat([0, 1], [int(visible.sum()), int(is_pasted.sum())])
    every = np.concatenate([np.stack(boxes)[visible], box[is_pasted]])
    share = 1.0 - _area(box) / size.prod(axis=1)
    shares = np.stack([share, 1.0 - share], axis=1).astype(np.float32)
    return Mix(name, samples, shares, of, column, np.ones(len(of), np.float32), every, place)


def _area(box: Int64Array) -> Int64Array:
    return np.asarray((box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]))


def _beta_slots(alpha: float) -> int:
    return 1 if alpha == 1.0 else 2 * rng.GAMMA_SLOTS


def _beta(sampling: Sampling, samples: Rows, slot: int, alpha: float) -> Floats:
    """Draw from Beta(alpha, alpha), float64[S]; uniform for alpha 1."""
    if alpha == 1.0:
        return np.asarray(sampling.uniform(samples, slot)[:, 0])
    words = sampling.words(samples, slot, 2 * rng.GAMMA_SLOTS)
    gamma = rng.to_gamma(words.reshape(len(samples), 2, rng.GAMMA_SLOTS, 4), alpha)
    return np.asarray(gamma[:, 0] / gamma.sum(axis=1))
