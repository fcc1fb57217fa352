"""Values that are kept in memory up to a number of bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from variegate.io.recent import LruCache


def test_the_least_recently_used_go_first() -> None:
    recent: LruCache[str, int] = LruCache(10)
    for n, key in enumerate("abc"):
        assert recent.put(key, n, 3) == n
    assert recent.get("a") == 0
    recent.put("d", 3, 3)
    assert [recent.get(key) for key in "abcd"] == [0, None, 2, 3]
    recent.put("large", 4, 100)
    assert [recent.get(key) for key in ("a", "c", "d", "large")] == [None, None, None, 4]
    recent.put("a", 5, 1)
    assert recent.get("large") is None


def test_a_value_in_the_place_of_another_counts_once() -> None:
    recent: LruCache[int, bytes] = LruCache(8)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: recent.put(1, b"1234", 4), range(1000)))
    recent.put(2, b"5678", 4)
    assert (recent.get(1), recent.get(2)) == (b"1234", b"5678")
