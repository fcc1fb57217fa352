"""torch's DataLoader over an ImageFolder, which the loaders of torchvision and AlbumentationsX have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, default_collate

from benchmarks.loader.peers.base import Given, Opener
from benchmarks.peers.torchvision_stub import import_v2

import_v2()  # before any other part of torchvision
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.datasets.folder import pil_loader  # noqa: E402

__all__ = ["Way", "open_loader", "pil_loader", "variants"]

PREFETCH_FACTORS = (2, 4)


@dataclass(frozen=True)
class Way:
    """How a sample is made: ``read`` a path, ``transform`` it and, where given, ``finish`` the batch of them."""

    read: Callable[[str], Any]
    transform: Callable[[Any], Any]
    finish: Callable[[torch.Tensor], torch.Tensor] | None = None


def variants(given: Given, ways: dict[str, Way]) -> dict[str, Opener]:
    """Every way with as many workers as cores, which the main process then shares, and with one more."""
    return {
        f"{name}, {workers} workers, prefetch_factor={prefetch}": partial(open_loader, given, way, workers, prefetch)
        for name, way in ways.items()
        for workers in (given.cores, given.cores + 1)
        for prefetch in PREFETCH_FACTORS
    }


def open_loader(given: Given, way: Way, workers: int, prefetch: int) -> Any:
    dataset = ImageFolder(str(given.folder), transform=way.transform, loader=way.read)
    return DataLoader(
        dataset,
        batch_size=given.batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=True,
        prefetch_factor=prefetch,
        pin_memory=False,
        collate_fn=default_collate if way.finish is None else partial(_collate, way.finish),
        multiprocessing_context="fork",
    )


def _collate(finish: Callable[[torch.Tensor], torch.Tensor], samples: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """In the worker process, so that the main process is left to the training."""
    images, labels = default_collate(samples)
    return finish(images).contiguous(), labels
