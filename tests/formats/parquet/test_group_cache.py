"""The cache of row groups: its bound, one load a group, and what happens when loading fails."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from variegate.formats.parquet.row_groups import GroupCache, SizedValue


def test_the_least_recently_used_goes_first() -> None:
    loaded: list[str] = []

    def load(key: str) -> SizedValue[str]:
        loaded.append(key)
        return SizedValue(key.upper(), 10)

    cache: GroupCache[str, str] = GroupCache(load, lambda key: 10, 30)
    assert [cache.get(key) for key in "abcabc"] == list("ABCABC")
    assert loaded == ["a", "b", "c"]
    cache.get("d")
    assert cache.nbytes == 30
    loaded.clear()
    assert [cache.get(key) for key in "bcda"] == list("BCDA")
    assert loaded == ["a"]


def test_one_larger_than_the_budget_is_held_alone() -> None:
    sizes = {"a": 5, "big": 100, "b": 5}
    loaded: list[str] = []

    def load(key: str) -> SizedValue[str]:
        loaded.append(key)
        return SizedValue(key, sizes[key])

    cache = GroupCache(load, sizes.__getitem__, 20)
    for key in ("a", "big", "big", "big"):
        cache.get(key)
    assert (loaded, cache.nbytes) == (["a", "big"], 100)
    cache.get("b")
    assert cache.nbytes == 5


def test_many_threads_load_a_group_once() -> None:
    entered, go_on = threading.Event(), threading.Event()
    loaded: list[int] = []

    def load(key: int) -> SizedValue[int]:
        loaded.append(key)
        entered.set()
        assert go_on.wait(10)
        return SizedValue(key, 1)

    cache = GroupCache(load, lambda key: 1, 100)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(cache.get, 3) for _ in range(8)]
        assert entered.wait(10)
        go_on.set()
        assert [each.result(10) for each in waiting] == [3] * 8
    assert loaded == [3]


def test_what_is_held_and_loaded_stays_within_the_budget() -> None:
    budget, size = 35, 10
    lock = threading.Lock()
    now, most = 0, 0

    def load(key: int) -> SizedValue[int]:
        nonlocal now, most
        with lock:
            now += size
            most = max(most, now + cache.nbytes)
        with lock:
            now -= size
        return SizedValue(key, size)

    cache = GroupCache(load, lambda key: size, budget)
    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(lambda s: [cache.get((s * i) % 11) for i in range(200)], s) for s in range(1, 9)]:
            each.result(30)
    assert cache.nbytes <= budget
    assert most <= budget


def test_a_failure_is_told_to_all_who_wait_and_is_not_kept() -> None:
    entered, go_on = threading.Event(), threading.Event()
    failures = [OSError("gone")]

    def load(key: int) -> SizedValue[int]:
        entered.set()
        assert go_on.wait(10)
        if failures:
            raise failures.pop()
        return SizedValue(key, 1)

    cache = GroupCache(load, lambda key: 1, 10)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cache.get, 1)
        assert entered.wait(10)
        go_on.set()
        with pytest.raises(OSError, match="gone"):
            first.result(10)
    assert cache.get(1) == 1
    cache.drop(1)
    cache.drop(1)
    assert cache.nbytes == 0
