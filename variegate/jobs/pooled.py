"""Worker processes that several processes of one user share on one machine, by the name of a pool.

Whoever finds no worker at a place of the pool starts one, which belongs to nobody: it ends a little after its last
user. Each user is served in turn, a task at a time, and does not hear of the others. Workers listen on sockets in a
folder that only this user may enter; nothing listens on a network.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import spawn
from typing import Any
from zlib import crc32

import variegate
from variegate.io.lock import FileLock
from variegate.jobs import jobs, wire
from variegate.jobs.blocks import ARE_THERE
from variegate.jobs.local_workers import (
    UNGUARDED,
    UNGUARDED_REASON,
    LocalWorkers,
    Say,
    WorkerLink,
    refuse_unguarded,
    serve_socket,
    share_results,
    surroundings,
)

_MAIN = "from variegate.jobs.pooled import main; main()"
# A worker without users waits so long for another.
IDLE_SECONDS = 10.0
_BEAT_SECONDS = 0.5


class SharedProcessPool(LocalWorkers):
    """See ``WorkerPool``. Raises OSError where the pool's folder cannot be this user's alone.

    Stopping one of its workers, for a task that hangs, ends that for all: the others start it anew, as after a crash.
    """

    def __init__(self, name: str, spec: jobs.JobSpec, devices: Sequence[str], num_threads: int) -> None:
        refuse_unguarded()
        if not ARE_THERE:
            raise OSError("pool: this system does not pass memory between processes; accepted: no pool")
        super().__init__(partial(_PooledWorker, PoolFolder(name), wire.encode_spec(spec)), devices, num_threads)


class PoolFolder:
    """The folder of a pool, held open. Raises PermissionError where it is not this user's alone."""

    def __init__(self, name: str) -> None:
        root = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        # Workers import the main script, which may declare a source or an operation.
        script = os.path.abspath(getattr(sys.modules["__main__"], "__file__", None) or "")
        kind = crc32("\0".join([variegate.__version__, sys.executable, script]).encode())
        self.path = os.path.join(root, f"variegate-{os.getuid()}-{name}-{kind:08x}")
        with suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        self.descriptor = -1
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            found = os.fstat(self.descriptor)
            is_own = found.st_uid == os.getuid() and not found.st_mode & 0o077
        except OSError:
            is_own = False
        if not is_own:
            raise PermissionError(f"pool: {self.path} is not a folder of this user alone; accepted: another name")

    def __del__(self) -> None:
        if self.descriptor != -1:
            os.close(self.descriptor)

    def path_of(self, name: str) -> str:
        """By the descriptor: nobody can put another folder in its place, and paths of sockets must be short."""
        return f"/proc/self/fd/{self.descriptor}/{name}"


class _PooledWorker(WorkerLink):
    def __init__(self, folder: PoolFolder, spec: Any, info: jobs.WorkerInfo, say: Say) -> None:
        self._folder, place = folder, info.name.replace(":", "-")
        self._path, self._lock_path = folder.path_of(f"{place}.socket"), folder.path_of(f"{place}.lock")
        self._is_ended = self._is_unguarded = False
        super().__init__(spec, info, say)

    def open(self) -> socket.socket:
        lock = FileLock(self._lock_path)
        lock.acquire(self._while_waiting)
        try:
            if (found := self._connected()) is not None:
                return found
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            preparation = spawn.get_preparation_data("variegate pool")
            del preparation["authkey"]
            data = pickle.dumps((preparation, self._path))
            with surroundings(self._info.num_threads):
                process = subprocess.Popen(
                    [sys.executable, "-c", _MAIN],
                    stdin=subprocess.PIPE,
                    start_new_session=True,
                    env=_environment(),
                    pass_fds=[self._folder.descriptor],
                )
            assert process.stdin is not None
            with suppress(OSError):  # one that has ended says so below
                process.stdin.write(data)
                process.stdin.close()
            while (found := self._connected()) is None:
                self._while_waiting(0.0)
                if process.poll() is not None:
                    self._is_unguarded = process.returncode == UNGUARDED
                    raise OSError(f"ended with exit code {process.returncode}")
                time.sleep(0.02)
            # It is nobody's child, and is not waited for; who started it reaps it.
            threading.Thread(target=process.wait, daemon=True).start()
            return found
        finally:
            lock.release()

    def _while_waiting(self, _: float) -> None:
        if self._is_ended:
            raise OSError("is not needed any more")

    def _connected(self) -> socket.socket | None:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(self._path)
        except OSError:
            sock.close()
            return None
        return sock

    def has_reported(self, sock: socket.socket) -> bool:
        return True  # its end closes the socket, which no child of its own has

    def lost(self, remark: str) -> jobs.Fatal | jobs.WorkerLost:
        self.kill()
        if self._is_unguarded:
            return jobs.Fatal(self._info.device, self._info.worker, UNGUARDED_REASON)
        return jobs.WorkerLost(self._info.device, self._info.worker, f"{remark}the pool's process has ended")

    def kill(self) -> None:
        self._is_ended = True
        super().kill()

    def destroy(self) -> None:
        if self._socket is not None and hasattr(socket, "SO_PEERCRED"):
            with suppress(OSError):
                peer = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4)
                os.kill(int.from_bytes(peer, sys.byteorder), signal.SIGKILL)
        self.kill()


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class Turns:
    """A lock that is given to those who wait in the order in which they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()  # the first has its turn
        self._beats = 0

    def take(self, beat: Callable[[], None]) -> None:
        """Wait; ``beat`` is called whenever whoever has the turn gets on."""
        with self._changed:
            mine, heard = object(), self._beats
            self._waiting.append(mine)
            while not self._changed.wait_for(lambda: self._waiting[0] is mine, _BEAT_SECONDS):
                if self._beats != heard:
                    heard = self._beats
                    beat()

    def beat(self) -> None:
        self._beats += 1

    def give(self) -> None:
        with self._changed:
            self._waiting.popleft()
            self._changed.notify_all()


class SpecInTurn:
    """A spec whose job waits for its turn with every task."""

    def __init__(self, turns: Turns, spec: jobs.JobSpec) -> None:
        self._turns, self._spec = turns, spec

    def open(self, device: str, num_threads: int) -> SpecInTurn:
        self._job = self._spec.open(device, num_threads)
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> jobs.Result:
        def beat_for_all() -> None:
            self._turns.beat()
            beat()

        self._turns.take(beat)
        try:
            return self._job.run(items, payload, beat_for_all)
        finally:
            self._turns.give()


def main() -> None:
    """Serve all who connect."""
    preparation, path = pickle.load(sys.stdin.buffer)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    current: Any = multiprocessing.current_process()
    current._inheriting = True  # see ``refuse_unguarded``
    spawn.prepare(preparation)
    del current._inheriting
    blocks, turns, users = share_results(), Turns(), set[threading.Thread]()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(1.0)
        idle_since = time.monotonic()
        while users or time.monotonic() < idle_since + IDLE_SECONDS:
            with suppress(TimeoutError):
                sock, _ = server.accept()
                sock.settimeout(None)
                user = threading.Thread(target=_serve, args=(sock, blocks, turns), daemon=True)
                user.start()
                users.add(user)
            if users:
                users, idle_since = {user for user in users if user.is_alive()}, time.monotonic()
    os._exit(0)


def _serve(sock: socket.socket, blocks: Any, turns: Turns) -> None:
    with sock, suppress(EOFError, OSError):
        serve_socket(sock, blocks, on_lost=lambda: None, of_spec=partial(SpecInTurn, turns))
