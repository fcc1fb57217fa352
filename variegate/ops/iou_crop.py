"""RandomIoUCrop: a crop that keeps a box's centre, and overlaps a box by as much as was drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, as_numbers, integer, number, refused
from variegate.ops.arguments import LARGEST, MAX_ENTRIES, ArgumentError, checks, optional
from variegate.ops.base import Transform
from variegate.program.boxes import boxes_to_choose_by, known_boxes
from variegate.program.ops import Op
from variegate.program.rng import sample_words, to_unit
from variegate.program.sampling import Floats, Rows, Sampling

OPTIONS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
# Where no option can be met, torchvision goes on for ever. With one in seven options at 1, fewer than one image in a
# million comes so far.
ROUNDS = 100
# Overlaps that are compared at once.
_ROOM = 1 << 20

Crops = npt.NDArray[np.int64]


def _options(name: str, value: Any, *, error: Refusal = refused) -> tuple[float, ...]:
    options = as_numbers(value)
    if not options or len(options) > MAX_ENTRIES or not all(0.0 <= option <= LARGEST for option in options):
        raise error(name, value, "None, or a list of overlaps from 0 on, of which 1 or more leaves images as they are")
    return options


@dataclass(frozen=True)
class RandomIoUCrop(Transform):
    """Crop so that a box drawn overlaps by a share drawn: SSD's crop (Liu et al. 2016, arXiv:1512.02325), with
    torchvision's names, arguments and rules.

    One of ``sampler_options`` is drawn (None: 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1); at 1 or more the image stays as it is.
    Then crops are, up to ``trials`` times: either side a share of the image's, uniform from ``min_scale`` to
    ``max_scale``, anywhere. One is taken whose width / height is within ``min_aspect_ratio`` and ``max_aspect_ratio``,
    that has the centre of a box in it, and, among such boxes, one whose intersection over union with the crop is at
    least the option. If none is, another option is drawn; after a hundred of them, and where there are no boxes, the
    image stays as it is.

    Boxes are those of the image at this place of a pipeline. Those whose centre is not within the crop are dropped (in
    torchvision ``SanitizeBoundingBoxes`` does that), the others cut off at its edges.

    Raises TypeError while sampling for images without boxes, ValueError after what mixes images.
    """

    min_scale: float = 0.3
    max_scale: float = 1.0
    min_aspect_ratio: float = 0.5
    max_aspect_ratio: float = 2.0
    sampler_options: Sequence[float] | None = None
    trials: int = 40
    num_slots = 1
    _checks = checks(
        min_scale=partial(number, low=0.0, high=1.0),
        max_scale=partial(number, low=0.0, high=1.0),
        min_aspect_ratio=partial(number, low=0.0, high=LARGEST),
        max_aspect_ratio=partial(number, low=0.0, high=LARGEST),
        sampler_options=optional(_options),
        trials=partial(integer, low=1, high=MAX_ENTRIES),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("scale", "aspect_ratio"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low > high:
                raise ArgumentError(self, f"max_{what}", high, f"a number from min_{what} ({low}) on")

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        edges = boxes_to_choose_by(sampling, rows, type(self).__name__)
        has_boxes = np.isfinite(edges[..., 0]).any(axis=1)
        rows, edges = rows[has_boxes], edges[has_boxes]
        if not len(rows):
            return
        crops = self._draw(sampling.words(rows, slot)[:, 0, :2], sampling.size[rows], edges)
        cut = crops[:, 2] > 0
        rows, crops, edges = rows[cut], crops[cut], edges[cut]
        known_boxes(sampling, type(self).__name__).drop(rows, ~_has_centres(edges, crops[:, None])[:, 0])
        is_smaller = (crops[:, 2:] != sampling.size[rows]).any(axis=1)
        rows, crops = rows[is_smaller], crops[is_smaller]
        sampling.emit(rows, Op.CROP, *crops.T, size=crops[:, 2:].astype(np.int32))

    def _draw(self, keys: npt.NDArray[np.uint32], size: npt.NDArray[np.int32], edges: Floats) -> Crops:
        """Top, left, height, width for every row, int64[R, 4]; zeros for what stays as it is."""
        options = np.array(OPTIONS if self.sampler_options is None else self.sampler_options)
        crops = np.zeros((len(keys), 4), np.int64)
        left = np.arange(len(keys))
        for number_of_round in range(ROUNDS):
            # A stream of each row's own: block 0 draws the option, and each trial has one.
            ids = np.full(len(left), number_of_round, np.uint64)
            units = to_unit(sample_words(ids, np.ascontiguousarray(keys[left]), 1 + self.trials))
            option = options[(units[:, 0, 0] * len(options)).astype(np.intp)]
            is_tried = option < 1.0
            left, option, units = left[is_tried], option[is_tried], units[is_tried, 1:]
            step = max(1, _ROOM // max(1, len(left) * edges.shape[1]))
            for begin in range(0, self.trials, step):
                found = self._first(crops, left, option, units[:, begin : begin + step], size, edges)
                left, option, units = left[~found], option[~found], units[~found]
            if not len(left):
                break
        return crops

    def _first(
        self,
        crops: Crops,
        rows: Rows,
        option: Floats,
        units: Floats,
        size: npt.NDArray[np.int32],
        edges: Floats,
    ) -> npt.NDArray[np.bool_]:
        """Write the first trial that serves into ``crops`` -> which of ``rows`` have one. ``units``: [R, trials, 4]."""
        whole = size[rows, ::-1][:, None]
        sides = np.trunc(whole * (self.min_scale + (self.max_scale - self.min_scale) * units[..., :2]))
        start = np.trunc((whole - sides) * units[..., 2:])
        with np.errstate(divide="ignore", invalid="ignore"):
            aspect = sides[..., 0] / sides[..., 1]
        serves = (sides > 0).all(axis=2) & (aspect >= self.min_aspect_ratio) & (aspect <= self.max_aspect_ratio)
        tried = np.concatenate([start[..., ::-1], sides[..., ::-1]], axis=2).astype(np.int64)
        overlap = np.where(_has_centres(edges[rows], tried), _overlaps(edges[rows], tried), -1.0).max(axis=2)
        serves &= overlap >= option[:, None]
        found = serves.any(axis=1)
        crops[rows[found]] = tried[found, serves[found].argmax(axis=1)]
        return np.asarray(found)


def _has_centres(edges: Floats, crops: Crops) -> npt.NDArray[np.bool_]:
    """Boxes [R, M, 4] and crops [R, T, 4] -> bool[R, T, M]: whether the centre is within, not on the edge."""
    x, y = 0.5 * (edges[:, None, :, 0] + edges[:, None, :, 2]), 0.5 * (edges[:, None, :, 1] + edges[:, None, :, 3])
    top, left, height, width = (crops[..., i, None] for i in range(4))
    return np.asarray((left < x) & (x < left + width) & (top < y) & (y < top + height))


def _overlaps(edges: Floats, crops: Crops) -> Floats:
    """Intersection over union, float64[R, T, M]; NaN for no box."""
    top, left, height, width = (crops[..., i, None] for i in range(4))
    x0, y0, x1, y1 = (edges[:, None, :, i] for i in range(4))
    common = np.maximum(np.minimum(x1, left + width) - np.maximum(x0, left), 0.0)
    common = common * np.maximum(np.minimum(y1, top + height) - np.maximum(y0, top), 0.0)
    return np.asarray(common / ((x1 - x0) * (y1 - y0) + height * width - common))
