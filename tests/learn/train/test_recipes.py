"""Recipes set defaults and nothing else; what is done around a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.learn.train.digits import digits
from tests.needed import needs
from variegate import transforms as T
from variegate.cli import main
from variegate.data.opening import open_source
from variegate.learn.averaging import DistContext
from variegate.learn.feed import DataPipeline
from variegate.learn.models import ModelError, build_model
from variegate.options.recipes import RECIPES
from variegate.options.training import TrainOptions

pytestmark = needs("sklearn")


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_given_wins_over_a_recipe(name: str) -> None:
    values = RECIPES[name]
    made = TrainOptions.from_recipe(name)
    assert {key: getattr(made, key) for key in values} == values
    plain = TrainOptions()
    given = {key: getattr(plain, key) for key in values}
    assert TrainOptions.from_recipe(name, **given) == plain, "even if it is the default"
    with pytest.raises(ValueError, match="recipe: got 'fast'; accepted: one of 'cifar10-fast', 'finetune'"):
        TrainOptions.from_recipe("fast")


def test_a_recipe_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (images, labels), _ = digits(40)
    for number, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        folder = tmp_path / "digits" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.repeat(np.repeat(pixels[..., 0], 2, 0), 2, 1)).save(folder / f"{number}.png")
    typed = ["train", f"{tmp_path}/digits", "--recipe", "cifar10-fast", "--model", "airbench-94x0.05", "--epochs", "1"]
    typed += ["--warmup", "0", "--batch-size", "16", "--devices", "cpu", "--threads", "1"]
    assert main([*typed, "--out", f"{tmp_path}/out", "--lr", "0.1"]) == 0
    kept = json.loads((tmp_path / "out" / "train.json").read_text())
    chosen = {"lr": 0.1, "label_smoothing": 0.2, "batch_size": 16, "policy": "flip+crop2", "clip": 0.0}
    assert {name: kept[name] for name in chosen} == chosen
    capsys.readouterr()
    assert main([*typed, "--out", f"{tmp_path}/other", "--recipe", "slow"]) == 2
    assert "recipe: got 'slow'; accepted: one of 'cifar10-fast', 'finetune'" in capsys.readouterr().err


def fed(source: Any, **chosen: Any) -> DataPipeline:
    return DataPipeline(source, None, TrainOptions(devices="cpu", threads=1, model="wrn-10-1", **chosen), DistContext())


def test_rectangles_are_erased_in_a_share_of_the_images() -> None:
    images = np.full((400, 16, 16, 3), 200, np.uint8)
    feed = fed((images, [0, 1] * 200), random_erasing=0.3, policy="none", batch_size=400)
    (batch,) = feed.train
    erased = (batch.images == 0).flatten(1).any(1).float().mean().item()
    assert erased == pytest.approx(0.3, abs=0.06)
    assert not (fed((images, [0, 1] * 200), policy="none").plain_images() == 0).any()


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        ("flip+crop", ["RandomResizedCrop", "RandomHorizontalFlip", "Normalize"]),
        ("trivialaugment", ["Resize", "CenterCrop", "TrivialAugmentWide", "Normalize"]),
        ("crop4+cutout8", ["Resize", "CenterCrop", "RandomCrop", "Cutout", "Normalize"]),
        ("trivialaugment+crop+cutout8", ["RandomResizedCrop", "TrivialAugmentWide", "Cutout", "Normalize"]),
    ],
)
def test_photos_that_are_resized(policy: str, kinds: list[str]) -> None:
    images = np.zeros((4, 24, 24, 3), np.uint8)
    feed: Any = fed((images, [0, 1] * 2), policy=policy, size="16", batch_size=4)
    assert [type(step).__name__ for step in feed.transform.transforms] == kinds
    assert [type(step).__name__ for step in feed.plain.transforms] == ["Resize", "CenterCrop", "Normalize"]


def test_mixing_twice_is_refused(tmp_path: Path) -> None:
    policy = tmp_path / "mixed.json"
    policy.write_text(json.dumps(T.CutMix().to_dict()))
    images = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(ValueError, match=r"mixup: got 0\.2 with a policy that mixes images; accepted: one"):
        fed((images, [0, 1] * 2), policy=str(policy), mixup=0.2, batch_size=4)


def test_small_images_of_files_are_decoded_once(tmp_path: Path) -> None:
    for number in range(8):
        folder = tmp_path / str(number % 2)
        folder.mkdir(exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 10 * number, np.uint8)).save(folder / f"{number}.png")
    feed = fed(open_source(str(tmp_path)), policy="none", batch_size=4)
    list(feed.train)
    assert feed.train.cache is not None
    assert feed.train.cache.nbytes == 8 * 8 * 8 * 3
    assert fed(open_source(str(tmp_path)), size="80", batch_size=4).train.cache is None


def test_what_only_timm_has_is_refused_for_others() -> None:
    images = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(ValueError, match="pretrained: got True with model wrn-10-1; accepted with timm:NAME alone"):
        fed((images, [0, 1] * 2), batch_size=4, pretrained=True)
    with pytest.raises(ModelError, match=r"model wrn-10-1: takes no drop_path_rate; accepted: with timm:NAME alone"):
        build_model("wrn-10-1", 5, drop_path_rate=0.1)
