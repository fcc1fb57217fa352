"""Memory that large pictures share: threads that decode them wait for each other instead of adding up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Condition

from variegate.threads import at_fork

# Pictures that take less are decoded without asking, so that ordinary ones meet no lock.
LARGE = 32 << 20
# Twice what one picture may take by default.
TOTAL = 2_000_000_000

_SMALL: AbstractContextManager[None] = nullcontext()


class Budget:
    """``total`` bytes; whoever asks for more than is left waits, first come, first served.

    What is more than all of it is let through alone. A thread must not ask for more while it holds some.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        """As new: a forked process has none of the threads that held or awaited anything."""
        self._changed = Condition()
        self._waiting: deque[object] = deque()
        self._taken = 0

    def room_for(self, needed: int) -> AbstractContextManager[None]:
        """Holds ``needed`` bytes while it is entered."""
        return _SMALL if needed < LARGE else self._take(needed)

    @contextmanager
    def _take(self, needed: int) -> Iterator[None]:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is ticket and self._has(needed))
                self._taken += needed
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= needed
                self._changed.notify_all()

    def _has(self, needed: int) -> bool:
        return self._taken == 0 or self._taken + needed <= self._total


_budget = Budget(TOTAL)
room_for = _budget.room_for
