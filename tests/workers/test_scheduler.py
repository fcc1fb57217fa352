"""Promises of the scheduler: every item once, blame only where it is due, and no idle device while work waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from variegate.workers.protocol import (
    EngineError,
    Heartbeat,
    ItemStarted,
    TaskDone,
    TaskFailed,
    WorkerEvent,
    WorkerLost,
    WorkerReady,
)
from variegate.workers.scheduler import (
    ALLOCATIONS,
    Action,
    Finish,
    Retire,
    Scheduler,
    SchedulerSettings,
    Send,
    StartWorker,
    StopWorker,
    Task,
)

ENDLESS = 10**9


@dataclass
class Worker:
    device: int
    is_ready: bool = False
    tasks: list[Task] = field(default_factory=list)
    item: int | None = None  # announced


class Devices:
    """Devices that carry out a scheduler's actions, and check them. The output of an item is its number."""

    def __init__(self, number: int, is_ready: bool = True, **rules: Any) -> None:
        self.rules = SchedulerSettings(**rules)
        self.scheduler = Scheduler([f"d{device}" for device in range(number)], self.rules)
        self.now = 0.0
        self.workers: dict[int, Worker] = {}
        self.sent: list[tuple[int, int, int]] = []  # (device, start, stop)
        self.submitted: list[int] = []
        self.out: list[int] = []
        self.failed: dict[int, str] = {}
        self.reported: set[int] = set()  # failed by the job
        self.blamed: Counter[tuple[int, int | None]] = Counter()  # by task and item
        self.retired: list[str] = []
        self.error: EngineError | None = None
        self.is_draining = False
        self.apply(self.scheduler.start(0.0))
        if is_ready:
            self.all_ready()

    def apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                worker = self.workers[action.worker]
                assert worker.is_ready
                assert worker.device == action.device
                assert not self.is_draining
                worker.tasks.append(action.task)
                assert len(worker.tasks) <= self.rules.in_flight
                self.sent.append((action.device, action.task.start, action.task.stop))
            elif isinstance(action, StartWorker):
                assert not any(worker.device == action.device for worker in self.workers.values())
                self.workers[action.worker] = Worker(action.device)
            elif isinstance(action, StopWorker):
                self.workers.pop(action.worker, None)
            elif isinstance(action, Finish):
                self.check_finished(action.task)
            else:
                assert isinstance(action, Retire)
                self.retired.append(action.name)
        assert len(self.out) == len(set(self.out))
        if self.rules.ordered:
            assert self.out == self.submitted[: len(self.out)]
        assert self.scheduler.snapshot().outstanding == len(self.submitted) - len(self.out)
        assert self.scheduler.is_idle == (not any(worker.tasks for worker in self.workers.values()))

    def check_finished(self, task: Task) -> None:
        items = range(task.start, task.stop)
        assert list(task.outputs) == [None if item in task.failed else item for item in items]
        is_hopeless = self.blamed[task.number, None] == self.rules.max_failures
        for item in task.failed.keys() - self.reported:
            assert is_hopeless or self.blamed[task.number, item] == self.rules.max_failures
        self.failed |= task.failed
        self.out += items

    def handle(self, event: WorkerEvent) -> None:
        try:
            self.apply(self.scheduler.handle(event, self.now))
        except EngineError as error:
            self.error = error

    def submit(self, *sizes: int, gap: int = 0) -> None:
        for size in sizes:
            start = (self.submitted[-1] + 1 if self.submitted else 0) + gap
            self.submitted += range(start, start + size)
            self.apply(self.scheduler.submit(start, start + size, None, self.now))

    def worker(self, device: int) -> int:
        return next(number for number, worker in self.workers.items() if worker.device == device)

    def ready(self, number: int) -> None:
        self.workers[number].is_ready = True
        self.handle(WorkerReady(number))

    def all_ready(self) -> None:
        for number, worker in list(self.workers.items()):
            if not worker.is_ready:
                self.ready(number)

    def announce(self, number: int, item: int | None) -> None:
        self.workers[number].item = item
        self.handle(ItemStarted(number, item))

    def done(self, number: int, failed: Iterable[int] = ()) -> None:
        """The oldest task of a worker, but for some items."""
        task = self.take(number)
        items = range(task.start, task.stop)
        reasons = {**task.failed, **{item: "bad" for item in failed if item in items}}
        self.reported.update(reasons.keys() - task.failed.keys())
        outputs = [None if item in reasons else item for item in items]
        self.handle(TaskDone(number, task.number, reasons, outputs))

    def fail(self, number: int) -> None:
        """The oldest task of a worker, as a whole."""
        self.blame(self.workers[number])
        self.handle(TaskFailed(number, self.take(number).number, "failed"))

    def take(self, number: int) -> Task:
        self.workers[number].item = None
        return self.workers[number].tasks.pop(0)

    def lose(self, number: int, reason: str = "killed") -> None:
        self.blame(self.workers.pop(number))
        self.handle(WorkerLost(number, reason))

    def blame(self, worker: Worker) -> None:
        if worker.tasks and (task := worker.tasks[0]).is_careful:
            self.blamed[task.number, None if worker.item in task.failed else worker.item] += 1

    def wait(self, seconds: float) -> None:
        """Nobody reports anything for so long."""
        self.now += seconds
        silent = {number for number, worker in self.workers.items() if seconds > self.patience(worker)}
        for number in silent:
            self.blame(self.workers[number])
        before = set(self.workers)
        try:
            self.apply(self.scheduler.check_times(self.now))
        except EngineError as error:
            self.error = error
        else:
            assert before - set(self.workers) == silent

    def patience(self, worker: Worker) -> float:
        if not worker.is_ready:
            return self.rules.start_timeout
        return self.rules.heartbeat_timeout if worker.tasks else float("inf")


