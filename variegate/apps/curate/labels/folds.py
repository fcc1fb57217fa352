"""Who trains and who is predicted: folds with the classes in their shares, and images that belong together in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from variegate.loader.shuffle import Permutation

FOLDS = 3
Ints = npt.NDArray[np.int64]


def grouped(count: int, groups: Iterable[Sequence[int]]) -> Ints:
    """int64[count]: of each image the first that it belongs together with, itself where it stands alone. ``groups``:
    images that belong together; those that share one do so as well."""
    first = list(range(count))

    def root(image: int) -> int:
        while first[image] != image:
            first[image] = first[first[image]]
            image = first[image]
        return image

    for group in groups:
        for other in group[1:]:
            one, two = root(group[0]), root(other)
            first[max(one, two)] = min(one, two)
    return np.array([root(image) for image in range(count)], np.int64)


def folds_of(labels: Ints, units: Ints, seed: int, folds: int = FOLDS) -> Ints:
    """int64[N]: the fold of each image, which ``seed`` decides.

    ``labels``: int64[N]. ``units``: int64[N] as ``grouped`` gives them; images of one are in one fold, where a twin
    among those that train would tell a model the label. Every class is dealt out anew, one by one.
    """
    mixed = Permutation(len(labels), seed, 0)(np.arange(len(labels)))
    firsts = mixed[units[mixed] == mixed]
    by_class = firsts[np.argsort(labels[firsts], kind="stable")]
    fold = np.empty(len(labels), np.int64)
    fold[by_class] = np.arange(len(by_class)) % folds
    return fold[units]


def too_small(labels: Ints, units: Ints, classes: int, folds: int = FOLDS) -> Ints:
    """The classes, of those that have images at all, with fewer units than folds: they might not be among the images
    that train. A unit counts for the class of its first image."""
    of = labels[np.unique(units)]
    found = np.bincount(of, minlength=classes)
    present = np.bincount(labels, minlength=classes) > 0
    return np.flatnonzero(present & (found < folds))
