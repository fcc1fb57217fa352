"""A process per device: a crash takes only itself along, and Python's lock is not shared.

Each worker has a socket of its own to the parent, with a thread that reads it and one that writes it. Nothing is shared
between workers, so one that is killed in the middle of a message breaks nothing but that message.
"""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection
from queue import SimpleQueue
from typing import Any

from variegate.engine.messages import Task, WorkerLost, WorkerReady
from variegate.engine.work import Work
from variegate.engine.workers.base import GRACE, Fatal, Inbox, Report, end_of
from variegate.engine.workers.inside import run_worker
from variegate.engine.workers.loop import Place
from variegate.engine.workers.packing import unpack_report
from variegate.engine.workers.spawning import (
    SPAWN,
    UNGUARDED,
    UNGUARDED_REASON,
    check_guard,
    how_it_ended,
    surroundings,
)
from variegate.engine.workers.wire import Parts, encode, receive_parts, send_parts


class ProcessWorkers:
    """See ``Workers``. The work is pickled here, once: raises what that raises."""

    def __init__(self, work: Work, devices: Sequence[str], num_threads: int) -> None:
        check_guard()
        self._work = encode(work)
        self._devices, self._num_threads = devices, num_threads
        self._inbox = Inbox()
        self._lives: dict[int, _Life] = {}
        self._stopped: list[_Life] = []

    def start(self, device: int, worker: int) -> None:
        self._lives = {number: life for number, life in self._lives.items() if life.is_alive}
        self._stopped = [life for life in self._stopped if life.is_alive]
        self._inbox.open(worker)
        try:
            place = Place(device, worker, self._devices[device], self._num_threads)
            self._lives[worker] = _Life(self._work, place, self._inbox)
        except OSError as error:
            reason = f"no process could be started: {end_of(error)}"
            self._inbox.put(Report(WorkerLost(device, worker, reason)))

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        if (life := self._lives.get(worker)) is not None:
            head = pickle.dumps((task.number, task.start, task.stop))
            life.outbox.put([head] if payload is None else [head, *encode(payload)])

    def stop(self, worker: int) -> None:
        self._inbox.drop(worker)
        if (life := self._lives.pop(worker, None)) is not None:
            life.kill()
            self._stopped.append(life)

    def wait(self, timeout: float) -> list[Report]:
        return self._inbox.wait(timeout)

    def close(self, force: bool = False) -> None:
        lives = [*self._lives.values(), *self._stopped]
        try:
            if not force:
                for life in lives:
                    life.finish()
                _join(lives, GRACE)
        finally:
            for life in lives:
                life.kill()
            # A process that even SIGKILL does not end, in the middle of a driver's call, is not waited for.
            _join(lives, GRACE)


def _join(lives: Sequence[_Life], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for life in lives:
        life.join(max(0.0, deadline - time.monotonic()))


class _Life:
    """One worker, as seen by the parent. Raises OSError where no process can be started."""

    def __init__(self, work: Parts, place: Place, inbox: Inbox) -> None:
        self.outbox: SimpleQueue[Parts | None] = SimpleQueue()
        self._place, self._inbox = place, inbox
        self._is_ready = False
        self._socket, theirs = socket.socketpair()
        name = f"variegate {place.name} #{place.worker}"
        # A daemon: an interpreter that ends without closing its workers does not wait for them.
        self._process = SPAWN.Process(target=run_worker, args=(theirs,), name=name, daemon=True)
        try:
            with surroundings(place.num_threads):
                self._process.start()
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self.outbox.put([pickle.dumps(tuple(place)), *work])
        self._speaker = threading.Thread(target=self._speak, name=f"to {name}", daemon=True)
        self._speaker.start()
        self._listener = threading.Thread(target=self._listen, name=f"from {name}", daemon=True)
        self._listener.start()

    @property
    def is_alive(self) -> bool:
        """Whether anything of it is left."""
        return self._listener.is_alive()

    def finish(self) -> None:
        """Let it do what it has, and end. One that is still starting has nothing to do."""
        if self._is_ready:
            self.outbox.put(None)
        else:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def join(self, timeout: float) -> None:
        """Wait until the process has ended and been reaped."""
        self._listener.join(timeout)

    def _speak(self) -> None:
        # Where the worker is gone, the listener finds out.
        with suppress(OSError):
            while (parts := self.outbox.get()) is not None:
                send_parts(self._socket, parts)
                del parts
            self._socket.shutdown(socket.SHUT_WR)

    def _listen(self) -> None:
        remark = ""
        try:
            while self._has_said_something():
                head, *body = receive_parts(self._socket)
                report = unpack_report((pickle.loads(head), body or None))
                self._is_ready = self._is_ready or isinstance(report.event, WorkerReady)
                self._inbox.put(report)
                # Not to be held while the next one is awaited.
                del head, body, report
        except (EOFError, OSError):
            self._process.join(GRACE)
        except Exception as error:
            remark = f"what it said cannot be read: {end_of(error)}; "
        self.kill()
        self._process.join()
        self._report_end(remark)
        self.outbox.put(None)
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

    def _report_end(self, remark: str) -> None:
        device, worker = self._place.device, self._place.worker
        if self._process.exitcode == UNGUARDED:
            self._inbox.put(Report(Fatal(device, worker, UNGUARDED_REASON)))
        else:
            reason = remark + how_it_ended(self._process.exitcode)
            self._inbox.put(Report(WorkerLost(device, worker, reason)))
