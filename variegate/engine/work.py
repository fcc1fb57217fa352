"""What workers are given to do: ``Work`` is sent to them, ``Job`` is what becomes of it on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class EngineError(RuntimeError):
    """A run that cannot go on: no device is left, or every further task would fail for the same reason."""


class FatalError(EngineError):
    """Raised by a job where trying again, here or elsewhere, is of no use: a full disk. It ends the run."""


class Result(NamedTuple):
    """What came of a task.

    ``outputs``: one for each of its items; None for those in ``failed``, which has reasons by item.
    """

    outputs: list[Any]
    failed: dict[int, str]


class Job(Protocol):
    """Work on one device. A worker calls it from one thread, a task at a time."""

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Make the items, given what was submitted with them (``payload[k]`` belongs to ``items[k]``, or it is None).

        It calls ``beat`` whenever it has got on, at least once an item: a worker that is silent for long is taken for
        hung. Raises FatalError to end the run, MemoryError or DeviceMemoryError where the device has no room; anything
        else it raises counts against the task.
        """
        ...


class Work(Protocol):
    """Made once, pickled to every worker."""

    def open(self, device: str, num_threads: int) -> Job:
        """Called once in each worker, before its first task: open files, compile kernels.

        ``device``: "cpu", "reference", "cuda:0", ... as an ``Augmenter`` takes it; ``num_threads``: cores for it.
        """
        ...
