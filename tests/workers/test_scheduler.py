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

from variegate.workers.protocol import Beat, EngineError, TaskDone, TaskFailed, WorkerEvent, WorkerLost, WorkerReady
from variegate.workers.scheduler import (
    ALLOCATIONS,
    Action,
    Finish,
    Retire,
    Rules,
    Scheduler,
    Send,
    StartWorker,
    StopWorker,
    Unit,
)

ENDLESS = 10**9


@dataclass
class Worker:
    device: int
    is_ready: bool = False
    units: list[Unit] = field(default_factory=list)


class Devices:
    """Devices that carry out a scheduler's actions, and check them. The output of an item is its number."""

    def __init__(self, number: int, is_ready: bool = True, **rules: Any) -> None:
        self.rules = Rules(**rules)
        self.scheduler = Scheduler([f"d{device}" for device in range(number)], self.rules)
        self.now = 0.0
        self.workers: dict[int, Worker] = {}
        self.replaced: list[int] = []
        self.sent: list[tuple[int, int, int]] = []  # (device, start, stop)
        self.submitted: list[int] = []
        self.out: list[int] = []
        self.failed: dict[int, str] = {}
        self.blamed: Counter[int] = Counter()  # failures of an item that can have been no other item's
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
                worker.units.append(action.unit)
                assert len(worker.units) <= self.rules.in_flight
                assert len(worker.units) == 1 or not any(unit.is_alone for unit in worker.units)
                self.sent.append((action.device, action.unit.start, action.unit.stop))
            elif isinstance(action, StartWorker):
                assert not any(worker.device == action.device for worker in self.workers.values())
                self.workers[action.worker] = Worker(action.device)
            elif isinstance(action, StopWorker):
                self.workers.pop(action.worker, None)
                self.replaced.append(action.worker)
            elif isinstance(action, Finish):
                task = action.task
                items = range(task.start, task.stop)
                for item, output in zip(items, task.merged_outputs(), strict=True):
                    assert (output is None) == (item in task.failed)
                    assert output in (None, item)
                assert all(self.blamed[item] == self.rules.max_failures for item in task.failed)
                self.failed |= task.failed
                self.out += items
            else:
                assert isinstance(action, Retire)
                self.retired.append(action.name)
        assert len(self.out) == len(set(self.out))
        if self.rules.ordered:
            assert self.out == self.submitted[: len(self.out)]
        assert self.scheduler.snapshot().outstanding == len(self.submitted) - len(self.out)
        assert self.scheduler.is_idle == (not any(worker.units for worker in self.workers.values()))

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

    def drain(self) -> None:
        self.is_draining = True
        self.scheduler.drain()

    def worker(self, device: int) -> int:
        return next(number for number, worker in self.workers.items() if worker.device == device)

    def ready(self, number: int) -> None:
        self.workers[number].is_ready = True
        self.handle(WorkerReady(number))

    def all_ready(self) -> None:
        for number, worker in list(self.workers.items()):
            if not worker.is_ready:
                self.ready(number)

    def done(self, number: int, failed: Iterable[int] = ()) -> None:
        """The oldest unit of a worker, but for some items."""
        unit = self.workers[number].units.pop(0)
        reasons = {item: "bad" for item in failed if unit.start <= item < unit.stop}
        self.blamed.update(reasons.keys())
        outputs = [None if item in reasons else item for item in range(unit.start, unit.stop)]
        self.handle(TaskDone(number, unit.number, reasons, outputs))

    def fail(self, number: int, is_memory: bool = False) -> None:
        """The oldest unit of a worker, as a whole."""
        unit = self.workers[number].units.pop(0)
        if unit.size == 1:
            self.blamed[unit.start] += 1
        self.handle(TaskFailed(number, unit.number, "failed", is_memory))

    def lose(self, number: int, reason: str = "killed") -> None:
        self._blame(self.workers.pop(number))
        self.handle(WorkerLost(number, reason))

    def _blame(self, worker: Worker) -> None:
        if len(worker.units) == 1 and worker.units[0].size == 1:
            self.blamed[worker.units[0].start] += 1

    def wait(self, seconds: float) -> None:
        """Nobody reports anything for so long."""
        self.now += seconds
        silent = [worker for worker in self.workers.values() if seconds > self._patience(worker)]
        for worker in silent:
            self._blame(worker)
        number = len(self.replaced)
        try:
            self.apply(self.scheduler.check_times(self.now))
        except EngineError as error:
            self.error = error
        else:
            assert len(self.replaced) - number == len(silent)

    def _patience(self, worker: Worker) -> float:
        if not worker.is_ready:
            return self.rules.start_timeout
        return self.rules.heartbeat_timeout if worker.units else float("inf")


def test_the_next_idle_device_gets_the_next_task() -> None:
    devices = Devices(2, in_flight=1)
    devices.submit(*[1] * 6)
    for device in (1, 1, 1, 0):
        devices.done(devices.worker(device))
    assert devices.sent == [(0, 0, 1), (1, 1, 2), (1, 2, 3), (1, 3, 4), (1, 4, 5), (0, 5, 6)]
    assert devices.out == [0, 1, 2, 3]


def test_tasks_go_to_devices_that_have_none_before_they_wait_at_another() -> None:
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


def test_an_item_that_ends_its_worker_is_found_alone_and_named_after_three_times() -> None:
    devices = Devices(1, in_flight=1)
    devices.submit(4, 2)
    while devices.sent[-1][1] != 4:
        if devices.sent[-1][1] <= 2 < devices.sent[-1][2]:
            devices.lose(devices.worker(0), "signal 11")
            devices.all_ready()
        else:
            devices.done(devices.worker(0))
    assert devices.sent[1:] == [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 2, 3), (0, 2, 3), (0, 3, 4), (0, 4, 6)]
    assert devices.failed == {2: "signal 11"}
    assert devices.out == [0, 1, 2, 3]


