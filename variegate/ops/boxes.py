"""What is done to boxes alone, by torchvision's names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from variegate.checks import Refusal, number, refused
from variegate.ops.arguments import LARGEST, checks
from variegate.ops.base import Transform
from variegate.program.boxes import known_boxes
from variegate.program.mixing import mixed_by
from variegate.program.sampling import Rows, Sampling

# Rounding must not drop a box that has just the wanted size.
_SLACK = 1e-9
_AT_LEAST_ONE = partial(number, low=1.0, high=LARGEST)


def _default(name: str, value: Any, *, error: Refusal = refused) -> str:
    if not (isinstance(value, str) and value == "default"):
        raise error(name, value, "'default': labels, and what vg.Targets(per_box=) lists, always go with their boxes")
    return "default"


@dataclass(frozen=True)
class SanitizeBoundingBoxes(Transform):
    """Drop boxes with a side shorter than ``min_size`` or an area below ``min_area``, in pixels of the image as it is
    here, each 1 or more; with their labels, masks, key points and ``vg.Targets(per_box=)``.

    As torchvision's, but for boxes that reach beyond the image: here they are always cut off at its edges, and what is
    left of them counts. Of boxes with angles what of them is in the image counts, with the upright box around that.
    Boxes that ``RandomIoUCrop`` has dropped are gone without it.

    ``labels_getter``: "default" alone. Raises TypeError while sampling for images without boxes.
    """

    min_size: float = 1.0
    min_area: float = 1.0
    labels_getter: str = "default"
    _changes_bytes = False
    _checks = checks(min_size=_AT_LEAST_ONE, min_area=_AT_LEAST_ONE, labels_getter=_default)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        boxes = known_boxes(sampling, type(self).__name__)
        source = sampling.source[rows]
        is_mixed = np.zeros(len(rows), np.bool_)
        if mixed_by(sampling.mixes, source):
            # What an output shows of its boxes is known when all images are sampled.
            is_mixed = np.isin(source, np.concatenate([mix.samples for mix in sampling.mixes]))
            boxes.demand(source[is_mixed], self.min_size, self.min_area)
        rows = rows[~is_mixed]
        edges = boxes.edges(sampling, rows)
        sides = edges[..., 2:] - edges[..., :2]
        is_large = (sides >= self.min_size - _SLACK).all(axis=2) & (sides.prod(axis=2) >= self.min_area - _SLACK)
        boxes.drop(rows, ~is_large)


@dataclass(frozen=True)
class ClampBoundingBoxes(Transform):
    """Boxes end at the edges of their image: here they always do, so that this changes nothing.

    It is there for pipelines written for torchvision. Raises ValueError while sampling for boxes with angles, which
    are not cut off.
    """

    _changes_bytes = False

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if sampling.boxes is not None and sampling.boxes.are_turned:
            raise ValueError(
                "ClampBoundingBoxes: got boxes with angles (box_format='cxcywhr'), which would be no rectangles any "
                "more; accepted: upright boxes"
            )
