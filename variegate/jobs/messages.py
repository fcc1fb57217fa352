"""What the dispatcher hears (events) and says (instructions), and how it stands (snapshots).

Items are numbered 0, 1, 2, ... in the order in which they were submitted; devices 0..k-1. A *worker* is one life of a
device's process, thread or actor: its number is never used again, so that what a worker says after it was given up is
known for what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

_NO_ITEMS: Mapping[int, str] = {}


class Task(NamedTuple):
    """Items ``start..stop-1``, tried together on one device; ``number`` is new for every task ever made."""

    number: int
    start: int
    stop: int
    # How often its only item failed while it was alone on a worker. Tasks of several items are cut instead.
    failures: int = 0
    # It was on a worker when that failed, so it runs alone on the next: if that fails too, it is known who did it.
    is_suspect: bool = False
    # Devices where it failed; others are tried first.
    avoid: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return self.stop - self.start

    def without(self, failed: Mapping[int, str]) -> list[tuple[int, int]]:
        """The ranges of its items that are left without those that failed."""
        pieces, start = [], self.start
        for item in [*sorted(failed), self.stop]:
            if item > start:
                pieces.append((start, item))
            start = item + 1
        return pieces


class WorkerReady(NamedTuple):
    """A worker has started and takes tasks."""

    device: int
    worker: int


class WorkerLost(NamedTuple):
    """A worker is gone, or could not start."""

    device: int
    worker: int
    reason: str


class TaskDone(NamedTuple):
    """A task came to its end; ``failed`` names the items of it that could not be made, with reasons. ``outputs``: one
    for each item; the dispatcher does not look at them."""

    device: int
    worker: int
    task: int
    failed: Mapping[int, str] = _NO_ITEMS
    outputs: Sequence[Any] = ()


class TaskFailed(NamedTuple):
    """Nothing came of a task, and the worker lives on. ``is_memory``: the device had no room for it."""

    device: int
    worker: int
    task: int
    reason: str
    is_memory: bool = False


class Beat(NamedTuple):
    """A worker is getting on with its task."""

    device: int
    worker: int


class Tick(NamedTuple):
    """Nothing happened but time."""


class Fatal(NamedTuple):
    """A job said that trying again, here or elsewhere, is of no use. It ends the run; no dispatcher hears it."""

    device: int
    worker: int
    reason: str


Event: TypeAlias = WorkerReady | WorkerLost | TaskDone | TaskFailed | Beat | Tick
WorkerEvent: TypeAlias = WorkerReady | WorkerLost | TaskDone | TaskFailed | Beat | Fatal


class StartWorker(NamedTuple):
    """Start a worker for the device; WorkerReady or WorkerLost is expected of it."""

    device: int
    worker: int


class StopWorker(NamedTuple):
    """End a worker, by force if need be. Nothing is expected of it any more."""

    device: int
    worker: int
    reason: str


class Send(NamedTuple):
    """Give a task to a worker."""

    device: int
    worker: int
    task: Task


class Release(NamedTuple):
    """The results of the items ``start..stop-1``, which came with ``task``, are good: hand them out, once."""

    task: int
    start: int
    stop: int


class Quarantine(NamedTuple):
    """This item cannot be made: it failed as often as it may. Its place in the order is here."""

    item: int
    reason: str


class Forget(NamedTuple):
    """Nothing of what came with ``task`` will be asked for any more."""

    task: int


class Retire(NamedTuple):
    """A device is given up; its tasks go to the others."""

    device: int
    reason: str


Instruction: TypeAlias = StartWorker | StopWorker | Send | Release | Quarantine | Forget | Retire


class DeviceSnapshot(NamedTuple):
    """``rate``: items per second as measured lately; ``queued`` and ``in_flight`` count tasks, ``done`` items."""

    name: str
    state: str
    rate: float
    queued: int
    in_flight: int
    done: int
    steals: int
    losses: int


class Snapshot(NamedTuple):
    """``outstanding``: items that were submitted and are not out yet; ``quarantined``: those given up."""

    devices: list[DeviceSnapshot]
    outstanding: int
    quarantined: int
