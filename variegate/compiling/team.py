"""Several processes that compile at a time, started by the one whose turn it is.

They are plain subprocesses, so that a script needs no ``__main__`` guard and a notebook can have them. They write to
the cache, from which the one that started them, and everybody else, loads. If anything goes wrong with them they are
ended, and the one that started them compiles what is missing by itself.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from variegate.compiling.jobs import Jobs

# More would wait for one another: half the time is spent in one kernel, which contains most others.
MOST_HELPERS = 4
_LOOK_EVERY = 0.2
_QUOTA = "/sys/fs/cgroup/cpu.max"


def num_helpers() -> int:
    """Number of helpers worth starting: none on one core, or where this Python cannot be started again."""
    cores = num_cores()
    if cores < 2 or not sys.executable or getattr(sys, "frozen", False):
        return 0
    return min(cores, MOST_HELPERS)


def num_cores() -> int:
    """Cores that this process may use, by its affinity and its container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError), open(_QUOTA, encoding="ascii") as file:
        quota, period = file.read().split()
        if quota != "max":
            cores = min(cores, int(quota) // int(period))
    return cores


def compile_together(main: str, hello: object, settings: Mapping[str, str], watch: Callable[[int], object]) -> bool:
    """Have helpers do their tasks -> whether all was done.

    ``main``: Python that each of them runs, which makes a ``HelperLink`` and says ``hello`` first, and what tasks there
    are; one that says something else would write code that is not wanted. ``settings``: environment variables besides
    our own.
    ``watch(n)`` is called several times a second, with the number of kernels that are done.
    """
    heard: queue.Queue[tuple[int, Any]] = queue.Queue()
    helpers: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(num_helpers()):
            try:
                helpers.append(_start(main, settings))
            except OSError:
                return False
            threading.Thread(target=_listen, args=(helpers[-1], number, heard), daemon=True).start()
        jobs: Jobs | None = None
        while helpers and not (jobs and jobs.are_done):
            watch(jobs.num_done if jobs else 0)
            with suppress(queue.Empty):
                number, said = heard.get(timeout=_LOOK_EVERY)
                if isinstance(said, Greeting):
                    if said.content != hello:
                        return False
                    jobs = jobs or Jobs(list(said.tasks))
                elif said is None or jobs is None:
                    return False
                else:
                    for to, answer in jobs.hear(number, said):
                        pickle.dump(answer, helpers[to].stdin)  # type: ignore[arg-type]
                        helpers[to].stdin.flush()  # type: ignore[union-attr]
        return bool(helpers)
    except OSError:  # one of them is gone
        return False
    finally:
        for helper in helpers:
            helper.kill()
        for helper in helpers:
            helper.wait()
            for pipe in (helper.stdin, helper.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]


class Greeting:
    """The first that a helper says. ``tasks``: the most urgent first, the same in all helpers."""

    def __init__(self, content: object, tasks: Iterable[str]) -> None:
        self.content, self.tasks = content, tuple(tasks)


def _start(main: str, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # What can be imported here can be imported there, however it came about.
    code = f"import sys\nsys.path[:] = {sys.path!r}\n{main}"
    return subprocess.Popen(
        [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", code],  # type: ignore[attr-defined]
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **settings},
    )


def _listen(helper: subprocess.Popen[bytes], number: int, heard: queue.Queue[tuple[int, Any]]) -> None:
    """Pass on what it says; None when it is gone."""
    with suppress(Exception):
        while True:
            heard.put((number, pickle.load(helper.stdout)))  # type: ignore[arg-type]
    heard.put((number, None))
