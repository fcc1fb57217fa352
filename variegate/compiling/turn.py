"""Whose turn it is to compile: one process at a time, and within it one thread.

Numba compiles under a lock of the process, which the thread that takes a turn holds. A turn begins with a call of a
kernel that has to be made ready, and covers the kernels that this one calls. The first that is not on disk takes the
lock between processes; when it is ours, the disk is asked again, because who held it may have made what we want.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from numba.core.compiler_lock import global_compiler_lock

from variegate.compiling.lock import ProcessLock
from variegate.compiling.notice import Notice


class Turn:
    """A context around making a kernel ready; contexts nest.

    ``lock``: between processes, or None where nothing can be kept. ``place``: where kernels are kept, to be shown.
    """

    def __init__(self, lock: ProcessLock | None, place: Callable[[], str | None]) -> None:
        self._lock, self._place = lock, place
        self._notice = Notice()
        self._depth = 0
        self._began = 0.0
        self._spent = 0.0  # in turns that had something to compile, or to wait for, since the last ``finish``
        self._has_missed = False
        self.failure: OSError | None = None
        """What kept this process from writing code, if anything did."""

    def __enter__(self) -> Turn:
        global_compiler_lock.acquire()
        if self._depth == 0:
            self._began, self._has_missed = time.monotonic(), False
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            if self._lock is not None:
                self._lock.release()
            if self._has_missed:
                self._spent += time.monotonic() - self._began
        global_compiler_lock.release()

    def take(self) -> bool:
        """Something is not on disk. Wait until this process may make it -> whether to look there again."""
        self._has_missed = True
        if self._lock is None or self._lock.is_held:
            return False
        self._lock.acquire(lambda _: self._notice.waiting(self._seconds, self._place()))
        return self._lock.is_held

    def compiling(self) -> None:
        """It is going to be made now."""
        mark = self._lock.read_mark() if self._lock is not None else ""
        left = self._notice.compiling(self._seconds, self._place(), mark)
        if left is not None and self._lock is not None:
            self._lock.write_mark(left)

    def not_kept(self, error: OSError) -> None:
        """It was made, and could not be written."""
        self.failure = error
        self._notice.not_kept(self._place(), error)

    def finish(self) -> None:
        """A batch is done, so that all it needed is there: say so, if it was said that it would take long."""
        # Batches ask every time; most do so with nothing spent. One that another thread compiles for will ask itself.
        if self._spent and self._depth == 0:
            seconds, self._spent = self._spent, 0.0
            self._notice.finish(seconds)

    @property
    def _seconds(self) -> float:
        return self._spent + time.monotonic() - self._began

    def survive_forks(self) -> None:
        """Let no fork happen while another thread compiles: the child would wait forever for what that thread holds,
        and keep the lock between processes for as long as it lives."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=global_compiler_lock.acquire,
                after_in_parent=global_compiler_lock.release,
                after_in_child=global_compiler_lock.release,
            )
