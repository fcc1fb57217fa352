"""Several processes that compile at a time, started by the one whose turn it is.

They are plain subprocesses, so that a script needs no ``__main__`` guard and a notebook can have them. They write to
the cache, from which the one that started them, and everybody else, loads. If anything goes wrong with them they are
ended, and the one that started them compiles what is missing by itself.

``Jobs`` distributes kernels over them, a state machine from their messages to its answers. A *job* is a kernel for one
signature. A process that needs some says so, and is given one that nobody has begun, again and again; when none of them
is left it waits for the others to end theirs. In the middle of a kernel it is given the callees of that kernel alone:
as calls run in no circle, nobody ever waits for somebody who waits for him. With nothing begun it takes whatever there
is, callees first, since somebody waits for them. A *task* is Python to run, which asks for kernels as it goes.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


class KernelJob(NamedTuple):
    """``key``: the same in all processes; ``kernel``: what a process needs to compile it; ``weight``: the longer it
    takes, the more."""

    key: str
    kernel: bytes
    weight: int


@dataclass(frozen=True)
class Ask:
    """A process says: I need these now. ``has_begun_none``: I am in the middle of no kernel. With no jobs: I am
    free."""

    jobs: Sequence[KernelJob]
    has_begun_none: bool


@dataclass(frozen=True)
class Done:
    """A process says: this is on disk. ``name``: a job's key, or a task."""

    name: str


@dataclass(frozen=True)
class Do:
    """Answer: compile this, say Done, and ask again."""

    job: KernelJob


@dataclass(frozen=True)
class Run:
    """Answer: run this task, say Done, and ask again."""

    task: str


@dataclass(frozen=True)
class Ready:
    """Answer: all that you need is on disk; to one that is free: nothing is left to do."""


Message = Ask | Done
Answer = Do | Run | Ready


@dataclass
class Jobs:
    """``tasks``: what there is to run, the most urgent first."""

    tasks: list[str]
    _running: set[str] = field(default_factory=set)  # tasks
    _done: set[str] = field(default_factory=set)  # keys of jobs
    _queue: dict[str, KernelJob] = field(default_factory=dict)
    _inner: set[str] = field(default_factory=set)  # keys of callees
    _waiting: dict[int, Ask] = field(default_factory=dict)

    @property
    def are_done(self) -> bool:
        return not self.tasks and not self._running

    @property
    def num_done(self) -> int:
        """Kernels that are compiled."""
        return len(self._done)

    def hear(self, process: int, said: Message) -> list[tuple[int, Answer]]:
        """``process`` says something -> who is answered what."""
        if isinstance(said, Done):
            if said.name in self._running:
                self._running.discard(said.name)
            else:
                self._done.add(said.name)
        else:
            known = self._done | self._begun
            for job in said.jobs:
                if not said.has_begun_none:
                    self._inner.add(job.key)
                if job.key not in known:
                    self._queue.setdefault(job.key, job)
            self._waiting[process] = said
        return list(self._answers())

    _begun: set[str] = field(default_factory=set)  # keys of jobs

    def _answers(self) -> Iterator[tuple[int, Answer]]:
        # Who is in the middle of something comes first: it can do less.
        for process, asked in sorted(self._waiting.items(), key=lambda item: item[1].has_begun_none):
            if (answer := self._answer(asked)) is not None:
                del self._waiting[process]
                yield process, answer

    def _answer(self, asked: Ask) -> Answer | None:
        its = [job.key for job in asked.jobs]
        if its and self._done.issuperset(its):
            return Ready()
        open_to_it = self._queue if asked.has_begun_none else [key for key in its if key in self._queue]
        if open_to_it:
            key = max(open_to_it, key=lambda key: (key in self._inner, key in its, self._queue[key].weight))
            self._begun.add(key)
            return Do(self._queue.pop(key))
        if its:
            return None
        if self.tasks:
            self._running.add(task := self.tasks.pop(0))
            return Run(task)
        return None if self._running else Ready()
