"""The index of hashes finds what a comparison of all with all finds, and no crowd makes it slow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from variegate.apps.check.near_hashes import (
    FLIPS,
    distances,
    find_partners,
    first_of_alike,
    flip_mask,
)
from variegate.apps.check.near_search import KEPT, KINDS, NO_MATCH

Hashes = npt.NDArray[np.uint64]


def some_hashes(n: int, clusters: int, seed: int) -> Hashes:
    """Even ones, or near one of a few, some of them flipped."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, n, np.uint64)
    if clusters:
        hashes = hashes[rng.integers(0, min(n, clusters), n)]
        for _ in range(8):
            hashes = hashes ^ (np.uint64(1) << rng.integers(0, 64, n).astype(np.uint64))
        hashes ^= np.array([flip_mask(flip) for flip in rng.integers(0, 4, n)], np.uint64)
    return hashes


def partners_of(hashes: Hashes, distance: int, splits: object = 0, labels: object = -1) -> npt.NDArray[np.uint32]:
    n = len(hashes)
    given_splits = np.broadcast_to(np.asarray(splits, np.uint8), n)
    given_labels = np.broadcast_to(np.asarray(labels, np.int64), n)
    nothing = np.zeros((n, 0), np.uint8)
    return find_partners(hashes, nothing, given_splits.copy(), given_labels.copy(), distance, 1.0)


def plain_partners(hashes: Hashes, distance: int, splits: list[int], labels: list[int]) -> npt.NDArray[np.uint32]:
    found = np.full((len(hashes), KINDS, KEPT), NO_MATCH, np.uint32)
    for row in range(len(hashes)):
        kinds: list[list[int]] = [[], [], []]
        for other in range(row):
            if min(bin(int(hashes[row] ^ hashes[other] ^ flip_mask(flip))).count("1") for flip in FLIPS) <= distance:
                kinds[int(splits[row] != splits[other])].append(other)
                if -1 not in (labels[row], labels[other]) and labels[row] != labels[other]:
                    kinds[2].append(other)
        for kind, others in enumerate(kinds):
            found[row, kind, : len(others)] = others[:KEPT]
    return found


@settings(max_examples=20)
@given(st.integers(0, 60), st.sampled_from([0, 1, 5, 30]), st.integers(0, 15), st.integers(0, 99))
def test_the_index_finds_what_comparing_all_with_all_does(n: int, clusters: int, distance: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hashes = some_hashes(n, clusters, seed)
    splits, labels = rng.integers(0, 2, n).tolist(), rng.integers(-1, 2, n).tolist()
    found = partners_of(hashes, distance, splits, labels)
    assert np.array_equal(found, plain_partners(hashes, distance, splits, labels))


def test_a_crowd_is_compared_with_its_first_ones() -> None:
    hashes = np.full(60_000, 0xDEADBEEF12345678, np.uint64)
    found = partners_of(hashes, 11)
    assert np.array_equal(found[1000:, 0], np.tile(np.arange(KEPT, dtype=np.uint32), (59_000, 1)))
    assert set(first_of_alike(found[:, 0]).tolist()) == {0}


def test_a_chain_does_not_grow_into_one_group() -> None:
    """Each 8 bits from the one before, in other bits than that one is from its own predecessor."""
    hashes = np.array([(1 << 8 * k) - 1 for k in range(8)], np.uint64)
    first = first_of_alike(partners_of(hashes, 8)[:, 0])
    assert len(set(first.tolist())) >= 3
    assert distances(hashes, hashes[first])[0].max() <= 8