def test_the_next_idle_device_gets_the_next_task_and_none_gets_two_before_others_have_one() -> None:
    devices = Devices(2, in_flight=1)
    devices.submit(*[1] * 6)
    for device in (1, 1, 1, 0):
        devices.done(devices.worker(device))
    assert devices.sent == [(0, 0, 1), (1, 1, 2), (1, 2, 3), (1, 3, 4), (1, 4, 5), (0, 5, 6)]
    assert devices.out == [0, 1, 2, 3]
    devices = Devices(3, in_flight=2)
    devices.submit(*[1] * 4)
    assert [device for device, _, _ in devices.sent] == [0, 1, 2, 0]


def test_round_robin_and_random_choose_a_queue() -> None:
    def chosen(**rules: Any) -> list[int]:
        devices = Devices(3, in_flight=100, queue_limit=None, steal=False, **rules)
        devices.submit(*[1] * 30)
        return [device for device, _, _ in devices.sent]

    assert chosen(allocation="round_robin") == [0, 1, 2] * 10
    assert chosen(allocation="random", seed=7) == chosen(allocation="random", seed=7)
    assert chosen(allocation="random", seed=7) != chosen(allocation="random", seed=8)
    assert set(chosen(allocation="random")) == {0, 1, 2}


@pytest.mark.parametrize("steal", [True, False])
def test_an_idle_device_takes_from_the_end_of_the_longest_queue(steal: bool) -> None:
    devices = Devices(2, in_flight=1, allocation="round_robin", steal=steal)
    devices.submit(*[1] * 8)
    for _ in range(4):
        devices.done(devices.worker(1))
    assert devices.sent[5:] == ([(1, 6, 7)] if steal else [])
    assert [device.steals for device in devices.scheduler.snapshot().devices] == [0, int(steal)]


@pytest.mark.parametrize("is_killer", [True, False])
def test_an_announced_item_that_fails_three_times_is_skipped_and_named(is_killer: bool) -> None:
    devices = Devices(1, in_flight=1)
    devices.submit(4, 2)
    for attempt in range(4):  # the first is not careful
        worker = devices.worker(0)
        for item in range(3 if attempt else 0):
            devices.announce(worker, item)
        devices.lose(worker, "signal 11") if is_killer else devices.fail(worker)
        devices.all_ready()
    while devices.workers[devices.worker(0)].tasks:
        devices.done(devices.worker(0))
    assert devices.failed == {2: "signal 11" if is_killer else "failed"}
    assert devices.out == list(range(6))
    assert [start for _, start, _ in devices.sent].count(0) == 5


