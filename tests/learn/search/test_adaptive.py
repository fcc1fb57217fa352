"""Trainings compared whose magnitudes follow them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.learn.train.stripes import stripes
from variegate.learn.adaptation import Adaptation, EntropyAdaptation
from variegate.learn.candidates import ADAPTIVE
from variegate.learn.classifier import Classifier
from variegate.learn.evaluate import Evaluation, Subsets
from variegate.learn.images import BaselineAugmentation
from variegate.options.search import Hyperparameters

BASELINE = functools.partial(BaselineAugmentation.of, padding=1, flip=True, cutout=2)


def evaluation(*policies: str, train: int = 90, batch: int = 30, **more: Any) -> Evaluation:
    recipe = Hyperparameters(2, batch_size=batch)
    options: dict[str, Any] = {"repeats": 1, "devices": ["cpu"]} | more
    return Evaluation(Subsets(stripes(120), train), "wrn-10-1", recipe, BASELINE, policies, **options)


def test_they_are_compared_with_fixed_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Adaptation] = []
    adapt = Classifier.adapt

    def watched(self: Classifier, adaptation: Adaptation) -> None:
        made.append(adaptation)
        adapt(self, adaptation)

    monkeypatch.setattr(Classifier, "adapt", watched)
    trials = evaluation("randaugment", ADAPTIVE).run()
    assert [trial.candidate for trial in trials] == ["randaugment", ADAPTIVE]
    (entropy,) = (one for one in made if isinstance(one, EntropyAdaptation))
    # All images of the repeat trained, and each has a magnitude of its own.
    assert len(entropy.table.ids) == 90
    assert (entropy.table.codes > 0).mean() > 0.9
    again = evaluation(ADAPTIVE).run()
    assert again[0].score == trials[1].score


def test_a_file_whose_magnitudes_nobody_gives(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"type": "AdaptiveRandAugment"}')
    with pytest.raises(ValueError, match=r"policies: .*policy.json: got an AdaptiveRandAugment, .* adaptive:entropy"):
        evaluation(str(path))
