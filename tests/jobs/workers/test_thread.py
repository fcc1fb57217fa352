"""Threads as workers."""

from __future__ import annotations

import threading

from tests.jobs.workers.contract import WorkersContract
from variegate.jobs.local_workers import ThreadWorkers


class TestThreads(WorkersContract):
    kind = ThreadWorkers
    crash = "exit"
    death = r"^ended by SystemExit: 3$"

    def check_nothing_left(self, pid: int) -> None:
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("variegate cpu:")] == []
