"""What every kind of workers does for whoever runs a dispatcher, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from variegate.engine.messages import Task, WorkerEvent

# What workers get to end by themselves once nothing is asked of them any more.
GRACE = 5.0


class WorkerPool(Protocol):
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

    def wait(self, timeout: float) -> list[WorkerEvent]:
        """What workers have said, in the order of each; empty if none has said anything for so many seconds."""
        ...

    def close(self, force: bool = False) -> None:
        """End all workers; without ``force`` they may first do what they have. Returns in bounded time."""
        ...


def end_of(error: BaseException) -> str:
    """An error in one line: ``ValueError: what was wrong``."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
