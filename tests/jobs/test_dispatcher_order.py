"""What comes out when, and how much goes in."""

from __future__ import annotations

import pytest

from tests.jobs.fleet import Fleet
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.options import Rules


def fleet_of(devices: int, **rules: object) -> Fleet:
    fleet = Fleet(devices, Rules(**rules))  # type: ignore[arg-type]
    fleet.all_ready()
    return fleet


def test_results_wait_for_those_before_them() -> None:
    fleet = fleet_of(2, in_flight=1)
    for _ in range(2):
        fleet.submit(4)
    fleet.done(fleet.worker(1))
    assert fleet.out == []
    assert len(fleet.held) == 1
    fleet.done(fleet.worker(0))
    assert fleet.out == list(range(8))
    assert fleet.held == {}


def test_or_come_as_they_are_made() -> None:
    fleet = fleet_of(2, in_flight=1, ordered=False)
    for _ in range(2):
        fleet.submit(4)
    fleet.done(fleet.worker(1))
    assert fleet.out == [4, 5, 6, 7]


def test_items_between_submission_and_release_are_bounded() -> None:
    fleet = fleet_of(2, in_flight=1, max_items=10, queue_limit=None)
    fleet.submit(4)
    fleet.submit(4)
    assert fleet.dispatcher.capacity == 2
    fleet.done(fleet.worker(1))  # made, but it cannot come out yet
    assert fleet.dispatcher.capacity == 2
    fleet.submit(4)  # a task is not cut for that
    assert fleet.dispatcher.capacity <= 0
    fleet.done(fleet.worker(0))
    assert fleet.dispatcher.capacity == 6


def test_tasks_that_wait_are_bounded_per_device() -> None:
    fleet = fleet_of(2, in_flight=1, queue_limit=2)
    for _ in range(6):
        assert fleet.dispatcher.capacity > 0
        fleet.submit(1)
    assert fleet.dispatcher.capacity <= 0
    fleet.done(fleet.worker(0))
    assert fleet.dispatcher.capacity > 0


def test_tasks_that_have_to_run_alone_take_room_as_well() -> None:
    fleet = fleet_of(1, in_flight=2, queue_limit=1)
    fleet.submit(1)
    fleet.submit(1)
    assert fleet.dispatcher.capacity > 0
    fleet.lose(fleet.worker(0))
    assert fleet.dispatcher.capacity <= 0


def test_it_is_finished_when_closed_and_all_is_out() -> None:
    fleet = fleet_of(1)
    fleet.submit(2)
    fleet.close()
    assert not fleet.dispatcher.is_finished
    fleet.done(fleet.worker(0))
    assert fleet.dispatcher.is_finished


def test_nothing_to_do_is_done() -> None:
    fleet = Fleet(1, Rules())
    assert not fleet.dispatcher.is_finished
    fleet.close()
    assert fleet.dispatcher.is_finished


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("max_failures", 0, "1 or more"),
        ("heartbeat_timeout", 0.0, "seconds, more than 0"),
    ],
)
def test_rules_that_make_no_sense_are_named(name: str, value: float, accepted: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got {value!r}; accepted: {accepted}$"):
        Rules(**{name: value})  # type: ignore[arg-type]


def test_no_devices() -> None:
    with pytest.raises(ValueError, match="devices: got none; accepted: one or more"):
        Dispatcher([], Rules())
