"""What runs inside every worker, whatever kind it is: open the work, then one task after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from variegate.engine.messages import Beat, TaskDone, TaskFailed, WorkerLost, WorkerReady
from variegate.engine.work import FatalError, Job, Work, is_lost_context, is_memory
from variegate.engine.workers.base import Fatal, Report, end_of

# Beats of a task that follow each other faster are not worth a message.
_BEAT_SECONDS = 0.25


class Place(NamedTuple):
    """Where a worker is. ``name``: the device as an ``Augmenter`` takes it."""

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
    open_work: Callable[[], Work],
    place: Place,
    take: Callable[[], Assignment | None],
    say: Callable[[Report], None],
) -> None:
    """Open the work and do what ``take`` gives, until it gives None.

    ``say`` must not raise for a report that cannot be delivered. What is no Exception (SystemExit) passes through: the
    worker ends.
    """
    device, worker = place.device, place.worker
    try:
        job = open_work().open(place.name, place.num_threads)
    except FatalError as error:
        say(Report(Fatal(device, worker, str(error))))
        return
    except Exception as error:
        say(Report(WorkerLost(device, worker, end_of(error))))
        return
    say(Report(WorkerReady(device, worker)))
    while (given := take()) is not None:
        report = _run(job, place, given, _Beats(place, say))
        say(report)
        if isinstance(report.event, WorkerLost):
            return
        # Payload and results are not to stay while the next task is awaited.
        del given, report


def _run(job: Job, place: Place, given: Assignment, beat: Callable[[], None]) -> Report:
    device, worker = place.device, place.worker
    try:
        result = job.run(range(given.start, given.stop), given.payload, beat)
        outputs, failed = list(result.outputs), dict(result.failed)
        if len(outputs) != given.stop - given.start:
            raise ValueError(f"the job gave {len(outputs)} outputs for {given.stop - given.start} items")
        if strange := [item for item in failed if not given.start <= item < given.stop]:
            raise ValueError(f"the job says that {strange[0]} failed, which is no item of {given.start}..{given.stop}")
    except FatalError as error:
        return Report(Fatal(device, worker, str(error)))
    except Exception as error:
        if is_lost_context(error):
            return Report(WorkerLost(device, worker, end_of(error)))
        return Report(TaskFailed(device, worker, given.task, end_of(error), is_memory=is_memory(error)))
    return Report(TaskDone(device, worker, given.task, failed), outputs)


class _Beats:
    """Says that a task gets on: the first time at once, then now and then."""

    def __init__(self, place: Place, say: Callable[[Report], None]) -> None:
        self._beat, self._say = Report(Beat(place.device, place.worker)), say
        self._next = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _BEAT_SECONDS
            self._say(self._beat)
