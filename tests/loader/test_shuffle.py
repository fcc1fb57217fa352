"""The order of an epoch: a permutation that is a function of (seed, epoch)."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest

from variegate.loader.shuffle import OrderPurpose, Permutation, partner_positions, partners_of


def permutation(length: int, seed: int = 0, epoch: int = 0) -> list[int]:
    return Permutation(length, seed, epoch)(np.arange(length)).tolist()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097])
def test_every_number_comes_once(length: int) -> None:
    assert sorted(permutation(length, seed=3, epoch=7)) == list(range(length))


def test_pinned() -> None:
    """Another order breaks the resume of every run that was saved before."""
    assert permutation(10) == [2, 3, 1, 9, 6, 5, 0, 7, 8, 4]
    assert permutation(5, seed=1, epoch=2) == [2, 0, 3, 1, 4]
    assert Permutation(10**9, 1, 2)(np.array([0, 1, 10**9 - 1])).tolist() == [610485180, 792316909, 39743912]
    assert Permutation(1 << 40, (1 << 64) - 1, 3)(np.array([5])).tolist() == [916346145612]


def test_seed_epoch_and_purpose_each_give_another_order() -> None:
    orders = [
        tuple(permutation(1000)),
        tuple(permutation(1000, seed=1)),
        tuple(permutation(1000, seed=1 << 40)),
        tuple(permutation(1000, epoch=1)),
        tuple(Permutation(1000, 0, 0, OrderPurpose.SHARDS)(np.arange(1000)).tolist()),
    ]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("length", [3, 4])
def test_small_orders_are_equally_likely(length: int) -> None:
    """Chi-square over all orders; the bound is passed by chance once in 10,000 seeds."""
    number = 4000
    counts = Counter(tuple(permutation(length, seed=5, epoch=epoch)) for epoch in range(number))
    orders = {3: 6, 4: 24}[length]
    expected = number / orders
    chi_square = sum((counts[order] - expected) ** 2 / expected for order in counts) + expected * (orders - len(counts))
    assert chi_square < {6: 25.7, 24: 56.0}[orders]


def test_a_billion_samples_cost_no_more_than_a_thousand() -> None:
    batch = np.arange(256)
    Permutation(1000, 0, 0)(batch)  # the kernel is loaded
    tracemalloc.start()
    found = Permutation(10**9, 0, 0)(np.arange(10**9 - 256, 10**9))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20  # a list of them takes 8 GB
    tracemalloc.stop()
    assert len(set(found.tolist())) == 256
    assert found.min() >= 0
    assert found.max() < 10**9


@pytest.mark.parametrize("length", [1, 2, 7, 64, 65, 1000])
def test_a_permutation_can_be_asked_the_other_way_round(length: int) -> None:
    order = Permutation(length, seed=3, epoch=7)
    np.testing.assert_array_equal(order.inverse(order(np.arange(length))), np.arange(length))


@pytest.mark.parametrize("start", [0, 17, 1000])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 31, 33, 64, 65, 127, 128, 1000])
def test_partners_are_others_all_over_the_order(length: int, start: int) -> None:
    positions = start + np.arange(length)
    places = partner_positions(positions, length, 3, start) - start
    assert places.min() >= 0
    assert places.max() < length
    if length > 1:
        assert (places != np.arange(length)[:, None]).all()
    if length >= 4:
        assert all(len({*row}) == 3 for row in places.tolist())
    # Everybody is asked for about as often.
    assert np.bincount(places[:, 0], minlength=length).max() <= 2


def test_partners_are_pinned() -> None:
    assert partners_of(np.arange(6), 6, 0, 0, 1)[:, 0].tolist() == [5, 4, 3, 1, 0, 2]
    pinned = [[778, 805, 397], [17, 725, 212], [385, 680, 587]]
    assert partners_of(np.array([0, 5, 999]), 1000, 1, 2, 3).tolist() == pinned
