"""What runs inside every worker, whatever kind it is: open the work, then one task after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from variegate.engine.jobs import FatalError, Job, JobSpec, is_lost_context, is_memory
from variegate.engine.messages import Beat, Fatal, TaskDone, TaskFailed, WorkerEvent, WorkerLost, WorkerReady
from variegate.engine.workers.base import end_of

# Beats of a task that follow each other faster are not worth a message.
_BEAT_SECONDS = 0.25


class WorkerInfo(NamedTuple):
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
    open_spec: Callable[[], JobSpec],
    info: WorkerInfo,
    take: Callable[[], Assignment | None],
    say: Callable[[WorkerEvent], None],
) -> None:
    """Open the work and do what ``take`` gives, until it gives None.

    ``say`` must not raise for a report that cannot be delivered. What is no Exception (SystemExit) passes through: the
    worker ends.
    """
    device, worker = info.device, info.worker
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
        message = _run(job, info, assignment, _Beats(info, say))
        say(message)
        if isinstance(message, WorkerLost):
            return
        # Payload and results are not to stay while the next task is awaited.
        del assignment, message


def _run(job: Job, info: WorkerInfo, assignment: Assignment, beat: Callable[[], None]) -> WorkerEvent:
    device, worker = info.device, info.worker
    try:
        start, stop = assignment.start, assignment.stop
        result, size = job.run(range(start, stop), assignment.payload, beat), stop - start
        outputs, failed = list(result.outputs), dict(result.failed)
        if len(outputs) != size:
            raise ValueError(f"the job gave {len(outputs)} outputs for {size} items")
        if strange := [item for item in failed if not start <= item < stop]:
            raise ValueError(f"the job says that {strange[0]} failed, which is no item of {start}..{stop}")
    except FatalError as error:
        return Fatal(device, worker, str(error))
    except Exception as error:
        if is_lost_context(error):
            return WorkerLost(device, worker, end_of(error))
        return TaskFailed(device, worker, assignment.task, end_of(error), is_memory=is_memory(error))
    return TaskDone(device, worker, assignment.task, failed, outputs)


class _Beats:
    """Says that a task gets on: the first time at once, then now and then."""

    def __init__(self, info: WorkerInfo, say: Callable[[WorkerEvent], None]) -> None:
        self._beat, self._say = Beat(info.device, info.worker), say
        self._next = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _BEAT_SECONDS
            self._say(self._beat)
