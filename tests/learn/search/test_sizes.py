"""How much is trained on, where nobody says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from variegate.data.base import SourceError
from variegate.learn import sizes as learn_sizes
from variegate.learn.choices import SEARCH, choose_batch, choose_size, sample_sizes
from variegate.learn.images import LabelledImages, split
from variegate.learn.sizes import Sizes
from variegate.options.search import EvaluationOptions, SearchOptions


def images_of(*counts: int) -> LabelledImages:
    labels = np.repeat(np.arange(len(counts)), counts)
    pixels = torch.zeros((len(labels), 1, 1, 3), dtype=torch.uint8)
    ids = np.arange(len(labels), dtype=np.uint64)
    return LabelledImages(pixels, torch.from_numpy(labels), ids, tuple(map(str, range(len(counts)))))


def search_sizes(images: LabelledImages, train: int | None = None, validation: int | None = None, **more: Any) -> Sizes:
    return learn_sizes.search_sizes(images, SearchOptions(train=train, validation=validation, **more))


def race_sizes(images: LabelledImages, tested: int | None, train: int | None = None) -> Sizes:
    return learn_sizes.race_sizes(images, tested, EvaluationOptions(train=train))


def test_of_cifar10_they_are_the_papers() -> None:
    images = images_of(*[5000] * 10)
    assert search_sizes(images) == Sizes(4_000, 46_000, 128, 200, "wrn-28-2")
    assert race_sizes(images, 10_000, train=50_000) == Sizes(50_000, 10_000, 128, 200, "wrn-28-2")
    assert race_sizes(images, None) == Sizes(40_000, 10_000, 128, 200, "wrn-28-2")
    many = images_of(*[100_000] * 10)
    assert search_sizes(many) == Sizes(4_000, 46_000, 128, 200, "wrn-28-2")
    assert race_sizes(many, None).epochs == 12


counts = st.lists(st.integers(2, 60), min_size=2, max_size=12).filter(lambda found: sum(found) >= 16)


@given(counts, st.data())
def test_whatever_is_chosen_fits_and_every_class_is_in_both_parts(found: list[int], data: st.DataObject) -> None:
    images, least = images_of(*found), len(found)
    train = data.draw(st.none() | st.integers(least, sum(found) - least))
    most = sum(found) - (train or least)
    validation = data.draw(st.none() | st.integers(least, most))
    for sizes in (search_sizes(images, train, validation), race_sizes(images, None, train)):
        assert train in (None, sizes.train)
        assert 1 <= sizes.batch_size <= sizes.train
        one, other = split(images, sizes.train, sizes.score, seed=3)
        assert (len(one), len(other)) == (sizes.train, sizes.score)
        for part in (one, other):
            assert part.labels.unique().tolist() == list(range(least))
    assert validation in (None, search_sizes(images, train, validation).score)


def test_batches_give_an_epoch_eight_steps() -> None:
    assert [choose_batch(n) for n in (3, 10, 126, 202, 500, 1023, 1024, 4000)] == [3, 8, 8, 16, 32, 64, 128, 128]


def test_what_does_not_fit_is_named_with_what_does() -> None:
    images = images_of(30, 30)
    for arguments, said in (
        ({"train": 59}, "train: got 59, of 60 images in 2 classes; accepted: 2 to 58"),
        ({"validation": 1}, "validation: got 1, of 60 images in 2 classes; accepted: 2 to 58"),
        ({"train": 40, "validation": 21}, "validation: got 21, of 60 images in 2 classes; accepted: 2 to 20"),
        ({"batch_size": 31}, "batch_size: got 31, with 30 images to train; accepted: 1 to 30"),
    ):
        with pytest.raises(ValueError, match=said):
            search_sizes(images, **arguments)
    with pytest.raises(ValueError, match="train: got 61, of 60 images in 2 classes; accepted: 2 to 60"):
        race_sizes(images, 10, train=61)


def test_too_little_data() -> None:
    with pytest.raises(SourceError, match="15 images are too few to search on"):
        search_sizes(images_of(7, 8))
    assert search_sizes(images_of(7, 8), train=8).score == 7  # who says so may
    with pytest.raises(SourceError, match="class '1' has 1 image; accepted: two or more"):
        search_sizes(images_of(40, 1))
    with pytest.raises(SourceError, match="there are images of one class, of 2; accepted: two or more"):
        race_sizes(images_of(40, 0), 10)
    assert race_sizes(images_of(40, 0, 20), None).train == 48
    assert search_sizes(images_of(40, 0, 20)).train == 30
    assert race_sizes(images_of(40, 1), 10, train=41).train == 41


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([(28, 28)] * 3, (28, 28)),
        ([(64, 48)] * 3, (64, 48)),
        ([(65, 48)] * 3, (32, 32)),
        ([(28, 28), (28, 29)], (32, 32)),
    ],
)
def test_sides_where_nobody_says(sizes: list[tuple[int, int]], wanted: tuple[int, int]) -> None:
    from variegate.data.opening import open_source

    pixels = [np.zeros((*size, 3), np.uint8) for size in sizes]
    source = open_source((pixels, list(range(len(sizes)))))
    assert choose_size(sample_sizes(source, SearchOptions()), SEARCH) == wanted
