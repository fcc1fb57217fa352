"""Who is to blame when a task fails: found by cutting it in two, and by running suspects alone."""

from __future__ import annotations

from tests.jobs.fleet import Fleet
from variegate.jobs.jobs import Forget, Release, TaskDone
from variegate.jobs.options import Rules


def tasks(fleet: Fleet) -> list[tuple[int, int]]:
    """What was sent, as (start, stop)."""
    return [(send.task.start, send.task.stop) for send in fleet.sent]


def fleet_of(devices: int, **rules: object) -> Fleet:
    fleet = Fleet(devices, Rules(**rules))  # type: ignore[arg-type]
    fleet.all_ready()
    return fleet


def test_an_item_that_kills_its_worker_is_found_by_halving() -> None:
    fleet = fleet_of(1, in_flight=1)
    fleet.submit(8)
    while fleet.dispatcher.snapshot().outstanding:
        start, stop = tasks(fleet)[-1]
        if start <= 5 < stop:
            fleet.lose(fleet.worker(0), "signal 11")
            fleet.all_ready()
        else:
            fleet.done(fleet.worker(0))
    assert tasks(fleet) == [(0, 8), (0, 4), (4, 8), (4, 6), (4, 5), (5, 6), (5, 6), (5, 6), (6, 8)]
    assert fleet.quarantined == {5: "signal 11"}
    assert fleet.out == list(range(8))


def test_tasks_that_shared_a_lost_worker_run_alone_next_and_only_the_culprit_is_cut() -> None:
    fleet = fleet_of(1, in_flight=2)
    for _ in range(3):
        fleet.submit(4)
    assert tasks(fleet) == [(0, 4), (4, 8)]
    fleet.lose(fleet.worker(0))
    fleet.all_ready()
    assert tasks(fleet)[2:] == [(0, 4)]
    assert fleet.sent[-1].task.is_suspect
    fleet.done(fleet.worker(0))
    assert tasks(fleet)[3:] == [(4, 8)]
    fleet.lose(fleet.worker(0))
    fleet.all_ready()
    assert tasks(fleet)[4:] == [(4, 6)]


def test_a_task_that_fails_while_others_are_in_flight_is_cut_at_once() -> None:
    fleet = fleet_of(1, in_flight=2)
    fleet.submit(4)
    fleet.submit(4)
    fleet.fail(fleet.worker(0))
    assert tasks(fleet) == [(0, 4), (4, 8), (0, 2)]
    assert not fleet.sent[-1].task.is_suspect


def test_a_named_item_alone_is_tried_again() -> None:
    fleet = fleet_of(1, in_flight=1)
    fleet.submit(6)
    fleet.done(fleet.worker(0), {2: "truncated", 4: "truncated"})
    assert fleet.out == [0, 1]
    fleet.done(fleet.worker(0), {4: "truncated"})  # the second time
    fleet.done(fleet.worker(0), {4: "no such file"})  # the third
    fleet.done(fleet.worker(0))
    assert tasks(fleet) == [(0, 6), (4, 5), (4, 5), (2, 3)]
    assert fleet.out == list(range(6))
    assert fleet.quarantined == {4: "no such file"}
    assert fleet.dispatcher.snapshot().quarantined == 1


def test_a_kill_from_outside_costs_an_item_nothing_if_it_comes_out_in_the_end() -> None:
    fleet = fleet_of(1, in_flight=1)
    fleet.submit(1)
    for _ in range(2):
        fleet.lose(fleet.worker(0))
        fleet.all_ready()
    fleet.done(fleet.worker(0))
    assert fleet.out == [0]
    assert fleet.quarantined == {}


def test_out_of_memory_halves_the_task_and_cuts_those_that_follow() -> None:
    fleet = fleet_of(2, in_flight=1, allocation="round_robin", steal=False)
    for _ in range(4):
        fleet.submit(8)
    fleet.fail(fleet.worker(0), "out of memory", is_memory=True)
    for _ in range(4):
        fleet.done(fleet.worker(0))
    for _ in range(2):
        fleet.done(fleet.worker(1))
    by_device = [[(s.task.start, s.task.stop) for s in fleet.sent if s.device == device] for device in (0, 1)]
    assert by_device == [[(0, 8), (0, 4), (4, 8), (16, 20), (20, 24)], [(8, 16), (24, 32)]]
    assert fleet.out == list(range(32))


def test_memory_that_was_too_small_once_is_not_taken_for_larger_later() -> None:
    fleet = fleet_of(1, in_flight=2)
    fleet.submit(4)
    fleet.submit(16)
    fleet.fail(fleet.worker(0), is_memory=True)  # 4 do not fit, so neither do 8 of the 16 that were sent before
    fleet.fail(fleet.worker(0), is_memory=True)
    fleet.submit(16)
    while fleet.dispatcher.snapshot().outstanding:
        fleet.done(fleet.worker(0))
    assert {stop - start for start, stop in tasks(fleet)[2:]} == {2}


def test_one_item_for_which_there_is_no_memory_counts_as_failed() -> None:
    fleet = fleet_of(1, in_flight=1, max_failures=2)
    fleet.submit(2)
    for _ in range(3):
        fleet.fail(fleet.worker(0), "out of memory", is_memory=True)
    fleet.done(fleet.worker(0))
    assert fleet.quarantined == {0: "out of memory"}
    assert fleet.out == [0, 1]


def test_what_is_good_of_a_result_is_released_around_what_is_not() -> None:
    fleet = fleet_of(1, in_flight=1, ordered=False)
    fleet.submit(5)
    worker, task = fleet.workers[0], fleet.sent[0].task.number
    out = fleet.dispatcher.handle(TaskDone(worker.device, 0, task, {0: "bad", 3: "bad"}), 1.0)
    assert out[:3] == [Release(task, 1, 3), Release(task, 4, 5), Forget(task)]
