"""Batches made by workers: planned here, and made there."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from queue import Queue
from typing import Any

import numpy as np

from variegate.loader.epochs import MakeBatch
from variegate.loader.making import BatchMaker, BatchResult
from variegate.loader.options import ConditionsOfIds, LoaderOptions
from variegate.loader.order import EpochOrder
from variegate.loader.reading import PendingRead, StepPlan
from variegate.loader.stats import StageTimes
from variegate.loader.workers.job import BatchReport, BatchSpec, BatchTask
from variegate.loader.workers.places import WorkerPlaces
from variegate.threads import at_fork
from variegate.workers.protocol import EngineError, WorkerPool
from variegate.workers.run import FailedItem, run_tasks
from variegate.workers.scheduler import Scheduler, SchedulerSettings, Snapshot

# A request for a batch waits so long at most while others are being made.
_WAIT_SECONDS = 0.01
_JOIN_SECONDS = 10.0

BatchFuture = Future[BatchReport]


class _Stopped(Exception):
    """Raised in the feed when the batches are no longer needed."""


class Fleet:
    """Workers that make batches: driven by a thread from the first batch on, and ended by ``close``.

    ``start``: makes the pool of workers, in the thread that drives them.
    """

    def __init__(self, devices: Sequence[str], rules: SchedulerSettings, start: Callable[[], WorkerPool]) -> None:
        self.devices = devices
        self._rules = rules
        self._start = start
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, task: BatchTask) -> BatchFuture:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._queue: Queue[tuple[int, BatchTask] | None] = Queue()
                self._futures: dict[int, BatchFuture] = {}  # by the number of the first row, counted over all batches
                self._num_rows = 0
                self._is_stopped = threading.Event()
                self._thread = threading.Thread(target=self._run, name="variegate-workers", daemon=True)
                self._thread.start()
            future = self._futures[self._num_rows] = BatchFuture()
            self._queue.put((self._num_rows, task))
            self._num_rows += len(task)
        return future

    def close(self) -> None:
        """End the workers, whatever they do. Returns in bounded time."""
        if (thread := self._thread) is not None and thread.is_alive():
            self._is_stopped.set()
            self._queue.put(None)
            if thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        queue = self._queue
        futures = self._futures
        error: BaseException = RuntimeError("the loader's workers were ended")
        try:
            for made in run_tasks(
                self._start(),
                Scheduler(self.devices, self._rules),
                self._feed(),
                on_turn=self._check_stopped,
                has_room=lambda: not queue.empty(),
                wait_seconds=_WAIT_SECONDS,
            ):
                if not isinstance(made, FailedItem):
                    futures.pop(made.start).set_result(made.outputs[0])
                elif (future := futures.pop(made.item, None)) is not None:  # its further rows have failed as well
                    future.set_exception(EngineError(f"a batch cannot be made: {made.reason}"))
                del made  # must not stay in memory while the next batch is awaited
        except _Stopped:
            pass
        except BaseException as caught:
            error = caught
        with self._lock:
            left = list(futures.values())
            self._thread = None
        for future in left:
            if not future.cancelled():
                future.set_exception(error)

    def _feed(self) -> Generator[tuple[int, int, BatchTask], None, None]:
        queue = self._queue
        futures = self._futures
        while (queued := queue.get()) is not None:
            start, task = queued
            if futures[start].set_running_or_notify_cancel():
                yield start, start + len(task), task
            else:
                del futures[start]

    def _check_stopped(self, snapshot: Snapshot) -> None:
        if self._is_stopped.is_set():
            raise _Stopped


class WorkerBatches:
    """The steps of epochs, made by a fleet.

    ``depth``: batches in flight beyond the consumer's: one per worker, and one for the next idle worker. 0 makes each
    when it is asked for.
    """

    def __init__(self, fleet: Fleet, options: LoaderOptions, order: EpochOrder) -> None:
        self.fleet = fleet
        self.depth = max(options.prefetch, len(fleet.devices)) + 1 if options.prefetch else 0
        self._on_error = options.on_error
        self._order = order

    def steps(
        self, plans: Iterator[StepPlan], epoch: int, times: StageTimes, given: ConditionsOfIds | None
    ) -> tuple[Iterator[PendingRead], Callable[[], None], MakeBatch]:
        """The steps of an epoch, a function that stops them, and a function that has a worker make a step's batch and
        waits for it."""
        begun: list[BatchFuture] = []

        def make(plan: StepPlan) -> BatchResult:
            future = self.fleet.submit(self._task_of(plan, epoch, given))
            begun.append(future)
            try:
                return future.result().unpack(times)
            except CancelledError:
                raise RuntimeError("nobody wants this batch any more") from None
            finally:
                begun.remove(future)

        def stop() -> None:
            for future in list(begun):
                future.cancel()

        return ((lambda plan=plan: plan) for plan in plans), stop, make

    def _task_of(self, plan: StepPlan, epoch: int, given: ConditionsOfIds | None) -> BatchTask:
        rows = range(len(plan.padding))
        if (
            self._on_error != "raise"
        ):  # of a batch of nothing but bad rows, one is replaced even where bad ones are skipped
            replaced = rows if self._on_error == "replace" else rows[:1]
            plan = replace(plan, candidates=self._order.candidates(plan, replaced, epoch))
        if given is None:
            return BatchTask(epoch, plan, rows)
        ids = np.unique(plan.ids)
        values = {name: np.asarray(of_ids) for name, of_ids in given(ids).items()}
        return BatchTask(epoch, plan, rows, (ids, values))


def begin(
    options: LoaderOptions, places: WorkerPlaces, targets: Any, cache: Any, maker: BatchMaker, order: EpochOrder
) -> WorkerBatches:
    """``options``: with the transform of the loader; ``cache``: of workers that are threads. Raises ValueError."""
    is_shared = not places.are_threads and options.cache == "host"
    if options.cache == "device":
        raise ValueError("cache: got 'device' with workers or devices; accepted: 'host', a folder, or None")
    if is_shared and targets is not None:
        raise ValueError("cache: got 'host' with targets and workers; accepted: None, or workers='thread'")
    folder = options.cache if options.cache in (None, "host") else os.path.abspath(os.path.expanduser(options.cache))
    # Arguments that are asked in this process only need not be picklable.
    sent = replace(
        options,
        transform=maker.augmenter.transform,
        cache=folder,
        sampler=None,
        batch_sampler=None,
        buckets=None if options.buckets is None else replace(options.buckets, sizes=None),
        weights=None,
        conditions=None,
        annotations=None,
    )
    shared = uuid.uuid4().hex if is_shared else None
    spec = BatchSpec(sent, targets, cache, shared, sharing=len(places.devices))
    # With this many ready, the other workers may take any time to start.
    enough = places.fewest if places.fewest < len(places.devices) else SchedulerSettings.min_ready_workers
    rules = SchedulerSettings(ordered=False, min_ready_workers=enough)
    return WorkerBatches(Fleet(places.devices, rules, lambda: places.open(spec)), options, order)
