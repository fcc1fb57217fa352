"""Types that a checker, and so an editor, sees of public names: ``make lint`` has mypy and pyright read this file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import variegate as vg
from tests.loader.loading import load
from tests.loader.samples import MemorySource
from variegate import transforms as T


def test_batches() -> None:
    loader = load(MemorySource(2))
    for batch in loader:
        assert_type(batch.ids, npt.NDArray[np.uint64])
        assert_type(batch.images, torch.Tensor)
        same: vg.Batch = batch
        images, labels = same
    assert loader.batch(0).padding.dtype == bool
    assert len(images) == len(labels)


def test_augmented() -> None:
    aug = vg.Augmenter(T.Compose([T.Resize([8, 8]), T.ToDtype(torch.float32), T.Normalize(0.5, 0.25)]), "cpu")
    image = np.zeros((9, 9, 3), np.uint8)
    assert_type(aug([image]), torch.Tensor)
    assert_type(aug({"image": image}), dict[str, Any])
    assert_type(aug([{"image": image}]), list[dict[str, Any]])
    assert_type(aug([image], labels=[1]), tuple[torch.Tensor, Any])


def test_lists_in_the_place_of_pairs() -> None:
    affine = T.RandomAffine([-5, 5], scale=[0.5, 1], shear=[1, 2])
    assert affine == T.RandomAffine((-5, 5), scale=(0.5, 1), shear=(1, 2))
    assert T.RandomResizedCrop([8, 8], scale=[0.5, 1]) == T.RandomResizedCrop((8, 8), scale=(0.5, 1))
    assert T.Normalize([0.5] * 3, [1.0] * 3) == T.Normalize((0.5, 0.5, 0.5), (1.0, 1.0, 1.0))
