"""Recipes set defaults and nothing else; what is done around a policy, and sizes that grow."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.apps.train.digits import digits, lines, options
from tests.needed import needs
from variegate import Augmenter
from variegate import transforms as T
from variegate.apps.train import TrainOptions, train
from variegate.apps.train.feed import Feed, kept_size_steps, sizes_of
from variegate.apps.train.models import ModelError, build_model
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.trainer import notes_on
from variegate.cli import main
from variegate.cli.train import TrainCommandOptions
from variegate.formats.opening import open_source
from variegate.ops.description import walk
from variegate.options.recipes import RECIPES, describe_recipe
from variegate.policies import Schedule, Segment, save_policy
from variegate.policies.custom_space import CustomSpace

pytestmark = needs("sklearn")


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_given_wins_over_a_recipe(name: str) -> None:
    sets = RECIPES[name]
    assert set(sets) <= {one.name for one in fields(TrainOptions)}
    made = TrainOptions(recipe=name)
    assert {key: getattr(made, key) for key in sets} == dict(sets)
    plain = TrainOptions()
    given = {key: getattr(plain, key) for key in sets}
    # Even where it is the default.
    assert replace(TrainOptions(recipe=name, **given), recipe=None) == plain
    assert TrainCommandOptions(src="photos", recipe=name, epochs=7).epochs == 7
    assert replace(made, epochs=9).lr == made.lr
    halved = TrainOptions(recipe=name, epochs=made.epochs // 2)
    assert halved.warmup == pytest.approx(made.warmup / 2)
    assert f"--warmup {halved.warmup:g}" in str(describe_recipe(halved))


def test_names_that_are_no_recipe() -> None:
    with pytest.raises(ValueError, match="recipe: got 'fast'; accepted: one of 'cifar10-fast', 'imagenet-a1'"):
        TrainOptions(recipe="fast")


def test_what_a_recipe_set_is_told() -> None:
    options = TrainOptions(recipe="cifar10-fast", epochs=3, warmup=1.0, lr=0.5, model="wrn-10-1")
    said = (
        "recipe cifar10-fast: --policy flip+crop --padding 2 --padding-mode reflect --alternate-flip --batch-size 512 "
    )
    said += "--lr-base-size 512 --lr-schedule linear --momentum 0.85 --weight-decay 0.00133 --clip 0 "
    said += "--label-smoothing 0.2 --tta flip-shift --score-every 5"
    assert describe_recipe(options) == said
    assert said in notes_on(options)
    assert describe_recipe(TrainOptions()) is None
    assert TrainOptions(recipe="cifar10-fast", policy="crop", flip=False).policy_name == "crop"
    with pytest.raises(ValueError, match=r"flip: got False with policy 'flip\+crop'; accepted: a policy without flip"):
        TrainOptions(recipe="cifar10-fast", flip=False)


def test_a_recipe_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (images, labels), _ = digits(40)
    for number, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        folder = tmp_path / "digits" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.repeat(np.repeat(pixels[..., 0], 2, 0), 2, 1)).save(folder / f"{number}.png")
    typed = ["train", f"{tmp_path}/digits", "--recipe", "cifar10-fast", "--model", "airbench-94x0.05", "--epochs", "1"]
    typed += ["--warmup", "0", "--batch-size", "16", "--no-alternate-flip", "--device", "cpu", "--threads", "1"]
    assert main([*typed, "--out", f"{tmp_path}/out", "--lr", "0.1"]) == 0
    assert "recipe cifar10-fast: --policy flip+crop --padding 2" in capsys.readouterr().err
    kept = json.loads((tmp_path / "out" / "train.json").read_text())
    chosen = {"lr": 0.1, "alternate_flip": False, "label_smoothing": 0.2, "batch_size": 16, "recipe": "cifar10-fast"}
    assert {name: kept[name] for name in chosen} == chosen
    assert main([*typed, "--out", f"{tmp_path}/other", "--recipe", "slow"]) == 2
    assert "recipe: got 'slow'; accepted: one of 'cifar10-fast', 'imagenet-a1'" in capsys.readouterr().err


def test_sizes_grow_within_four_fifths_of_the_epochs() -> None:
    chosen = TrainOptions(progressive=128, epochs=11)
    assert sizes_of(chosen, (224, 224)) == [(0, (128, 128)), (2, (160, 160)), (4, (192, 192)), (7, (224, 224))]
    assert sizes_of(chosen, (224, 160))[0] == (0, (128, 96))
    small = TrainOptions(progressive=20, epochs=6)
    assert sizes_of(small, (32, 32)) == [(0, (20, 20)), (1, (24, 24)), (3, (28, 28)), (4, (32, 32))]
    assert sizes_of(TrainOptions(progressive=20, epochs=1), (32, 32)) == [(0, (32, 32))]
    assert sizes_of(TrainOptions(epochs=5), (32, 48)) == [(0, (32, 48))]
    with pytest.raises(
        ValueError, match="progressive: got 32 with images of 32 pixels; accepted: from 4 to below that"
    ):
        sizes_of(TrainOptions(progressive=32), (32, 32))


def fed(source: Any, **chosen: Any) -> Feed:
    return Feed(source, None, TrainOptions(device="cpu", threads=1, model="wrn-10-1", **chosen), Ranks())


def test_a_whole_schedule_has_all_crops_and_flips(tmp_path: Path) -> None:
    own = CustomSpace("pba-relative", ("Rotate",), crop=0.25, flip=True)
    path = tmp_path / "schedule.json"
    save_policy(Schedule((Segment(3, (("Rotate", 0.5, 5), ("Crop", 0.5, 5), ("Flip", 1.0, 0))),), own), path)
    kept = (np.zeros((8, 8, 8, 3), np.uint8), [0, 1] * 4)
    with pytest.warns(UserWarning, match="schedule.json: has crop, flip and cutout of its own; none are added"):
        found: Any = fed(kept, policy=str(path), epochs=6)
    kinds = [type(step).__name__ for step in found.transform.transforms]
    assert kinds == ["PBA", "Normalize"]
    assert found.transform.transforms[0].schedule.epochs == 6
    with pytest.warns(UserWarning, match="none are added"):
        found = fed(kept, policy=str(path), epochs=6, size="16", progressive=8)
    center, policy, _ = found.transform.transforms
    kinds = sorted({type(step).__name__ for step in walk(center) if isinstance(step, T.Transform)})
    assert kinds == ["CenterCrop", "Compose", "Cond", "Resize"]
    assert type(policy).__name__ == "PBA"


@pytest.mark.parametrize("size", ["auto", "48"])
def test_images_of_an_epoch_have_its_size(size: str) -> None:
    images = np.random.default_rng(0).integers(0, 255, (12, 24, 24, 3)).astype(np.uint8)
    feed = fed((images, [0, 1] * 6), progressive=12, epochs=5, size=size, batch_size=6, policy="trivialaugment")
    side = 24 if size == "auto" else 48
    assert feed.size_at(0) == (12, 12)
    assert feed.size_at(4) == (side, side)
    for epoch in (0, 2, 4):
        feed.train.set_epoch(epoch)
        assert {tuple(batch.images.shape[1:3]) for batch in feed.train} == {feed.size_at(epoch)}


def test_a_run_that_goes_on_is_at_the_size_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.apps.train.progress._TELL_SECONDS", 0.0)
    source, validation = digits(96)
    chosen: dict[str, Any] = {"progressive": 4, "epochs": 4, "model": "wrn-10-1", "random_erasing": 0.5, "copies": 2}
    chosen |= {
        "alternate_flip": True,
        "policy": "flip+crop",
        "padding_mode": "reflect",
        "mixup": 0.2,
        "cutmix": 1.0,
        "loss": "bce",
    }
    chosen |= {"score_every": 2, "tta": "flip", "lr_schedule": "linear"}
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    found = lines(tmp_path / "whole")
    assert [line["size"] for line in found if line.get("step") in (1, 7, 19)] == [[4, 4], [4, 4], [8, 8]]
    assert [line["epoch"] for line in found if "top1" in line] == [1, 3]
    assert len([line for line in found if "loss" in line]) == 24  # of 2 x 96 images in steps of 32
    told: list[Any] = []

    def stop(line: Any) -> None:
        told.append(line)
        if line.get("step") == 9:
            raise KeyError

    with pytest.raises(KeyError):
        train(source, options(tmp_path / "parts", checkpoint_every=4, **chosen), validation=validation, tell=stop)
    train(source, options(tmp_path / "parts", **chosen), validation=validation)
    assert lines(tmp_path / "parts") == found


def test_rectangles_are_erased_in_a_share_of_the_images() -> None:
    images = np.full((400, 16, 16, 3), 200, np.uint8)
    feed = fed((images, [0, 1] * 200), random_erasing=0.3, policy="none", batch_size=400)
    (batch,) = feed.train
    erased = (batch.images == 0).flatten(1).any(1).float().mean().item()
    assert erased == pytest.approx(0.3, abs=0.06)
    assert not (fed((images, [0, 1] * 200), policy="none").plain_images() == 0).any()


def test_borders_and_flips() -> None:
    chosen = TrainOptions(policy="flip+crop", padding=2, padding_mode="reflect", alternate_flip=True)
    steps = kept_size_steps(chosen, (8, 8), (0, 0, 0))
    assert steps == [T.RandomCrop((8, 8), padding=2, padding_mode="reflect"), T.AlternatingHorizontalFlip()]
    images = np.random.default_rng(0).integers(1, 255, (64, 8, 8, 3)).astype(np.uint8)
    made = Augmenter(T.Compose(steps), "cpu")(images)
    assert isinstance(made, torch.Tensor)
    assert (made > 0).all()  # nothing is black
    assert kept_size_steps(TrainOptions(policy="none", alternate_flip=True), (8, 8), (0, 0, 0)) == []


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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"optimizer": "adam"}, "optimizer: got 'adam'; accepted: 'sgd', 'adamw', 'lamb'"),
        ({"loss": "hinge"}, "loss: got 'hinge'; accepted: 'cross-entropy', 'bce'"),
        ({"tta": "crops"}, "tta: got 'crops'; accepted: 'none', 'flip', 'flip-shift'"),
        ({"random_erasing": 1.5}, "random_erasing: got 1.5; accepted: a probability, from 0 to 1"),
        ({"optimizer": "adamw", "momentum": 1.0}, "momentum: got 1.0 with adamw; accepted: from 0 to below 1"),
        ({"progressive": 3}, "progressive: got 3; accepted: an integer from 4 on"),
        ({"copies": 0}, "copies: got 0; accepted: an integer from 1 on"),
        ({"lr_schedule": "triangle"}, "lr_schedule: got 'triangle'; accepted: 'cosine', 'step', 'linear'"),
        ({"drop_path": 1.0}, "drop_path: got 1.0; accepted: from 0 to below 1"),
    ],
)
def test_bad_options(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TrainOptions(**given)


def test_a_linear_schedule_is_a_triangle_with_a_warmup() -> None:
    chosen = TrainOptions(epochs=10, warmup=2, lr=1.0, lr_schedule="linear")
    assert [round(chosen.lr_at(epoch), 4) for epoch in (0, 1, 2, 6, 10)] == [0.01, 0.505, 1.0, 0.5, 0.0]


def test_what_only_timm_has_is_refused_for_others() -> None:
    images = np.zeros((4, 8, 8, 3), np.uint8)
    for name, value in (("pretrained", True), ("drop_path", 0.05)):
        with pytest.raises(ValueError, match=f"{name}: got {value} with model wrn-10-1; accepted with timm:NAME alone"):
            fed((images, [0, 1] * 2), batch_size=4, **{name: value})
    with pytest.raises(ModelError, match=r"model wrn-10-1: takes no drop_path_rate; accepted: with timm:NAME alone"):
        build_model("wrn-10-1", 5, drop_path_rate=0.1)
