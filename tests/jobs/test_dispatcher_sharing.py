"""Who gets which task: allocation, and what idle devices take from others."""

from __future__ import annotations

import pytest

from tests.jobs.fleet import Fleet
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.options import Rules


def fleet_of(devices: int, **rules: object) -> Fleet:
    fleet = Fleet(devices, Rules(**rules))  # type: ignore[arg-type]
    fleet.all_ready()
    return fleet


def queued(fleet: Fleet) -> list[int]:
    return [device.queued for device in fleet.dispatcher.snapshot().devices]


def devices_of(fleet: Fleet) -> list[int]:
    """To whom each task was sent, by the order of its items."""
    return [send.device for send in sorted(fleet.sent, key=lambda send: send.task.start)]


def teach(fleet: Fleet, *seconds: float) -> None:
    """Device k takes ``seconds[k]`` for an item, and has shown it with one item."""
    for _ in seconds:
        fleet.submit(1)
    start, number = fleet.now, len(seconds)
    for device in sorted(range(number), key=lambda device: seconds[device]):
        fleet.now = start + seconds[device]
        fleet.done(fleet.worker(device))


def test_least_loaded_gives_a_device_of_three_times_the_speed_three_times_the_items() -> None:
    fleet = fleet_of(2, in_flight=1, steal=False, queue_limit=None)
    teach(fleet, 1.0, 3.0)
    for _ in range(40):
        fleet.submit(1)
    assert queued(fleet) == [29, 9]
    rates = [device.rate for device in fleet.dispatcher.snapshot().devices]
    assert rates == pytest.approx([1, 1 / 3])


def test_least_loaded_counts_items_and_not_tasks() -> None:
    fleet = fleet_of(2, steal=False)
    for size in (30, 10, 10, 10):
        fleet.submit(size)
    assert devices_of(fleet)[:3] == [0, 1, 1]
    assert [device.num_items for device in fleet.dispatcher._queues.devices] == [30, 30]


def test_a_device_that_has_not_shown_its_speed_is_taken_for_as_fast_as_the_others() -> None:
    fleet = fleet_of(2, in_flight=1, steal=False, queue_limit=None)
    fleet.submit(10)
    fleet.now += 0.1
    fleet.done(fleet.worker(0))  # 100 items a second
    for _ in range(10):
        fleet.submit(10)
    assert queued(fleet) == [4, 4]


def test_the_speed_is_that_of_the_device_and_not_of_a_task_that_waits_for_another() -> None:
    fleet = fleet_of(1, in_flight=3)
    for _ in range(3):
        fleet.submit(10)
    for _ in range(3):
        fleet.now += 2.0
        fleet.done(fleet.worker(0))
    assert fleet.dispatcher.snapshot().devices[0].rate == pytest.approx(5.0)


def test_time_spent_on_failing_tasks_is_not_held_against_the_next() -> None:
    fleet = fleet_of(1, in_flight=2, max_failures=1)
    fleet.submit(1)
    fleet.submit(10)
    fleet.now += 60.0
    fleet.fail(fleet.worker(0))
    fleet.now += 2.0
    fleet.done(fleet.worker(0))
    assert fleet.dispatcher.snapshot().devices[0].rate == pytest.approx(5.0)


def test_a_speed_of_long_ago_is_forgotten() -> None:
    fleet = fleet_of(1)
    for seconds in [1.0] * 20 + [4.0] * 20:
        fleet.submit(1)
        fleet.now += seconds
        fleet.done(fleet.worker(0))
    assert fleet.dispatcher.snapshot().devices[0].rate == pytest.approx(0.25, rel=0.05)


def test_round_robin_goes_round_all_that_are_live() -> None:
    fleet = fleet_of(3, allocation="round_robin", steal=False, in_flight=10, max_setbacks=1)
    for _ in range(4):
        fleet.submit(1)
    assert devices_of(fleet) == [0, 1, 2, 0]
    for _ in range(2):
        fleet.done(fleet.worker(0))
    fleet.lose(fleet.worker(0))  # for good
    for _ in range(3):
        fleet.submit(1)
    assert devices_of(fleet)[4:] == [1, 2, 1]


