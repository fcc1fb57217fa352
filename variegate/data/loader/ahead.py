"""Batches made ahead of their use, in order, never more than asked for."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

from variegate.data.loader.reading import Rows, Waiting

T = TypeVar("T")


class Ahead(Generic[T]):
    """Iterates over ``make(rows)`` of each step.

    Args:
        steps: each ``next`` begins to read a step; it is asked for in the consumer's thread only.
        make: rows -> batch, called by the threads of ``pool``.
        depth: batches begun ahead of the one that the consumer has; 0 makes each when it is asked for.
        read_depth: further steps that are being read.

    An error of a step is raised when its turn comes, and ends the iteration.
    """

    def __init__(
        self,
        steps: Iterator[Waiting],
        make: Callable[[Rows], T],
        pool: Executor,
        *,
        depth: int,
        read_depth: int,
    ) -> None:
        self._steps, self._make = steps, make
        self._depth, self._read_depth = depth, read_depth
        self._reading: deque[Waiting] = deque()
        self._making: deque[Future[T | None]] = deque()
        self._pool = pool
        self._process = os.getpid()
        self.is_closed = False
        # How many more could be begun, now that no step is left to begin.
        self.room = 0

    @property
    def is_elsewhere(self) -> bool:
        """It was begun by the process that this one was forked from."""
        return self._process != os.getpid()

    def __iter__(self) -> Ahead[T]:
        return self

    def __next__(self) -> T:
        try:
            made = self._advance()
        except BaseException:
            self.close()
            raise
        if made is None:
            self.close()
            raise StopIteration
        return made

    def begin(self, number: int) -> None:
        """Have so many batches in the making, before the first is asked for."""
        while len(self._making) < min(number, self._depth) and self._begin():
            pass

    def _advance(self) -> T | None:
        if self.is_elsewhere:
            raise RuntimeError(
                "this iteration was begun in another process, whose threads a fork does not bring along; begin one here"
            )
        if not self._depth:
            waiting = next(self._steps, None)
            return None if waiting is None else self._work(waiting)
        self.begin(self._depth)
        made = self._making.popleft().result() if self._making else None
        # Only now, that the batch before may be given back: one more would be in memory otherwise.
        self.begin(self._depth)
        self.room = 0 if self._reading else self._depth - len(self._making)
        return made

    def _begin(self) -> bool:
        while len(self._reading) <= self._read_depth:
            waiting = next(self._steps, None)
            if waiting is None:
                break
            self._reading.append(waiting)
        if not self._reading:
            return False
        self._making.append(self._pool.submit(self._work, self._reading.popleft()))
        return True

    def _work(self, waiting: Waiting) -> T | None:
        rows = waiting()
        return None if rows is None else self._make(rows)

    def close(self) -> None:
        """Drop what is waiting. What is being made is finished, and dropped."""
        if not self.is_elsewhere:  # where it is, threads that are gone may have had hold of the futures
            for future in self._making:
                future.cancel()
        self.is_closed = True
        self._making.clear()
        self._reading.clear()
        self._steps = iter(())

    def __del__(self) -> None:
        self.close()
