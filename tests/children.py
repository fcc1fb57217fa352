"""Python processes that begin at once: forks of a server that has imported what all of them import.

``run_python(code, ...)`` stands for ``subprocess.run([sys.executable, "-c", code, ...])``, ``start_python`` for Popen.
The child has a ``__main__``, arguments, environment, folder and streams of its own, and ends as Python does. A process
has to be begun anew only where it matters what is imported and when, what the environment says to the interpreter and
to libraries, or how much memory was ever taken.
"""

from __future__ import annotations

import atexit
import gc
import json
import linecache
import multiprocessing.process
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_ENVIRONMENT = dict(os.environ)
# The start of names of variables that the server has read for good.
_READ_AT_IMPORT = ("VARIEGATE_LEVEL", "OMP_", "MKL_", "OPENBLAS_", "TRITON_", "MALLOC_", "PYTHON")
_IMPORTED = """
    torch.utils.data pyarrow.parquet fsspec pytest rich.progress variegate.cli.commands variegate.cli.train
    variegate.augmenter.augmenter variegate.loader variegate.executors.cpu
    variegate.jobs.engine variegate.workers.devices variegate.jobs.augment
    variegate.jobs.pack variegate.jobs.regions variegate.policies variegate.learn.driver variegate.learn
    variegate.apps.check.checking variegate.apps.check.cleaning variegate.apps.doctor
"""
_SERVER = "from tests import children; todo = children.serve(); exec(todo['code'], vars(children.become(todo)))"
_COMMAND = "import sys; from variegate.cli import main; sys.exit(main())"
# A process, how it ended, as waitpid says it, and the processor time it took; the second is this as it begins.
_MESSAGE, _BEGUN = struct.Struct("=iid"), -1
_LENGTH = struct.Struct("=I")


processor_seconds = 0.0
"""Of all children that have ended."""


