"""``weights``: which samples are drawn, how often, and that nothing but (seed, epoch) decides about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.images import photo
from tests.loader.loading import CROPPED, by_key, keys, load
from tests.loader.samples import MemoryShards, MemorySource
from variegate import transforms as T
from variegate.data.base import Item
from variegate.data.objects.dataset import open_dataset
from variegate.loader.weights import DrawnOrder, groups_of

NOISE = T.Compose([T.RandomCrop(16), T.GaussianNoise(0.1), T.Normalize(0.5, 0.25)])


class Labelled(MemorySource):
    """``labels`` instead of even and odd."""

    classes: tuple[str, ...] = ()  # type: ignore[assignment]

    def __init__(self, labels: Sequence[int], classes: Sequence[str] = ()) -> None:
        super().__init__(len(labels))
        self.given, self.classes = np.asarray(labels), tuple(classes)

    def read(self, index: int) -> Item:
        return Item(super().read(index).data, int(self.given[index]))

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self.given[indices]


def draw(weights: Any, source: Any, epoch: int, number: int | None = None, seed: int = 0) -> npt.NDArray[np.int64]:
    """The indices of an epoch, in its order."""
    length = len(source) if number is None else number
    samples = partial(DrawnOrder, groups_of(weights, source), length, seed)
    indices, copies = samples(epoch).at(np.arange(length))
    for index, times in Counter(indices.tolist()).items():
        assert sorted(copies[indices == index].tolist()) == list(range(times))
    return indices


MANY = [0, 0, 0, 1] * 25  # 75 and 25


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("balanced", [50, 50]),
        ({0: 1, 1: 1}, [75, 25]),
        ({"cat": 1, "dog": 3}, [50, 50]),
        ([1.0, 9.0], [25, 75]),
        (np.array([0, 1]), [0, 100]),
        (torch.tensor([1, 3]), [50, 50]),
        ([1.0, 1.0] * 50, [75, 25]),
        (np.where(np.array(MANY) == 1, 3, 1), [50, 50]),
    ],
    ids=str,
)
def test_classes_come_as_often_as_their_weights_say(weights: Any, expected: list[int]) -> None:
    source = Labelled(MANY, ("cat", "dog"))
    for epoch in range(5):
        found = np.bincount(source.given[draw(weights, source, epoch)], minlength=2)
        assert np.abs(found - expected).max() <= 1


@settings(max_examples=60)
@given(
    weights=st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3), st.integers(0, 5)), min_size=1, max_size=40),
    number=st.integers(1, 200),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**40),
)
def test_every_sample_comes_its_expected_number_of_times_rounded_up_or_down(
    weights: list[float], number: int, seed: int, epoch: int
) -> None:
    values = np.array(weights)
    if values.sum() == 0:
        values[0] = 1.0
    found = np.bincount(draw(values, Labelled([0] * len(values)), epoch, number, seed), minlength=len(values))
    for value in np.unique(values):  # samples of one weight share a group, whose number is rounded first
        members = values == value
        expected = number * values[members].sum() / values.sum()
        assert np.floor(expected - 1e-6) <= found[members].sum() <= np.ceil(expected + 1e-6)
        assert found[members].max() - found[members].min() <= 1


def test_the_mean_over_epochs_is_exact() -> None:
    """Each count is a coin between two neighbours, so its variance is known. The bound on the sum of 40 squared normal
    deviates is passed by chance once in 100,000 seeds."""
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 40)
    source, epochs = Labelled([0] * 40), 3000
    samples = partial(DrawnOrder, groups_of(weights, source), 40, 5)
    counts = np.array([np.bincount(samples(e).at(np.arange(40))[0], minlength=40) for e in range(epochs)])
    expected = 40 * weights / weights.sum()
    part = expected % 1
    deviates = (counts.mean(0) - expected) / np.sqrt(part * (1 - part) / epochs)
    assert (deviates**2).sum() < 90
    assert np.abs(deviates).max() < 5


def test_pinned() -> None:
    """Other draws break the resume of every run that was saved before."""
    balanced = draw("balanced", Labelled([0, 0, 0, 0, 0, 1, 2, 2]), 3, 12, seed=7)
    assert " ".join(map(str, balanced)) == "5 0 7 5 6 6 4 5 7 2 5 1"
    weighted = draw([1, 2, 3, 4, 5.5], Labelled([0] * 5), 3, 12, seed=7)
    assert " ".join(map(str, weighted)) == "3 4 2 3 2 4 4 3 0 4 3 1"


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_each_copy_has_pixels_of_its_own_and_can_be_made_alone(device: str) -> None:
    """Noise too, which is drawn pixel by pixel while a batch is run."""
    loader = load(Labelled([0, 0, 1]), NOISE, weights=[1.0, 1.0, 10.0], num_samples=12, device=device, seed=5)
    loader.set_epoch(3)
    found = by_key(loader)
    assert len(found) == len(set(found.values())) == 12
    assert max(copy for _, copy in found) >= 8
    for (sample_id, copy), pixels in found.items():
        data = loader.source.read(sample_id - 1000).data  # type: ignore[union-attr]
        alone = loader.augmenter.decode_and_run([data], ids=[sample_id], epoch=3, copy=copy)
        assert alone[0].numpy().tobytes() == pixels
    key = max(found, key=lambda key: key[1])
    assert f"copy {key[1]}" in loader.augmenter.explain(key[0], epoch=3, copy=key[1], size=(46, 50))


def test_epochs_are_as_long_as_asked_and_differ_by_seed_and_number() -> None:
    loader = load(Labelled(MANY), weights="balanced", batch_size=50)
    first, second = keys(loader), keys(loader)
    assert len(first) == 100
    assert first != second
    assert keys(load(Labelled(MANY), weights="balanced", batch_size=50, seed=1)) != first
    loader.set_epoch(0)
    assert keys(loader) == first
    loader = load(Labelled(MANY), weights="balanced", batch_size=32, num_samples=70, drop_last=True)
    assert len(loader) == 2
    assert len(keys(loader)) == 64


def test_a_bad_sample_is_replaced_by_one_that_may_be_drawn() -> None:
    source = Labelled([0] * 10 + [1] * 10)
    source.broken = {3: b"no image"}
    loader = load(source, weights={0: 1, 1: 0}, on_error="replace", batch_size=20, num_samples=20)
    (batch,) = list(loader)
    assert batch.padding.sum() == 2
    assert batch.labels.tolist() == [0] * 20
    replaced = [image.numpy().tobytes() for image in batch.images[torch.from_numpy(batch.padding)]]
    assert replaced[0] != replaced[1]  # two copies, each with its own random numbers
    assert [error.times for error in loader.errors] == [2]


def test_a_state_of_other_weights_is_refused() -> None:
    source = Labelled(MANY)
    state = load(source, weights="balanced").state_dict()
    others: list[dict[str, Any]] = [
        {},
        {"weights": {0: 1, 1: 2}},
        {"weights": "balanced", "num_samples": 50},
        {"weights": [1.0] * 100},
    ]
    message = r"state_dict: weights is '.*', this loader's is .* Make the loader with the"
    for other in others:
        with pytest.raises(ValueError, match=message):
            load(source, **other).load_state_dict(state)
    with pytest.raises(ValueError, match="state_dict: done is 101; accepted: 0 to 100"):
        load(source, weights="balanced").load_state_dict({**state, "done": 101})


def test_folders_tell_their_labels(tmp_path: Path) -> None:
    for name, number in (("cats", 6), ("dogs", 2)):
        (tmp_path / name).mkdir()
        for i in range(number):
            Image.fromarray(photo(20, 24)).save(tmp_path / name / f"{i}.png")
    loader = load(str(tmp_path), weights={"cats": 1, "dogs": 3}, batch_size=8)
    assert sum(sum(batch.labels.tolist()) for batch in loader) == 4


class Targets:
    """A torchvision-like data set, whose images are not to be read for their labels."""

    def __init__(self, **told: Any) -> None:
        self.__dict__.update(told)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("read")


class Columns(Targets):
    """Hugging Face's."""

    features = {"image": None, "label": None}  # noqa: RUF012

    def with_format(self, kind: None) -> dict[str, list[int]]:
        return {"label": [0] * 6 + [1] * 2}


