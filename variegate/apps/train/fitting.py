"""Network, image size and batch size of a training that options leave open: chosen by the data."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from variegate.apps.train.images import BATCH, fitting_batch, fitting_model, is_kept_size
from variegate.options.training import TrainOptions

Size = tuple[int, int]
_LARGEST_SIDE, _SIDE_STEP = 224, 8
# Images of a shorter side are enlarged to it: networks halve sides several times.
_LEAST_SIDE = 16


@dataclass(frozen=True)
class Fit:
    """``is_kept``: images keep their size. ``reason``: a line about the choice."""

    model: str
    size: Size
    is_kept: bool
    batch_size: int
    reason: str


def fit_training(images: int | None, sizes: list[Size], options: TrainOptions, size: Size | None, together: int) -> Fit:
    """Choose what ``options`` leave open.

    ``images``: None for a stream. ``sizes``: (height, width) of some images. ``size``: of ``--size`` or of the policy.
    ``together``: batches in a step, of all ranks.
    """
    common = sizes[0] if len(set(sizes)) == 1 else None
    is_kept = is_kept_size(sizes) and size in (None, common)
    if size is None:
        size = sizes[0] if is_kept else fitting_side(sizes)
    model = options.model or fitting_model(images, max(size))
    batch = options.batch_size or (BATCH if images is None else fitting_batch(max(1, images // together)))

    reason = "a stream" if images is None else f"{images:,} images"
    if common is not None:
        reason += f" of {_text(common)}"
    elif sizes:
        height, width = (statistics.median_low(sides) for sides in zip(*sizes, strict=True))
        reason += f" of several sizes, about {_text((height, width))}"
    return Fit(model, size, is_kept, batch, f"{model}, batches of {batch} images of {_text(size)}: {reason}")


def fitting_side(sizes: list[Size]) -> Size:
    """A square of the median shorter side, so that no more than half of the images are enlarged; at most 224x224."""
    if not sizes:
        return _LARGEST_SIDE, _LARGEST_SIDE
    side = statistics.median_low(min(size) for size in sizes)
    side = max(_LEAST_SIDE, min(_LARGEST_SIDE, side // _SIDE_STEP * _SIDE_STEP))
    return side, side


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"
