"""The dispatcher's promises under any order of events: the referee of ``fleet`` watches every instruction."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.jobs.fleet import Fleet, Worker
from variegate.jobs.options import ALLOCATIONS, Rules

pytestmark = pytest.mark.random

NUMBER_OF_ITEMS = 60
# More than any run below can have: a device stays, whatever happens to it.
ENDLESS = 10**9

RULES = st.builds(
    Rules,
    allocation=st.sampled_from(ALLOCATIONS),
    steal=st.booleans(),
    ordered=st.booleans(),
    in_flight=st.integers(1, 3),
    queue_limit=st.sampled_from([None, 1, 2, 8]),
    max_items=st.sampled_from([1, 8, 30, ENDLESS]),
    max_failures=st.integers(1, 3),
    max_setbacks=st.sampled_from([2, 5, ENDLESS, ENDLESS]),
    max_failed_starts=st.sampled_from([1, 3, ENDLESS, ENDLESS]),
    heartbeat_timeout=st.just(10.0),
    start_timeout=st.just(20.0),
    seed=st.integers(0, 3),
)
ITEMS = st.sets(st.integers(0, NUMBER_OF_ITEMS - 1), max_size=4)
PICK = st.integers(0, 100)


def nth(number: int, workers: list[Worker]) -> Worker:
    return workers[number % len(workers)]


class AnyOrder(RuleBasedStateMachine):
    """Workers come, work, fail and go as they please; in the end all of them work, and everything must come out."""

    @initialize(
        rules=RULES,
        devices=st.integers(1, 5),
        bad=ITEMS,
        poison=ITEMS,
        rooms=st.lists(st.sampled_from([1, 2, 5, ENDLESS]), min_size=5, max_size=5),
    )
    def begin(self, rules: Rules, devices: int, bad: set[int], poison: set[int], rooms: list[int]) -> None:
        """``bad`` items fail wherever they are, ``poison`` kills its worker; device k has memory for ``rooms[k]``."""
        self.fleet = Fleet(devices, rules)
        self.bad, self.poison, self.rooms = bad, poison, rooms
        self.is_closed = False

    def some(self, *, is_ready: bool = True, has_task: bool = False) -> list[Worker]:
        """Workers of a kind; none once the dispatcher has given up."""
        workers = self.fleet.workers.values() if self.fleet.error is None else ()
        return [worker for worker in workers if worker.is_ready == is_ready and (worker.tasks or not has_task)]

    @property
    def next_item(self) -> int:
        return self.fleet.submitted[-1] + 1 if self.fleet.submitted else 0

    def takes_items(self) -> bool:
        return self.fleet.error is None and self.fleet.dispatcher.capacity > 0 and self.next_item < NUMBER_OF_ITEMS

    def is_half_way(self) -> bool:
        return self.fleet.error is None and self.next_item > NUMBER_OF_ITEMS // 2

    @precondition(takes_items)
    @rule(size=st.integers(1, 16), gap=st.sampled_from([0, 0, 0, 3]), is_kept_within_room=st.booleans())
    def submit(self, size: int, gap: int, is_kept_within_room: bool) -> None:
        size = min(size, NUMBER_OF_ITEMS - self.next_item)
        if is_kept_within_room:
            size = min(size, self.fleet.dispatcher.capacity)
        self.fleet.submit(size, gap)
        assert self.fleet.dispatcher.snapshot().outstanding < self.fleet.rules.max_items + size

    @precondition(lambda self: self.some(is_ready=False))
    @rule(number=PICK)
    def become_ready(self, number: int) -> None:
        self.fleet.ready(nth(number, self.some(is_ready=False)).number)

    @precondition(lambda self: self.some(is_ready=False))
    @rule()
    def all_become_ready(self) -> None:
        self.fleet.all_ready()

    @precondition(lambda self: self.some(is_ready=False))
    @rule(number=PICK)
    def fail_to_start(self, number: int) -> None:
        self.fleet.lose(nth(number, self.some(is_ready=False)).number, "did not start")

    @precondition(lambda self: self.some())
    @rule(number=PICK)
    def be_killed(self, number: int) -> None:
        self.fleet.lose(nth(number, self.some()).number)

    @precondition(lambda self: self.some(has_task=True))
    @rule(number=PICK, seconds=st.sampled_from([0.0, 0.1, 3.0]))
    def finish(self, number: int, seconds: float) -> None:
        self.fleet.now += seconds
        self.work(nth(number, self.some(has_task=True)))

    @precondition(lambda self: self.some(has_task=True))
    @rule(number=PICK)
    def finish_another(self, number: int) -> None:
        """Once more: work should be more likely than trouble."""
        self.finish(number, 0.5)

    @precondition(lambda self: self.some(has_task=True))
    @rule(number=PICK)
    def fail_for_no_reason(self, number: int) -> None:
        self.fleet.fail(nth(number, self.some(has_task=True)).number, "chance")

    @precondition(lambda self: self.some(has_task=True))
    @rule(number=PICK)
    def beat(self, number: int) -> None:
        self.fleet.beat(nth(number, self.some(has_task=True)).number)

    @rule(seconds=st.sampled_from([0.5, 6.0, 11.0, 21.0]))
    def nothing(self, seconds: float) -> None:
        if self.fleet.error is None:
            self.fleet.tick(seconds)

    @precondition(lambda self: self.fleet.error is None and self.fleet.given_up)
    @rule(number=PICK)
    def be_late(self, number: int) -> None:
        self.fleet.late(number % len(self.fleet.given_up))

    @precondition(is_half_way)
    @rule()
    def close(self) -> None:
        self.is_closed = True
        self.fleet.close()

    @precondition(is_half_way)
    @rule(is_meant=st.sampled_from([False, False, False, True]))
    def drain(self, is_meant: bool) -> None:
        if is_meant:
            self.fleet.drain()

    @invariant()
    def finished_when_all_is_out(self) -> None:
        if hasattr(self, "fleet"):
            all_out = len(self.fleet.out) == len(self.fleet.submitted)
            assert self.fleet.dispatcher.is_finished == (self.is_closed and all_out)

    def work(self, worker: Worker) -> None:
        """The oldest task of a worker comes to the end that it has to come to."""
        task = worker.tasks[0]
        items = set(range(task.start, task.stop))
        if items & self.poison:
            self.fleet.lose(worker.number, "crashed")
        elif task.size > self.rooms[worker.device]:
            self.fleet.fail(worker.number, "no room", is_memory=True)
        else:
            self.fleet.done(worker.number, dict.fromkeys(items & self.bad, "bad"))

    def teardown(self) -> None:
        if not hasattr(self, "fleet") or not self.fleet.is_sound:
            return
        self.finish_in_peace()
        fleet = self.fleet
        while fleet.given_up and fleet.error is None:
            fleet.late(0)
        if fleet.error is not None:
            return
        assert fleet.dispatcher.is_idle
        if not fleet.is_draining:
            assert sorted(fleet.out) == fleet.submitted
            assert fleet.held == {}
            assert set(fleet.quarantined) == {i for i, n in fleet.failures.items() if n >= fleet.rules.max_failures}
            assert set(fleet.quarantined) >= (self.bad | self.poison) & set(fleet.submitted)

    def finish_in_peace(self) -> None:
        """As long as workers answer, it comes to an end."""
        fleet = self.fleet
        for _ in range(40 * NUMBER_OF_ITEMS):
            if fleet.error is not None or fleet.dispatcher.is_finished:
                return
            if fleet.dispatcher.capacity > 0 and self.next_item < NUMBER_OF_ITEMS:
                fleet.submit(1)
            elif not self.is_closed:
                self.close()
            fleet.now += 0.1
            fleet.all_ready()
            busy = [worker for worker in fleet.workers.values() if worker.tasks]
            if fleet.is_draining and not busy:
                return
            if busy:
                self.work(busy[0])
        raise AssertionError("it does not come to an end")


AnyOrder.TestCase.settings = settings(
    max_examples=120, stateful_step_count=60, suppress_health_check=[HealthCheck.too_slow]
)
test_any_order = AnyOrder.TestCase