def test_random_is_the_same_for_the_same_seed() -> None:
    def choices(seed: int) -> list[int]:
        fleet = fleet_of(4, allocation="random", steal=False, in_flight=100, queue_limit=None, seed=seed)
        for _ in range(50):
            fleet.submit(1)
        return devices_of(fleet)

    assert choices(7) == choices(7)
    assert choices(7) != choices(8)
    assert set(choices(7)) == {0, 1, 2, 3}


def test_an_idle_device_takes_from_the_end_of_the_longest_queue() -> None:
    fleet = fleet_of(3, in_flight=1, allocation="round_robin", queue_limit=None)
    for size in (1, 1, 1, 1, 4, 1, 1, 4):  # devices 0, 1 and 2 in turn: nothing waits for long at 2
        fleet.submit(size)
    assert queued(fleet) == [2, 2, 1]
    fleet.done(fleet.worker(2))
    assert (fleet.sent[-1].task.start, fleet.sent[-1].task.stop) == (8, 9)  # its own
    fleet.done(fleet.worker(2))
    assert (fleet.sent[-1].task.start, fleet.sent[-1].task.stop) == (10, 14)
    assert queued(fleet) == [2, 1, 0]
    assert [device.steals for device in fleet.dispatcher.snapshot().devices] == [0, 0, 1]


def test_nothing_is_taken_where_stealing_is_off() -> None:
    fleet = Fleet(2, Rules(steal=False, in_flight=1))
    fleet.submit(1)
    fleet.submit(1)
    fleet.ready(fleet.worker(1))
    fleet.done(fleet.worker(1))
    assert [send.task.start for send in fleet.sent] == [1]
    assert queued(fleet) == [1, 0]


def test_a_slow_device_leaves_a_task_to_its_own_which_has_it_done_sooner() -> None:
    fleet = fleet_of(2, in_flight=1, allocation="round_robin")
    teach(fleet, 1.0, 10.0)
    for _ in range(3):
        fleet.submit(1)
    fleet.done(fleet.worker(1))  # one item would take it 10 seconds; at device 0 two take 2
    assert queued(fleet) == [1, 0]
    assert fleet.workers[fleet.worker(1)].tasks == []


def test_a_slow_device_helps_one_that_has_too_much() -> None:
    fleet = fleet_of(2, in_flight=1, allocation="round_robin", queue_limit=None)
    teach(fleet, 1.0, 10.0)
    for _ in range(40):
        fleet.submit(1)
    for _ in range(20):
        fleet.now += 10.0
        fleet.done(fleet.worker(1))  # device 0 is stuck in its first task
    assert [device.steals for device in fleet.dispatcher.snapshot().devices] == [0, 1]


def test_the_fastest_of_the_idle_takes_it() -> None:
    fleet = fleet_of(3, in_flight=1, allocation="round_robin")
    teach(fleet, 1.0, 4.0, 2.0)
    for device in (2, 0):  # new workers: device 1 has been idle for longest, 0 has none
        fleet.lose(fleet.worker(device))
    fleet.ready(fleet.worker(2))
    fleet.submit(1)
    assert fleet.sent[-1].device == 2


def test_a_worker_that_is_gone_takes_nothing() -> None:
    fleet = fleet_of(2, in_flight=1, allocation="round_robin")
    fleet.submit(1)
    fleet.submit(1)
    fleet.done(fleet.worker(1))
    fleet.lose(fleet.worker(1))
    fleet.submit(1)
    assert queued(fleet) == [1, 0]


def test_unknown_allocations_are_named() -> None:
    with pytest.raises(
        ValueError, match="allocation: got 'best'; accepted: one of 'least_loaded', 'round_robin', 'random'"
    ):
        Dispatcher(["cpu:0"], Rules(allocation="best"))
