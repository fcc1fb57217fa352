"""What is measured beside a user's own loader: one without the policy, and one of pictures that are stored smaller."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.diagnose.views import MeasuredSample
from variegate.diagnose.working_set import WorkingSet
from variegate.transforms.base import Transform
from variegate.transforms.compose import Compose
from variegate.transforms.crop import CenterCrop, Pad, RandomCrop
from variegate.transforms.output import Identity, Normalize, ToDtype
from variegate.transforms.resize import RandomResizedCrop, Resize

# What a batch cannot do without: its size and its format.
_FRAME = (CenterCrop, Normalize, Pad, RandomCrop, RandomResizedCrop, Resize, ToDtype)
# Stored side over the side of the output: 256 for crops of 224, as is usual.
_MARGIN = 8 / 7
# Below this, too little is saved to be worth a second copy of the data.
_WORTH = 1.25
_AT_MOST = 256
QUALITY = 90


def side_for(out_side: int | None, samples: Sequence[MeasuredSample]) -> int | None:
    """The shorter side that stored pictures could be reduced to; None where they are about as small already."""
    if out_side is None:
        return None
    side = round(out_side * _MARGIN)
    return side if statistics.fmean(min(sample.shape[:2]) for sample in samples) > _WORTH * side else None


def reduce_samples(
    chosen: WorkingSet, side: int, seconds: float
) -> tuple[list[MeasuredSample], list[npt.NDArray[np.uint8]]]:
    """Some of the pictures, their shorter side reduced to ``side``: as JPEG files, and as pixels."""
    samples: list[MeasuredSample] = []
    pictures: list[npt.NDArray[np.uint8]] = []
    end = time.perf_counter() + seconds
    for sample, picture in zip(chosen.samples, chosen.pictures, strict=False):
        if len(samples) == _AT_MOST or (samples and time.perf_counter() > end):
            break
        height, width = picture.shape[:2]
        factor = min(1.0, side / min(height, width))
        size = max(1, round(width * factor)), max(1, round(height * factor))
        small = Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR)
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=QUALITY)
        item = sample.item._replace(data=buffer.getvalue())
        samples.append(replace(sample, item=item, shape=(size[1], size[0], 3)))
        pictures.append(np.asarray(small))
    return samples, pictures


def without_policy(transform: Transform) -> Transform | None:
    """Crop, resize and normalise alone; None where the transform does nothing else."""
    steps = _flat(transform)
    kept = [step for step in steps if isinstance(step, _FRAME)]
    if len(kept) == len([step for step in steps if not isinstance(step, Identity)]):
        return None
    return Compose(kept) if kept else Identity()


def _flat(transform: Transform) -> list[Transform]:
    if isinstance(transform, Compose):
        return [step for child in transform.transforms for step in _flat(child)]
    return [transform]
