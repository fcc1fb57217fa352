"""Values computed once, threads or not, forked or not; the context of work in a pool."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings
from contextvars import ContextVar

import pytest

from variegate.threads import Threads, computed_once


class Slow:
    def __init__(self, may_end: threading.Event | None = None) -> None:
        self.may_end, self.began, self.count = may_end, threading.Event(), 0

    @computed_once
    def value(self) -> int:
        """Seven."""
        self.count += 1
        self.began.set()
        if self.may_end is not None:
            assert self.may_end.wait(60)
        return 7


def test_a_value_is_computed_once() -> None:
    slow = Slow()
    assert (slow.value, slow.value, slow.count) == (7, 7, 1)
    assert Slow.value.__doc__ == "Seven."


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_fork_while_another_thread_computes() -> None:
    """Which would leave a lock of the class taken in the child."""
    may_end = threading.Event()
    slow = Slow(may_end)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.began.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork of a process with threads
        child = multiprocessing.get_context("fork").Process(target=_read)
        child.start()
    may_end.set()
    thread.join()
    child.join(30)
    alive = child.is_alive()
    child.kill()
    assert not alive
    assert child.exitcode == 0


def _read() -> None:
    assert Slow().value == 7


def test_work_runs_in_the_context_of_its_submitter() -> None:
    """Not in that of the thread that started the worker thread, which free-threaded Python keeps."""
    user = ContextVar("user", default="nobody")
    pool = Threads(1, "test")
    token = user.set("first")
    first = pool.submit(user.get).result()
    user.reset(token)
    assert (first, pool.submit(user.get).result()) == ("first", "nobody")
    pool.shutdown()
