"""A search that trains, small enough for tests, and models that go wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from variegate.learn.history import Settings
from variegate.learn.images import BaselineAugmentation, load_images, split
from variegate.learn.members import member_seed
from variegate.learn.models import build_model
from variegate.learn.policy import SearchSpace
from variegate.learn.run import SearchRun
from variegate.options.fit import FitOptions


def small_run(model: str = "wrn-10-1", **settings: Any) -> SearchRun:
    """Four members, three steps of two epochs, on stripes."""
    rng = np.random.default_rng(0)
    labels = np.arange(96) % 3
    pixels = rng.integers(60, 120, (96, 8, 8, 3)).astype(np.uint8)
    pixels[labels == 0, ::2] += 40
    pixels[labels == 1, :, ::2] += 40
    images = load_images((pixels, labels.tolist()), device="cpu")
    train, validation = split(images, 64, 32, seed=0)
    population = Settings(
        **{"size": 4, "interval": 2, "epochs": 6, "space": SearchSpace(space="pba-relative")} | settings
    )
    recipe = FitOptions(epochs=population.epochs, batch_size=32)
    baseline = BaselineAugmentation.of(train, padding=1, flip=False, cutout=0)
    return SearchRun(population, recipe, model, baseline, train, validation)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fragile(num_classes: int) -> torch.nn.Module:
    """Member 2 begins with weights that no training comes back from."""
    return _spoilt(num_classes, torch.initial_seed() == member_seed(0, 2))


def broken(num_classes: int) -> torch.nn.Module:
    return _spoilt(num_classes, True)


def _spoilt(num_classes: int, is_spoilt: bool) -> torch.nn.Module:
    model = build_model("wrn-10-1", num_classes, 3)
    if is_spoilt:
        with torch.no_grad():
            next(model.parameters()).fill_(torch.nan)
    return model
