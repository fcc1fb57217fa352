"""Policies compared by training with them, all in every round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.learn.search.racing import evaluated, evaluation, stripes, trainings_of
from variegate.data.base import SourceError
from variegate.errors import PolicyError
from variegate.learn.fit import Fit
from variegate.learn.image_race import ImageRace, Subsets
from variegate.learn.members import member_seed
from variegate.learn.population import repeat_seed
from variegate.policies.schedule import published_schedule


def scores(race: ImageRace) -> dict[tuple[int, str], float]:
    return {(one.round, one.candidate): one.score for one in trainings_of(race)}


def test_every_policy_is_trained_with_as_often(tmp_path: Path) -> None:
    file = tmp_path / "learnt.json"
    file.write_text(json.dumps(published_schedule("pba-svhn").to_dict()))
    names = ("none", "flip+crop+cutout", "randaugment", str(file))
    found = evaluated(evaluation(*names))
    assert [(one.round, one.candidate) for one in found.trainings] == [(r, name) for r in range(2) for name in names]
    assert all(0 <= one.score <= 1 and one.seconds > 0 for one in found.trainings)
    assert scores(evaluation(*names[::-1])) == {(one.round, one.candidate): one.score for one in found.trainings}
    compared = found.comparison
    assert [one.policy for one in compared.summaries] == ["none", "flip+crop+cutout", "randaugment", "learnt.json"]
    assert (compared.free, compared.own) == (("none", "flip+crop+cutout", "randaugment"), ("learnt.json",))


def test_a_stop_leaves_complete_trainings() -> None:
    trainings = trainings_of(evaluation("none", "flip+crop+cutout"), stop_after=1)
    assert [one.candidate for one in trainings] == ["none"]


def test_trainings_at_the_same_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("none", "randaugment", "flip+crop+cutout")
    two = {"devices": ["cpu:0", "cpu:1"]}
    assert scores(evaluation(*names, **two)) == scores(evaluation(*names))
    train = Fit.train_epoch

    def fails(self: Fit, loader: Any, epoch: int) -> torch.Tensor:
        if epoch == 1:
            raise RuntimeError("of one training")
        return train(self, loader, epoch)

    monkeypatch.setattr(Fit, "train_epoch", fails)
    with pytest.raises(RuntimeError, match="of one training"):
        trainings_of(evaluation(*names, epochs=2, **two))


def test_every_round_has_images_of_its_own_and_its_policies_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []
    train = Fit.train_epoch

    def noting(self: Fit, loader: Any, epoch: int) -> torch.Tensor:
        source = loader.source
        seen.append((self.seed, tuple(source.ids(np.arange(len(source))).tolist())))
        return train(self, loader, epoch)

    monkeypatch.setattr(Fit, "train_epoch", noting)
    trainings_of(evaluation("none", "flip+crop+cutout", repeats=3))
    pairs = [seen[i : i + 2] for i in (0, 2, 4)]
    assert all(one == other for one, other in pairs)
    assert len({one for one, _ in pairs}) == 3
    assert len({one[1] for one, _ in pairs}) == 3


def test_the_same_images_score_where_they_are_given() -> None:
    images = stripes(96)
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


@pytest.mark.parametrize(
    ("policies", "more", "kind", "said"),
    [
        (("none", "None"), {}, ValueError, "policies: got 'none' twice"),
        ((), {}, ValueError, "policies: got none"),
        (("none",), {"seed": 2**64}, ValueError, "seed: got 18446744073709551616; accepted"),
        (("none", "randaug"), {}, PolicyError, "randaug"),
    ],
)
def test_bad_requests_are_named_before_any_training(
    policies: tuple[str, ...], more: dict[str, Any], kind: type[Exception], said: str
) -> None:
    assert list(evaluation("None", "RandAugment", "Flip+Crop").rows) == ["none", "randaugment", "flip+crop"]
    with pytest.raises(kind, match=said):
        evaluation(*policies, **more)


def test_it_leaves_torch_as_it_was() -> None:
    torch.set_num_threads(2)
    before = torch.get_rng_state()
    try:
        trainings_of(evaluation("none", repeats=1))
        assert torch.get_num_threads() == 2
        assert torch.equal(torch.get_rng_state(), before)
    finally:
        torch.set_num_threads(1)


def test_magnitudes_may_follow_the_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[Any] = []
    train = Fit.train_epoch

    def watched(self: Fit, loader: Any, epoch: int) -> torch.Tensor:
        made.extend([self.adaptation] if epoch == 0 else [])
        return train(self, loader, epoch)

    monkeypatch.setattr(Fit, "train_epoch", watched)
    fixed, adaptive = trainings_of(evaluation("randaugment", "adaptive:entropy", repeats=1, epochs=2))
    assert (fixed.candidate, adaptive.candidate) == ("randaugment", "adaptive:entropy")
    (entropy,) = (one for one in made if hasattr(one, "table"))
    assert len(entropy.table.ids) == 40
    # All images of the round trained, and each has a magnitude of its own.
    assert (entropy.table.codes > 0).mean() > 0.9
    assert trainings_of(evaluation("adaptive:entropy", epochs=2))[0].score == adaptive.score
    path = tmp_path / "policy.json"
    path.write_text('{"type": "AdaptiveRandAugment"}')
    with pytest.raises(ValueError, match=r"policies: .*policy.json: got an AdaptiveRandAugment, .* adaptive:entropy"):
        evaluation(str(path))
