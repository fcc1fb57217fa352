"""Folds: every class in every fold, and never an image's twin among those that train for it."""

from __future__ import annotations

import numpy as np
import pytest

from variegate.apps.curate.label_errors import folds_of, grouped, too_small


def test_images_that_share_one_belong_together() -> None:
    assert grouped(7, [(5, 2), (2, 6), (3, 4)]).tolist() == [0, 1, 2, 3, 3, 2, 2]


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_are_in_their_shares_in_every_fold(seed: int) -> None:
    labels = np.repeat([0, 1, 2], [90, 30, 6])
    folds = folds_of(labels, np.arange(126), seed, 3)
    for fold in range(3):
        assert np.bincount(labels[folds == fold]).tolist() == [30, 10, 2]


def test_twins_are_in_one_fold() -> None:
    labels = np.arange(60) % 2
    units = grouped(60, [(n, n + 1, n + 7) for n in range(0, 50, 10)])
    folds = folds_of(labels, units, 3)
    for n in range(0, 50, 10):
        assert len({folds[n], folds[n + 1], folds[n + 7]}) == 1
    assert len(set(folds.tolist())) == 3


def test_the_seed_decides() -> None:
    labels, units = np.zeros(50, np.int64), np.arange(50)
    assert (folds_of(labels, units, 1) == folds_of(labels, units, 1)).all()
    assert (folds_of(labels, units, 1) != folds_of(labels, units, 2)).any()


def test_a_class_of_twins_alone_is_too_small() -> None:
    labels = np.array([0] * 5 + [1] * 5 + [2] * 2)
    units = grouped(12, [(5, 6, 7, 8)])
    assert too_small(labels, units, 3, 3).tolist() == [1, 2]
