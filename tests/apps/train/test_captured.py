"""Training steps recorded as CUDA graphs: the same training, but for roundings."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.apps.train.stripes import NORMALIZE, stripes
from variegate.apps.train.classifier import CapturedStep, CaptureError, Classifier, GraphMemory
from variegate.options.search import Hyperparameters

pytestmark = pytest.mark.gpu

DEVICE = "cuda:0"
RECIPE = Hyperparameters(epochs=4, batch_size=32)


def trained(
    epochs: int, capture: bool, recipe: Hyperparameters = RECIPE, memory: GraphMemory | None = None
) -> Classifier:
    data = stripes(320).to(DEVICE)
    made = Classifier("wrn-10-1", 3, recipe, DEVICE, 1, capture=capture, graph_memory=memory)
    for epoch in range(epochs):
        made.train(data, NORMALIZE, epoch)
    return made


def furthest(one: Classifier, other: Classifier) -> float:
    theirs = other.model.state_dict()
    return max(float((a - theirs[name]).abs().max()) for name, a in one.model.state_dict().items())


def test_a_recorded_training_is_the_same_training() -> None:
    one, other = trained(2, capture=True), trained(2, capture=False)
    # Gradients may add up in another order. Another learning rate or an image missed would show in the first digit.
    assert furthest(one, other) < 1e-3
    assert furthest(one, trained(2, True, replace(RECIPE, lr_schedule="step"))) > 1e-2


def test_a_recorded_training_goes_on_with_what_it_loads() -> None:
    donor = trained(1, capture=True)
    one, other = trained(2, capture=True), trained(2, capture=False)
    for made in (one, other):
        made.load_state_dict(donor.state_dict())
        made.train(stripes(320).to(DEVICE), NORMALIZE, 1)
    assert furthest(one, other) < 1e-3


def test_steps_may_share_their_memory() -> None:
    memory = GraphMemory(DEVICE)
    data = stripes(320).to(DEVICE)
    alone = trained(2, capture=True)
    members = [Classifier("wrn-10-1", 3, RECIPE, DEVICE, seed, graph_memory=memory) for seed in (1, 2, 3)]
    for epoch in range(2):
        for made in members:
            made.train(data, NORMALIZE, epoch)
    assert furthest(alone, members[0]) < 1e-3


def test_a_step_that_waits_for_the_gpu_cannot_be_recorded() -> None:
    step = CapturedStep(lambda images, labels: images.sum() * int(labels.sum()), DEVICE)
    images, labels = torch.ones(2, 3, 4, 4, device=DEVICE), torch.ones(2, dtype=torch.int64, device=DEVICE)
    for _ in range(3):
        assert float(step(images, labels)) == 192.0
    with pytest.raises(CaptureError, match="cannot be recorded"):
        step(images, labels)