def test_units_that_shared_a_lost_worker_run_alone_and_none_is_blamed() -> None:
    devices = Devices(1, in_flight=2, max_failures=1)
    devices.submit(2, 1)
    devices.lose(devices.worker(0))
    devices.all_ready()
    for _ in range(3):
        devices.done(devices.worker(0))
    assert devices.sent[2:] == [(0, 0, 1), (0, 1, 2), (0, 2, 3)]
    assert devices.failed == {}


def test_a_failed_item_is_tried_on_other_devices_first() -> None:
    devices = Devices(3, in_flight=1)
    devices.submit(2)
    for device in (0, 1, 2):
        assert devices.sent[-1][0] == device
        devices.done(devices.worker(device), [1])
    assert devices.failed == {1: "bad"}


def test_out_of_memory_halves_the_unit_and_those_that_follow_on_the_device() -> None:
    devices = Devices(1, in_flight=1)
    devices.submit(8, 8)
    devices.fail(devices.worker(0), is_memory=True)
    while devices.workers[devices.worker(0)].units:
        devices.done(devices.worker(0))
    assert devices.sent == [(0, 0, 8), (0, 0, 4), (0, 4, 8), (0, 8, 12), (0, 12, 16)]
    assert devices.out == list(range(16))


def test_items_under_way_and_units_that_wait_are_bounded() -> None:
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
    scheduler = Scheduler(["cuda:0"], Rules(max_consecutive_failures=2))
    scheduler.start(0.0)
    for worker in (0, 1):
        scheduler.handle(WorkerReady(worker), 1.0)
        if worker:
            with pytest.raises(EngineError, match=r"no device is left; the last was cuda:0, 2 failures in a row: no"):
                scheduler.handle(WorkerLost(worker, "no memory"), 2.0)
        else:
            scheduler.handle(WorkerLost(worker, "no memory"), 2.0)


def test_events_of_replaced_workers_are_ignored() -> None:
    devices = Devices(2, in_flight=1)
    devices.submit(1)
    worker = devices.worker(0)
    (unit,) = devices.workers[worker].units
    devices.wait(500.0)
    for event in (Beat(worker), WorkerReady(worker), TaskDone(worker, unit.number), WorkerLost(worker, "late")):
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
        Rules(**{name: value})
    with pytest.raises(ValueError, match="devices: got none; accepted: one or more"):
        Scheduler([], Rules())


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

    ``bad`` items fail on every device, ``poison`` ends its worker; device k has memory for ``rooms[k]`` items.
    """

    @initialize(
        rules=RULES,
        number=st.integers(1, 5),
        bad=ITEMS,
        poison=ITEMS,
        rooms=st.lists(st.sampled_from([1, 2, 5, ENDLESS]), min_size=5, max_size=5),
    )
    def begin(self, rules: dict[str, Any], number: int, bad: set[int], poison: set[int], rooms: list[int]) -> None:
        self.devices = Devices(number, is_ready=False, **rules)
        self.bad = bad
        self.poison = poison
        self.rooms = rooms

    def some(self, is_ready: bool = True, has_unit: bool = False) -> list[int]:
        if self.devices.error is not None:
            return []
        workers = self.devices.workers.items()
        return [n for n, worker in workers if worker.is_ready == is_ready and (worker.units or not has_unit)]

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

    @precondition(lambda self: self.some(has_unit=True))
    @rule(pick=PICK, seconds=st.sampled_from([0.0, 0.1, 3.0]))
    def work(self, pick: int, seconds: float) -> None:
        self.devices.now += seconds
        workers = self.some(has_unit=True)
        self.finish(workers[pick % len(workers)])

    @precondition(lambda self: self.some(has_unit=True))
    @rule(pick=PICK)
    def fail_by_chance(self, pick: int) -> None:
        workers = self.some(has_unit=True)
        self.devices.fail(workers[pick % len(workers)])

    @rule()
    def hang(self) -> None:
        if self.devices.error is None:
            self.devices.wait(21.0)

    @precondition(lambda self: self.devices.error is None and len(self.devices.submitted) > 40)
    @rule(is_meant=st.sampled_from([False, False, False, True]))
    def drain(self, is_meant: bool) -> None:
        if is_meant:
            self.devices.drain()

    def finish(self, worker: int) -> None:
        devices = self.devices
        unit = devices.workers[worker].units[0]
        items = set(range(unit.start, unit.stop))
        if items & self.poison:
            devices.lose(worker, "crashed")
        elif unit.size > self.rooms[devices.workers[worker].device]:
            devices.fail(worker, is_memory=True)
        else:
            devices.done(worker, self.bad)

    def teardown(self) -> None:
        if not hasattr(self, "devices"):
            return
        devices = self.devices
        devices.scheduler.close()
        while devices.error is None and not devices.scheduler.is_finished:
            if not devices.is_draining:
                devices.all_ready()
            if not (busy := self.some(has_unit=True)):
                assert devices.is_draining, "work waits, and every worker is idle"
                return
            self.finish(busy[0])
        if devices.error is None:
            assert sorted(devices.out) == devices.submitted
            assert set(devices.failed) >= (self.bad | self.poison) & set(devices.submitted)


@pytest.mark.random
class TestAnyOrder(AnyOrder.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=120, stateful_step_count=60, suppress_health_check=[HealthCheck.too_slow])
