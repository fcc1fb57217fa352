"""Workers of this machine: a thread per device, or a process, whose crash takes only itself along."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection, parent_process, reduction, resource_tracker
from pathlib import Path
from queue import Empty, Queue, SimpleQueue
from typing import Any

from variegate.jobs import jobs, wire
from variegate.jobs.blocks import HAS_MEMFD, MappedBlocks, MemoryBlocks, Message, SharedBlocks
from variegate.jobs.wire import Parts

# One worker, as seen by whoever started it. ``send`` gives it a task; ``finish`` lets it do what it has, and end;
# ``kill`` ends it by force, as far as ``ends_when_killed`` says; ``thread`` lives as long as any of it is left.
LocalWorker = Any
Report = Callable[[jobs.WorkerEvent], None]


class LocalWorkers:
    """See ``WorkerPool``. ``begin`` starts a worker that reports by the function it gets, or raises OSError."""

    def __init__(
        self, begin: Callable[[jobs.WorkerInfo, Report], LocalWorker], devices: Sequence[str], num_threads: int
    ) -> None:
        self._begin = begin
        self._devices = devices
        self._num_threads = num_threads
        # From the threads that hear the workers. A SimpleQueue may wait forever where time is up as it begins to.
        self._messages: Queue[jobs.WorkerEvent] = Queue()
        self._heard: set[int] = set()  # workers that are not lost or stopped
        self._workers: dict[int, LocalWorker] = {}
        self._stopped: list[LocalWorker] = []

    def start(self, device: int, worker: int) -> None:
        self._workers = {number: one for number, one in self._workers.items() if one.thread.is_alive()}
        self._stopped = [one for one in self._stopped if one.thread.is_alive()]
        self._heard.add(worker)
        info = jobs.WorkerInfo(device, worker, self._devices[device], self._num_threads)
        try:
            self._workers[worker] = self._begin(info, self._messages.put)
        except OSError as error:
            self._messages.put(jobs.WorkerLost(device, worker, f"no process could be started: {jobs.end_of(error)}"))

    def send(self, worker: int, task: jobs.Task, payload: Sequence[Any] | None) -> None:
        if (one := self._workers.get(worker)) is not None:
            one.send(task, payload)

    def stop(self, worker: int) -> None:
        self._heard.discard(worker)
        if (one := self._workers.pop(worker, None)) is not None:
            one.kill()
            if one.ends_when_killed:
                self._stopped.append(one)

    def wait(self, timeout: float) -> list[jobs.WorkerEvent]:
        deadline = time.monotonic() + timeout
        found: list[jobs.WorkerEvent] = []
        try:
            while not found or not self._messages.empty():
                message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
                if message.worker not in self._heard:
                    continue
                found.append(message)
                if isinstance(message, jobs.WorkerLost):
                    # It is lost once, whoever notices first: itself, or those who hear it end.
                    self._heard.discard(message.worker)
        except Empty:
            pass
        return found

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
    deadline = time.monotonic() + jobs.GRACE
    for one in workers:
        one.thread.join(max(0.0, deadline - time.monotonic()))


class ThreadPool(LocalWorkers):
    """See ``WorkerPool``. A thread cannot be ended: one that is stopped is left alone, and ends at its next beat."""

    def __init__(self, spec: jobs.JobSpec, devices: Sequence[str], num_threads: int) -> None:
        super().__init__(partial(_WorkerThread, spec), devices, num_threads)


class _Abandoned(BaseException):
    """Nobody waits for what this thread does."""


class _WorkerThread:
    ends_when_killed = False

    def __init__(self, spec: jobs.JobSpec, info: jobs.WorkerInfo, report: Report) -> None:
        self._tasks: SimpleQueue[jobs.Assignment | None] = SimpleQueue()
        self._spec = spec
        self._info = info
        self._report = report
        self._is_abandoned = threading.Event()
        self.thread = start_thread(f"variegate {info.name} #{info.worker}", self._run)

    def send(self, task: jobs.Task, payload: Sequence[Any] | None) -> None:
        self._tasks.put(jobs.Assignment(task.number, task.start, task.stop, payload))

    def finish(self) -> None:
        self._tasks.put(None)

    def kill(self) -> None:
        self._is_abandoned.set()
        self._tasks.put(None)

    def _run(self) -> None:
        try:
            jobs.serve(lambda: self._spec, self._info, self._take, self._say)
        except _Abandoned:
            return
        except BaseException as error:
            self._report(jobs.WorkerLost(self._info.device, self._info.worker, f"ended by {jobs.end_of(error)}"))

    def _take(self) -> jobs.Assignment | None:
        assignment = self._tasks.get()
        return None if self._is_abandoned.is_set() else assignment

    def _say(self, message: jobs.WorkerEvent) -> None:
        if self._is_abandoned.is_set():
            raise _Abandoned
        self._report(message)


# The exit code of a worker that found itself starting workers: it was importing the main script.
UNGUARDED = 97
UNGUARDED_REASON = (
    "the main script starts worker processes as soon as it is imported, and each of these imports it first. Put what "
    "it does under\n\n    if __name__ == '__main__':\n        ...\n\nor use workers=\"thread\""
)

# Read by OpenMP (torch) and BLAS libraries (NumPy) when they are loaded, and never again.
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_lock = threading.Lock()


@contextmanager
def child_environment(num_threads: int) -> Iterator[None]:
    """Set what a process started inside inherits: counts of threads, no Ctrl-C, a main module that can be found."""
    # The main module of a program read from standard input has the name of a file that there is not.
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    is_file = file is None or getattr(main, "__spec__", None) is not None or Path(file).exists()
    with _lock:
        kept = {name: os.environ.get(name) for name in _THREAD_COUNTS}
        # Started by the first process otherwise, which would unblock the signal.
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            os.environ.update(dict.fromkeys(_THREAD_COUNTS, str(num_threads)))
            if not is_file:
                main.__file__ = None
            yield
        finally:
            if not is_file:
                main.__file__ = file
            for name, value in kept.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def refuse_unguarded() -> None:
    """Raises SystemExit in a worker that is still importing the main script."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)


