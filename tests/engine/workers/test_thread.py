"""Threads as workers."""

from __future__ import annotations

import threading

from tests.engine.workers.contract import WorkersContract
from variegate.engine.workers.local import ThreadWorkers


class TestThreads(WorkersContract):
    kind = ThreadWorkers
    crash = "exit"
    death = r"^ended by SystemExit: 3$"

    def check_nothing_left(self, pid: int) -> None:
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("variegate cpu:")] == []
