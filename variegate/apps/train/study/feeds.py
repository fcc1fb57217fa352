"""What feeds a studied step: a batch that is there already, which nothing can beat, and Variegate's loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from variegate.apps.train.feed import Feed, labels_to
from variegate.apps.train.scoring import images_of
from variegate.apps.train.step import in_channels_last

CEILING, OURS = "synthetic batch", "Variegate"


class Fed(NamedTuple):
    """On the device, the images in channels-last layout. ``weights``: 0 for rows that only fill the batch up; None
    where all count, ``number`` of them."""

    images: torch.Tensor
    labels: Any
    number: int
    weights: torch.Tensor | None = None


@dataclass
class StudiedFeed:
    """``ahead``: batches that it makes before they are asked for. ``left_out``: what of the training's augmentation it
    does not do. ``how``: how it was set up."""

    name: str
    batches: Iterator[Fed]
    ahead: int = 0
    how: str = ""
    left_out: tuple[str, ...] = ()
    close: Callable[[], object] = lambda: None


def synthetic(feed: Feed, device: str) -> StudiedFeed:
    generator = torch.Generator().manual_seed(feed.options.seed)
    images = torch.randn(feed.batch_size, *feed.size, feed.channels, generator=generator)
    labels = torch.randint(len(feed.classes), (feed.batch_size,), generator=generator)
    fed = Fed(in_channels_last(images).to(device), labels.to(device), feed.batch_size)

    def repeated() -> Iterator[Fed]:
        while True:
            yield fed

    return StudiedFeed(CEILING, repeated(), how="one batch of random numbers, again and again")


def ours(feed: Feed, device: str) -> StudiedFeed:
    """As ``train`` feeds its steps."""
    loader = feed.train

    def batches() -> Iterator[Fed]:
        epoch = 0
        while True:
            loader.set_epoch(epoch % feed.options.epochs)
            for batch in loader:
                weights, number = None, len(batch.ids)
                if batch.padding.any():
                    weights = torch.from_numpy(~batch.padding).to(device, torch.float32)
                    number -= int(batch.padding.sum())
                yield Fed(images_of(batch, device), labels_to(batch.labels, device), number, weights)
            epoch += 1

    found = batches()
    how = f"{loader.num_threads} threads, {loader.prefetch} batches ahead"
    return StudiedFeed(OURS, found, loader.prefetch + 1, how, close=found.close)  # type: ignore[attr-defined]
