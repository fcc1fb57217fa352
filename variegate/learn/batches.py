"""Batches as models take them, and the classes of a data set."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from variegate.augmenter.planner import MixedLabels
from variegate.data.base import SourceError, summarize_names
from variegate.data.samples import Samples
from variegate.io.addresses import redact_text
from variegate.learn.step import in_channels_last
from variegate.loader import Batch, Loader
from variegate.transforms import Transform

# Images for models that are initialized from images.
_MIN_PLAIN = 64
_MAX_PLAIN = 2048
_MAX_PLAIN_VALUES = 1 << 23


def classes_of(source: Samples, place: str) -> tuple[str, ...]:
    """Their names, or numbers; warns of those without images. Raises SourceError where they are not known."""
    labels = source.labels(np.arange(len(source), dtype=np.int64))
    if labels is None:
        if not source.classes:
            raise SourceError(
                f"{place}: does not say which classes there are; accepted: class folders, a classnames.txt beside "
                "shards, open_source(..., classes=[...]), or a data set with `targets`"
            )
        return tuple(source.classes)
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) == 0 or labels.min() < 0:
        raise SourceError(
            f"{place}: every image needs the number of its class as label; accepted: class folders, or a column of "
            "integers"
        )
    names = tuple(source.classes) or tuple(str(number) for number in range(int(labels.max()) + 1))
    counts = np.bincount(labels, minlength=len(names))
    if len(counts) > len(names):
        raise SourceError(f"{place}: has label {len(counts) - 1}; accepted: 0 to {len(names) - 1}")
    present = np.flatnonzero(counts)
    if len(present) == 1 < len(names):
        has = f"has images of one class ({names[int(present[0])]}), of {len(names)}"
        raise SourceError(f"{place}: {has}; accepted: two or more")
    # A folder's own notes name its files.
    reported = source.empty_classes
    empty = [name for name, count in zip(names, counts.tolist(), strict=True) if count == 0 and name not in reported]
    if empty:
        text = f"{place}: classes without images, which keep their index: {summarize_names(empty)}"
        warnings.warn(redact_text(text), stacklevel=4)
    return names


def tensors_of(batch: Batch, device: str) -> tuple[torch.Tensor, Any, torch.Tensor | None]:
    """-> images, labels (classes, soft ones or ``MixedLabels``) and, where there is padding, weights of 0 and 1, as
    models on the device take them. Raises SourceError for images of several sizes, and for several labels of each."""
    images = batch.images
    labels = batch.labels
    weights = None
    if not isinstance(images, torch.Tensor):
        raise SourceError("the images have several sizes, or views; give one size that all are cut to (--size)")
    if not isinstance(labels, (MixedLabels, torch.Tensor)):
        raise SourceError("labels: got several for each image; accepted: one class, or shares of classes")
    if batch.padding.any():
        weights = torch.from_numpy(~batch.padding).to(device, torch.float32)
    is_mixed = isinstance(labels, MixedLabels)
    moved = MixedLabels(*(part.to(device) for part in labels)) if is_mixed else labels.to(device)
    return in_channels_last(images).to(device), moved, weights


def plain_images(
    source: Samples,
    plain: Transform,
    device: str,
    seed: int,
    num_threads: int | None,
    values: int = 1,
    reading: Mapping[str, Any] | None = None,
) -> torch.Tensor:
    """float32 [N, C, H, W] on the device: up to some thousand images, drawn by the seed, preprocessed as for scoring.

    ``values``: numbers of an image. ``reading``: arguments of a Loader. Raises SourceError.
    """
    number = max(_MIN_PLAIN, min(_MAX_PLAIN, _MAX_PLAIN_VALUES // values))
    loader = Loader(
        source,
        plain,
        min(number, len(source)),
        device,
        seed=seed,
        num_threads=num_threads,
        layout="NHWC",
        rank=0,
        world_size=1,
        on_error="skip",
        prefetch=0,
        **(reading or {}),
    )
    batch = next(iter(loader), None)
    if batch is not None and isinstance(batch.images, torch.Tensor):
        return in_channels_last(batch.images[torch.from_numpy(~batch.padding).to(batch.images.device)])
    raise SourceError(f"{source.place}: has no images that can be read, of one size; accepted: --size cuts them to one")
