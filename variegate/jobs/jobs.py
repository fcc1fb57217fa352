"""Jobs as workers do them, what a dispatcher and its workers say to each other, and snapshots of a dispatcher.

Items are numbered 0, 1, 2, ... in the order in which they were submitted; devices 0..k-1. A *worker* is one life of a
device's process, thread or actor: its number is never used again, so that late reports of one that was given up are
known for what they are.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

from variegate.errors import DeviceMemoryError, one_line

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


class EngineError(RuntimeError):
    """Raised when a run cannot continue: no device is left, or every further task would fail for the same reason."""


class FatalError(EngineError):
    """Raised by a job where trying again, here or elsewhere, is of no use: a full disk. It ends the run."""


def _is_memory(error: BaseException) -> bool:
    """The device has no room: a smaller task may do."""
    # A job that never imported torch cannot have raised its error.
    torch = sys.modules.get("torch")
    of_torch = () if torch is None else (torch.cuda.OutOfMemoryError,)
    return isinstance(error, (MemoryError, DeviceMemoryError, *of_torch))


def _is_lost_context(error: BaseException) -> bool:
    """After an illegal access and its like every call of this process to the GPU fails; only a new one can go on."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "AcceleratorError", RuntimeError)  # newer versions of torch have one
    return torch is not None and isinstance(error, kind) and "CUDA error" in str(error)


def is_devices_fault(error: BaseException) -> bool:
    """No image is to blame."""
    return _is_memory(error) or _is_lost_context(error)


class Result(NamedTuple):
    """``outputs``: one for each item of a task; None for those in ``failed``, which has reasons by item."""

    outputs: Sequence[Any]
    failed: dict[int, str]


class Job(Protocol):
    """Work on one device. A worker calls it from one thread, a task at a time."""

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Make the items, given what was submitted with them (``payload[k]`` belongs to ``items[k]``, or it is None).

        It calls ``beat`` whenever it has got on, at least once an item: a worker that is silent for long is taken for
        hung. Raises FatalError to end the run, MemoryError or DeviceMemoryError where the device has no room; anything
        else it raises counts against the task.
        """


class JobSpec(Protocol):
    """Made once, pickled to every worker."""

    def open(self, device: str, num_threads: int) -> Job:
        """Open files and compile kernels, once in each worker, for a device of an ``Augmenter`` and so many cores."""


# What workers get to end by themselves once nothing is asked of them any more.
GRACE = 5.0


class WorkerPool(Protocol):
    """The workers of a run, on devices 0, 1, 2, ... Only one thread may use it."""

    def start(self, device: int, worker: int) -> None:
        """Begin to start a worker. WorkerReady or WorkerLost is reported later."""

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        """Give a task with its payload to a worker, if it is there. Raises what pickling the payload raises."""

    def stop(self, worker: int) -> None:
        """End a worker by force; none of its reports is given out any more."""

    def wait(self, timeout: float) -> list[WorkerEvent]:
        """Reports of workers, in the order of each; empty if there is none for so many seconds."""

    def close(self, force: bool = False) -> None:
        """End all workers; without ``force`` they may first do what they have. Returns in bounded time."""


def end_of(error: BaseException) -> str:
    """An error in one line: ``ValueError: what was wrong``."""
    text = one_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# Beats of a task that follow each other faster are not worth a message.
_BEAT_SECONDS = 0.25


class WorkerInfo(NamedTuple):
    """Device and place of a worker. ``name``: the device as an ``Augmenter`` takes it."""

    device: int
    worker: int
    name: str
    num_threads: int


class Assignment(NamedTuple):
    """A task as a worker sees it."""

    task: int
    start: int
    stop: int
    payload: Sequence[Any] | None


def serve(
    open_spec: Callable[[], JobSpec],
    info: WorkerInfo,
    take: Callable[[], Assignment | None],
    say: Callable[[WorkerEvent], None],
) -> None:
    """Open the work and do what ``take`` gives, until it gives None. ``say`` must not raise; SystemExit does."""
    device = info.device
    worker = info.worker
    beat_at = 0.0

    def beat() -> None:
        """A task makes progress: reported the first time at once, then now and then."""
        nonlocal beat_at
        if (now := time.monotonic()) >= beat_at:
            beat_at = now + _BEAT_SECONDS
            say(Beat(device, worker))

    try:
        job = open_spec().open(info.name, info.num_threads)
    except FatalError as error:
        say(Fatal(device, worker, str(error)))
        return
    except Exception as error:
        say(WorkerLost(device, worker, end_of(error)))
        return
    say(WorkerReady(device, worker))
    while (assignment := take()) is not None:
        beat_at = 0.0
        say(message := _run(job, info, assignment, beat))
        if isinstance(message, WorkerLost):
            return
        # Payload and results are not to stay while the next task is awaited.
        del assignment, message


def _run(job: Job, info: WorkerInfo, assignment: Assignment, beat: Callable[[], None]) -> WorkerEvent:
    device = info.device
    worker = info.worker
    task, start, stop, payload = assignment
    try:
        result = job.run(range(start, stop), payload, beat)
        outputs = result.outputs
        failed = dict(result.failed)
        if len(outputs) != stop - start:
            raise ValueError(f"the job gave {len(outputs)} outputs for {stop - start} items")
        if strange := [item for item in failed if not start <= item < stop]:
            raise ValueError(f"the job says that {strange[0]} failed, which is no item of {start}..{stop}")
    except FatalError as error:
        return Fatal(device, worker, str(error))
    except Exception as error:
        if _is_lost_context(error):
            return WorkerLost(device, worker, end_of(error))
        return TaskFailed(device, worker, task, end_of(error), is_memory=_is_memory(error))
    return TaskDone(device, worker, task, failed, outputs)