def test_a_task_that_fails_three_times_for_none_of_its_items_fails_as_a_whole() -> None:
    devices = Devices(1, in_flight=1)
    devices.submit(2)
    for _ in range(4):
        devices.fail(devices.worker(0))
    assert devices.failed == {0: "failed", 1: "failed"}


def test_a_task_that_waited_at_a_lost_worker_is_not_suspected() -> None:
    devices = Devices(1, in_flight=2, max_failures=1)
    devices.submit(2, 1)
    devices.lose(devices.worker(0))
    devices.all_ready()
    assert [task.is_careful for task in devices.workers[devices.worker(0)].tasks] == [True, False]


def test_a_failed_task_is_tried_on_other_devices_first() -> None:
    devices = Devices(3, in_flight=1)
    devices.submit(2)
    for device in (0, 1, 2):
        assert devices.sent[-1][0] == device
        devices.fail(devices.worker(device))


def test_items_under_way_and_tasks_that_wait_are_bounded() -> None:
    devices = Devices(2, in_flight=1, max_items=10)
    devices.submit(4, 4)
    assert devices.scheduler.capacity == 2
    devices.done(devices.worker(1))  # it waits for the items before it
    assert devices.scheduler.capacity == 2
    devices.done(devices.worker(0))
    assert devices.scheduler.capacity == 10
    devices = Devices(2, in_flight=1, queue_limit=2)
    devices.submit(*[1] * 6)
    assert devices.scheduler.capacity == 0


def test_a_device_that_does_not_start_leaves_its_tasks_to_the_others() -> None:
    devices = Devices(2, is_ready=False, max_failed_starts=2, steal=False, allocation="round_robin")
    devices.submit(*[1] * 4)
    devices.ready(devices.worker(1))
    for _ in range(2):
        devices.lose(devices.worker(0), "no driver")
    assert devices.retired == ["d0"]
    for _ in range(4):
        devices.done(devices.worker(1))
    assert devices.out == [0, 1, 2, 3]


def test_the_error_of_the_last_device_is_raised() -> None:
    devices = Devices(1, max_consecutive_failures=2)
    for _ in range(2):
        assert devices.error is None
        devices.all_ready()
        devices.lose(devices.worker(0), "no memory")
    assert str(devices.error) == "no device is left; the last was d0, 2 failures in a row: no memory"


def test_items_that_were_made_carefully_count_as_progress() -> None:
    devices = Devices(1, max_consecutive_failures=3)
    devices.submit(3)
    for _ in range(9):
        worker = devices.worker(0)
        for item in (0, 1):
            devices.announce(worker, item)
        devices.lose(worker)
        devices.all_ready()
        assert devices.error is None


