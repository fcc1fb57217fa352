"""A process per device: a crash takes only itself along, and Python's lock is not shared.

Each worker has a socket of its own to the parent, with a thread that reads it and one that writes it. Nothing is shared
between workers, so one that is killed in the middle of a message breaks nothing but that message.
"""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection
from queue import SimpleQueue
from typing import Any

from variegate.engine.jobs import JobSpec
from variegate.engine.messages import Fatal, Task, WorkerEvent, WorkerLost, WorkerReady
from variegate.engine.workers.base import GRACE, end_of
from variegate.engine.workers.child_process import run_worker
from variegate.engine.workers.local import LocalWorker, LocalWorkers
from variegate.engine.workers.loop import WorkerInfo
from variegate.engine.workers.spawning import (
    SPAWN,
    UNGUARDED,
    UNGUARDED_REASON,
    check_guard,
    how_it_ended,
    surroundings,
)
from variegate.engine.workers.wire import Parts, encode, receive_parts, send_parts, unpack_event


class ProcessWorkers(LocalWorkers):
    """See ``WorkerPool``. The spec is pickled here, once: raises what that raises."""

    def __init__(self, spec: JobSpec, devices: Sequence[str], num_threads: int) -> None:
        check_guard()
        super().__init__(devices, num_threads)
        self._spec = encode(spec)

    def _begin(self, info: WorkerInfo) -> LocalWorker:
        return _WorkerProcess(self._spec, info, self._messages.put)


class _WorkerProcess:
    ends_when_killed = True

    def __init__(self, spec: Parts, info: WorkerInfo, say: Callable[[WorkerEvent], None]) -> None:
        self._outbox: SimpleQueue[Parts | None] = SimpleQueue()
        self._info, self._say = info, say
        self._is_ready = False
        self._socket, theirs = socket.socketpair()
        name = f"variegate {info.name} #{info.worker}"
        # A daemon: an interpreter that ends without closing its workers does not wait for them.
        self._process = SPAWN.Process(target=run_worker, args=(theirs,), name=name, daemon=True)
        try:
            with surroundings(info.num_threads):
                self._process.start()
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._outbox.put([pickle.dumps(tuple(info)), *spec])
        self._speaker = threading.Thread(target=self._speak, name=f"to {name}", daemon=True)
        self._speaker.start()
        self._listener = threading.Thread(target=self._listen, name=f"from {name}", daemon=True)
        self._listener.start()

    @property
    def is_alive(self) -> bool:
        return self._listener.is_alive()

    def send(self, task: Task, payload: Sequence[Any] | None) -> None:
        head = pickle.dumps((task.number, task.start, task.stop))
        self._outbox.put([head] if payload is None else [head, *encode(payload)])

    def finish(self) -> None:
        if self._is_ready:
            self._outbox.put(None)
        else:  # one that is still starting has nothing to do
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def join(self, timeout: float) -> None:
        self._listener.join(timeout)

    def _speak(self) -> None:
        # Where the worker is gone, the listener finds out.
        with suppress(OSError):
            while (parts := self._outbox.get()) is not None:
                send_parts(self._socket, parts)
                del parts
            self._socket.shutdown(socket.SHUT_WR)

    def _listen(self) -> None:
        remark = ""
        try:
            while self._has_said_something():
                head, *body = receive_parts(self._socket)
                message = unpack_event((pickle.loads(head), body or None))
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
        self._tell_end(remark)
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

    def _tell_end(self, remark: str) -> None:
        device, worker = self._info.device, self._info.worker
        if self._process.exitcode == UNGUARDED:
            self._say(Fatal(device, worker, UNGUARDED_REASON))
        else:
            reason = remark + how_it_ended(self._process.exitcode)
            self._say(WorkerLost(device, worker, reason))
