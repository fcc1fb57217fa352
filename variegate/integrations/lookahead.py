"""Numbered batches made ahead of their use, for a consumer that asks for them one by one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from variegate.threads import Lookahead, Threads, at_fork

T = TypeVar("T")


class BatchesAhead(Generic[T]):
    """``make(epoch, index)`` in threads: while a consumer goes through an epoch in order, the next are on their way.

    Args:
        make: gives a batch; called by up to ``workers`` threads.
        depth: batches begun ahead of the one asked for.

    A consumer that jumps about gets each batch when it asks for it, and nothing is made in vain.
    """

    def __init__(self, make: Callable[[int, int], T], workers: int, depth: int) -> None:
        self._make, self._depth = make, depth
        self._pool = Threads(workers, "variegate-ahead")
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        """What was on its way is made by threads of the parent; a child begins again."""
        self._lock = Lock()
        self._ahead: Lookahead[Future[T]] = Lookahead(iter(()))
        self._next: tuple[int, int] | None = None

    def get(self, epoch: int, index: int, length: int) -> T:
        """Batch ``index`` of 0..length-1, and begin those after it. Raises what ``make`` raised."""
        if not 0 <= index < length:
            return self._make(epoch, index)  # which refuses it
        with self._lock:
            is_in_order = self._next == (epoch, index)
            if not is_in_order:  # an epoch begins, or order was not kept: what is on its way may never be asked for
                for waiting in self._ahead.close():
                    waiting.cancel()
                self._ahead = Lookahead(self._pool.submit(self._make, epoch, i) for i in range(index, length))
            asked = self._ahead.take()
            if is_in_order or index == 0:
                self._ahead.begin(self._depth)
            self._next = (epoch, index + 1)
        assert asked is not None
        return asked.result()
