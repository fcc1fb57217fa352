"""Processes as workers."""

from __future__ import annotations

import multiprocessing
import threading

from tests.engine.workers.contract import WorkersContract
from variegate.engine.workers.process import ProcessWorkers


class TestProcesses(WorkersContract):
    kind = ProcessWorkers
    death = r"^killed by signal 11 \(SIGSEGV\)$"

    def check_nothing_left(self, pid: int) -> None:
        assert [process.name for process in multiprocessing.active_children() if "variegate" in process.name] == []
        assert [thread.name for thread in threading.enumerate() if " variegate cpu:" in thread.name] == []
