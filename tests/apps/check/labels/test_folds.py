"""Folds: every class in every fold, and never an image's twin among those that train for it."""

from __future__ import annotations

import numpy as np
import pytest

from variegate.apps.check.label_errors import folds_of, grouped, too_small


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_are_in_their_shares_in_every_fold(seed: int) -> None:
    labels = np.repeat([0, 1, 2], [90, 30, 6])
    folds = folds_of(labels, np.arange(126), seed)
    for fold in range(3):
        assert np.bincount(labels[folds == fold]).tolist() == [30, 10, 2]


def test_a_class_of_twins_alone_is_too_small() -> None:
    labels = np.array([0] * 5 + [1] * 5 + [2] * 2)
    units = grouped(12, [(5, 6, 7, 8)])
    assert too_small(labels, units, 3).tolist() == [1, 2]
