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
from variegate.learn.fit import Fit, FitData, check_batch, fit
from variegate.learn.images import LabelledImages, split
from variegate.learn.models import ModelError
from variegate.options.fit import FitOptions


def options(epochs: int = 4, **more: Any) -> FitOptions:
    return FitOptions(**{"epochs": epochs, "batch_size": 32, **more})


CROPPED = T.Compose([T.RandomCrop(8, padding=1), NORMALIZE])


def data_of(images: LabelledImages) -> FitData:
    return FitData(images.samples, NORMALIZE, num_threads=1)


def begin(images: LabelledImages, seed: int = 1, model: str = "wrn-10-1", **more: Any) -> Fit:
    return data_of(images).begin(model, options(**more), seed)


def train(made: Fit, images: LabelledImages, transform: T.Transform, epochs: range) -> Fit:
    loader = data_of(images).loader(transform, made.options, made.seed, None)
    for epoch in epochs:
        assert not math.isnan(made.train_epoch(loader, epoch))
    return made


def trained(images: LabelledImages, epochs: int, seed: int = 1) -> Fit:
    return train(begin(images, seed), images, CROPPED, range(epochs))


def accuracy(made: Fit, images: LabelledImages) -> float:
    return made.score(data_of(images).plain_loader())["top1"]


def weights(made: Fit) -> dict[str, torch.Tensor]:
    return made.module.state_dict()


def same(one: Fit, other: Fit) -> bool:
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


def test_fit_trains_from_the_first_epoch_to_the_last() -> None:
    images, seen = stripes(96), list[int]()
    found = fit(data_of(images), CROPPED, options(), 1, model="wrn-10-1", on_epoch=lambda: seen.append(1))
    assert found is not None
    assert found.is_finite
    assert len(seen) == 4
    assert same(found.fit, trained(images, 4))
    assert fit(data_of(images), CROPPED, options(), 1, model="wrn-10-1", is_over=lambda: True) is None
    lost = fit(data_of(images), CROPPED, options(lr=1e30, clip=0.0), 1, model="wrn-10-1")
    assert lost is not None
    assert not lost.is_finite


def test_a_copy_goes_on_as_the_original() -> None:
    images = stripes(96)
    one = trained(images, 2)
    other = begin(images)
    other.load(copy.deepcopy(one.tensors()), one.steps)
    for made in (one, other):
        train(made, images, NORMALIZE, range(2, 3))
    assert same(one, other)


def test_momenta_are_laid_out_as_the_weights() -> None:
    """Those of a file are contiguous."""
    images = stripes(96)
    one = trained(images, 1)
    other = begin(images)
    other.load({name: tensor.clone().contiguous() for name, tensor in one.tensors().items()}, one.steps)
    for made in (one, other):
        train(made, images, NORMALIZE, range(1, 2))
    assert same(one, other)


def test_a_copy_has_momenta_of_its_own() -> None:
    images = stripes(96)
    one, other = trained(images, 2), trained(images, 1, seed=2)
    one.load(other.tensors(), 0)
    mine, theirs = (
        {name: tensor for name, tensor in made.tensors().items() if name.startswith("optimizer/momentum")}
        for made in (one, other)
    )
    assert mine
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert all(mine[name].data_ptr() != theirs[name].data_ptr() for name in mine)
    one.load(begin(images, 5).tensors(), 0)  # which has none yet
    assert not any(name.startswith("optimizer/") for name in one.tensors())


def with_dropout(num_classes: int) -> torch.nn.Module:
    layers = (torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(192, num_classes))
    return torch.nn.Sequential(*layers)


def test_layers_that_draw_are_repeatable_beside_other_trainings() -> None:
    data = stripes(96)

    def train_one(seed: int) -> Fit:
        return train(begin(data, seed, f"{__name__}:with_dropout"), data, NORMALIZE, range(4))

    torch.manual_seed(1)
    before = torch.get_rng_state()
    alone = [train_one(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(train_one, range(4)))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(same(one, other) for one, other in zip(alone, together, strict=True))
    assert not same(alone[0], alone[1])


def test_weights_that_the_last_step_ruined_are_no_accuracy() -> None:
    data = stripes(96)
    made = train(begin(data, epochs=1, batch_size=96, lr=1e30), data, NORMALIZE, range(1))
    assert math.isnan(accuracy(made, data))


def test_a_mixed_precision_training_learns_with_whole_weights() -> None:
    images, validation = split(stripes(), 180, 60, seed=0)
    made = train(begin(images, precision="bfloat16"), images, NORMALIZE, range(4))
    assert accuracy(made, validation) > 0.9
    assert {weight.dtype for weight in made.module.parameters()} == {torch.float32}
    assert not same(made, train(begin(images), images, NORMALIZE, range(4)))


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
        train(begin(stripes(96), model=name), stripes(96), NORMALIZE, range(1))


def test_the_memory_of_one_that_is_given_up_is_free_at_once() -> None:
    gc.disable()  # which would find cycles, some time
    try:
        made = trained(stripes(96), 1)
        weights = weakref.ref(next(made.module.parameters()))
        del made
        assert weights() is None
    finally:
        gc.enable()


def test_a_batch_needs_enough_images() -> None:
    with pytest.raises(ValueError, match="batch_size: got 64, with 30 images"):
        check_batch(64, 30)
    with pytest.raises(ValueError, match="batch_size: got 64, with 30 images"):
        data_of(stripes(30)).loader(NORMALIZE, options(batch_size=64), 0, None)


def test_learning_rates() -> None:
    cosine, step, linear = (FitOptions(epochs=10, lr=0.2, lr_schedule=kind) for kind in ("cosine", "step", "linear"))  # type: ignore[arg-type]
    assert [round(cosine.lr_at(epoch), 6) for epoch in (0, 5, 10)] == [0.2, 0.1, 0.0]
    assert [round(step.lr_at(epoch), 6) for epoch in (0, 4.9, 5, 7.4, 7.5, 10)] == [0.2, 0.2, 0.02, 0.02, 0.002, 0.002]
    assert [round(linear.lr_at(epoch), 6) for epoch in (0, 5, 10)] == [0.2, 0.1, 0.0]
