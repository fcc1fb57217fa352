"""Network, image size and batch size that a training chooses by its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.apps.train.digits import options
from variegate.apps.train import train
from variegate.apps.train.fitting import fit_training
from variegate.options.training import TrainOptions


def fit(images: int | None, *sizes: tuple[int, int], **chosen: Any) -> tuple[str, tuple[int, int], bool, int]:
    found = fit_training(images, list(sizes), TrainOptions(**chosen), None, 1)
    return found.model, found.size, found.is_kept, found.batch_size


def test_the_network_and_the_size_follow_from_the_images() -> None:
    assert fit(50_000, (32, 32)) == ("wrn-28-2", (32, 32), True, 128)
    assert fit(600, (28, 28)) == ("wrn-16-1", (28, 28), True, 64)
    assert fit(10_000, (72, 96)) == ("wrn-28-2-stem2", (72, 72), False, 128)
    assert fit(1_000, (40, 60), (50, 30), (44, 90)) == ("wrn-16-1", (40, 40), False, 64)
    assert fit(10_000, (375, 500), (500, 333), (1200, 1600)) == ("wrn-28-2-stem4", (224, 224), False, 128)
    assert fit(None) == ("wrn-28-2-stem4", (224, 224), False, 128)
    assert fit(600, (28, 28), model="wrn-10-1", batch_size=7) == ("wrn-10-1", (28, 28), True, 7)


@pytest.mark.parametrize(("model", "size"), [("wrn-10-1", (24, 32)), ("wrn-10-1-stem2", (72, 72))])
def test_a_training_with_a_stem_and_one_without_run(model: str, size: tuple[int, int], tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (16, *size, 3)).astype(np.uint8)
    chosen = options(tmp_path, model=model, size="none", epochs=1, batch_size=8, policy="crop")
    told: list[str] = []
    assert train((images, np.arange(16) % 2), chosen, say=told.append)["is_done"]
    assert told[0] == f"{model}, batches of 8 images of {size[0]}x{size[1]}: 16 images of {size[0]}x{size[1]}"


class TooLarge(torch.nn.Linear):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def too_large(num_classes: int) -> torch.nn.Module:
    return TooLarge(4, num_classes)


def test_a_batch_that_does_not_fit_into_memory_is_named(tmp_path: Path) -> None:
    images = np.zeros((16, 24, 32, 3), np.uint8)
    chosen = options(tmp_path, model=f"{__name__}:too_large", epochs=1, batch_size=8)
    with pytest.raises(ValueError, match=r"batch_size: 8 images of 24x32 do not fit into the memory of cpu with tests"):
        train((images, np.arange(16) % 2), chosen)
