"""What stands between a scheduler and workers: order, back-pressure, time, and the end of it."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workers.contract import NAMES, Run, made_of, tasks
from tests.workers.toys import Give, Toy
from variegate.workers.protocol import Assignment, EngineError, TaskDone, WorkerEvent, WorkerReady
from variegate.workers.run import FailedItem, FinishedItems
from variegate.workers.scheduler import Snapshot
from variegate.workers.threads import ThreadPool


def run_of(work: Any, names: tuple[str, ...] = NAMES, **rules: Any) -> Run:
    return Run(ThreadPool(work, names, 1), names, **rules)


def test_without_an_order_everything_comes_out_once() -> None:
    results = list(run_of(Toy(slow={"cpu:0": 0.005}), ordered=False)(tasks(80)))
    assert sorted(made.item for made in made_of(results)) == list(range(80))
    assert all(made.payload == f"p{made.item}" for made in made_of(results))


def test_items_need_no_payload_and_may_have_gaps() -> None:
    results = list(run_of(Toy())((item, item + 3, None) for item in range(0, 30, 10)))
    assert [made.item for made in made_of(results)] == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert {made.payload for made in made_of(results)} == {None}


def test_an_empty_feed_ends_at_once() -> None:
    assert list(run_of(Toy())([])) == []


def test_where_no_device_can_be_opened_the_run_says_why() -> None:
    run = run_of(Toy(closed=NAMES), max_failed_starts=1)
    with pytest.raises(EngineError, match=r"no device is left.*OSError: nobody is at home on cpu:\d"):
        list(run(tasks(8)))


def test_the_feed_is_asked_no_further_than_allowed() -> None:
    asked = out = 0

    def feed() -> Iterator[tuple[int, int, list[str]]]:
        nonlocal asked
        for task in tasks(10**9):
            asked = task[1]
            yield task

    iterator = run_of(Toy(), max_items=20)(feed())
    for done in iterator:
        assert isinstance(done, FinishedItems)
        # Some were out with the one before; the last task may reach over the limit.
        assert asked - out <= 20 + 3
        out = done.stop
        if out >= 400:
            break
    iterator.close()


def test_without_room_elsewhere_the_feed_is_asked_for_one_task_at_a_time() -> None:
    asked = out = 0

    def feed() -> Iterator[tuple[int, int, list[str]]]:
        nonlocal asked
        for task in tasks(40):
            assert asked == out
            asked = task[1]
            yield task

    for done in run_of(Toy())(feed(), has_room=lambda: False):
        assert isinstance(done, FinishedItems)
        out = done.stop
    assert out == 40


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_of_the_feed_is_raised_and_leaves_nothing_behind(error: type[BaseException]) -> None:
    def feed() -> Iterator[tuple[int, int, list[str]]]:
        yield from tasks(8)
        raise error

    before = set(threading.enumerate())
    with pytest.raises(error):
        list(run_of(Toy())(feed()))
    assert set(threading.enumerate()) <= before


def test_once_stopped_nothing_is_sent_and_what_is_in_flight_comes_out() -> None:
    stop = threading.Event()
    run = run_of(Toy(slow=dict.fromkeys(NAMES, 0.001)), ordered=False)
    items: list[int] = []
    sent = 0
    for done in run(tasks(10**9), stop=stop):
        assert isinstance(done, FinishedItems)
        items += range(done.start, done.stop)
        if not stop.is_set():
            sent = sum(device.done + 4 * device.in_flight for device in run.scheduler.snapshot().devices)
            stop.set()
    assert len(items) == len(set(items)) == sent
    assert run.scheduler.is_idle


def test_how_it_stands_is_told() -> None:
    told: list[Snapshot] = []
    list(run_of(Toy())(tasks(40), on_turn=told.append))
    assert sum(device.done for device in told[-1].devices) == 40
    assert told[-1].outstanding == 0


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without the lock, Python frees what a thread has made when that thread runs again",
)
def test_results_belong_to_the_consumer_alone() -> None:
    class Thing:
        """A result that can be watched."""

    mark_consumed: list[weakref.ref[Thing]] = []
    for done in run_of(Give())((item, item + 2, [Thing(), Thing()]) for item in range(0, 60, 2)):
        assert isinstance(done, FinishedItems)
        assert [thing() for thing in mark_consumed] == [None] * len(mark_consumed)
        mark_consumed += [weakref.ref(thing) for thing in done.outputs]
        del done


class SilentWorkers:
    """Workers in a time of their own: each begins a task, and says something only when it is told to."""

    def __init__(self) -> None:
        self.time = 0.0
        self.said: deque[WorkerEvent] = deque()
        self.tasks: list[tuple[int, Assignment]] = []
        self.stopped: list[int] = []
        self.was_forced: bool | None = None

    def start(self, device: int, worker: int) -> None:
        self.said.append(WorkerReady(worker))

    def send(self, worker: int, task: Assignment) -> None:
        self.tasks.append((worker, task))

    def stop(self, worker: int) -> None:
        self.stopped.append(worker)

    def wait(self, timeout: float) -> list[WorkerEvent]:
        if not self.said:
            self.time += timeout
        said = list(self.said)
        self.said.clear()
        return said

    def close(self, force: bool = False) -> None:
        self.was_forced = force

    def finish(self) -> None:
        """The task that was sent first is done."""
        worker, task = self.tasks.pop(0)
        self.said.append(TaskDone(worker, task.task, outputs=[None] * (task.stop - task.start)))


def test_workers_are_not_to_blame_for_a_slow_consumer() -> None:
    workers = SilentWorkers()
    run = Run(workers, NAMES[:1], in_flight=2)
    waits = iter([workers.finish, *[lambda: None] * 50, workers.finish])
    plain_wait = workers.wait

    def wait(timeout: float) -> list[WorkerEvent]:
        if workers.tasks:
            next(waits)()
        return plain_wait(timeout)

    workers.wait = wait  # type: ignore[method-assign]
    results = []
    for done in run([(0, 1, None), (1, 2, None)], clock=lambda: workers.time):
        results.append(done)
        workers.time += 3600
    assert [done.start for done in results if isinstance(done, FinishedItems)] == [0, 1]
    assert workers.stopped == []


def test_a_worker_that_stays_silent_while_it_is_listened_to_is_stopped() -> None:
    workers = SilentWorkers()
    run = Run(workers, NAMES[:1], max_failures=1)
    (bad,) = run([(0, 1, None)], clock=lambda: workers.time)
    assert bad == FailedItem(0, "gave no sign of life for 120 s")
    assert workers.stopped == [0, 1]
    assert workers.time == pytest.approx(240, abs=10)
    assert workers.was_forced is False


def test_a_stopped_run_does_not_wait_for_ever() -> None:
    workers, stop = SilentWorkers(), threading.Event()
    run = Run(workers, NAMES[:1])

    def feed() -> Iterator[tuple[int, int, None]]:
        yield 0, 1, None
        yield 1, 2, None
        stop.set()
        yield 2, 3, None

    assert list(run(feed(), stop=stop, clock=lambda: workers.time)) == []
    assert len(workers.tasks) <= 2
    assert 29 < workers.time < 35
    assert workers.was_forced is True
