"""A process per device: a crash takes only itself along, and Python's lock is not shared.

Processes are always started anew (spawn), so that each gets a CUDA context and threads of its own. Each has a socket of
its own to the parent, with a thread that reads it and one that writes it. Nothing is shared between workers, so one
that is killed in the middle of a message breaks nothing but that message.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection, parent_process, resource_tracker
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from variegate.jobs.jobs import GRACE, Assignment, JobSpec, WorkerInfo, end_of, serve
from variegate.jobs.messages import Fatal, Task, TaskFailed, WorkerEvent, WorkerLost, WorkerReady
from variegate.jobs.workers import wire
from variegate.jobs.workers.local import LocalWorkers, start_thread
from variegate.jobs.workers.wire import Parts

# The exit code of a worker that found itself starting workers: it was importing the main script.
_UNGUARDED = 97
_UNGUARDED_REASON = (
    "the main script starts worker processes as soon as it is imported, and each of these imports it first. Put what "
    "it does under\n\n    if __name__ == '__main__':\n        ...\n\nor use workers=\"thread\""
)

# Read by OpenMP (torch), BLAS libraries (NumPy) and Numba when they are loaded, and never again.
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_lock = threading.Lock()


@contextmanager
def _surroundings(num_threads: int) -> Iterator[None]:
    """What a process inherits that is started inside: counts of threads, no Ctrl-C, a main module that can be found."""
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


def _how_it_ended(exitcode: int | None) -> str:
    if exitcode is None:
        return "does not end"
    if exitcode >= 0:
        return f"ended with exit code {exitcode}"
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return f"killed by signal {-exitcode}{names.get(-exitcode, '')}"


class ProcessWorkers(LocalWorkers):
    """See ``WorkerPool``. The spec is pickled here, once: raises what that raises."""

    def __init__(self, spec: JobSpec, devices: Sequence[str], num_threads: int) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # This process is a worker that is still importing the main script.
            raise SystemExit(_UNGUARDED)
        super().__init__(partial(_WorkerProcess, wire.encode(spec)), devices, num_threads)


class _WorkerProcess:
    ends_when_killed = True

    def __init__(self, spec: Parts, info: WorkerInfo, say: Callable[[WorkerEvent], None]) -> None:
        self._outbox: SimpleQueue[Parts | None] = SimpleQueue()
        self._info, self._say = info, say
        self._is_ready = False
        self._socket, theirs = socket.socketpair()
        name = f"variegate {info.name} #{info.worker}"
        # A daemon: an interpreter that ends without closing its workers does not wait for them.
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_run_worker, args=(theirs,), name=name, daemon=True)
        try:
            with _surroundings(info.num_threads):
                self._process.start()
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._outbox.put([pickle.dumps(tuple(info)), *spec])
        self._speaker = start_thread(f"to {name}", self._speak)
        self.thread = start_thread(f"from {name}", self._listen)

    def send(self, task: Task, payload: Sequence[Any] | None) -> None:
        head = pickle.dumps((task.number, task.start, task.stop))
        self._outbox.put([head] if payload is None else [head, *wire.encode(payload)])

    def finish(self) -> None:
        if self._is_ready:
            self._outbox.put(None)
        else:  # one that is still starting has nothing to do
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _speak(self) -> None:
        # Where the worker is gone, the listener finds out.
        with suppress(OSError):
            while (parts := self._outbox.get()) is not None:
                wire.send_parts(self._socket, parts)
                del parts
            self._socket.shutdown(socket.SHUT_WR)

    def _listen(self) -> None:
        remark = ""
        try:
            while self._has_said_something():
                head, *body = wire.receive_parts(self._socket)
                message = wire.unpack_event((pickle.loads(head), body or None))
                self._is_ready = self._is_ready or isinstance(message, WorkerReady)
                self._say(message)
                # Not to be held while the next one is awaited.
                del head, body, message
        except (EOFError, OSError):
            self._process.join(GRACE)
        except Exception as error:
            remark = f"what it said cannot be read: {end_of(error)}; "
        self.kill()
        self._process.join()
        device, worker = self._info.device, self._info.worker
        if self._process.exitcode == _UNGUARDED:
            self._say(Fatal(device, worker, _UNGUARDED_REASON))
        else:
            self._say(WorkerLost(device, worker, remark + _how_it_ended(self._process.exitcode)))
        self._outbox.put(None)
        self._speaker.join()
        self._socket.close()

    def _has_said_something(self) -> bool:
        """Wait for it; False where the process has ended, be it that children of its own hold the socket open."""
        while True:
            ready = connection.wait([self._socket, self._process.sentinel], timeout=1.0)
            if self._socket in ready:
                return True
            if not self._process.is_alive():
                return False


def _run_worker(sock: socket.socket) -> None:
    """What the process does; returns when the parent has closed its side and all that it sent before is done.

    Tasks are read and results written by threads of their own: the next task is here when the last is done, and neither
    side ever waits for the other to read before it reads itself.
    """
    # The parent decides what a Ctrl-C means; it was blocked until here, see ``_surroundings``.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    start_thread("end with parent", _end_with_parent)
    head, *spec = wire.receive_parts(sock)
    info = WorkerInfo(*pickle.loads(head))
    tasks: SimpleQueue[Assignment | None] = SimpleQueue()
    outbox: SimpleQueue[Parts | None] = SimpleQueue()

    def say(message: WorkerEvent) -> None:
        event, outputs = wire.pack_event(message)
        outbox.put([pickle.dumps(event), *(outputs or [])])

    start_thread("hear", _hear, sock, info, tasks, say)
    speaker = start_thread("speak", _speak, sock, outbox)
    try:
        serve(lambda: wire.decode(spec), info, tasks.get, say)
    finally:
        outbox.put(None)
        speaker.join()


def _hear(sock: socket.socket, info: WorkerInfo, tasks: SimpleQueue[Assignment | None], say: Any) -> None:
    try:
        with suppress(EOFError, OSError):
            while True:
                head, *body = wire.receive_parts(sock)
                assignment = wire.unpack_task(info, body or None, *pickle.loads(head))
                say(assignment) if isinstance(assignment, TaskFailed) else tasks.put(assignment)
                # Not to be held while the next one is awaited.
                del head, body, assignment
    finally:
        tasks.put(None)


def _speak(sock: socket.socket, outbox: SimpleQueue[Parts | None]) -> None:
    try:
        while (parts := outbox.get()) is not None:
            wire.send_parts(sock, parts)
            del parts
    except OSError:
        # Nobody hears this worker any more.
        os._exit(1)


def _end_with_parent() -> None:
    """End at once when the parent has, however it did."""
    parent = parent_process()
    assert parent is not None
    number = os.getppid()
    # The sentinel alone is not enough: a process that the parent forked holds it open.
    while not connection.wait([parent.sentinel], timeout=1.0) and os.getppid() == number:
        pass
    os._exit(1)
