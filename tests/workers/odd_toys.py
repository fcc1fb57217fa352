"""Works that only processes can be asked to do. Nothing large is imported here: every worker would pay for it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from variegate.workers import wire
from variegate.workers.protocol import Job, Result
from variegate.workers.wire import send_parts


@dataclass(frozen=True)
class DiesWhileItSpeaks(Job):
    """The first process that has a result sends half of it."""

    folder: str

    def open(self, device: str, num_threads: int) -> DiesWhileItSpeaks:
        def send_half(sock: socket.socket, parts: Any) -> None:
            mark = Path(self.folder, "mark")
            if len(parts) == 1 or mark.exists():
                return send_parts(sock, parts)
            mark.touch()
            ours, theirs = socket.socketpair()
            threading.Thread(target=send_parts, args=(ours, parts)).start()
            sock.sendall(theirs.recv(50_000, socket.MSG_WAITALL))
            os.kill(os.getpid(), signal.SIGKILL)

        wire.send_parts = send_half  # type: ignore[attr-defined]
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        return Result([bytes(100_000) for _ in items], {})


@dataclass(frozen=True)
class LeavesAChild(Job):
    """Dies, and leaves a process behind that holds all its connections open."""

    folder: str

    def open(self, device: str, num_threads: int) -> LeavesAChild:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        if os.fork() == 0:
            deadline = time.monotonic() + 100
            while time.monotonic() < deadline and not Path(self.folder, "over").exists():
                time.sleep(0.01)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
        return Result([], {})


@dataclass(frozen=True)
class OnlyIn(Job):
    """Cannot be unpickled in any other process."""

    pid: int

    def __reduce__(self) -> Any:
        return only_in, (self.pid,)


def only_in(pid: int) -> OnlyIn:
    if os.getpid() != pid:
        raise TypeError("not here")
    return OnlyIn(pid)


class MakesOddThings(Job):
    """Item 1 gives what cannot be pickled, item 2 what cannot be unpickled."""

    def open(self, device: str, num_threads: int) -> MakesOddThings:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        odd = {1: lambda: None, 2: OnlyIn(os.getpid())}
        return Result([odd.get(item, "fine") for item in items], {})


class Surroundings(Job):
    def open(self, device: str, num_threads: int) -> Surroundings:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        return Result([{name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}], {})
