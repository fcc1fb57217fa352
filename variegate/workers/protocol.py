"""Jobs as workers do them, and the events between workers and their scheduler.

A *worker* is one life of a device's process, thread or actor: its number is never used again, so that late reports of
a worker that was replaced are recognized.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from variegate.errors import DeviceMemoryError, one_line

# Time for workers to end by themselves after the last task.
SHUTDOWN_SECONDS = 5.0
# Heartbeats that follow each other faster are not sent.
_BEAT_SECONDS = 0.25
_NO_ITEMS: Mapping[int, str] = {}


class WorkerReady(NamedTuple):
    worker: int


class WorkerLost(NamedTuple):
    """A worker ended, or did not start."""

    worker: int
    reason: str


class TaskDone(NamedTuple):
    """``failed``: reasons by item. ``outputs``: one per item, None for failed items."""

    worker: int
    unit: int
    failed: Mapping[int, str] = _NO_ITEMS
    outputs: Sequence[Any] = ()


class TaskFailed(NamedTuple):
    """A unit has no result, and the worker lives on. ``is_memory``: the device had no room for it."""

    worker: int
    unit: int
    reason: str
    is_memory: bool = False


class Beat(NamedTuple):
    """A worker makes progress with its task."""

    worker: int


class Fatal(NamedTuple):
    """A job raised FatalError: the run ends."""

    worker: int
    reason: str


WorkerEvent: TypeAlias = WorkerReady | WorkerLost | TaskDone | TaskFailed | Beat | Fatal


class EngineError(RuntimeError):
    """Raised when a run cannot continue: no device is left, or every further task would fail for the same reason."""


class FatalError(EngineError):
    """Raised by a job where trying again, on any device, is of no use, such as on a full disk. It ends the run."""


def _is_memory(error: BaseException) -> bool:
    # A job that never imported torch cannot have raised its error.
    torch = sys.modules.get("torch")
    torch_errors = () if torch is None else (torch.cuda.OutOfMemoryError,)
    return isinstance(error, (MemoryError, DeviceMemoryError, *torch_errors))


def _is_lost_context(error: BaseException) -> bool:
    """After errors such as an illegal access, every CUDA call of this process fails; only a new process can resume."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "AcceleratorError", RuntimeError)  # newer versions of torch have one
    return torch is not None and isinstance(error, kind) and "CUDA error" in str(error)


def is_devices_fault(error: BaseException) -> bool:
    """True if the device failed, and no image is to blame."""
    return _is_memory(error) or _is_lost_context(error)


class Result(NamedTuple):
    """``outputs``: one per item, None for items in ``failed``, which has reasons by item."""

    outputs: Sequence[Any]
    failed: dict[int, str]


class Job(Protocol):
    """Work on one device. A worker calls it from one thread, a unit at a time."""

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Make the items, from what was submitted with them (``payload[k]`` belongs to ``items[k]``, or it is None).

        Call ``beat`` whenever there is progress, at least once an item: a worker that is silent for long is replaced.
        Raises FatalError to end the run, MemoryError or DeviceMemoryError if the device has no room; any other error
        counts against the items.
        """


class JobSpec(Protocol):
    """Made once, pickled to every worker."""

    def open(self, device: str, num_threads: int) -> Job:
        """Open files and compile kernels, once in each worker, for an ``Augmenter``'s device and so many cores."""


class WorkerPool(Protocol):
    """The workers of a run, on devices 0, 1, 2, ... Only one thread may use it."""

    def start(self, device: int, worker: int) -> None:
        """Begin to start a worker. WorkerReady or WorkerLost is reported later."""

    def send(self, worker: int, assignment: Assignment) -> None:
        """Give work to a worker, if it is there. Raises what pickling the payload raises."""

    def stop(self, worker: int) -> None:
        """End a worker by force; none of its reports is returned any more."""

    def wait(self, timeout: float) -> list[WorkerEvent]:
        """Return reports of workers, in the order of each; empty if there is none for so many seconds."""

    def close(self, force: bool = False) -> None:
        """End all workers; without ``force`` they may first do what they have. Returns in bounded time."""


class WorkerInfo(NamedTuple):
    """``device``: its name for an ``Augmenter``."""

    worker: int
    device: str
    num_threads: int


class Assignment(NamedTuple):
    """A unit of items ``start..stop-1`` as a worker sees it."""

    unit: int
    start: int
    stop: int
    payload: Sequence[Any] | None


def error_line(error: BaseException) -> str:
    """An error in one line: ``ValueError: what was wrong``."""
    text = one_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def serve(
    open_spec: Callable[[], JobSpec],
    info: WorkerInfo,
    next_assignment: Callable[[], Assignment | None],
    report: Callable[[WorkerEvent], None],
) -> None:
    """Open the job and do the work of ``next_assignment`` until that is None. ``report`` must not raise."""
    beat_at = 0.0

    def beat() -> None:
        nonlocal beat_at
        if (now := time.monotonic()) >= beat_at:
            beat_at = now + _BEAT_SECONDS
            report(Beat(info.worker))

    try:
        job = open_spec().open(info.device, info.num_threads)
    except FatalError as error:
        return report(Fatal(info.worker, str(error)))
    except Exception as error:
        return report(WorkerLost(info.worker, error_line(error)))
    report(WorkerReady(info.worker))
    while (assignment := next_assignment()) is not None:
        beat_at = 0.0
        event = _run(job, info.worker, assignment, beat)
        report(event)
        if isinstance(event, WorkerLost):
            return
        # Payload and results must not stay in memory while the next unit is awaited.
        del assignment, event


def _run(job: Job, worker: int, assignment: Assignment, beat: Callable[[], None]) -> WorkerEvent:
    unit, start, stop, payload = assignment
    try:
        outputs, failed = job.run(range(start, stop), payload, beat)
        if len(outputs) != stop - start:
            raise ValueError(f"the job returned {len(outputs)} outputs for {stop - start} items")
    except FatalError as error:
        return Fatal(worker, str(error))
    except Exception as error:
        if _is_lost_context(error):
            return WorkerLost(worker, error_line(error))
        return TaskFailed(worker, unit, error_line(error), is_memory=_is_memory(error))
    return TaskDone(worker, unit, failed, outputs)
