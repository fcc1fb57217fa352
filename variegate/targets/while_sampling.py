"""The boxes of samples, for transforms that choose by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from variegate.program.boxes import SampledBoxes
from variegate.program.program import Program
from variegate.targets.regions import move_boxes
from variegate.targets.samples import OfImage, of_images
from variegate.targets.settings import Targets
from variegate.targets.stages import stages_of


def boxes_of(belonging: Sequence[OfImage], options: Targets) -> SampledBoxes | None:
    """None for samples without boxes."""
    corners = [of.corners for of in belonging if of.corners is not None]
    return SampledBoxes(corners, _moved, options.box_format == "cxcywhr") if corners else None


def boxes_alone(boxes: Sequence[object], shapes: npt.NDArray[np.int32]) -> SampledBoxes | None:
    """Of images of ``shapes`` [N, 3], each numbers [M, 4]: left, top, right, bottom in pixels. Raises ValueError."""
    if len(boxes) != len(shapes):
        raise ValueError(f"boxes: got those of {len(boxes)} images; accepted: [M, 4] for each of {len(shapes)}")
    options = Targets()
    return boxes_of(of_images([{"boxes": of_one} for of_one in boxes], shapes, options), options)


def _moved(program: Program, row: npt.NDArray[np.int64], corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    seen, _ = move_boxes(stages_of(program), row, corners, program.in_shape[row, :2])
    return np.ascontiguousarray(seen[:, 0])
