"""What threads and processes of this machine have in common as workers: how they come and go, and where what they say
waits."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from variegate.engine.messages import Task, WorkerEvent, WorkerLost
from variegate.engine.workers.base import GRACE, end_of
from variegate.engine.workers.loop import WorkerInfo


class LocalWorker(Protocol):
    """One worker, as seen by whoever started it. ``finish`` lets it do what it has, and end; ``kill`` ends it as far as
    force can; ``is_alive`` as long as anything is left of it, for which ``join`` waits."""

    ends_when_killed: bool

    @property
    def is_alive(self) -> bool: ...

    def send(self, task: Task, payload: Sequence[Any] | None) -> None: ...

    def finish(self) -> None: ...

    def kill(self) -> None: ...

    def join(self, timeout: float) -> None: ...


class LocalWorkers(ABC):
    """See ``WorkerPool``."""

    def __init__(self, devices: Sequence[str], num_threads: int) -> None:
        self._devices, self._num_threads = devices, num_threads
        self._messages: SimpleQueue[WorkerEvent] = SimpleQueue()  # from the threads that hear the workers
        self._heard: set[int] = set()  # workers that are not lost or stopped
        self._workers: dict[int, LocalWorker] = {}
        self._stopped: list[LocalWorker] = []

    @abstractmethod
    def _begin(self, info: WorkerInfo) -> LocalWorker:
        """Raises OSError where it cannot be started."""

    def start(self, device: int, worker: int) -> None:
        self._workers = {number: one for number, one in self._workers.items() if one.is_alive}
        self._stopped = [one for one in self._stopped if one.is_alive]
        self._heard.add(worker)
        try:
            self._workers[worker] = self._begin(WorkerInfo(device, worker, self._devices[device], self._num_threads))
        except OSError as error:
            reason = f"no process could be started: {end_of(error)}"
            self._messages.put(WorkerLost(device, worker, reason))

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        if (one := self._workers.get(worker)) is not None:
            one.send(task, payload)

    def stop(self, worker: int) -> None:
        self._heard.discard(worker)
        if (one := self._workers.pop(worker, None)) is not None:
            one.kill()
            if one.ends_when_killed:
                self._stopped.append(one)

    def wait(self, timeout: float) -> list[WorkerEvent]:
        deadline = time.monotonic() + timeout
        found: list[WorkerEvent] = []
        while not found:
            try:
                self._take(self._messages.get(timeout=max(0.0, deadline - time.monotonic())), found)
                while not self._messages.empty():
                    self._take(self._messages.get_nowait(), found)
            except Empty:
                break
        return found

    def _take(self, message: WorkerEvent, found: list[WorkerEvent]) -> None:
        if message.worker in self._heard:
            found.append(message)
            if isinstance(message, WorkerLost):
                # It is lost once, whoever notices first: itself, or those who hear it end.
                self._heard.discard(message.worker)

    def close(self, force: bool = False) -> None:
        workers = [*self._workers.values(), *self._stopped]
        try:
            for one in workers:
                one.kill() if force else one.finish()
            _join(workers)
        finally:
            for one in workers:
                one.kill()
            # A process that even SIGKILL does not end, in the middle of a driver's call, is not waited for.
            _join([one for one in workers if one.ends_when_killed])


def _join(workers: Sequence[LocalWorker]) -> None:
    deadline = time.monotonic() + GRACE
    for one in workers:
        one.join(max(0.0, deadline - time.monotonic()))
