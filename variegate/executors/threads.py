"""Threads over the rows of a batch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import ContextVar
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from variegate.threads import Threads, default_threads

# Where it is set, ``share_out`` adds how many seconds its threads worked beyond those that its caller waited for them.
extra_seconds: ContextVar[list[float] | None] = ContextVar("extra_seconds", default=None)
# Rows handed to a thread at a time: enough to hide the hand-over, few enough to balance unequal rows.
ROWS_AT_A_TIME = 8


@lru_cache(maxsize=8)
def _thread_pool(threads: int) -> Threads:
    return Threads(threads, "variegate")


def share_out(
    work: Callable[[npt.NDArray[np.int64]], None], number: int, num_threads: int | None, chunk: int = ROWS_AT_A_TIME
) -> None:
    """``work`` on all of 0..number-1, in chunks that threads take one after another."""
    threads = default_threads() if num_threads is None else num_threads
    every = np.arange(number, dtype=np.int64)
    if threads == 1 or number <= 1:
        work(every)
        return
    chunk = max(1, min(chunk, -(-number // threads)))
    pool, extra = _thread_pool(threads), extra_seconds.get()
    # Threads take what is next by themselves: a task for every chunk would cost a hand-over, and wake the caller.
    starts = deque(range(0, number, chunk))
    errors: dict[int, BaseException] = {}

    def take() -> None:
        begin = time.perf_counter()
        while starts:
            try:
                start = starts.popleft()
            except IndexError:  # another thread was faster
                break
            try:
                work(every[start : start + chunk])
            except BaseException as error:
                errors[start] = error
                starts.clear()
        if extra is not None:
            extra.append(time.perf_counter() - begin)

    if extra is not None:
        extra.append(time.perf_counter())
    parts: list[Future[None]] = []
    try:
        for _ in range(min(threads, len(starts))):
            parts.append(pool.submit(take))
        wait(parts)
    finally:
        # Threads write to memory by its address: none may be left at work when the caller gives that memory up, be it
        # for an error of one of them or a Ctrl-C.
        starts.clear()
        for part in parts:
            part.cancel()
        wait(parts)
        if extra is not None:
            extra.append(-time.perf_counter())
    if errors:
        # What comes before a chunk has been taken before it, so that this is the same error every time.
        first = errors[min(errors)]
        errors.clear()
        try:
            raise first
        finally:
            del first  # its traceback holds this frame, and with it all that the caller gives up
