"""torch's DataLoader with torchvision's v2 on Pillow images: what most training scripts do."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from variegate import transforms as T
from variegate.apps.train.feed import Feed
from variegate.apps.train.study.feeds import Fed, StudiedFeed
from variegate.apps.train.study.peers import MissingPeerError, name_of, normalisation_of, reason, source_of, steps_of
from variegate.decode import FORMATS
from variegate.formats.base import Source
from variegate.threads import default_threads

TORCHVISION = "DataLoader+torchvision"
_PREFETCH = 2  # batches of each worker, torch's default


def open_torchvision(feed: Feed, device: str) -> StudiedFeed:
    """Raises MissingPeerError."""
    try:
        from torchvision.transforms import v2
    except (ImportError, RuntimeError) as error:  # the latter of a build that does not go with torch's
        raise MissingPeerError(f"torchvision cannot be imported: {reason(error)}") from error
    source = source_of(feed)
    steps, left_out = spelled(v2, feed)
    workers, is_cuda = default_threads(), device.startswith("cuda")
    loader: Any = torch.utils.data.DataLoader(
        _Images(source, feed.channels, v2.Compose(steps)),  # type: ignore[arg-type]
        batch_size=feed.batch_size,
        shuffle=True,
        num_workers=workers,
        prefetch_factor=_PREFETCH,
        persistent_workers=True,
        pin_memory=is_cuda,
        # Workers that have nothing of ours running; they read and augment, no more.
        multiprocessing_context="fork" if sys.platform.startswith("linux") else None,
    )

    def batches() -> Iterator[Fed]:
        while True:
            for images, labels in loader:
                moved = images.to(device, memory_format=torch.channels_last, non_blocking=True)
                yield Fed(moved, labels.to(device, non_blocking=True), len(labels))

    found = batches()
    how = f"{workers} workers, prefetch_factor={_PREFETCH}"
    return StudiedFeed(TORCHVISION, found, workers * _PREFETCH, how, left_out, found.close)  # type: ignore[attr-defined]


def spelled(v2: Any, feed: Feed) -> tuple[list[Any], tuple[str, ...]]:
    """-> the training's augmentation in ``v2``, and the names of what it does not have."""
    steps: list[Any] = []
    left_out: list[str] = []
    for step in steps_of(feed.transform):
        found = _step(v2, step)
        steps += [] if found is None else [found]
        left_out += [name_of(step)] if found is None else []
    mean, std = normalisation_of(feed.transform)
    last = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std, inplace=True)]
    return [*steps, *last], tuple(left_out)


def _step(v2: Any, step: Any) -> Any:
    """None where it is not torchvision's."""
    if getattr(step, "operations", None) is not None or getattr(step, "space", "torchvision") != "torchvision":
        return None
    if type(step) is T.RandomResizedCrop:
        return v2.RandomResizedCrop(step.size, step.scale, step.ratio)
    if type(step) is T.RandomCrop:
        return v2.RandomCrop(step.size, step.padding, step.pad_if_needed, padding_mode=step.padding_mode)
    if type(step) is T.RandomHorizontalFlip:
        return v2.RandomHorizontalFlip(step.p)
    if type(step) is T.RandAugment:
        return v2.RandAugment(step.num_ops, step.magnitude, step.num_magnitude_bins)
    if type(step) is T.TrivialAugmentWide:
        return v2.TrivialAugmentWide(step.num_magnitude_bins)
    if type(step) is T.AutoAugment and isinstance(step.policy, str) and not step.magnitude_std:
        return v2.AutoAugment(v2.AutoAugmentPolicy(step.policy))
    if type(step) is T.AugMix:
        return v2.AugMix(step.severity, step.mixture_width, step.chain_depth, step.alpha, step.all_ops)
    return None


class _Images:
    """A data set of torch's, over any source."""

    def __init__(self, source: Source, channels: int, each: Any) -> None:
        self._source, self._mode, self._each = source, "L" if channels == 1 else "RGB", each

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        item = self._source.read(index)
        if isinstance(item.data, bytes):
            image: Any = Image.open(io.BytesIO(item.data), formats=FORMATS).convert(self._mode)
        else:
            image = Image.fromarray(np.ascontiguousarray(item.data.squeeze(2) if self._mode == "L" else item.data))
        return self._each(image), int(item.label)
