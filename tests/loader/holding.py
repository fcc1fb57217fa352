"""Data sets that hold a Loader or an Augmenter, as workers of a torch ``DataLoader`` are given them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset

import variegate as vg
from tests.images import photo
from variegate import transforms as T


class Augmented(Dataset[Any]):
    """Item i is photo i augmented as (epoch 1, id i)."""

    def __init__(self, augmenter: vg.Augmenter, number: int) -> None:
        self.augmenter, self.number = augmenter, number

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> torch.Tensor:
        images = [photo(40, 48), photo(40, 48)[:, ::-1]]
        return self.augmenter(images, ids=[index, 1000 + index], epoch=1)  # type: ignore[return-value]


class Loaded(IterableDataset[Any]):
    """An epoch of a Loader: ids and pixels of each batch."""

    def __init__(self, loader: vg.Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Any:
        for batch in self.loader:
            yield batch.ids.astype(np.int64), batch.images


class Halved(T.CustomOp):
    """Declared in a module, so that it travels by name."""

    def lut(self, m: float) -> Any:
        return np.arange(256) // 2