class ProcessPool(LocalWorkers):
    """See ``WorkerPool``. The spec is pickled here, once: raises what that raises."""

    def __init__(self, spec: jobs.JobSpec, devices: Sequence[str], num_threads: int) -> None:
        refuse_unguarded()
        begin = partial(_WorkerProcess, wire.encode_spec(spec), getattr(spec, "descriptors", ()))
        super().__init__(begin, devices, num_threads)


class _Inherited:
    """Open files that a process has from its start, by the same numbers."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        self._descriptors = descriptors

    def __reduce__(self) -> Any:
        return list, ([reduction.DupFd(number) for number in self._descriptors],)


class _WorkerProcess:
    """A worker process behind a socket: tasks go there, its reports come back, each by a thread.

    ``spec``: the encoded work, which is sent first. Raises OSError if no process can be started.
    """

    ends_when_killed = True

    def __init__(self, spec: Parts, descriptors: Sequence[int], info: jobs.WorkerInfo, report: Report) -> None:
        self._outbox: SimpleQueue[Parts | None] = SimpleQueue()
        self._info = info
        self._report = report
        self._is_ready = False
        self._socket, theirs = socket.socketpair()
        # A daemon: an interpreter that ends without closing its workers does not wait for them.
        spawn = multiprocessing.get_context("spawn")
        args = (theirs, _Inherited(descriptors))
        name = f"variegate {info.name} #{info.worker}"
        self._process = spawn.Process(target=_run_worker, args=args, name=name, daemon=True)
        try:
            with child_environment(info.num_threads):
                self._process.start()
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._outbox.put([pickle.dumps(tuple(info)), *spec])
        self._sender = start_thread(f"to {name}", self._send_outbox)
        self.thread = start_thread(f"from {name}", self._receive_reports)

    def send(self, task: jobs.Task, payload: Sequence[Any] | None) -> None:
        head = pickle.dumps((task.number, task.start, task.stop))
        self._outbox.put([head] if payload is None else [head, *wire.encode(payload)])

    def finish(self) -> None:
        if self._is_ready:
            self._outbox.put(None)
        else:  # a worker that is still starting has no tasks
            self.kill()

    def kill(self) -> None:
        """End the process and ignore its further reports."""
        self._process.kill()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _send_outbox(self) -> None:
        # If the worker is gone, the receiving thread finds out.
        with suppress(OSError):
            while (parts := self._outbox.get()) is not None:
                wire.send_parts(self._socket, parts)
                del parts
            self._socket.shutdown(socket.SHUT_WR)

    def _receive_reports(self) -> None:
        remark = ""
        outbox = self._outbox
        blocks = MappedBlocks(lambda ticket: outbox.put([pickle.dumps(ticket)]))
        try:
            while self._has_report():
                head, *body = wire.receive_parts(self._socket)
                event, shared = pickle.loads(head)
                if shared is not None:
                    body = blocks.receive(self._socket, shared, body)
                message = wire.unpack_event((event, body or None))
                self._is_ready = self._is_ready or isinstance(message, jobs.WorkerReady)
                self._report(message)
                # Not to be kept in memory while waiting for the next report.
                del head, body, event, message
        except EOFError:
            pass
        except OSError as error:
            remark = "" if self._is_ready else f"{jobs.end_of(error)}; "
        except Exception as error:
            remark = f"its report cannot be read: {jobs.end_of(error)}; "
        self._report(self._end(remark))
        self._outbox.put(None)
        self._sender.join()
        self._socket.close()

    def _has_report(self) -> bool:
        """Wait for a report. Returns False if the process has ended."""
        # Children of the process may keep the socket open.
        while self._socket not in connection.wait([self._socket, self._process.sentinel], timeout=1.0):
            if not self._process.is_alive():
                return False
        return True

    def _end(self, remark: str) -> jobs.Fatal | jobs.WorkerLost:
        """Wait for the end of the process, by force if it does not end by itself, and describe it."""
        if not remark:
            self._process.join(jobs.GRACE)
        self.kill()
        self._process.join()
        device = self._info.device
        worker = self._info.worker
        code = self._process.exitcode
        if code == UNGUARDED:
            return jobs.Fatal(device, worker, UNGUARDED_REASON)
        names = {number.value: f" ({number.name})" for number in signal.Signals}
        if code is None:
            how = "does not end"
        else:
            how = f"ended with exit code {code}" if code >= 0 else f"killed by signal {-code}{names.get(-code, '')}"
        return jobs.WorkerLost(device, worker, f"{remark}{how}")


def _run_worker(sock: socket.socket, _: Any) -> None:
    """Main function of a worker process. Threads read tasks and write results, so that neither side waits for the
    other."""
    # The parent decides what a Ctrl-C means; it was blocked until here, see ``child_environment``.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    start_thread("end with parent", _end_with_parent)
    head, *spec = wire.receive_parts(sock)
    info = jobs.WorkerInfo(*pickle.loads(head))
    tasks: SimpleQueue[jobs.Assignment | None] = SimpleQueue()
    outbox: SimpleQueue[wire.PackedEvent | None] = SimpleQueue()
    shared = SharedBlocks(_share_results()) if HAS_MEMFD else None

    def report(message: jobs.WorkerEvent) -> None:
        outbox.put(wire.pack_event(message))

    def receive_tasks() -> None:
        try:
            with suppress(EOFError, OSError):
                while True:
                    head, *body = wire.receive_parts(sock)
                    task = pickle.loads(head)
                    if shared is not None and isinstance(task, int):  # a ticket
                        shared.release(task)
                    else:
                        wire.deliver(info, body or None, task, tasks.put, report)
                    # Not to be kept in memory while waiting for the next task.
                    del head, body
        finally:
            tasks.put(None)

    def send_reports() -> None:
        try:
            while (packed := outbox.get()) is not None:
                event, parts = packed
                if shared is None or parts is None:
                    wire.send_parts(sock, [_head(event, None), *(parts or [])])
                else:
                    shared.send(sock, partial(_head, event), parts)
                del packed, event, parts
        except OSError:
            os._exit(1)

    start_thread("receive tasks", receive_tasks)
    sender = start_thread("send reports", send_reports)
    try:
        jobs.serve(lambda: wire.decode_spec(spec), info, tasks.get, report)
    finally:
        outbox.put(None)
        sender.join()
        if shared is not None:
            shared.close()


def _head(event: jobs.WorkerEvent, shared: Message | None) -> bytes:
    return pickle.dumps((event, shared))


def _share_results() -> MemoryBlocks:
    """Results lie in memory that others can map."""
    from variegate.executors.cpu.memory import RESULTS

    blocks = MemoryBlocks()
    RESULTS.allocate = blocks.allocate
    return blocks


def _end_with_parent() -> None:
    """End at once when the parent has, however it did."""
    parent = parent_process()
    assert parent is not None
    number = os.getppid()
    # The sentinel alone is not enough: a process that the parent forked holds it open.
    while not connection.wait([parent.sentinel], timeout=1.0) and os.getppid() == number:
        pass
    os._exit(1)