def test_events_of_replaced_workers_are_ignored() -> None:
    devices = Devices(2, in_flight=1)
    devices.submit(1)
    worker = devices.worker(0)
    (task,) = devices.workers[worker].tasks
    devices.wait(500.0)
    for event in (Heartbeat(worker), WorkerReady(worker), TaskDone(worker, task.number), WorkerLost(worker, "late")):
        assert devices.scheduler.handle(event, devices.now) == []


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("max_failures", 0, "1 or more"),
        ("heartbeat_timeout", 0.0, "seconds, more than 0"),
        ("allocation", "best", "one of 'next_idle', 'round_robin', 'random'"),
    ],
)
def test_rules_that_are_not_accepted_are_named(name: str, value: Any, accepted: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got {value!r}; accepted: {accepted}$"):
        SchedulerSettings(**{name: value})
    with pytest.raises(ValueError, match="devices: got none; accepted: one or more"):
        Scheduler([], SchedulerSettings())


ITEMS = st.sets(st.integers(0, 59), max_size=4)
PICK = st.integers(0, 100)
RULES = st.fixed_dictionaries(
    {
        "allocation": st.sampled_from(ALLOCATIONS),
        "steal": st.booleans(),
        "ordered": st.booleans(),
        "in_flight": st.integers(1, 3),
        "queue_limit": st.sampled_from([None, 1, 2, 8]),
        "max_items": st.sampled_from([1, 8, 30, ENDLESS]),
        "max_failures": st.integers(1, 3),
        "max_consecutive_failures": st.sampled_from([2, 5, ENDLESS, ENDLESS]),
        "max_failed_starts": st.sampled_from([1, 3, ENDLESS, ENDLESS]),
        "heartbeat_timeout": st.just(10.0),
        "start_timeout": st.just(20.0),
        "seed": st.integers(0, 3),
    }
)


class AnyOrder(RuleBasedStateMachine):
    """Workers come, work, fail and go in any order; in the end all of them work, and everything must come out.

    ``bad`` items fail on every device, ``poison`` ends its worker.
    """

    @initialize(rules=RULES, number=st.integers(1, 5), bad=ITEMS, poison=ITEMS)
    def begin(self, rules: dict[str, Any], number: int, bad: set[int], poison: set[int]) -> None:
        self.devices = Devices(number, is_ready=False, **rules)
        self.bad = bad
        self.poison = poison

    def some(self, is_ready: bool = True, has_task: bool = False) -> list[int]:
        if self.devices.error is not None:
            return []
        workers = self.devices.workers.items()
        return [n for n, worker in workers if worker.is_ready == is_ready and (worker.tasks or not has_task)]

    def can_submit(self) -> bool:
        devices = self.devices
        return devices.error is None and devices.scheduler.capacity > 0 and len(devices.submitted) < 60

    @precondition(can_submit)
    @rule(size=st.integers(1, 16), gap=st.sampled_from([0, 0, 0, 3]))
    def submit(self, size: int, gap: int) -> None:
        before = self.devices.scheduler.num_outstanding
        self.devices.submit(size, gap=gap)
        assert before < self.devices.rules.max_items

    @precondition(lambda self: self.some(is_ready=False))
    @rule(pick=PICK, starts=st.sampled_from([True, True, False]))
    def start_or_not(self, pick: int, starts: bool) -> None:
        workers = self.some(is_ready=False)
        worker = workers[pick % len(workers)]
        self.devices.ready(worker) if starts else self.devices.lose(worker, "did not start")

    @precondition(lambda self: self.some())
    @rule(pick=PICK)
    def kill(self, pick: int) -> None:
        workers = self.some()
        self.devices.lose(workers[pick % len(workers)])

    @precondition(lambda self: self.some(has_task=True))
    @rule(pick=PICK, seconds=st.sampled_from([0.0, 0.1, 3.0]))
    def work(self, pick: int, seconds: float) -> None:
        self.devices.now += seconds
        workers = self.some(has_task=True)
        self.finish(workers[pick % len(workers)])

    @precondition(lambda self: self.some(has_task=True))
    @rule(pick=PICK)
    def fail_by_chance(self, pick: int) -> None:
        workers = self.some(has_task=True)
        self.devices.fail(workers[pick % len(workers)])

    @rule()
    def hang(self) -> None:
        if self.devices.error is None:
            self.devices.wait(21.0)

    @precondition(lambda self: self.devices.error is None and len(self.devices.submitted) > 40)
    @rule(is_meant=st.sampled_from([False, False, False, True]))
    def drain(self, is_meant: bool) -> None:
        if is_meant:
            self.devices.is_draining = True
            self.devices.scheduler.drain()

    def finish(self, worker: int) -> None:
        devices = self.devices
        task = devices.workers[worker].tasks[0]
        for item in range(task.start, task.stop):
            if item in task.failed:
                continue
            if task.is_careful:
                devices.announce(worker, item)
            if item in self.poison:
                return devices.lose(worker, "crashed")
        devices.done(worker, self.bad)

    def teardown(self) -> None:
        if not hasattr(self, "devices"):
            return
        devices = self.devices
        devices.scheduler.close()
        while devices.error is None and not devices.scheduler.is_finished:
            if not devices.is_draining:
                devices.all_ready()
            if not (busy := self.some(has_task=True)):
                assert devices.is_draining, "work waits, and every worker is idle"
                return
            self.finish(busy[0])
        if devices.error is None:
            assert sorted(devices.out) == devices.submitted
            assert set(devices.failed) >= (self.bad | self.poison) & set(devices.submitted)


@pytest.mark.random
class TestAnyOrder(AnyOrder.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=120, stateful_step_count=60, suppress_health_check=[HealthCheck.too_slow])
