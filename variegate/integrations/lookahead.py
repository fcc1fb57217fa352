"""Numbered batches made ahead of their use, for a consumer that asks for them one by one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from variegate.threads import Threads, at_fork

T = TypeVar("T")


class Lookahead(Generic[T]):
    """``make(epoch, index)`` in threads: while a consumer goes through an epoch in order, the next are on their way.

    Args:
        make: gives a batch; called by up to ``workers`` threads.
        depth: batches begun ahead of the one asked for.

    A consumer that jumps about gets each batch when it asks for it, and nothing is made in vain.
    """

    def __init__(self, make: Callable[[int, int], T], workers: int, depth: int) -> None:
        self._make, self._depth = make, depth
        self._pool = Threads(workers, "variegate-ahead")
        self._pending: dict[tuple[int, int], Future[T]] = {}
        self._last: tuple[int, int] | None = None
        self._lock = Lock()
        at_fork(self)

    def after_fork(self) -> None:
        """What was on its way is made by threads of the parent; a child begins again."""
        self._lock = Lock()
        self._pending = {}

    def get(self, epoch: int, index: int, length: int) -> T:
        """Batch ``index`` of 0..length-1, and begin those after it. Raises what ``make`` raised."""
        with self._lock:
            asked = self._pending.pop((epoch, index), None)
            if asked is None:  # an epoch begins, or order was not kept: what is on its way may never be asked for
                for waiting in self._pending.values():
                    waiting.cancel()
                self._pending.clear()
                asked = self._pool.submit(self._make, epoch, index)
            if index == 0 or self._last == (epoch, index - 1):
                for following in range(index + 1, min(index + self._depth, length - 1) + 1):
                    if (epoch, following) not in self._pending:
                        self._pending[epoch, following] = self._pool.submit(self._make, epoch, following)
            self._last = (epoch, index)
        return asked.result()