class Child(subprocess.Popen[Any]):
    """A Popen of what a server forks, waits for, and reports."""

    imported = _IMPORTED  # by the server
    read_later = frozenset(("PYTHONPATH", "PYTHONBREAKPOINT"))  # the latter is set by Ray

    def _execute_child(self, args: Any, *given: Any) -> None:
        """Begin it, as Popen's own does: ``given`` are the options and the ends of the pipes."""
        cwd, env, pipes, start_new_session = given[4], given[5], given[9:15], given[20]
        env = dict(os.environ if env is None else env)
        read = {name for name in {*env, *_ENVIRONMENT} - self.read_later if name.startswith(_READ_AT_IMPORT)}
        changed = sorted(name for name in read if env.get(name) != _ENVIRONMENT.get(name))
        assert not changed, f"env: {', '.join(changed)}: read when the server imports; such a process is begun anew"
        todo = {"code": args[0], "argv": ["-c", *args[1:]], "cwd": os.path.abspath(cwd or "."), "env": env}
        streams = [standard if end == -1 else end for standard, end in enumerate(pipes[end] for end in (0, 3, 5))]
        sys.audit("subprocess.Popen", sys.executable, todo["argv"], todo["cwd"], env)  # as a process begun anew does
        ours, theirs = os.pipe()
        self._messages = os.fdopen(ours, "rb", buffering=0)
        _server_of(os.getpid(), self.imported).ask(todo | {"start_new_session": start_new_session}, [*streams, theirs])
        os.close(theirs)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self._child_created = True
        self._take_message()

    def _take_message(self) -> None:
        global processor_seconds
        message = self._messages.read(_MESSAGE.size)
        assert message, "the server of tests/children.py is gone; why stands on its standard error"
        self.pid, status, seconds = _MESSAGE.unpack(message)
        if status != _BEGUN:
            processor_seconds += seconds
            self.returncode = os.waitstatus_to_exitcode(status)
            self._messages.close()

    def _wait(self, timeout: float | None) -> int:
        while self.returncode is None:
            if not select.select([self._messages], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            with self._waitpid_lock:  # type: ignore[attr-defined]
                if self.returncode is None:
                    self._take_message()
        return self.returncode

    def _internal_poll(self, **_: Any) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode


def start_python(code: str, *arguments: object, **options: Any) -> Child:
    """``options``: Popen's streams and what becomes of them, cwd, env, start_new_session."""
    return Child([code, *map(str, arguments)], **options)


def start_command(*arguments: object, **options: Any) -> Child:
    """``variegate ...``."""
    return start_python(_COMMAND, *arguments, **options)


def run_python(
    code: str,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    input: Any = None,
    timeout: float = 300,
    text: bool = True,
) -> subprocess.CompletedProcess[Any]:
    """Raises TimeoutExpired where it does not end in time; it is killed then."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_python(code, *arguments, env=env, cwd=cwd, text=text, **pipes) as child:
        try:
            out, err = child.communicate(input, timeout)
        finally:
            child.kill()
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def run_command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[Any]:
    """``variegate ...``."""
    return run_python(_COMMAND, *arguments, **options)


class _Server:
    def __init__(self, imported: str) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(theirs.fileno()), *imported.split()],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            # Without the thread that Arrow's allocator begins when it is imported.
            env={**_ENVIRONMENT, "PYTHONPATH": str(ROOT), "JE_ARROW_MALLOC_CONF": "background_thread:false"},
        )
        theirs.close()
        atexit.register(self.end)

    def ask(self, todo: dict[str, Any], files: list[int]) -> None:
        said = json.dumps(todo).encode()
        with self._lock:
            socket.send_fds(self._socket, [_LENGTH.pack(len(said))], files)
            self._socket.sendall(said)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def _server_of(pid: int, imported: str) -> _Server:
    """Of this process, which a fork of it is not."""
    return _Server(imported)


def serve() -> dict[str, Any]:
    """Fork for whoever asks -> in the child: what it is to do. Ends, and kills what runs, when nobody can ask."""
    asked = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        import_module(name)
    gc.collect()
    gc.freeze()  # so that children copy less memory
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asked.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 12)
            for pid in list(running):
                ended, status, usage = os.wait4(pid, os.WNOHANG)
                if ended:
                    with suppress(BrokenPipeError), os.fdopen(running.pop(pid), "wb", buffering=0) as messages:
                        messages.write(_MESSAGE.pack(pid, status, usage.ru_utime + usage.ru_stime))
        if asked.fileno() in ready:
            length, files, _, _ = socket.recv_fds(asked, _LENGTH.size, 4)
            if not length:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                sys.exit()
            (size,) = _LENGTH.unpack(length)
            todo: dict[str, Any] = json.loads(asked.recv(size, socket.MSG_WAITALL))
            threads = Path("/proc/self/task")
            assert not threads.exists() or len(os.listdir(threads)) == 1, "a fork would not have the other threads"
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for ours in (asked.detach(), woken, waking, *running.values()):
                    os.close(ours)
                return todo | {"files": files}
            running[pid] = files.pop()
            for theirs in files:
                os.close(theirs)


def become(todo: dict[str, Any]) -> ModuleType:
    """Make this process one that has just begun -> its ``__main__``."""
    *streams, messages = todo["files"]
    for number, (name, taken) in enumerate(zip(("stdin", "stdout", "stderr"), streams, strict=True)):
        os.dup2(taken, number)
        os.close(taken)
        was = getattr(sys, name)
        mode, buffering = "w" if number else "r", 1 if name == "stderr" else -1
        made = open(number, mode, buffering, was.encoding, was.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    os.environ.clear()
    os.environ.update(todo["env"])
    os.chdir(todo["cwd"])
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]
    if todo["start_new_session"]:
        os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = todo["argv"]
    # Without the server's own line on top.
    sys.excepthook = lambda kind, error, trace: sys.__excepthook__(
        kind, error.with_traceback(trace and trace.tb_next), trace and trace.tb_next
    )
    if sys.version_info >= (3, 13):  # tracebacks show the lines of ``-c``: here those of the code, not the server's
        lines = todo["code"].splitlines(keepends=True)
        linecache.cache["<string>"] = len(todo["code"]), None, lines, "<string>"
        getattr(linecache, "_interactive_cache", {}).clear()
    sys.modules["__main__"] = main = ModuleType("__main__")
    os.write(messages, _MESSAGE.pack(os.getpid(), _BEGUN, 0.0))
    os.close(messages)
    return main
