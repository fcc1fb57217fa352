"""Values that a loader's batches are given besides labels: known before an epoch, the same throughout it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import variegate as vg
from variegate import transforms as T

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)
LABELS = np.arange(40) % 3
POLICY = T.AdaptiveRandAugment(2, operations=["Rotate", "TranslateX", "Brightness"])


class Table:
    """A number for each sample and epoch; ``asked``: the epochs that it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.shift = 0.0

    def __call__(self, epoch: int) -> Callable[[npt.NDArray[np.uint64]], dict[str, Any]]:
        self.asked.append(epoch)
        shift = self.shift
        return lambda ids: {"magnitude": (ids / 50 + epoch / 7 + shift) % 1}


def epoch_of(loader: vg.Loader, epoch: int) -> dict[int, torch.Tensor]:
    loader.set_epoch(epoch)
    return {number: image for batch in loader for number, image in zip(batch.ids.tolist(), batch.images, strict=True)}


def test_samples_get_theirs_whatever_the_batch() -> None:
    table = Table()
    augmenter = vg.Augmenter(POLICY, "cpu", 5)
    given = {"magnitude": (np.arange(40) / 50 + 1 / 7) % 1}
    expected = augmenter(PIXELS, ids=np.arange(40), epoch=1, conditions=given)
    for more in ({}, {"batch_size": 7, "num_threads": 3}, {"prefetch": 0}, {"batch_size": 40, "copies": 1}):
        loader = vg.Loader((PIXELS, LABELS), POLICY, device="cpu", seed=5, conditions=table, **more)
        found = epoch_of(loader, 1)
        assert all(torch.equal(found[number], expected[number]) for number in range(40))
    batch = loader.batch(0, 1)
    assert torch.equal(batch.images[0], expected[int(batch.ids[0])])


def test_no_epoch_is_begun_before_its_values_are_known() -> None:
    table = Table()
    loader = vg.Loader((PIXELS, LABELS), POLICY, 8, device="cpu", conditions=table, prefetch=4)
    for epoch in range(3):
        assert table.asked == list(range(epoch))
        table.shift = 0.1 * epoch
        batches = list(loader)
        given = {"magnitude": (batches[-1].ids / 50 + epoch / 7 + 0.1 * epoch) % 1}
        again = loader.augmenter(PIXELS[batches[-1].ids.astype(int)], batches[-1].ids, epoch, conditions=given)
        assert torch.equal(batches[-1].images, again)


def test_labels_are_given_beside_them_and_partners_get_theirs() -> None:
    branch = T.Cond("label", {1: T.AdaptiveRandAugment()}, default=T.Identity())
    found = epoch_of(vg.Loader((PIXELS, LABELS), branch, 8, device="cpu", conditions=Table()), 0)
    assert torch.equal(found[0], torch.from_numpy(PIXELS[0]).permute(2, 0, 1))
    mixed = T.Compose([POLICY, T.MixUp(num_classes=3)])
    one, other = (
        epoch_of(vg.Loader((PIXELS, LABELS), mixed, size, device="cpu", conditions=Table()), 0) for size in (8, 40)
    )
    assert all(torch.equal(one[number], other[number]) for number in range(40))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="conditions: got 3; accepted: None, or a function of an epoch"):
        vg.Loader((PIXELS, LABELS), POLICY, conditions=3)  # type: ignore[arg-type]
    loader = vg.Loader((PIXELS, LABELS), POLICY, device="cpu", conditions=lambda epoch: epoch)  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="conditions: gave 0 for epoch 0; accepted: a function of ids"):
        next(iter(loader))
