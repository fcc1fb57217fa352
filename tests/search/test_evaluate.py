"""Policies compared by training with them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from variegate.errors import PolicyError
from variegate.policies import PBA
from variegate.policies.schedule import published_schedule
from variegate.search.evaluate import Evaluation, Trial, markdown, scaled_policy, summarize
from variegate.training.around import Around
from variegate.training.classifier import Classifier
from variegate.training.images import LabelledImages, load_images, split
from variegate.training.recipe import Recipe
from variegate.transforms.base import Transform


def evaluation(*policies: str, **settings: Any) -> Evaluation:
    rng = np.random.default_rng(0)
    labels = np.arange(96) % 2
    pixels = rng.integers(60, 120, (96, 8, 8, 3)).astype(np.uint8)
    pixels[labels == 0, ::2] += 40
    train, test = split(load_images((pixels, labels.tolist()), device="cpu"), 64, 32, seed=0)
    around = Around.of(train, padding=1, flip=True, cutout=2)
    options = {"repeats": 2, "devices": ["cpu"]} | settings
    return Evaluation(train, test, "wrn-10-1", Recipe(2, batch_size=32), around, policies, **options)


def test_every_policy_is_trained_with_as_often(tmp_path: Path) -> None:
    file = tmp_path / "learnt.json"
    file.write_text(json.dumps(published_schedule("pba-svhn").to_dict()))
    names = ("none", "flip-crop", "randaugment", str(file))
    seen: list[Trial] = []
    trials = evaluation(*names).run(seen.append)
    assert trials == seen
    assert [(trial.repeat, trial.policy) for trial in trials] == [(r, name) for r in range(2) for name in names]
    assert all(0 <= trial.accuracy <= 1 and trial.seconds > 0 for trial in trials)
    again = evaluation(*names[::-1]).run()
    assert {(t.policy, t.repeat): t.accuracy for t in again} == {(t.policy, t.repeat): t.accuracy for t in trials}
    assert [one.policy for one in summarize(trials)] == ["none", "flip-crop", "randaugment", "learnt.json"]


def test_schedules_are_scaled_to_the_training() -> None:
    policy = scaled_policy("pba-cifar10", 50)
    assert isinstance(policy, PBA)
    assert policy.schedule == published_schedule("pba-cifar10").scaled(50)


def test_what_is_stopped_gives_what_it_has() -> None:
    stop = Event()
    trials = evaluation("none", "flip-crop").run(lambda trial: stop.set(), stop)
    assert [trial.policy for trial in trials] == ["none"]


def test_trainings_at_the_same_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("none", "randaugment", "flip-crop")
    together: list[Trial] = []
    trials = evaluation(*names, devices=["cpu:0", "cpu:1"]).run(together.append)
    assert sorted(together) == sorted(trials)
    plain = [trial._replace(seconds=0.0) for trial in evaluation(*names).run()]
    assert [trial._replace(seconds=0.0) for trial in trials] == plain
    train = Classifier.train

    def fails(self: Classifier, images: LabelledImages, transform: Transform, epoch: int) -> torch.Tensor:
        if epoch == 1:
            raise RuntimeError("of one training")
        return train(self, images, transform, epoch)

    monkeypatch.setattr(Classifier, "train", fails)
    with pytest.raises(RuntimeError, match="of one training"):
        evaluation(*names, devices=["cpu:0", "cpu:1"]).run()


def test_means_and_spreads() -> None:
    trials = [Trial("a", 0, 0.5, 1.0), Trial("b", 0, math.nan, 2.0), Trial("a", 1, 0.7, 3.0), Trial("b", 1, 0.4, 2.0)]
    a, b = summarize(trials)
    assert (a.mean, a.spread, a.seconds) == (pytest.approx(0.6), pytest.approx(0.1414, abs=1e-4), 2.0)
    assert (b.accuracies, b.mean) == ((0.0, 0.4), 0.2)
    assert math.isnan(summarize(trials[:1])[0].spread)
    table = list(markdown([a, b]))
    assert table[2] == "| a | 60.00 % | 14.14 | 50.00, 70.00 | 2.0 |"


def test_files_with_one_name_are_told_apart() -> None:
    names = ("none", "one/schedule.json", "other/schedule.json", "one/best.json")
    shown = [one.policy for one in summarize([Trial(name, 0, 0.5, 1.0) for name in names])]
    assert shown == ["none", "one/schedule.json", "other/schedule.json", "best.json"]


def test_seconds_are_those_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    make, train = Classifier.__init__, Classifier.train

    def made(self: Classifier, *given: Any, **options: Any) -> None:
        clock[0] += 100.0  # what torch loads for the first
        make(self, *given, **options)

    def trained(self: Classifier, images: LabelledImages, transform: Transform, epoch: int) -> torch.Tensor:
        clock[0] += 1.0
        return train(self, images, transform, epoch)

    monkeypatch.setattr(Classifier, "__init__", made)
    monkeypatch.setattr(Classifier, "train", trained)
    monkeypatch.setattr("variegate.search.evaluate.time.perf_counter", lambda: clock[0])
    assert [trial.seconds for trial in evaluation("none").run()] == [2.0, 2.0]


def test_bad_requests_are_named_before_any_training() -> None:
    with pytest.raises(ValueError, match="policies: got 'none' twice"):
        evaluation("none", "none")
    with pytest.raises(ValueError, match="policies: got none"):
        evaluation()
    with pytest.raises(ValueError, match="repeats: got 0"):
        evaluation("none", repeats=0)
    with pytest.raises(PolicyError, match="randaug"):
        evaluation("none", "randaug")


def test_it_leaves_torch_as_it_was() -> None:
    before = torch.get_num_threads(), torch.get_rng_state()
    evaluation("none", repeats=1).run()
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
