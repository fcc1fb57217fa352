"""Decoded row groups in memory: bounded in bytes, and each decoded once however many threads ask for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from variegate.threads import at_fork

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True)
class SizedValue(Generic[V]):
    """A value and the bytes that it takes."""

    value: V
    nbytes: int


class GroupCache(Generic[K, V]):
    """Values by key, loaded on first use, the least recently used dropped first.

    ``load`` makes a value; ``expect`` says beforehand about how many bytes making it takes. What is held and what is
    being loaded stay within ``budget`` bytes together, so loads wait for each other where there is not room for all of
    them. One value larger than the budget is let in alone: refused, it would be made again for each of its rows.
    """

    def __init__(self, load: Callable[[K], SizedValue[V]], expect: Callable[[K], int], budget: int) -> None:
        self._load, self._expect, self._budget = load, expect, budget
        self._changed = threading.Condition(threading.Lock())
        self._held: OrderedDict[K, SizedValue[V]] = OrderedDict()
        self._loading: dict[K, Future[V]] = {}
        self._held_bytes = self._reserved = 0
        at_fork(self)

    def after_fork(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._loading, self._reserved = {}, 0
        self._held_bytes = sum(held.nbytes for held in self._held.values())

    @property
    def nbytes(self) -> int:
        """Bytes of values, without those that are being loaded."""
        return self._held_bytes

    def get(self, key: K) -> V:
        """The value; whatever ``load`` raises, to every thread that waited for it. The next call tries again."""
        with self._changed:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held.value
            elsewhere = self._loading.get(key)
            if elsewhere is None:
                mine = self._loading[key] = Future()
        if elsewhere is not None:
            return elsewhere.result()
        return self._load_here(key, mine)

    def drop(self, key: K) -> None:
        """Forget a value that is not to be had any more."""
        with self._changed:
            held = self._held.pop(key, None)
            self._held_bytes -= held.nbytes if held else 0

    def _load_here(self, key: K, mine: Future[V]) -> V:
        reserved = 0
        try:
            expected = self._expect(key)
            with self._changed:
                while self._reserved and self._reserved + expected > self._budget:
                    self._changed.wait()
                self._reserved += expected
                reserved = expected
                self._make_room()
            held = self._load(key)
        except BaseException as error:
            # Also for a Ctrl-C while waiting: whoever waits for this key would otherwise wait for ever.
            with self._changed:
                self._finish(key, reserved)
            mine.set_exception(error)
            raise
        with self._changed:
            self._finish(key, reserved)
            self._held[key] = held
            self._held_bytes += held.nbytes
            self._make_room(keep=1)
        mine.set_result(held.value)
        return held.value

    def _finish(self, key: K, reserved: int) -> None:
        self._reserved -= reserved
        del self._loading[key]
        self._changed.notify_all()

    def _make_room(self, keep: int = 0) -> None:
        while len(self._held) > keep and self._held_bytes + self._reserved > self._budget:
            _, dropped = self._held.popitem(last=False)
            self._held_bytes -= dropped.nbytes
