"""Workers of this machine, and threads as workers: for jobs that release the interpreter's lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, Queue, SimpleQueue
from typing import Protocol, TypeAlias

from variegate.workers.protocol import (
    SHUTDOWN_SECONDS,
    Assignment,
    JobSpec,
    WorkerEvent,
    WorkerInfo,
    WorkerLost,
    error_line,
    serve,
)

Report: TypeAlias = Callable[[WorkerEvent], None]


class LocalWorker(Protocol):
    """``thread`` lives as long as any of the worker is left, unless that cannot be killed."""

    thread: threading.Thread
    is_killable: bool

    def send(self, assignment: Assignment) -> None: ...

    def finish(self) -> None:
        """Finish the submitted tasks and end."""

    def kill(self) -> None:
        """End by force, and report nothing more."""


class LocalPool:
    """See ``WorkerPool``. ``spawn_worker`` starts a worker that reports by a function, or raises OSError."""

    def __init__(
        self, spawn_worker: Callable[[WorkerInfo, Report], LocalWorker], devices: Sequence[str], num_threads: int
    ) -> None:
        self._spawn_worker = spawn_worker
        self._devices = devices
        self._num_threads = num_threads
        # Not a SimpleQueue: it may wait forever if the time is up as it begins to wait.
        self._events: Queue[WorkerEvent] = Queue()
        self._active: set[int] = set()  # neither lost nor stopped
        self._workers: dict[int, LocalWorker] = {}
        self._stopped: list[LocalWorker] = []

    def start(self, device: int, worker: int) -> None:
        self._workers = {number: each for number, each in self._workers.items() if each.thread.is_alive()}
        self._stopped = [each for each in self._stopped if each.thread.is_alive()]
        self._active.add(worker)
        info = WorkerInfo(worker, self._devices[device], self._num_threads)
        try:
            self._workers[worker] = self._spawn_worker(info, self._events.put)
        except OSError as error:
            self._events.put(WorkerLost(worker, f"no process could be started: {error_line(error)}"))

    def send(self, worker: int, assignment: Assignment) -> None:
        if (known := self._workers.get(worker)) is not None:
            known.send(assignment)

    def stop(self, worker: int) -> None:
        self._active.discard(worker)
        if (known := self._workers.pop(worker, None)) is not None:
            known.kill()
            if known.is_killable:
                self._stopped.append(known)

    def wait(self, timeout: float) -> list[WorkerEvent]:
        deadline = time.monotonic() + timeout
        events: list[WorkerEvent] = []
        try:
            while not events or not self._events.empty():
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
                if event.worker not in self._active:
                    continue
                events.append(event)
                if isinstance(event, WorkerLost):
                    # Reported once, by the worker itself or by the thread that finds it gone.
                    self._active.discard(event.worker)
        except Empty:
            pass
        return events

    def close(self, force: bool = False) -> None:
        workers = [*self._workers.values(), *self._stopped]
        try:
            for worker in workers:
                worker.kill() if force else worker.finish()
            _join(workers)
        finally:
            for worker in workers:
                worker.kill()
            # Not for ever: a process in the middle of a driver's call survives SIGKILL.
            _join([worker for worker in workers if worker.is_killable])


def start_thread(name: str, run: Callable[..., None], *args: object) -> threading.Thread:
    """Start a daemon: an interpreter that ends does not wait for it."""
    thread = threading.Thread(target=run, args=args, name=name, daemon=True)
    thread.start()
    return thread


def _join(workers: Sequence[LocalWorker]) -> None:
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    for worker in workers:
        worker.thread.join(max(0.0, deadline - time.monotonic()))


class ThreadPool(LocalPool):
    """See ``WorkerPool``. A thread cannot be killed: one that is stopped is abandoned, and ends at its next beat."""

    def __init__(self, spec: JobSpec, devices: Sequence[str], num_threads: int) -> None:
        super().__init__(partial(_WorkerThread, spec), devices, num_threads)


class _Abandoned(BaseException):
    """Nobody waits for this thread's results."""


class _WorkerThread:
    is_killable = False

    def __init__(self, spec: JobSpec, info: WorkerInfo, report: Report) -> None:
        self._assignments: SimpleQueue[Assignment | None] = SimpleQueue()
        self._spec = spec
        self._info = info
        self._report = report
        self._is_abandoned = threading.Event()
        self.send = self._assignments.put
        self.thread = start_thread(f"variegate {info.device} #{info.worker}", self._run)

    def finish(self) -> None:
        self._assignments.put(None)

    def kill(self) -> None:
        self._is_abandoned.set()
        self._assignments.put(None)

    def _run(self) -> None:
        try:
            serve(lambda: self._spec, self._info, self._next_assignment, self._report_unless_abandoned)
        except _Abandoned:
            return
        except BaseException as error:
            self._report(WorkerLost(self._info.worker, f"ended by {error_line(error)}"))

    def _next_assignment(self) -> Assignment | None:
        assignment = self._assignments.get()
        return None if self._is_abandoned.is_set() else assignment

    def _report_unless_abandoned(self, event: WorkerEvent) -> None:
        if self._is_abandoned.is_set():
            raise _Abandoned
        self._report(event)
