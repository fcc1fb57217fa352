"""What every kind of workers does for whoever runs a dispatcher, and where their reports wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from variegate.engine.messages import Event, Task, WorkerLost

# What workers get to end by themselves once nothing is asked of them any more.
GRACE = 5.0


class Fatal(NamedTuple):
    """A job said that trying again, here or elsewhere, is of no use."""

    device: int
    worker: int
    reason: str


class Report(NamedTuple):
    """What a worker says; with the end of a task, what came of it."""

    event: Event | Fatal
    outputs: list[Any] | None = None


class Workers(Protocol):
    """The workers of a run, on devices 0, 1, 2, ...

    Made with the work, the names of the devices as an ``Augmenter`` takes them, and the cores for each. Only one thread
    may use it.
    """

    def start(self, device: int, worker: int) -> None:
        """Begin to start a worker. WorkerReady or WorkerLost is reported later."""
        ...

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        """Give a task to a worker, with what belongs to its items. Neither may be changed from now on.

        To a worker that is gone it does nothing: the loss is reported. Raises what pickling the payload raises.
        """
        ...

    def stop(self, worker: int) -> None:
        """End a worker by force; nothing that it says is reported any more."""
        ...

    def wait(self, timeout: float) -> list[Report]:
        """What workers have said, in the order of each; empty if none has said anything for so many seconds."""
        ...

    def close(self, force: bool = False) -> None:
        """End all workers; without ``force`` they may first do what they have. Returns in bounded time."""
        ...


class Inbox:
    """Reports from the threads that hear the workers, for the one that waits for them."""

    def __init__(self) -> None:
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self._heard: set[int] = set()

    def open(self, worker: int) -> None:
        """Hear a worker, until it is lost."""
        self._heard.add(worker)

    def drop(self, worker: int) -> None:
        """Hear it no more, not even what it has said already."""
        self._heard.discard(worker)

    def put(self, report: Report) -> None:
        self._reports.put(report)

    def wait(self, timeout: float) -> list[Report]:
        deadline = time.monotonic() + timeout
        found: list[Report] = []
        while not found:
            try:
                report = self._reports.get(timeout=max(0.0, deadline - time.monotonic()))
                self._take(report, found)
                while not self._reports.empty():
                    self._take(self._reports.get_nowait(), found)
            except Empty:
                break
        return found

    def _take(self, report: Report, found: list[Report]) -> None:
        worker = getattr(report.event, "worker", None)
        if worker not in self._heard:
            return
        found.append(report)
        if isinstance(report.event, WorkerLost):
            # It is lost once, whoever notices first: itself, or those who hear it end.
            self._heard.discard(worker)


def end_of(error: BaseException) -> str:
    """An error in one line: ``ValueError: what was wrong``."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
