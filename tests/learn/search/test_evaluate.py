"""Policies compared by training with them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from variegate.data.base import SourceError
from variegate.errors import PolicyError
from variegate.learn.classifier import Classifier
from variegate.learn.compare import compare
from variegate.learn.evaluate import Evaluation, Subsets
from variegate.learn.images import BaselineAugmentation, LabelledImages, load_images
from variegate.learn.members import member_seed
from variegate.learn.population import repeat_seed
from variegate.learn.trainings import Training
from variegate.options.search import Hyperparameters
from variegate.policies.schedule import published_schedule
from variegate.transforms import Transform


def stripes() -> LabelledImages:
    rng = np.random.default_rng(0)
    labels = np.arange(96) % 2
    pixels = rng.integers(60, 120, (96, 8, 8, 3)).astype(np.uint8)
    pixels[labels == 0, ::2] += 40
    return load_images((pixels, labels.tolist()), device="cpu")


def evaluation(*policies: str, **settings: Any) -> Evaluation:
    baseline = functools.partial(BaselineAugmentation.of, padding=1, flip=True, cutout=2)
    options = {"repeats": 2, "devices": ["cpu"]} | settings
    recipe = Hyperparameters(2, batch_size=32)
    subsets = options.pop("subsets", None) or Subsets(stripes(), 64)
    return Evaluation(subsets, "wrn-10-1", recipe, baseline, policies, **options)


def test_every_policy_is_trained_with_as_often(tmp_path: Path) -> None:
    file = tmp_path / "learnt.json"
    file.write_text(json.dumps(published_schedule("pba-svhn").to_dict()))
    names = ("none", "flip+crop+cutout", "randaugment", str(file))
    seen: list[Training] = []
    trials = evaluation(*names).run(seen.append)
    assert trials == seen
    assert [(trial.round, trial.candidate) for trial in trials] == [(r, name) for r in range(2) for name in names]
    assert all(0 <= trial.score <= 1 and trial.seconds > 0 for trial in trials)
    again = evaluation(*names[::-1]).run()
    assert {(t.candidate, t.round): t.score for t in again} == {(t.candidate, t.round): t.score for t in trials}
    found = compare(trials, names, 32)
    assert [one.policy for one in found.summaries] == ["none", "flip+crop+cutout", "randaugment", "learnt.json"]
    assert (found.free, found.own) == (("none", "flip+crop+cutout", "randaugment"), ("learnt.json",))


def test_what_is_stopped_gives_what_it_has() -> None:
    stop = Event()
    trials = evaluation("none", "flip+crop+cutout").run(lambda trial: stop.set(), stop)
    assert [trial.candidate for trial in trials] == ["none"]


def test_trainings_at_the_same_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("none", "randaugment", "flip+crop+cutout")
    together: list[Training] = []
    trials = evaluation(*names, devices=["cpu:0", "cpu:1"]).run(together.append)
    assert sorted(together) == sorted(trials)
    plain = [trial._replace(seconds=0.0, elapsed=0.0) for trial in evaluation(*names).run()]
    assert [trial._replace(seconds=0.0, elapsed=0.0) for trial in trials] == plain
    train = Classifier.train

    def fails(self: Classifier, images: LabelledImages, transform: Transform, epoch: int) -> torch.Tensor:
        if epoch == 1:
            raise RuntimeError("of one training")
        return train(self, images, transform, epoch)

    monkeypatch.setattr(Classifier, "train", fails)
    with pytest.raises(RuntimeError, match="of one training"):
        evaluation(*names, devices=["cpu:0", "cpu:1"]).run()


def test_every_repeat_has_images_of_its_own_and_its_policies_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []
    train = Classifier.train

    def noting(self: Classifier, images: LabelledImages, transform: Transform, epoch: int) -> torch.Tensor:
        if epoch == 0:
            seen.append((self.seed, tuple(images.ids.tolist())))
        return train(self, images, transform, epoch)

    monkeypatch.setattr(Classifier, "train", noting)
    evaluation("none", "flip+crop+cutout", repeats=3).run()
    pairs = [seen[i : i + 2] for i in (0, 2, 4)]
    assert all(one == other for one, other in pairs)
    assert len({one for one, _ in pairs}) == 3
    assert len({one[1] for one, _ in pairs}) == 3


def test_the_same_images_score_where_they_are_given() -> None:
    images = stripes()
    test = images.take(np.arange(10))
    some, every = Subsets(images, 64, test), Subsets(images, 96, test)
    assert some.of(0)[0].ids.tolist() != some.of(1)[0].ids.tolist()
    assert some.of(0)[1] is some.of(1)[1] is test
    assert every.of(0)[0] is every.of(1)[0] is images
    assert (some.varies, every.varies, some.scored, every.scored) == (True, False, 10, 10)
    train, scored = Subsets(images, 64).of(1)
    assert sorted([*train.ids.tolist(), *scored.ids.tolist()]) == list(range(96))
    assert "where 64 of 96 images train and 32 others score" in Subsets(images, 64).scope
    assert "where 64 of 96 images train and always the same 10 score" in some.scope
    assert "where all images always train and always the same 10 score" in every.scope
    with pytest.raises(SourceError, match="96 images are not enough for 97 to train"):
        Subsets(images, 97, test)


def test_no_training_begins_as_one_of_a_searchs_members() -> None:
    seeds = (0, 1, 2**64 - 1)
    members = {member_seed(seed, number) for seed in seeds for number in range(64)}
    ours = [repeat_seed(seed, number, what) for seed in seeds for number in range(64) for what in (3, 4)]
    assert len(set(ours)) == len(ours)
    # Not by luck: the highest bit tells them apart.
    assert max(members) < 2**63 <= min(ours)
    assert max(ours) < 2**64
    assert repeat_seed(0, 0) == 11797200473327000010


def test_names_are_known_whatever_their_case() -> None:
    assert evaluation("None", "RandAugment", "Flip+Crop+Cutout").policies == ("none", "randaugment", "flip+crop+cutout")
    with pytest.raises(ValueError, match="policies: got 'none' twice"):
        evaluation("none", "None")


def test_bad_requests_are_named_before_any_training() -> None:
    with pytest.raises(ValueError, match="policies: got 'none' twice"):
        evaluation("none", "none")
    with pytest.raises(ValueError, match="policies: got none"):
        evaluation()
    with pytest.raises(ValueError, match="repeats: got 0"):
        evaluation("none", repeats=0)
    with pytest.raises(ValueError, match="seed: got 18446744073709551616; accepted"):
        evaluation("none", seed=2**64)
    with pytest.raises(PolicyError, match="randaug"):
        evaluation("none", "randaug")


def test_it_leaves_torch_as_it_was() -> None:
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    try:
        evaluation("none", repeats=1).run()
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), before)
    finally:
        torch.set_num_threads(1)
