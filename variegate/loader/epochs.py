"""The batches of one epoch after another: in the making ahead of their use, and handed out in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from threading import Lock
from typing import Any

from variegate.loader.making import AnyBatch, BatchResult
from variegate.loader.order import Position
from variegate.loader.reading import PendingRead
from variegate.loader.stats import StageTimes
from variegate.threads import Lookahead, at_fork

MakeBatch = Callable[[Any], BatchResult]


class EpochRun:
    """The rest of an epoch from ``start``: its batches in order, made ahead of their use, never more than asked for.

    Args:
        steps: each ``next`` begins to read a step; it is asked for in the consumer's thread only.
        make: the result of a step -> batch, called by the threads of ``pool``.
        depth: batches begun ahead of the one that the consumer has; 0 makes each when it is asked for.
        read_depth: further steps that are being read.
        stop_reading: cancel pending reads.

    An error of a step is raised when its turn comes, and ends the run.
    """

    def __init__(
        self,
        start: Position,
        steps: Iterator[PendingRead],
        make: MakeBatch,
        pool: Executor,
        depth: int,
        read_depth: int,
        stop_reading: Callable[[], None],
        times: StageTimes,
    ) -> None:
        self.start, self.times, self._make, self._depth = start, times, make, depth
        self._reading = Lookahead(steps)
        self._making = Lookahead(_begin_making(self._reading, read_depth, make, pool))
        self._stop_reading = stop_reading
        self.is_closed = False
        self._is_forked = False
        # Number of further batches that could be started after the last step of the epoch.
        self.room = 0
        at_fork(self)

    def after_fork(self) -> None:
        self._is_forked = True

    @property
    def is_usable(self) -> bool:
        return not (self.is_closed or self._is_forked)

    def check_process(self) -> None:
        """Raises RuntimeError in a process that was forked from the one that began it."""
        if self._is_forked:
            raise RuntimeError(
                "this iteration was begun in another process, whose threads a fork does not bring along; begin one here"
            )

    def begin(self, number: int) -> None:
        """Start this many batches before the first is requested."""
        self._making.begin(min(number, self._depth))

    def take(self) -> BatchResult | None:
        """The next batch; None at the end. For one thread at a time."""
        if not self._depth:
            step = self._reading.take()
            return None if step is None else self._wait(lambda: _read_and_make(step, self._make))
        self.begin(self._depth)
        future = self._making.take()
        if future is None:
            return None
        result = future.result() if future.done() else self._wait(future.result)
        # Only now, that the batch before may be given back: one more would be in memory otherwise.
        self.begin(self._depth)
        self.room = self._depth - len(self._making)
        return result

    def _wait(self, for_batch: Callable[[], BatchResult]) -> BatchResult:
        begin = time.perf_counter()
        result = for_batch()
        self.times.stage_done("wait", time.perf_counter() - begin, len(result.batch.ids), 0)
        return result

    def close(self) -> None:
        """Drop waiting batches. Batches in progress are finished, and dropped.

        Uses no module: at the end of the interpreter, those may be gone before an iteration is.
        """
        self.is_closed = True
        begun = self._making.close()
        self._reading.close()
        if not self._is_forked:  # in a child, threads that are gone may have had hold of the futures
            for future in begun:
                future.cancel()
            self._stop_reading()

    __del__ = close


def _begin_making(
    reading: Lookahead[PendingRead], read_depth: int, make: MakeBatch, pool: Executor
) -> Iterator[Future[BatchResult]]:
    while True:
        reading.begin(read_depth + 1)
        if (step := reading.take()) is None:
            return
        yield pool.submit(_read_and_make, step, make)


def _read_and_make(step: PendingRead, make: MakeBatch) -> BatchResult:
    return make(step())


class BatchIterator(Iterator[AnyBatch]):
    """The batches of a run. Threads may share it: each batch goes to one thread.

    ``hand_out``: (batch, its epoch) -> the value for the consumer.
    """

    def __init__(self, run: EpochRun, epochs: Epochs, hand_out: Callable[[BatchResult, int], AnyBatch]) -> None:
        self._run = run
        self._epochs = epochs
        self._hand_out = hand_out
        self._lock = Lock()

    def __next__(self) -> AnyBatch:
        self._run.check_process()
        with self._lock:
            run = self._run
            times = self._run.times
            try:
                begin = time.perf_counter()
                waited = times.total("wait").seconds
                if (result := run.take()) is None:
                    self._epochs.finished(run)
                    raise StopIteration
                batch = self._hand_out(result, run.start[0])
                self._epochs.mark_consumed(run, result.done)
                seconds = time.perf_counter() - begin - (times.total("wait").seconds - waited)
                times.stage_done("hand_over", seconds, len(batch.ids), batch.nbytes)
                return batch
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the iteration here."""
        self._run.close()

    __del__ = close


class Epochs:
    """``depth``: batches to have in the making. ``is_early``: an epoch may be begun before the one before it is over.

    ``at`` is where the iteration begun last stands, in samples handed out; ``next``, where the following one begins.
    """

    def __init__(self, depth: int, is_early: bool, make_run: Callable[[Position], EpochRun]) -> None:
        self._depth = depth
        self._is_early = is_early
        self._make_run = make_run
        self.at: Position = (0, 0)
        self.next: Position = (0, 0)
        self.latest: EpochRun | None = None
        self._early: EpochRun | None = None
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def seek(self, position: Position) -> None:
        self.at = self.next = position

    def begin(self) -> EpochRun:
        """The next iteration. It is the one that ``at`` is about from now on, whatever becomes of those before."""
        with self._lock:
            position = self.next
            early = self._early
            self.at = position
            self.next = (position[0] + 1, 0)
            self._early = None
            if early is not None and (early.start != position or not early.is_usable):
                early.close()
                early = None
            run = self.latest = early or self._make_run(position)
            run.times.begin = time.perf_counter()
            run.begin(self._depth)
            return run

    def mark_consumed(self, run: EpochRun, done: int) -> None:
        """Record that this many samples of the epoch are done. Once all its batches are begun, the next epoch's batches
        are started, so that a short epoch's end does not leave threads idle."""
        with self._lock:
            if run is not self.latest:
                return
            self.at = (run.start[0], done)
            if self._is_early and run.room and self.next == (run.start[0] + 1, 0):
                self._early = self._early or self._make_run(self.next)
                self._early.begin(run.room)

    def finished(self, run: EpochRun) -> None:
        with self._lock:
            if run is self.latest:
                self.at = (run.start[0] + 1, 0)
