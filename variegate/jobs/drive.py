"""A dispatcher and its workers, run against the clock: feed in, results out."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from variegate.io.addresses import speakable
from variegate.jobs import jobs as messages
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.jobs import EngineError, FatalError, Forget, Release, Send, TaskDone, TaskFailed, Tick, WorkerPool

Payload: TypeAlias = Sequence[Any] | None
# Items start..stop-1 of a task, with one payload each, or None. Items ascend from task to task; there may be gaps.
TaskStream: TypeAlias = Iterable[tuple[int, int, Payload]]

# How long a turn waits for workers at most: so often is the time judged, and ``stop`` and the feed looked at.
_TURN_SECONDS = 0.5
_TICK_SECONDS = 0.2
# More than that between two looks at the clock is a pause in which nobody listened to the workers.
_LONGEST_STEP = 1.0
# What is in flight when a run is stopped may take so long to come in.
_LAST_SECONDS = 30.0
# ``on_turn`` is not called more often than that.
_SHOW_SECONDS = 0.1

_log = logging.getLogger("variegate.jobs")


class FinishedItems(NamedTuple):
    """``outputs``: one for each of the items ``start..stop-1``."""

    start: int
    stop: int
    outputs: Sequence[Any]


class FailedItem(NamedTuple):
    """An item that cannot be made."""

    item: int
    reason: str


def drive(
    workers: WorkerPool,
    dispatcher: Dispatcher,
    feed: TaskStream,  # asked only while the dispatcher has room
    *,
    stop: threading.Event | None = None,  # once it is set, nothing more is sent; what is in flight may still come in
    on_turn: Callable[[messages.Snapshot], None] | None = None,  # called a few times a second
    has_room: Callable[[], bool] | None = None,  # False: the feed is not asked, unless nothing else is under way
    turn_seconds: float = _TURN_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[FinishedItems | FailedItem, None, None]:
    """Everything that comes of a feed, in the order that the dispatcher says. The workers are closed at the end.

    Raises EngineError where no device is left, FatalError as a job did, and what ``feed`` and ``on_turn`` raise.
    """
    run = _DispatchLoop(workers, dispatcher, iter(feed), has_room, clock)
    show_at = clock()
    is_clean = False
    try:
        run.obey(dispatcher.start(run.now()))
        while not dispatcher.is_finished:
            if stop is not None and stop.is_set() and run.is_over():
                break
            # One task at a time: reading the next must not keep results waiting, nor workers that have nothing to do.
            out = run.listen(0.0 if run.pull() else turn_seconds)
            while out:
                yield out.popleft()
            if run.failure is not None:
                raise run.failure
            if on_turn is not None and clock() >= show_at:
                on_turn(dispatcher.snapshot())
                show_at = clock() + _SHOW_SECONDS
        if on_turn is not None:
            on_turn(dispatcher.snapshot())
        is_clean = dispatcher.is_idle
    finally:
        workers.close(force=not is_clean)


@dataclass
class _Chunk:
    """Items as the feed gave them. ``left``: how many of them are not out."""

    start: int
    stop: int
    payload: Payload
    left: int

    def payload_of(self, task: messages.Task) -> Payload:
        if self.payload is None or task.size == self.stop - self.start:
            return self.payload
        return self.payload[task.start - self.start : task.stop - self.start]


@dataclass
class _DispatchLoop:
    """Between a dispatcher and its workers: payloads on their way there, results on their way back."""

    _workers: WorkerPool
    _dispatcher: Dispatcher
    _feed: Iterator[tuple[int, int, Payload]]
    _has_room: Callable[[], bool] | None
    _clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.failure: EngineError | None = None
        self._is_fed = False
        self._chunks: dict[int, _Chunk] = {}  # by first item
        self._starts: list[int] = []  # the keys of these, ascending
        self._sent: dict[int, Send] = {}  # by task
        self._results: dict[int, Sequence[Any]] = {}  # by task
        self._out: deque[FinishedItems | FailedItem] = deque()
        self._seen = self._clock()
        self._time = 0.0
        self._ticked = 0.0
        self._give_up_at: float | None = None

    def now(self) -> float:
        """The time by which workers are judged. It does not run on while nobody listens: a consumer that comes back
        after an hour finds none of them hung."""
        seen = self._clock()
        self._time += min(seen - self._seen, _LONGEST_STEP)
        self._seen = seen
        return self._time

    def is_over(self) -> bool:
        """Send nothing any more -> whether all that was sent has come in, or is not worth waiting for."""
        if self._give_up_at is None:
            self._dispatcher.drain()
            self._give_up_at = self.now() + _LAST_SECONDS
        return self._dispatcher.is_idle or self.now() >= self._give_up_at

    def pull(self) -> bool:
        """Take a task from the feed, if there is room -> whether there may be room for another."""
        if self._is_fed or self._dispatcher.capacity <= 0:
            return False
        if self._chunks and self._has_room is not None and not self._has_room():
            return False
        given = next(self._feed, None)
        if given is None:
            self._is_fed = True
            self._dispatcher.close()
            return True
        start, stop, payload = given
        self._chunks[start] = _Chunk(start, stop, payload, stop - start)
        self._starts.append(start)
        self.obey(self._dispatcher.submit(start, stop, self.now()))
        return True

    def listen(self, timeout: float) -> deque[FinishedItems | FailedItem]:
        """Hear the workers -> what is to be handed out. ``failure`` is to be raised after that, if it is set."""
        try:
            for event in self._workers.wait(timeout):
                self._hear(event)
            # Only now, that everything they said has been heard, can it be told who is silent.
            now = self.now()
            if now >= self._ticked + _TICK_SECONDS:
                self._ticked = now
                self.obey(self._dispatcher.handle(Tick(), now))
        except EngineError as error:
            self.failure = error
        return self._out

    def _hear(self, event: messages.WorkerEvent) -> None:
        if isinstance(event, messages.Fatal):
            raise FatalError(event.reason)
        if isinstance(event, TaskDone):
            self._results[event.task] = event.outputs
        elif isinstance(event, TaskFailed):
            self._sent.pop(event.task, None)
        elif isinstance(event, messages.WorkerLost):
            self._forget_sent(event.worker)
        self.obey(self._dispatcher.handle(event, self.now()))

    def obey(self, instructions: Iterable[messages.Instruction]) -> None:
        for one in instructions:
            if isinstance(one, Send):
                self._sent[one.task.number] = one
                self._workers.send(one.worker, one.task, self._chunk_of(one.task.start).payload_of(one.task))
            elif isinstance(one, Release):
                first = self._sent[one.task].task.start
                outputs = self._results[one.task][one.start - first : one.stop - first]
                self._hand_out(one.start, one.stop, FinishedItems(one.start, one.stop, outputs))
            elif isinstance(one, Forget):
                self._results.pop(one.task, None)
                self._sent.pop(one.task, None)
            elif isinstance(one, messages.Quarantine):
                self._hand_out(one.item, one.item + 1, FailedItem(one.item, one.reason))
            elif isinstance(one, messages.StartWorker):
                if self._give_up_at is None:
                    self._workers.start(one.device, one.worker)
            elif isinstance(one, messages.StopWorker):
                self._forget_sent(one.worker)
                self._workers.stop(one.worker)
            else:
                assert isinstance(one, messages.Retire)
                name = self._dispatcher.snapshot().devices[one.device].name
                _log.warning("%s", speakable(f"{name} is given up: {one.reason}"))

    def _forget_sent(self, worker: int) -> None:
        """A worker is gone: nothing will come of what it has not done."""
        results = self._results
        self._sent = {task: sent for task, sent in self._sent.items() if sent.worker != worker or task in results}

    def _chunk_of(self, item: int) -> _Chunk:
        return self._chunks[self._starts[bisect_right(self._starts, item) - 1]]

    def _hand_out(self, start: int, stop: int, made: FinishedItems | FailedItem) -> None:
        self._out.append(made)
        chunk = self._chunk_of(start)
        chunk.left -= stop - start
        if not chunk.left:
            del self._chunks[chunk.start]
            self._starts.remove(chunk.start)
