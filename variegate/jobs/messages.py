"""Events for a dispatcher, its instructions, and snapshots of it.

Items are numbered 0, 1, 2, ... in the order in which they were submitted; devices 0..k-1. A *worker* is one life of a
device's process, thread or actor: its number is never used again, so that late reports of one that was given up are
known for what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

_NO_ITEMS: Mapping[int, str] = {}


class Task(NamedTuple):
    """Items ``start..stop-1``, tried together on one device; ``number`` is new for every task ever made."""

    number: int
    start: int
    stop: int
    # How often its only item failed while it was alone on a worker. Tasks of several items are cut instead.
    failures: int = 0
    # It was on a worker when that failed, so it runs alone on the next: if that fails too, it is to blame.
    is_suspect: bool = False
    # Devices where it failed; others are tried first.
    avoid: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return self.stop - self.start

    def without(self, failed: Mapping[int, str]) -> list[tuple[int, int]]:
        """The ranges of its items that are left without those that failed."""
        bounds = [self.start - 1, *sorted(failed), self.stop]
        return [(before + 1, end) for before, end in pairwise(bounds) if end > before + 1]


class WorkerReady(NamedTuple):
    device: int
    worker: int


class WorkerLost(NamedTuple):
    """A worker is gone, or could not start."""

    device: int
    worker: int
    reason: str


class TaskDone(NamedTuple):
    """``failed``: reasons by item that could not be made. ``outputs``: one for each item."""

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
    """A worker makes progress with its task."""

    device: int
    worker: int


class Tick(NamedTuple):
    """Nothing happened but time."""


class Fatal(NamedTuple):
    """A job found that trying again, here or elsewhere, is of no use. It ends the run; no dispatcher hears it."""

    device: int
    worker: int
    reason: str


Event: TypeAlias = WorkerReady | WorkerLost | TaskDone | TaskFailed | Beat | Tick
WorkerEvent: TypeAlias = WorkerReady | WorkerLost | TaskDone | TaskFailed | Beat | Fatal


class StartWorker(NamedTuple):
    """WorkerReady or WorkerLost is expected of it."""

    device: int
    worker: int


class StopWorker(NamedTuple):
    """End a worker, by force if need be. Nothing is expected of it any more."""

    device: int
    worker: int
    reason: str


class Send(NamedTuple):
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
    """Nothing of what came with ``task`` is needed any more."""

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
