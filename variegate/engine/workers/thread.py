"""A thread per device, in this process: no start-up, nothing copied; a crash takes everything along."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from variegate.engine.messages import Task, WorkerLost
from variegate.engine.work import Work
from variegate.engine.workers.base import GRACE, Inbox, Report, end_of
from variegate.engine.workers.loop import Assignment, Place, serve


class ThreadWorkers:
    """See ``Workers``. A thread cannot be ended: one that is stopped is left alone, and ends at its next beat."""

    def __init__(self, work: Work, devices: Sequence[str], num_threads: int) -> None:
        self._work, self._devices, self._num_threads = work, devices, num_threads
        self._inbox = Inbox()
        self._lives: dict[int, _Life] = {}

    def start(self, device: int, worker: int) -> None:
        self._lives = {number: life for number, life in self._lives.items() if life.thread.is_alive()}
        self._inbox.open(worker)
        place = Place(device, worker, self._devices[device], self._num_threads)
        self._lives[worker] = _Life(self._work, place, self._inbox)

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        if (life := self._lives.get(worker)) is not None:
            life.tasks.put(Assignment(task.number, task.start, task.stop, payload))

    def stop(self, worker: int) -> None:
        self._inbox.drop(worker)
        if (life := self._lives.pop(worker, None)) is not None:
            life.abandon()

    def wait(self, timeout: float) -> list[Report]:
        return self._inbox.wait(timeout)

    def close(self, force: bool = False) -> None:
        lives, self._lives = list(self._lives.values()), {}
        for life in lives:
            if force:
                life.abandon()
            life.tasks.put(None)
        deadline = time.monotonic() + GRACE
        for life in lives:
            life.thread.join(max(0.0, deadline - time.monotonic()))
            life.abandon()


class _Abandoned(BaseException):
    """Nobody waits for what this thread does."""


class _Life:
    """One worker."""

    def __init__(self, work: Work, place: Place, inbox: Inbox) -> None:
        self.tasks: SimpleQueue[Assignment | None] = SimpleQueue()
        self._work, self._place, self._inbox = work, place, inbox
        self._is_abandoned = threading.Event()
        name = f"variegate {place.name} #{place.worker}"
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def abandon(self) -> None:
        self._is_abandoned.set()
        self.tasks.put(None)

    def _run(self) -> None:
        try:
            serve(lambda: self._work, self._place, self._take, self._say)
        except _Abandoned:
            return
        except BaseException as error:
            self._inbox.put(Report(WorkerLost(self._place.device, self._place.worker, f"ended by {end_of(error)}")))

    def _take(self) -> Assignment | None:
        given = self.tasks.get()
        return None if self._is_abandoned.is_set() else given

    def _say(self, report: Report) -> None:
        if self._is_abandoned.is_set():
            raise _Abandoned
        self._inbox.put(report)
