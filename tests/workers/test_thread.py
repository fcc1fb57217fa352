"""Threads as workers."""

from __future__ import annotations

import threading

import pytest

from tests.jobs.bounded import fail_after
from tests.workers.contract import WorkersContract
from tests.workers.toys import Echo
from variegate.workers.threads import ThreadPool


class TestThreads(WorkersContract):
    kind = ThreadPool
    crash = "exit"
    death = r"^ended by SystemExit: 3$"

    @pytest.fixture(autouse=True)
    def _threads_before(self) -> None:
        self._before = set(threading.enumerate())

    def check_nothing_left(self, pid: int) -> None:
        assert set(threading.enumerate()) <= self._before


def test_a_wait_ends_though_its_time_is_up_as_it_begins() -> None:
    with fail_after(30):
        for number in range(12_000):
            assert ThreadPool(Echo(0), ["cpu:0"], 1).wait(number % 3000 * 1e-9) == []
