"""Processes as workers: a crash ends only its own worker."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import connection, parent_process, reduction, resource_tracker
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from variegate.workers import wire
from variegate.workers.blocks import HAS_MEMFD, BlockReceiver, BlockSender, create_memory
from variegate.workers.protocol import (
    SHUTDOWN_SECONDS,
    Assignment,
    Fatal,
    JobSpec,
    WorkerEvent,
    WorkerInfo,
    WorkerLost,
    WorkerReady,
    error_line,
    serve,
)
from variegate.workers.threads import LocalPool, Report, start_thread
from variegate.workers.wire import Parts

# Exit code of a worker that imports the main script and finds itself starting workers.
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
    """Context manager: set the environment that a new process inherits: thread counts, no Ctrl-C, a main module that
    exists."""
    # The main module of a program read from standard input has the name of a file that does not exist.
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    is_file = file is None or getattr(main, "__spec__", None) is not None or Path(file).exists()
    with _lock:
        before = {name: os.environ.get(name) for name in _THREAD_COUNTS}
        # The first process would start it otherwise, and unblock the signal.
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
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class ProcessPool(LocalPool):
    """See ``WorkerPool``. Raises errors of pickling the spec, and SystemExit in a worker that imports the main
    script."""

    def __init__(self, spec: JobSpec, devices: Sequence[str], num_threads: int) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SystemExit(UNGUARDED)
        encoded = wire.encode_spec(spec)
        super().__init__(partial(_WorkerProcess, encoded, getattr(spec, "descriptors", ())), devices, num_threads)


class _Inherited:
    """Open files that a process has from its start, by the same numbers."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        self._descriptors = descriptors

    def __reduce__(self) -> Any:
        return list, ([reduction.DupFd(number) for number in self._descriptors],)


class _WorkerProcess:
    """A worker process behind a socket. One thread sends assignments to it, another receives its events.

    ``spec``: the encoded job, which is sent first. Raises OSError if no process can be started.
    """

    is_killable = True

    def __init__(self, spec: Parts, descriptors: Sequence[int], info: WorkerInfo, report: Report) -> None:
        self._outbox: SimpleQueue[Parts | None] = SimpleQueue()
        self._info = info
        self._report = report
        self._is_ready = False
        self._socket, theirs = socket.socketpair()
        outbox = self._outbox
        memory = create_memory() if HAS_MEMFD else None
        # A daemon: an interpreter that ends without closing its workers does not wait for them.
        spawn = multiprocessing.get_context("spawn")
        inherited = _Inherited(descriptors if memory is None else [memory, *descriptors])
        name = f"variegate {info.device} #{info.worker}"
        self._process = spawn.Process(target=_run_worker, args=(theirs, inherited), name=name, daemon=True)
        self._blocks = None
        try:
            if memory is not None:
                self._blocks = BlockReceiver(memory, lambda ticket: outbox.put([pickle.dumps(ticket)]))
            with child_environment(info.num_threads):
                self._process.start()
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
            if memory is not None:
                os.close(memory)
        self._outbox.put([pickle.dumps(tuple(info)), *spec])
        self._sender = start_thread(f"to {name}", self._send_outbox)
        self.thread = start_thread(f"from {name}", self._receive_events)

    def send(self, assignment: Assignment) -> None:
        *fields, payload = assignment
        head = pickle.dumps(fields)
        self._outbox.put([head] if payload is None else [head, *wire.encode(payload)])

    def finish(self) -> None:
        if self._is_ready:
            self._outbox.put(None)
        else:  # a worker that is still starting has no work
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _send_outbox(self) -> None:
        # If the worker has ended, the receiving thread finds out.
        with suppress(OSError):
            while (parts := self._outbox.get()) is not None:
                wire.send_parts(self._socket, parts)
                del parts
            self._socket.shutdown(socket.SHUT_WR)

    def _receive_events(self) -> None:
        remark = ""
        try:
            while self._wait_for_event():
                head, *parts = wire.receive_parts(self._socket)
                event, places = pickle.loads(head)
                if places is not None:
                    assert self._blocks is not None
                    parts = self._blocks.parts_of(places, parts)
                event = wire.unpack_event(event, parts)
                self._is_ready = self._is_ready or isinstance(event, WorkerReady)
                self._report(event)
                # Must not stay in memory while the next event is awaited.
                del head, parts, event, places
        except EOFError:
            pass
        except OSError as error:
            remark = "" if self._is_ready else f"{error_line(error)}; "
        except Exception as error:
            remark = f"its report cannot be read: {error_line(error)}; "
        self._report(self._end(remark))
        self._outbox.put(None)
        self._sender.join()
        self._socket.close()

    def _wait_for_event(self) -> bool:
        """Return False if the process has ended, although children of it may keep the socket open."""
        while self._socket not in connection.wait([self._socket, self._process.sentinel], timeout=1.0):
            if not self._process.is_alive():
                return False
        return True

    def _end(self, remark: str) -> Fatal | WorkerLost:
        """Wait for the process to end, kill it after a timeout, and describe its end."""
        if not remark:
            self._process.join(SHUTDOWN_SECONDS)
        self.kill()
        self._process.join()
        worker = self._info.worker
        code = self._process.exitcode
        if code == UNGUARDED:
            return Fatal(worker, UNGUARDED_REASON)
        if code is None:
            return WorkerLost(worker, f"{remark}does not end")
        if code >= 0:
            return WorkerLost(worker, f"{remark}ended with exit code {code}")
        names = {number.value: f" ({number.name})" for number in signal.Signals}
        return WorkerLost(worker, f"{remark}killed by signal {-code}{names.get(-code, '')}")


