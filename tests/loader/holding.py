"""Data sets that hold a Loader or an Augmenter, as workers of a torch ``DataLoader`` are given them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset

import variegate as vg
from tests.images import photo
from variegate import transforms as T


class Held(IterableDataset[Any]):
    """Photos augmented as (epoch 1, id i), and then an epoch of a Loader: ids and pixels of each batch."""

    def __init__(self, augmenter: vg.Augmenter, number: int, loader: vg.Loader) -> None:
        self.augmenter, self.number, self.loader = augmenter, number, loader

    def augmented(self) -> Iterator[tuple[Any, Any]]:
        images = [photo(40, 48), photo(40, 48)[:, ::-1]]
        for number in range(self.number):
            ids = np.array([number, 500 + number])
            yield ids, self.augmenter(images, ids=ids, epoch=1)

    def __iter__(self) -> Any:
        yield from self.augmented()
        for batch in self.loader:
            yield batch.ids.astype(np.int64), batch.images


class Halved(T.CustomOp):
    """Declared in a module, so that it travels by name."""

    def lut(self, m: float) -> Any:
        return np.arange(256) // 2
