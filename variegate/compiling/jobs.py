"""Distribution of kernels over processes that compile: a state machine from their messages to its answers.

A *job* is a kernel for one signature. A process that needs some says so, and is given one that nobody has begun, again
and again; when none of them is left it waits for the others to end theirs. In the middle of a kernel it is given the
callees of that kernel alone: as calls run in no circle, nobody ever waits for somebody who waits for him. With nothing
begun it takes whatever there is, callees first, since somebody waits for them.

A *task* is Python to run, which asks for kernels as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


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
