"""The order of an epoch: a permutation that is a function of (seed, epoch), and a buffer for streams."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.loader.shuffle import OrderPurpose, Permutation, partner_positions, partners_of
from variegate.loader.stream import shuffled


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


def buffered(number: int, max_items: int, seed: int = 0, epoch: int = 0, max_bytes: int = 1 << 40) -> list[int]:
    limits = {"max_items": max_items, "max_bytes": max_bytes}
    return list(shuffled(range(number), lambda item: 10, seed=seed, epoch=epoch, **limits))


# The first example may compile a kernel.
@given(st.integers(0, 60), st.integers(1, 70), st.integers(0, 1000))
def test_buffer_gives_every_item_once_and_none_too_early(number: int, max_items: int, max_bytes: int) -> None:
    order = buffered(number, max_items, seed=number, max_bytes=max_bytes)
    assert sorted(order) == list(range(number))
    allowed = min(max_items, max_bytes // 10 + 1)
    assert all(item - place < max(allowed, 1) for place, item in enumerate(order))


def test_buffer_pinned_and_keyed() -> None:
    assert buffered(12, 4) == [2, 1, 4, 5, 6, 0, 3, 9, 11, 8, 10, 7]
    assert len({tuple(buffered(200, 50, seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9


def test_buffer_holds_no_more_than_its_limits() -> None:
    alive = 0
    most = 0

    def items() -> object:
        nonlocal alive, most
        for n in range(500):
            alive += 1
            most = max(most, alive)
            yield n

    for _ in shuffled(items(), lambda item: 7, seed=0, epoch=0, max_items=1000, max_bytes=70):  # type: ignore[arg-type]
        alive -= 1
    assert most == 11  # the one that came last stands over the limit


def test_buffer_of_one_keeps_the_order() -> None:
    assert buffered(20, 1) == list(range(20))


def test_large_buffer_shuffles_evenly() -> None:
    """With room for all, any item comes at any place: mean place of item 0 over epochs."""
    places = [buffered(10, 10, epoch=epoch).index(0) for epoch in range(2000)]
    assert abs(np.mean(places) - 4.5) < 4 * 2.87 / np.sqrt(2000)


@pytest.mark.parametrize("length", [1, 2, 7, 64, 65, 1000])
def test_a_permutation_can_be_asked_the_other_way_round(length: int) -> None:
    order = Permutation(length, seed=3, epoch=7)
    np.testing.assert_array_equal(order.inverse(order(np.arange(length))), np.arange(length))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 31, 33, 64, 65, 127, 128, 1000])
def test_partners_are_others_all_over_the_order(length: int) -> None:
    places = partner_positions(np.arange(length), length, 3)
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
