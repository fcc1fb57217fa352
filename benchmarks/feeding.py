"""Batches of a loader, one after another, and the step of a training that takes them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.libraries import LoaderInputs, Opener

CLASSES = 100


class Step:
    """An optimizer step on a GPU, if there is one: a convolutional network of five layers."""

    def __init__(self) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        layers: list[nn.Module] = []
        for narrow, wide in ((3, 32), (32, 64), (64, 128), (128, 256)):
            layers += [nn.Conv2d(narrow, wide, 3, 2, 1), nn.ReLU(inplace=True)]
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, CLASSES))
        self.model = model.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)

    def __call__(self, images: Any, labels: Any) -> None:
        images = torch.as_tensor(images).to(self.device, memory_format=torch.channels_last, non_blocking=True)
        labels = torch.as_tensor(labels).to(self.device, torch.int64, non_blocking=True)
        self.optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()


class Feed:
    """The next batch of a loader, epoch after epoch, and a step on it. ``labels``: of the last batch."""

    def __init__(self, opener: Opener, step: Step | None) -> None:
        self.opener = opener
        self.step = step
        self.batches: Iterator[tuple[Any, Any]] | None = None

    def __call__(self) -> Any:
        if self.batches is None:
            self.batches = self._endless()
        images, labels = next(self.batches)
        if len(labels) != len(images):
            raise ValueError(f"got {len(labels)} labels; {len(images)} are asked for")
        if self.step is not None:
            self.step(images, labels)
        return images

    def _endless(self) -> Iterator[tuple[Any, Any]]:
        loader = self.opener()
        while True:
            yield from loader

    def close(self) -> None:
        """End the threads and processes of the loader."""
        self.batches = None
        gc.collect()


def ceiling(given: LoaderInputs) -> Any:
    """The step on one repeated batch."""
    step = Step()
    images = torch.randn(given.batch, 3, 224, 224).to(step.device, memory_format=torch.channels_last)
    labels = torch.arange(given.batch, device=step.device) % CLASSES
    return lambda: step(images, labels)
