"""A data set in memory, and its parts to train and to validate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.learn.train.stripes import stripes
from variegate.data.base import SourceError
from variegate.learn.images import load_images, split


def test_parts_have_the_classes_in_their_shares() -> None:
    data = stripes(240)
    train, validation = split(data, 90, 60, seed=3)
    assert (len(train), len(validation)) == (90, 60)
    assert np.bincount(train.labels.numpy()).tolist() == [30, 30, 30]
    assert np.bincount(validation.labels.numpy()).tolist() == [20, 20, 20]
    assert set(train.ids.tolist()).isdisjoint(validation.ids.tolist())
    again, _ = split(data, 90, 60, seed=3)
    other, _ = split(data, 90, 60, seed=4)
    assert again.ids.tolist() == train.ids.tolist() != other.ids.tolist()
    row = int(np.flatnonzero(data.ids == train.ids[7])[0])
    assert torch.equal(train.pixels[7], data.pixels[row])
    assert len(split(data, 100, None, seed=0)[1]) == 140
    alone, nothing = split(data, 239, 0, seed=3)  # one of a class is left, none of the others
    assert (len(alone), len(nothing)) == (239, 0)
    assert split(data, 90, 0, seed=3)[0].ids.tolist() == train.ids.tolist()


def test_uneven_classes_are_shared_exactly() -> None:
    pixels = np.zeros((61, 4, 4, 3), np.uint8)
    data = load_images((pixels, [0] * 40 + [1] * 14 + [2] * 7), device="cpu")
    for train in (9, 20, 33, 50):
        one, other = split(data, train, None, seed=1)
        assert (len(one), len(other)) == (train, 61 - train)
        assert np.bincount(one.labels.numpy(), minlength=3)[2] == pytest.approx(7 * train / 61, abs=1)


def test_a_class_without_images_keeps_its_index() -> None:
    data = load_images((np.zeros((30, 4, 4, 3), np.uint8), [0] * 20 + [2] * 10), device="cpu")
    for validation in (0, None):
        one, other = split(data, 15, validation, seed=1)
        assert np.bincount(one.labels.numpy()).tolist() == [10, 0, 5]
        assert one.classes == other.classes == ("0", "1", "2")


def test_data_that_cannot_be_split_or_loaded() -> None:
    pixels = np.zeros((10, 4, 4, 3), np.uint8)
    with pytest.raises(SourceError, match="class '1' has 1 of 10 images; accepted: two or more"):
        split(load_images((pixels, [0] * 9 + [1]), device="cpu"), 5, 5, seed=0)
    with pytest.raises(SourceError, match="class '2' has 1 of 10 images"):
        split(load_images((pixels, [0] * 9 + [2]), device="cpu"), 5, 5, seed=0)
    with pytest.raises(SourceError, match="10 images are not enough for 8 to train and 3 to validate"):
        split(load_images((pixels, [0, 1] * 5), device="cpu"), 8, 3, seed=0)
    with pytest.raises(SourceError, match="10 images are not enough for 11 to train;"):
        split(load_images((pixels, [0, 1] * 5), device="cpu"), 11, 0, seed=0)
    with pytest.raises(SourceError, match="10 images are not enough for 10 to train and some to validate"):
        split(load_images((pixels, [0, 1] * 5), device="cpu"), 10, None, seed=0)
    with pytest.raises(SourceError, match="every image needs the number of its class"):
        load_images((pixels, [0.5] * 10), device="cpu")
    ragged = [np.zeros((4, 4 + n, 3), np.uint8) for n in range(4)]
    with pytest.raises(SourceError, match="several sizes"):
        load_images((ragged, [0, 1, 0, 1]), device="cpu")
    assert load_images((ragged, [0, 1, 0, 1]), (6, 5), device="cpu").pixels.shape == (4, 6, 5, 3)


def test_a_rare_class_is_in_both_parts() -> None:
    """By its share of 2 in 40 it would have less than one image in the smaller part."""
    pixels = np.zeros((40, 4, 4, 3), np.uint8)
    data = load_images((pixels, [0] * 38 + [1] * 2), device="cpu")
    for train in (2, 5, 20, 38):
        one, other = split(data, train, None, seed=0)
        assert (len(one), len(other)) == (train, 40 - train)
        assert 1 in one.labels
        assert 1 in other.labels
    with pytest.raises(SourceError, match="1 to train and 39 to validate, of 2 classes; accepted: one or more"):
        split(data, 1, None, seed=0)


def test_images_have_the_names_of_their_source() -> None:
    data = load_images((np.zeros((6, 4, 4, 3), np.uint8), [0, 1] * 3), device="cpu")
    assert len(set(data.names)) == 6
    assert data.take(np.array([4, 1])).names == (data.names[4], data.names[1])
