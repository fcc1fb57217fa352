"""Policies that are all the augmentation, as a race writes them: nothing is added to them, and options say so."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.learn.train.digits import options, top1
from variegate import transforms as T
from variegate.learn.averaging import DistContext
from variegate.learn.feed import DataPipeline
from variegate.learn.trainer import train
from variegate.policies import PBA, Schedule, Segment
from variegate.policies.custom_space import CustomSpace

IMAGES = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 3)).astype(np.uint8)
RACED = [T.RandomCrop((8, 8), padding=1), T.RandomHorizontalFlip(0.5), T.Cutout(2)]
# Of a search that has crop and flip in its space.
SCHEDULE = PBA(
    Schedule((Segment(6, (("Crop", 0.5, 4), ("Flip", 0.5, 0))),), CustomSpace("pba", ("Rotate",), crop=0.25, flip=True))
)


def written(folder: Path, *steps: T.Transform) -> str:
    path = folder / "policy.json"
    path.write_text(json.dumps(T.Compose([*steps]).to_dict()))
    return str(path)


def test_nothing_is_added_and_a_line_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, *RACED)
    with pytest.warns(UserWarning, match="none are added") as told:
        feed = DataPipeline((IMAGES, np.arange(64) % 2), None, options(tmp_path, policy=path), DistContext())
    assert [str(one.message) for one in told] == [f"{path}: has crop, flip and cutout of its own; none are added"]
    policy, normalize = feed.transform.transforms  # type: ignore[attr-defined]
    assert policy == T.Compose(RACED)
    assert isinstance(normalize, T.Normalize)


@pytest.mark.parametrize("steps", [[T.RandomCrop((12, 12), padding=0), T.RandomHorizontalFlip(0.5)], [SCHEDULE]])
def test_photos_are_resized_as_in_the_race_and_score_so(tmp_path: Path, steps: list[T.Transform]) -> None:
    """Bright above, or bright below, in many sizes."""
    rng = np.random.default_rng(0)
    for number in range(40):
        height, width = rng.integers(16, 30, 2)
        pixels = rng.integers(0, 160, (height, width, 3)).astype(np.uint8)
        pixels[: height // 2] += 60 * (number % 2)
        pixels[height // 2 :] += 60 * (1 - number % 2)
        path = tmp_path / ("validation" if number % 4 > 1 else "photos") / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    policy = written(tmp_path, T.Resize((12, 12)), *steps)
    chosen: dict[str, Any] = {"model": "wrn-10-1", "batch_size": 10, "epochs": 6}
    validation = str(tmp_path / "validation")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        train(str(tmp_path / "photos"), options(tmp_path / "run", policy=policy, **chosen), validation=validation)
    model, scoring, classes = vg.load_model(tmp_path / "run")
    right = 0
    with torch.inference_mode():
        for images, labels in vg.Loader(validation, scoring, 7, "cpu", shuffle=False):
            assert images.shape[2:] == (12, 12)
            right += int((model(images).argmax(1) == labels).sum())
    assert classes == ("a", "b")
    assert right / 20 == top1(tmp_path / "run")
    assert top1(tmp_path / "run") > 0.5
