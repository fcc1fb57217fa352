"""Trainings compared whose magnitudes follow them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.apps.train.stripes import stripes
from variegate.apps.search.candidates import ADAPTIVE, ENTROPY, GAP
from variegate.apps.search.evaluate import AdaptiveTraining, Evaluation, Subsets
from variegate.apps.train.adaptation import EntropyAdaptation, GapAdaptation
from variegate.apps.train.classifier import Classifier
from variegate.apps.train.images import BaselineAugmentation, LabelledImages
from variegate.formats.base import SourceError
from variegate.options.search import Hyperparameters

BASELINE = functools.partial(BaselineAugmentation.of, padding=1, flip=True, cutout=2)


def evaluation(*policies: str, train: int = 90, batch: int = 30, **more: Any) -> Evaluation:
    recipe = Hyperparameters(2, batch_size=batch)
    options: dict[str, Any] = {"repeats": 1, "devices": ["cpu"]} | more
    return Evaluation(Subsets(stripes(120), train), "wrn-10-1", recipe, BASELINE, policies, **options)


def test_they_are_compared_with_fixed_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[AdaptiveTraining] = []
    given: dict[str, list[LabelledImages]] = {}
    init, train = AdaptiveTraining.__init__, Classifier.train

    def noting(self: AdaptiveTraining, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    def watched(self: Classifier, images: LabelledImages, *arguments: Any) -> Any:
        given.setdefault(type(self._adaptation).__name__, []).append(images)
        return train(self, images, *arguments)

    monkeypatch.setattr(AdaptiveTraining, "__init__", noting)
    monkeypatch.setattr(Classifier, "train", watched)
    trials = evaluation("randaugment", *ADAPTIVE).run()
    assert [trial.candidate for trial in trials] == ["randaugment", GAP, ENTROPY]
    gap, entropy = (one.adaptation for one in made)
    assert isinstance(gap, GapAdaptation)
    assert gap.magnitude != 0.3
    assert isinstance(entropy, EntropyAdaptation)
    # All images of the repeat trained, and each got a magnitude of its own.
    every = given["Adaptation"][0].ids
    assert sorted(entropy.table.ids) == sorted(every)
    assert (entropy.table.codes > 0).mean() > 0.9
    # A tenth of them does not train with gap; the images that score have no part in it.
    assert len(given["GapAdaptation"][0]) == 81
    assert set(given["GapAdaptation"][0].ids) < set(every)
    assert [len(labels) for _, labels in made[0]._compared] == [9, 9]
    again = evaluation(*ADAPTIVE).run()
    assert [trial.score for trial in again] == [trial.score for trial in trials[1:]]


def test_magnitudes_are_those_of_the_last_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    images = stripes(60)
    training = AdaptiveTraining(ENTROPY, images, BASELINE(images).plain, "cpu", 0)
    classifier = Classifier("wrn-10-1", 3, Hyperparameters(3, batch_size=20), "cpu", 1)
    classifier.adapt(training.adaptation)
    transform = BASELINE(images).with_policy(None)
    tables = []
    for epoch in range(2):
        used = training.adaptation.of_epoch(epoch)(images.ids)["magnitude"]
        classifier.train(images, transform, epoch)
        assert np.array_equal(training.adaptation.of_epoch(epoch)(images.ids)["magnitude"], used)
        training.end_epoch(classifier)
        tables.append(training.adaptation.of_epoch(epoch + 1)(images.ids)["magnitude"])
    assert len(np.unique(tables[0])) > 20
    assert not np.array_equal(*tables)


def test_a_file_whose_magnitudes_nobody_gives(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"type": "AdaptiveRandAugment"}')
    with pytest.raises(ValueError, match=r"policies: .*policy.json: got an AdaptiveRandAugment, .* adaptive:entropy"):
        evaluation(str(path))


def test_too_few_images_to_hold_some_back() -> None:
    with pytest.raises(SourceError, match=r"class '\d' has 1 of 4 images; accepted: two or more"):
        evaluation(GAP, train=4, batch=2)
    with pytest.raises(ValueError, match="batch_size: got 30, with 27 images to train"):
        evaluation(GAP, train=30)
