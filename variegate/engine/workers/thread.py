"""A thread per device, in this process: no start-up, nothing copied; a crash takes everything along."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from variegate.engine.jobs import JobSpec
from variegate.engine.messages import Task, WorkerEvent, WorkerLost
from variegate.engine.workers.base import end_of
from variegate.engine.workers.local import LocalWorker, LocalWorkers
from variegate.engine.workers.loop import Assignment, WorkerInfo, serve


class ThreadWorkers(LocalWorkers):
    """See ``WorkerPool``. A thread cannot be ended: one that is stopped is left alone, and ends at its next beat."""

    def __init__(self, spec: JobSpec, devices: Sequence[str], num_threads: int) -> None:
        super().__init__(devices, num_threads)
        self._spec = spec

    def _begin(self, info: WorkerInfo) -> LocalWorker:
        return _WorkerThread(self._spec, info, self._messages.put)


class _Abandoned(BaseException):
    """Nobody waits for what this thread does."""


class _WorkerThread:
    ends_when_killed = False

    def __init__(self, spec: JobSpec, info: WorkerInfo, say: Callable[[WorkerEvent], None]) -> None:
        self._tasks: SimpleQueue[Assignment | None] = SimpleQueue()
        self._spec, self._info, self._tell = spec, info, say
        self._is_abandoned = threading.Event()
        name = f"variegate {info.name} #{info.worker}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def send(self, task: Task, payload: Sequence[Any] | None) -> None:
        self._tasks.put(Assignment(task.number, task.start, task.stop, payload))

    def finish(self) -> None:
        self._tasks.put(None)

    def kill(self) -> None:
        self._is_abandoned.set()
        self._tasks.put(None)

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        device, worker = self._info.device, self._info.worker
        try:
            serve(lambda: self._spec, self._info, self._take, self._say)
        except _Abandoned:
            return
        except BaseException as error:
            self._tell(WorkerLost(device, worker, f"ended by {end_of(error)}"))

    def _take(self) -> Assignment | None:
        assignment = self._tasks.get()
        return None if self._is_abandoned.is_set() else assignment

    def _say(self, message: WorkerEvent) -> None:
        if self._is_abandoned.is_set():
            raise _Abandoned
        self._tell(message)
