"""Training: it learns, it is repeatable, and a copy goes on as the original would."""

from __future__ import annotations

import copy
import gc
import math
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from tests.learn.train.stripes import NORMALIZE, stripes
from variegate import transforms as T
from variegate.augmenter.augmenter import Augmenter
from variegate.learn.classifier import Classifier
from variegate.learn.images import LabelledImages, split
from variegate.learn.models import ModelError
from variegate.options.search import Hyperparameters


def trained(data: LabelledImages, epochs: int, seed: int = 1) -> Classifier:
    made = Classifier("wrn-10-1", 3, Hyperparameters(epochs=4, batch_size=32), "cpu", seed)
    transform = T.Compose([T.RandomCrop(8, padding=1), NORMALIZE])
    for epoch in range(epochs):
        assert not math.isnan(made.train(data, transform, epoch))
    return made


def accuracy(made: Classifier, data: LabelledImages) -> float:
    images = Augmenter(NORMALIZE)(data.pixels.numpy())
    assert isinstance(images, torch.Tensor)
    return made.accuracy(images, data.labels)


def weights(made: Classifier) -> dict[str, torch.Tensor]:
    return made.model.state_dict()


def same(one: Classifier, other: Classifier) -> bool:
    return all(torch.equal(weights(one)[name], weights(other)[name]) for name in weights(one))


def test_it_learns_what_can_be_learnt() -> None:
    train, validation = split(stripes(), 180, 60, seed=0)
    assert accuracy(trained(train, 4), validation) > 0.9


def test_the_seed_decides_everything() -> None:
    data = stripes(96)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    one = trained(data, 2)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1234)
    assert same(one, trained(data, 2))
    assert not same(one, trained(data, 2, seed=2))


def test_a_copy_goes_on_as_the_original() -> None:
    data = stripes(96)
    one = trained(data, 2)
    other = Classifier("wrn-10-1", 3, one.recipe, "cpu", one.seed)
    other.load_state_dict(one.state_dict())
    for made in (one, other):
        made.train(data, NORMALIZE, 2)
    assert same(one, other)


def test_what_is_augmented_in_one_go_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = stripes(240)
    one = trained(data, 1)
    monkeypatch.setattr("variegate.learn.classifier._AHEAD_IMAGES", 80)  # two batches of seven
    assert same(one, trained(data, 1))


def test_momenta_are_laid_out_as_the_weights() -> None:
    """As those of a search that an earlier version began are not."""
    data = stripes(96)
    one = trained(data, 1)
    saved = copy.deepcopy(one.state_dict())
    for state in saved["optimizer"]["state"].values():
        state["momentum_buffer"] = state["momentum_buffer"].contiguous()
    other = Classifier("wrn-10-1", 3, one.recipe, "cpu", one.seed)
    other.load_state_dict(saved)
    for made in (one, other):
        made.train(data, NORMALIZE, 1)
    assert same(one, other)


def test_a_copy_has_momenta_of_its_own() -> None:
    data = stripes(96)
    one, other = trained(data, 2), trained(data, 1, seed=2)
    one.load_state_dict(other.state_dict())
    mine, theirs = ([state["momentum_buffer"] for state in made._optimizer.state.values()] for made in (one, other))
    assert all(torch.equal(a, b) and a.data_ptr() != b.data_ptr() for a, b in zip(mine, theirs, strict=True))
    one.load_state_dict(Classifier("wrn-10-1", 3, one.recipe, "cpu", 5).state_dict())  # which has none yet
    assert not any(state.get("momentum_buffer") is not None for state in one._optimizer.state.values())


def with_dropout(num_classes: int) -> torch.nn.Module:
    layers = (torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(192, num_classes))
    return torch.nn.Sequential(*layers)


def test_layers_that_draw_are_repeatable_beside_other_trainings() -> None:
    data = stripes(96)

    def train(seed: int) -> Classifier:
        made = Classifier(f"{__name__}:with_dropout", 3, Hyperparameters(4, batch_size=32), "cpu", seed)
        for epoch in range(4):
            made.train(data, NORMALIZE, epoch)
        return made

    torch.manual_seed(1)
    before = torch.get_rng_state()
    alone = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(train, range(4)))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(same(one, other) for one, other in zip(alone, together, strict=True))
    assert not same(alone[0], alone[1])


def test_weights_that_the_last_step_ruined_are_no_accuracy() -> None:
    data = stripes(96)
    made = Classifier("wrn-10-1", 3, Hyperparameters(1, batch_size=96, lr=1e30), "cpu", 1)
    assert math.isfinite(made.train(data, NORMALIZE, 0))
    assert math.isnan(accuracy(made, data))


def test_a_mixed_precision_training_learns_with_whole_weights() -> None:
    train, validation = split(stripes(), 180, 60, seed=0)
    made = Classifier("wrn-10-1", 3, Hyperparameters(4, batch_size=32, precision="bfloat16"), "cpu", 1)
    for epoch in range(4):
        made.train(train, NORMALIZE, epoch)
    assert accuracy(made, validation) > 0.9
    assert {weight.dtype for weight in made.model.parameters()} == {torch.float32}
    assert not same(made, trained(train, 4))


def with_a_class_less(num_classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, num_classes - 1))


def with_more_pixels(num_classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, num_classes))


class TwoOutputs(torch.nn.Linear):
    def forward(self, images: torch.Tensor) -> Any:
        return super().forward(images.flatten(1)), images


def with_two_outputs(num_classes: int) -> torch.nn.Module:
    return TwoOutputs(192, num_classes)


def without_weights(num_classes: int) -> torch.nn.Module:
    return torch.nn.Flatten()


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (with_a_class_less, r"gave \[32, 2\]; accepted: scores \[32, 3\], for each image and class"),
        (with_more_pixels, r"fails on images \[32, 3, 8, 8\]: .*mat1 and mat2 shapes cannot be multiplied"),
        (with_two_outputs, r"gave a tuple; accepted: scores"),
        (without_weights, r"has nothing to train; accepted: weights with requires_grad"),
    ],
)
def test_models_for_other_images_or_classes_are_named(factory: Callable[[int], torch.nn.Module], said: str) -> None:
    name = f"{__name__}:{factory.__name__}"
    with pytest.raises(ModelError, match=f"model {name}: ({said})"):
        Classifier(name, 3, Hyperparameters(4, batch_size=32), "cpu", 1).train(stripes(96), NORMALIZE, 0)


def test_the_memory_of_one_that_is_given_up_is_free_at_once() -> None:
    gc.disable()  # which would find cycles, some time
    try:
        made = trained(stripes(96), 1)
        weights = weakref.ref(next(made.model.parameters()))
        del made
        assert weights() is None
    finally:
        gc.enable()


def test_a_batch_needs_enough_images() -> None:
    made = Classifier("wrn-10-1", 3, Hyperparameters(epochs=1, batch_size=64), "cpu", 0)
    with pytest.raises(ValueError, match="batch_size: got 64, with 30 images"):
        made.train(stripes(30), NORMALIZE, 0)


def test_learning_rates() -> None:
    cosine, step = Hyperparameters(10, lr=0.2), Hyperparameters(10, lr=0.2, lr_schedule="step")
    assert [round(cosine.lr_at(p), 6) for p in (0, 0.5, 1)] == [0.2, 0.1, 0.0]
    assert [round(step.lr_at(p), 6) for p in (0, 0.49, 0.5, 0.74, 0.75, 1)] == [0.2, 0.2, 0.02, 0.02, 0.002, 0.002]