def _run_worker(sock: socket.socket, inherited: Sequence[Any]) -> None:
    """Main function of a worker process. A thread receives assignments, so that they are there before they are due."""
    # The parent handles Ctrl-C; the signal was blocked until here, see ``child_environment``.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    start_thread("end with parent", _end_with_parent)
    head, *spec = wire.receive_parts(sock)
    info = WorkerInfo(*pickle.loads(head))
    assignments: SimpleQueue[Assignment | None] = SimpleQueue()
    blocks = _share_results(inherited[0].detach()) if HAS_MEMFD else None
    lock = threading.Lock()

    def report(event: WorkerEvent) -> None:
        event, parts = wire.pack_event(event)
        places = None
        if blocks is not None and parts:
            places, parts = blocks.place(parts)
        try:
            with lock:
                wire.send_parts(sock, [pickle.dumps((event, places)), *parts])
        except OSError:
            os._exit(1)

    def receive() -> None:
        try:
            with suppress(EOFError, OSError):
                while True:
                    head, *parts = wire.receive_parts(sock)
                    received = pickle.loads(head)
                    if blocks is not None and isinstance(received, int):  # a ticket
                        blocks.release(received)
                    else:
                        wire.decode_assignment(info.worker, received, parts, assignments.put, report)
                    # Must not stay in memory while the next assignment is awaited.
                    del head, parts
        finally:
            assignments.put(None)

    start_thread("receive assignments", receive)
    serve(lambda: wire.decode_spec(spec), info, assignments.get, report)


def _share_results(descriptor: int) -> BlockSender:
    from variegate.executors.cpu.memory import RESULTS

    blocks = BlockSender(descriptor)
    RESULTS.allocate = blocks.allocate
    return blocks


def _end_with_parent() -> None:
    """Exit as soon as the parent process has ended."""
    parent = parent_process()
    assert parent is not None
    number = os.getppid()
    # The sentinel alone is not enough: a process that the parent forked holds it open.
    while not connection.wait([parent.sentinel], timeout=1.0) and os.getppid() == number:
        pass
    os._exit(1)
