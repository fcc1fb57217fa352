"""Images that are the same, or alike, in groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.apps.curate.duplicates.lookup import FLIPS, Hashes, flip_mask
from variegate.apps.curate.duplicates.search import KEPT, NOBODY
from variegate.program.compiled import pixel_kernel

Rows = npt.NDArray[np.int64]


def first_of_same(keys: npt.NDArray[np.uint64]) -> Rows:
    """For each row of ``keys`` [n, words], the first one that is equal to it."""
    order = np.lexsort([*reversed(keys.T)])  # stable: rows ascend among equal ones
    begins = np.ones(len(keys), bool)
    begins[1:] = np.any(keys[order[1:]] != keys[order[:-1]], 1)
    first = np.empty(len(keys), np.int64)
    first[order] = order[begins][np.cumsum(begins) - 1]
    return first


def first_of_alike(partners: npt.NDArray[np.uint32]) -> Rows:
    """For each image, the first one of its group, by ``partners`` [n, KEPT] of ``find_partners``.

    An image belongs to the earliest group whose first image it looks like itself; one that looks like no first image
    begins a group. So a chain of images, each like the next, does not grow into one group, and whoever keeps the first
    image of every group alone keeps something that looks like every image left out.
    """
    first = np.arange(len(partners), dtype=np.int64)
    _join(partners, first)
    return first


@pixel_kernel
def _join(partners: Any, first: Any) -> Any:
    for row in range(len(first)):
        for k in range(KEPT):
            other = partners[row, k]
            if other == NOBODY:
                break
            if first[other] == other:
                first[row] = other
                break
    return np.int64(0)


def distances(one: Hashes, other: Hashes) -> tuple[Rows, Rows]:
    """-> (in how many bits the hashes differ, by which flip of ``FLIPS`` that is)."""
    by_flip = np.stack([_number_of_bits(one ^ other ^ flip_mask(flip)) for flip in FLIPS])
    flips = by_flip.argmin(0)
    return by_flip.min(0), flips


def _number_of_bits(hashes: Hashes) -> Rows:
    return np.unpackbits(hashes.view(np.uint8)).reshape(len(hashes), 64).sum(1, dtype=np.int64)
