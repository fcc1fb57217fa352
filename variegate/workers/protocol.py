"""Jobs as workers do them, and the events between workers and their scheduler.

A *worker* is one life of a device's process, thread or actor. Its number is never reused, so that late reports of a
replaced worker are recognized.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from variegate.errors import DeviceMemoryError, one_line

# Seconds in which workers may exit after the last task.
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
    """``failed``: reasons by item. ``outputs``: results of the job for the items, see ``Job.join``."""

    worker: int
    task: int
    failed: Mapping[int, str] = _NO_ITEMS
    outputs: Sequence[Any] = ()


class TaskFailed(NamedTuple):
    """A task has no result, and the worker lives on."""

    worker: int
    task: int
    reason: str


class Heartbeat(NamedTuple):
    """A worker makes progress with its task."""

    worker: int


class ItemStarted(NamedTuple):
    """A worker begins an item of a careful task. None: it has made all items, and joins their outputs."""

    worker: int
    item: int | None


class Fatal(NamedTuple):
    """A job raised FatalError: the run ends."""

    worker: int
    reason: str


WorkerEvent: TypeAlias = WorkerReady | WorkerLost | TaskDone | TaskFailed | Heartbeat | ItemStarted | Fatal


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
    """True after errors such as an illegal access: every further CUDA call of this process fails, so a new process is
    needed."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "AcceleratorError", RuntimeError)  # newer versions of torch have one
    return torch is not None and isinstance(error, kind) and "CUDA error" in str(error)


def is_device_error(error: BaseException) -> bool:
    """True if the device failed, and no image is to blame."""
    return _is_memory(error) or _is_lost_context(error)


class Result(NamedTuple):
    """``outputs``: one per item, None for items in ``failed``, which has reasons by item."""

    outputs: Sequence[Any]
    failed: dict[int, str]


class Job:
    """Work on one device. A worker calls it from one thread, a task at a time."""

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        """Make items of a task: all, or some if the device has no room for all, or one that may end its worker.

        ``payload[k]`` was submitted with ``items[k]``; it may be None. Call ``beat`` whenever there is progress, at
        least once an item: a worker that is silent for long is replaced. Raises FatalError to end the run, MemoryError
        or DeviceMemoryError if the device has no room; any other error counts against the items.
        """
        raise NotImplementedError

    def join(self, items: range, payload: Any, result: Result, announce: Callable[[int], None]) -> Result:
        """Merge the results of a task's pieces into the outputs to send.

        Call ``announce`` with an item before work on it that may end the worker.
        """
        return result


class JobSpec(Protocol):
    """Made once, pickled to every worker."""

    def open(self, device: str, num_threads: int) -> Job:
        """Open files and compile kernels, once per worker, for one device and ``threads`` cores."""


class WorkerPool(Protocol):
    """The workers of a run, on devices 0, 1, 2, ... Only one thread may use it."""

    def start(self, device: int, worker: int) -> None:
        """Begin to start a worker. WorkerReady or WorkerLost is reported later."""

    def send(self, worker: int, assignment: Assignment) -> None:
        """Give work to a worker, if it is there. Raises errors of pickling the payload."""

    def stop(self, worker: int) -> None:
        """End a worker by force; none of its reports is returned any more."""

    def wait(self, timeout: float) -> list[WorkerEvent]:
        """Return reports of workers, each worker's in order; empty if none arrives within ``seconds``."""

    def close(self, force: bool = False) -> None:
        """End all workers; without ``force`` they finish their tasks first. Returns in bounded time."""


class WorkerInfo(NamedTuple):
    """``device``: its name for an ``Augmenter``."""

    worker: int
    device: str
    num_threads: int


class Assignment(NamedTuple):
    """A task of items ``start..stop-1`` as a worker sees it.

    ``is_careful``: items are made one at a time, and announced before. ``skip``: why items are not made at all.
    """

    task: int
    start: int
    stop: int
    is_careful: bool
    skip: Mapping[int, str]
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
    """Open the job and run assignments until ``next_assignment`` returns None. ``report`` must not raise."""
    try:
        job = open_spec().open(info.device, info.num_threads)
    except FatalError as error:
        return report(Fatal(info.worker, str(error)))
    except Exception as error:
        return report(WorkerLost(info.worker, error_line(error)))
    report(WorkerReady(info.worker))
    runner = _TaskRunner(job, info.worker, report)
    while (assignment := next_assignment()) is not None:
        event = runner.run(assignment)
        report(event)
        if isinstance(event, WorkerLost):
            return
        # Payload and results must not stay in memory while the next task is awaited.
        del assignment, event


class _TaskRunner:
    """Runs tasks of a job: the items of each together, or as many as the device has room for, or one at a time."""

    def __init__(self, job: Job, worker: int, report: Callable[[WorkerEvent], None]) -> None:
        self._job = job
        self._worker = worker
        self._report = report
        self._beat_at = 0.0
        self._max_items = sys.maxsize  # that the device has room for

    def run(self, assignment: Assignment) -> WorkerEvent:
        self._beat_at = 0.0
        try:
            outputs, failed = self._run(assignment)
        except FatalError as error:
            return Fatal(self._worker, str(error))
        except Exception as error:
            if _is_lost_context(error):
                return WorkerLost(self._worker, error_line(error))
            return TaskFailed(self._worker, assignment.task, error_line(error))
        return TaskDone(self._worker, assignment.task, failed, outputs)

    def _run(self, assignment: Assignment) -> Result:
        _, start, stop, is_careful, skip, payload = assignment
        items = range(start, stop)
        if not is_careful:
            result = self._make(items, payload)
            return self._job.join(items, payload, result, lambda item: self._beat())
        outputs: list[Any] = []
        failed = dict(skip)
        for place, item in enumerate(items):
            if item in skip:
                outputs.append(None)
                continue
            self._announce(item)
            made = self._make(items[place : place + 1], _part_of(payload, place, place + 1))
            outputs += made.outputs
            failed |= made.failed
        self._announce(None)
        return self._job.join(items, payload, Result(outputs, failed), self._announce)

    def _make(self, items: range, payload: Any) -> Result:
        """Make items together, or in pieces that the device has room for."""
        size = len(items)
        if size <= self._max_items:
            try:
                result = self._job.run(items, payload, self._beat)
            except Exception as error:
                if size == 1 or not _is_memory(error):
                    raise
                self._max_items = (size + 1) // 2
            else:
                if len(result.outputs) != size:
                    raise ValueError(f"the job returned {len(result.outputs)} outputs for {size} items")
                return result
        # Outside of the handler, as the error holds memory of the failed attempt.
        outputs: list[Any] = []
        failed: dict[int, str] = {}
        piece = self._max_items  # less after a piece that has no room either
        for start in range(0, size, piece):
            stop = min(start + piece, size)
            made = self._make(items[start:stop], _part_of(payload, start, stop))
            outputs += made.outputs
            failed |= made.failed
        return Result(outputs, failed)

    def _beat(self) -> None:
        if (now := time.monotonic()) >= self._beat_at:
            self._beat_at = now + _BEAT_SECONDS
            self._report(Heartbeat(self._worker))

    def _announce(self, item: int | None) -> None:
        self._report(ItemStarted(self._worker, item))


def _part_of(payload: Any, start: int, stop: int) -> Any:
    return None if payload is None else payload[start:stop]
