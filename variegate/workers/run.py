"""Run a feed of tasks on workers: the scheduler's actions carried out against the clock."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from variegate.io.addresses import redact_text
from variegate.workers.protocol import Assignment, EngineError, Fatal, FatalError, WorkerPool
from variegate.workers.scheduler import Action, Finish, Retire, Scheduler, Send, Snapshot, StartWorker, StopWorker, Task

Payload: TypeAlias = Sequence[Any] | None
# (start, stop, payload): items start..stop-1, with a payload of one each, or None. Items ascend; there may be gaps.
TaskStream: TypeAlias = Iterable[tuple[int, int, Payload]]

# Longest wait for events: the interval at which timeouts, ``stop`` and the feed are checked.
_WAIT_SECONDS = 0.5
_CHECK_SECONDS = 0.2
# A longer time between two looks at the clock is a pause of the consumer.
_MAX_STEP_SECONDS = 1.0
# Tasks in flight when a run is stopped may take so long.
_DRAIN_SECONDS = 30.0
_TURN_SECONDS = 0.1

_log = logging.getLogger("variegate.workers")


class FinishedItems(NamedTuple):
    """``outputs``: one for each of the items ``start..stop-1``."""

    start: int
    stop: int
    outputs: Sequence[Any]


class FailedItem(NamedTuple):
    item: int
    reason: str


Finished: TypeAlias = FinishedItems | FailedItem


def run_tasks(
    workers: WorkerPool,
    scheduler: Scheduler,
    feed: TaskStream,  # read only while the scheduler has room
    *,
    stop: threading.Event | None = None,  # once set, nothing more is sent; tasks in flight may still be done
    on_turn: Callable[[Snapshot], None] | None = None,  # called a few times a second
    has_room: Callable[[], bool] | None = None,  # False: the feed is not read, unless nothing is under way
    wait_seconds: float = _WAIT_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Finished, None, None]:
    """Yield the results of a feed. The workers are closed at the end.

    Raises EngineError if no device is left, FatalError as the job did, and errors of ``feed`` and ``on_turn``.
    """
    run = _Run(workers, scheduler, iter(feed), has_room, _ConsumerClock(clock))
    turn_at = clock()
    is_clean = False
    try:
        run.apply(scheduler.start(run.now()))
        while not scheduler.is_finished:
            if stop is not None and stop.is_set() and run.is_drained():
                break
            # One task at a time: reading the next must not delay results, nor idle workers.
            error = run.handle_events(0.0 if run.read_task() else wait_seconds)
            while run.finished:
                yield run.finished.popleft()
            if error is not None:
                raise error
            if on_turn is not None and clock() >= turn_at:
                on_turn(scheduler.snapshot())
                turn_at = clock() + _TURN_SECONDS
        if on_turn is not None:
            on_turn(scheduler.snapshot())
        is_clean = scheduler.is_idle
    finally:
        workers.close(force=not is_clean)


def _items_of(task: Task) -> Iterator[Finished]:
    """Ranges of made items, and failed items, in order."""
    outputs = task.outputs
    failed = task.failed
    if not failed:
        yield FinishedItems(task.start, task.stop, outputs)
        return
    start = task.start
    for item in [*sorted(failed), task.stop]:
        if start < item:
            yield FinishedItems(start, item, outputs[start - task.start : item - task.start])
        if item in failed:
            yield FailedItem(item, failed[item])
        start = item + 1


class _ConsumerClock:
    """Clock for timeouts. Pauses while the consumer does not iterate, so that slow consumers never trigger them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen = clock()
        self._time = 0.0

    def __call__(self) -> float:
        seen = self._clock()
        self._time += min(seen - self._seen, _MAX_STEP_SECONDS)
        self._seen = seen
        return self._time


class _Run:
    """A scheduler, its workers and the feed."""

    def __init__(
        self,
        workers: WorkerPool,
        scheduler: Scheduler,
        feed: Iterator[tuple[int, int, Payload]],
        has_room: Callable[[], bool] | None,
        now: Callable[[], float],
    ) -> None:
        self.finished: deque[Finished] = deque()  # the consumer alone keeps results
        self.now = now
        self._workers = workers
        self._scheduler = scheduler
        self._feed = feed
        self._has_room = has_room
        self._is_feed_read = False
        self._check_at = 0.0
        self._drain_until: float | None = None

    def is_drained(self) -> bool:
        """Stop sending. Returns whether everything in flight is done, or has taken too long."""
        if self._drain_until is None:
            self._scheduler.drain()
            self._drain_until = self.now() + _DRAIN_SECONDS
        return self._scheduler.is_idle or self.now() >= self._drain_until

    def read_task(self) -> bool:
        """Submit a task of the feed, if there is room. Returns whether there may be room for another."""
        scheduler = self._scheduler
        if self._is_feed_read or scheduler.capacity <= 0:
            return False
        if scheduler.num_outstanding and self._has_room is not None and not self._has_room():
            return False
        task = next(self._feed, None)
        if task is None:
            self._is_feed_read = True
            scheduler.close()
        else:
            self.apply(scheduler.submit(*task, self.now()))
        return True

    def handle_events(self, timeout: float) -> EngineError | None:
        """Wait for events. Returns an error that is to be raised once ``finished`` is handed out."""
        try:
            for event in self._workers.wait(timeout):
                if isinstance(event, Fatal):
                    raise FatalError(event.reason)
                self.apply(self._scheduler.handle(event, self.now()))
            # Only after all events: a worker that reported is not silent.
            if (now := self.now()) >= self._check_at:
                self._check_at = now + _CHECK_SECONDS
                self.apply(self._scheduler.check_times(now))
        except FatalError:
            raise
        except EngineError as error:
            return error
        return None

    def apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                task = action.task
                assignment = Assignment(
                    task.number, task.start, task.stop, task.is_careful, dict(task.failed), task.payload
                )
                self._workers.send(action.worker, assignment)
            elif isinstance(action, Finish):
                self.finished.extend(_items_of(action.task))
            elif isinstance(action, StartWorker):
                self._workers.start(action.device, action.worker)
            elif isinstance(action, StopWorker):
                self._workers.stop(action.worker)
            else:
                assert isinstance(action, Retire)
                _log.warning("%s", redact_text(f"{action.name} is given up: {action.reason}"))