@pytest.mark.parametrize(
    "dataset",
    [
        Targets(targets=[0] * 6 + [1] * 2),
        Targets(samples=[(f"{i}.png", i // 6) for i in range(8)]),
        Columns(),
        [(photo(20, 24), i // 6) for i in range(8)],
        torch.utils.data.TensorDataset(torch.zeros(8, 3, 20, 20, dtype=torch.uint8), torch.arange(8) // 6),
        torch.utils.data.Subset([(photo(20, 24), i // 8) for i in range(12)], range(2, 10)),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_data_sets_tell_their_labels(dataset: Any) -> None:
    source = open_dataset(dataset)
    found = draw("balanced", source, 0)
    assert np.bincount(source.labels(found)).tolist() == [4, 4]  # type: ignore[arg-type]


FOUR = Labelled([0, 0, 1, 1], ("cat", "dog"))
TRANSFORMED = Targets(targets=[0] * 8, target_transform=lambda label: label + 1)
FLOATS = (np.zeros((3, 20, 20, 3), np.uint8), [0.5, 1.0, 2.0])
REFUSED: list[tuple[Any, Any, str]] = [
    (FOUR, "even", "weights: got 'even'; accepted: 'balanced', one number for each sample or each class"),
    (FOUR, [1.0, -1.0, 1.0, 1.0], "weights[1]: got -1.0; accepted: finite numbers from 0 on, not all of them 0"),
    (FOUR, [1.0, float("inf")], "weights[1]: got inf; accepted: finite numbers"),
    (FOUR, [0, 0, 0, 0], "weights: all samples have weight 0"),
    (FOUR, [1e308] * 4, "weights: their sum is infinite"),
    (FOUR, [1, 2, 3], "weights: got 3 numbers; accepted: 4 (one for each sample), 2 (one for each class), a mapping"),
    (FOUR, np.ones((4, 1)), "weights: got float64 of shape (4, 1); accepted: one number for each sample or each class"),
    (FOUR, {"cat": 1}, "weights: none for class 1 ('dog'), of which there are 2 samples; accepted: a weight for every"),
    (FOUR, {"cat": 1, "cow": 2}, "weights: got class 'cow'; accepted: 'cat', 'dog'"),
    (FOUR, {"cat": 1, "dog": -2}, "weights['dog']: got -2; accepted: finite numbers from 0 on"),
    (FOUR, {"cat": 1, 0: 2, 1: 1}, "weights[0]: class 0 is there twice"),
    (FOUR, {0: 1, 2: 1}, "weights: got class 2; accepted: 0 to 1, or -1 for samples without a label"),
    (FOUR, {1.5: 1}, "weights: got 1.5 for a class; accepted: its name or its label (an integer)"),
    (Labelled([1, 0], "ab"), [1.0, 2.0], "weights: got 2 numbers for 2 samples of 2 classes, one each of either"),
    (Labelled([0, -1, 1, -1]), "balanced", "weights: 2 samples have no label, the first is memory: 1.jpg; accepted:"),
    (MemorySource(4), "balanced", "weights: Samples(MemorySource: 4 samples, 2 classes) does"),
    (TRANSFORMED, "balanced", "weights: Samples("),  # labels of items count, not those that they are made of
    (MemoryShards(4), [1.0] * 3, "weights: got 3 numbers; accepted: 4 (one for each sample)"),
    (FLOATS, "balanced", "weights: labels are float64[3], which are no classes; accepted: one number for each sample"),
    (FOUR, {"num_samples": 3, "weights": None}, "num_samples: got 3 without weights; accepted with weights"),
    (FOUR, {"weights": [1.0] * 4, "shuffle": False}, "shuffle: got False with weights; accepted: True"),
    (FOUR, {"weights": [1.0] * 4, "sampler": [0]}, "sampler, weights: got both; accepted: one of them"),
]


@pytest.mark.parametrize(("source", "weights", "message"), REFUSED, ids=[message[:40] for _, _, message in REFUSED])
def test_what_is_refused_is_named(source: Any, weights: Any, message: str) -> None:
    options = weights if isinstance(weights, dict) and "weights" in weights else {"weights": weights}
    with pytest.raises((ValueError, TypeError)) as error:
        load(source, **options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_samples_without_a_label_can_be_left_out() -> None:
    loader = load(Labelled([0, -1, 1, -1]), CROPPED, weights={0: 1, 1: 1, -1: 0})
    assert {i for i, _ in keys(loader)} == {1000, 1002}
