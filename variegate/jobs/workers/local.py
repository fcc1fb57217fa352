"""Workers of this machine: what threads and processes have in common, and a thread per device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from variegate.jobs.jobs import GRACE, Assignment, JobSpec, WorkerInfo, end_of, serve
from variegate.jobs.messages import Task, WorkerEvent, WorkerLost


class LocalWorker(Protocol):
    """One worker, as seen by whoever started it. ``finish`` lets it do what it has, and end; ``kill`` ends it as far as
    force can; ``thread`` lives as long as anything is left of it."""

    ends_when_killed: bool
    thread: threading.Thread

    def send(self, task: Task, payload: Sequence[Any] | None) -> None: ...

    def finish(self) -> None: ...

    def kill(self) -> None: ...


class LocalWorkers:
    """See ``WorkerPool``. ``begin`` starts a worker that tells what it has to say, or raises OSError."""

    def __init__(
        self,
        begin: Callable[[WorkerInfo, Callable[[WorkerEvent], None]], LocalWorker],
        devices: Sequence[str],
        num_threads: int,
    ) -> None:
        self._begin, self._devices, self._num_threads = begin, devices, num_threads
        self._messages: SimpleQueue[WorkerEvent] = SimpleQueue()  # from the threads that hear the workers
        self._heard: set[int] = set()  # workers that are not lost or stopped
        self._workers: dict[int, LocalWorker] = {}
        self._stopped: list[LocalWorker] = []

    def start(self, device: int, worker: int) -> None:
        self._workers = {number: one for number, one in self._workers.items() if one.thread.is_alive()}
        self._stopped = [one for one in self._stopped if one.thread.is_alive()]
        self._heard.add(worker)
        info = WorkerInfo(device, worker, self._devices[device], self._num_threads)
        try:
            self._workers[worker] = self._begin(info, self._messages.put)
        except OSError as error:
            self._messages.put(WorkerLost(device, worker, f"no process could be started: {end_of(error)}"))

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


def start_thread(name: str, run: Callable[..., None], *args: Any) -> threading.Thread:
    """A daemon: an interpreter that ends does not wait for it."""
    thread = threading.Thread(target=run, args=args, name=name, daemon=True)
    thread.start()
    return thread


def _join(workers: Sequence[LocalWorker]) -> None:
    deadline = time.monotonic() + GRACE
    for one in workers:
        one.thread.join(max(0.0, deadline - time.monotonic()))


class ThreadWorkers(LocalWorkers):
    """See ``WorkerPool``. A thread cannot be ended: one that is stopped is left alone, and ends at its next beat."""

    def __init__(self, spec: JobSpec, devices: Sequence[str], num_threads: int) -> None:
        super().__init__(partial(_WorkerThread, spec), devices, num_threads)


class _Abandoned(BaseException):
    """Nobody waits for what this thread does."""


class _WorkerThread:
    ends_when_killed = False

    def __init__(self, spec: JobSpec, info: WorkerInfo, say: Callable[[WorkerEvent], None]) -> None:
        self._tasks: SimpleQueue[Assignment | None] = SimpleQueue()
        self._spec, self._info, self._tell = spec, info, say
        self._is_abandoned = threading.Event()
        self.thread = start_thread(f"variegate {info.name} #{info.worker}", self._run)

    def send(self, task: Task, payload: Sequence[Any] | None) -> None:
        self._tasks.put(Assignment(task.number, task.start, task.stop, payload))

    def finish(self) -> None:
        self._tasks.put(None)

    def kill(self) -> None:
        self._is_abandoned.set()
        self._tasks.put(None)

    def _run(self) -> None:
        try:
            serve(lambda: self._spec, self._info, self._take, self._say)
        except _Abandoned:
            return
        except BaseException as error:
            self._tell(WorkerLost(self._info.device, self._info.worker, f"ended by {end_of(error)}"))

    def _take(self) -> Assignment | None:
        assignment = self._tasks.get()
        return None if self._is_abandoned.is_set() else assignment

    def _say(self, message: WorkerEvent) -> None:
        if self._is_abandoned.is_set():
            raise _Abandoned
        self._tell(message)
