"""A race on images: its candidates, its files, what it resumes from, and variations of its winner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.learn.search.racing import image_race, run_evaluation, run_race, stripes
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.learn.candidates import parse_candidate, variations
from variegate.learn.events import Training
from variegate.learn.image_race import Subsets
from variegate.learn.images import BaselineAugmentation
from variegate.policies.base_augment import crop_size, has_base_augment


def test_files_of_a_race(tmp_path: Path) -> None:
    result, trainings = run_race(tmp_path / "r")
    assert sorted(one.name for one in (tmp_path / "r").iterdir()) == [
        "images.jsonl",
        "policy.json",
        "race.json",
        "race.jsonl",
    ]
    policy: Any = vg.load_policy(tmp_path / "r" / "policy.json")
    assert crop_size(policy) == (8, 8)
    told = json.loads((tmp_path / "r" / "race.json").read_text())
    assert (told["winner"], told["trainings"]) == (result.winner, len(trainings))
    assert told["settings"]["policies"] == ["none", "flip+crop", "randaugment-1-5+flip+crop"]
    assert told["cost"].startswith(f"{len(trainings)} training runs, ")
    assert told["cost"].endswith(" seconds")
    # Variations have rounds of their own, whose images did not choose the winner.
    first = {one.candidate for one in trainings if one.round == 0}
    assert {one.round for one in trainings if one.candidate not in first} == {1000, 1001}
    assert len({one.candidate for one in trainings if one.round > 1} & first) == 1
    stages = [one["stage"] for one in told["standings"]]
    assert stages == [*[1] * (len(stages) - 3), 0, 0, 0]
    assert told["settings"]["rounds"] == 2
    assert result.verdict.count(" variation") == 1
    again, more = run_race(tmp_path / "r")
    assert (again, more) == (result, [])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epochs": 2}, "holds a race with epochs 1, this one has 2"),
        ({"seed": 5}, "holds a race with seed 0, this one has 5"),
        ({"policies": ("none", "flip")}, r"holds a race with policies \['none', 'flip\+crop', .*'none', 'flip'\]"),
    ],
)
def test_a_changed_option_is_named(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    run_race(tmp_path / "r", budget=1e-6)
    before = {one.name: one.read_bytes() for one in (tmp_path / "r").iterdir()}
    with pytest.raises(SourceError, match=words):
        image_race(*changed.pop("policies", ()), **changed).run(tmp_path / "r", print)
    assert {one.name: one.read_bytes() for one in (tmp_path / "r").iterdir()} == before


def test_other_images_are_named(tmp_path: Path) -> None:
    run_race(tmp_path / "r", budget=1e-6)
    images = stripes()
    images.pixels[7] += 1
    with pytest.raises(SourceError, match=r"holds a race with images .*; choose another name"):
        image_race(subsets=Subsets(images, 40)).run(tmp_path / "r", print)


def test_a_budget_for_no_verdict_writes_no_policy(tmp_path: Path) -> None:
    result, trainings = run_race(tmp_path / "r", budget=1e-6)
    # The first training counts too.
    assert (len(trainings), result.ending, result.is_decided) == (0, "budget", False)
    assert result.verdict.startswith("No verdict: a race needs two complete rounds; the budget ended it after 0. ")
    assert not (tmp_path / "r" / "policy.json").exists()
    assert run_race(tmp_path / "r")[0].is_decided  # a longer budget goes on


def test_the_policy_is_what_was_raced() -> None:
    race = image_race("none", "randaugment-1-5+flip+crop2+cutout4", "adaptive:entropy+crop", "flip+crop+cutout")
    described = {name: race.policy(name).to_dict()["transforms"] for name in race.rows}
    crop = {"type": "RandomCrop", "size": [8, 8], "padding": 0}
    assert described["none"] == [crop, {"type": "RandomHorizontalFlip", "p": 0.0}]
    augment, cropped, _, cutout = described["randaugment-1-5+flip+crop2+cutout4"]
    assert augment == {"type": "RandAugment", "num_ops": 1, "magnitude": 5}
    assert (cropped["padding"], cutout["size"]) == (2, 4)
    assert described["adaptive:entropy+crop"][0]["type"] == "AdaptiveRandAugment"
    assert [one["type"] for one in described["flip+crop+cutout"]] == ["RandomCrop", "RandomHorizontalFlip", "Cutout"]
    # Nobody crops or flips it again.
    baseline = race.baseline
    policy = race.policy("flip+crop+cutout")
    assert has_base_augment(policy)
    assert baseline.with_policy(policy) == T.Compose([policy, baseline.plain])
    images = stripes().pixels[:8].numpy()
    plain = vg.Augmenter(race.policy("none"), layout="NHWC")(images, ids=range(8)).numpy()
    assert np.array_equal(plain, images)
    with pytest.raises(ValueError, match="policy: crops to 8x8, and the images are 16x16"):
        BaselineAugmentation((16, 16), (0.5,) * 3, (0.2,) * 3).with_policy(policy)


def test_one_policy_under_two_names_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'randaugment-2-9', which is the same as 'randaugment'"):
        image_race("none", "randaugment", "randaugment-2-9")
    with pytest.raises(ValueError, match="policies: got 1; accepted: two or more"):
        image_race("none")
    assert image_race("adaptive:entropy", T.RandAugment(3, 4), T.RandAugment(2, 3)).rows.keys() == {
        "adaptive:entropy",
        "RandAugment",
        "RandAugment 2",
    }


def names_near(name: str, **changes: Any) -> list[str]:
    baseline = BaselineAugmentation((16, 16), (0.5,) * 3, (0.2,) * 3, **{"padding": 2, "cutout": 8} | changes)
    return [row.name for row in variations(parse_candidate(name), baseline)]


def test_variations_are_a_step_away() -> None:
    assert names_near("randaugment-1-5+flip+crop") == [
        *("randaugment-2-5+flip+crop2", "randaugment-1-1+flip+crop2", "randaugment-1-9+flip+crop2"),
        *("randaugment-1-5+flip", "randaugment-1-5+flip+crop4"),
        *("randaugment-1-5+flip+crop2+cutout4", "randaugment-1-5+crop2"),
    ]
    assert names_near("none", flip=False) == ["randaugment-1-3", "crop2", "cutout4"]
    assert names_near("flip+crop+cutout")[-1] == "crop2+cutout8"
    assert names_near("adaptive:entropy+crop4") == [
        *("adaptive:entropy+crop2", "adaptive:entropy+crop4+cutout4", "adaptive:entropy+flip+crop4"),
    ]


def test_a_source_takes_options(tmp_path: Path) -> None:
    images = stripes()
    source = (images.pixels.numpy(), images.labels.tolist())
    options: dict[str, Any] = {"model": "tests.learn.search.crashing:linear", "batch_size": 16, "devices": "cpu"}
    seen: list[Any] = []
    two = ["none", "flip"]
    result = vg.race(source, two, rounds=2, epochs=1, budget="5m", on_event=seen.append, **options)
    assert {one.candidate for one in seen if isinstance(one, Training) and one.round < 2} == set(two)
    assert result.winner
    assert result.seconds > 0
    for wrong, words in (
        ({"grain": 0.1}, "grain: got 0.1; accepted: with training of your own"),
        ({"workers": 2}, "workers: got 2; accepted: with training of your own"),
        ({"budget": "soon"}, "budget: got 'soon'; accepted: seconds, or a number with a unit, such as \"90s\""),
    ):
        with pytest.raises(ValueError, match=words):
            vg.race(source, two, **options, **wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'batchsize'"):
        vg.race(source, two, batchsize=16)
    with pytest.raises(ValueError, match="model: got 'wrn'; accepted: with a source"):
        vg.race(lambda policy, seed: 0.5, two, model="wrn")


def test_an_evaluation_resumes_and_grows(tmp_path: Path) -> None:
    place = tmp_path / "e"
    assert len(run_evaluation(place)) == 4
    assert run_evaluation(place) == []
    more = run_evaluation(place, repeats=3)
    assert {one.round for one in more} == {2}
    told = json.loads((place / "e.json").read_text())
    assert (told["is_complete"], len(told["trainings"]), len(told["pairs"]), told["repeats"]) == (True, 6, 2, 3)
    # A complete one gives way, a broken off one does not.
    assert len(run_evaluation(place, epochs=2)) == 4
    (place / "e.json").unlink()
    with pytest.raises(SourceError, match=r"e.jsonl: holds an evaluation with epochs 2, this one has 1"):
        run_evaluation(place)
