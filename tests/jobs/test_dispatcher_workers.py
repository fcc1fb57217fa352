"""Workers that do not start, are lost, or say nothing any more."""

from __future__ import annotations

import pytest

from tests.jobs.fleet import Fleet
from variegate.jobs.dispatcher import Dispatcher
from variegate.jobs.jobs import EngineError, Retire, StopWorker, TaskFailed, WorkerLost, WorkerReady
from variegate.jobs.options import Rules


def fleet_of(devices: int, **rules: object) -> Fleet:
    fleet = Fleet(devices, Rules(**rules))  # type: ignore[arg-type]
    fleet.all_ready()
    return fleet


def states(fleet: Fleet) -> list[str]:
    return [device.state for device in fleet.dispatcher.snapshot().devices]


def test_a_lost_worker_is_replaced_and_its_tasks_run_elsewhere_meanwhile() -> None:
    fleet = fleet_of(2, in_flight=1)
    fleet.submit(2)
    lost = fleet.worker(0)
    fleet.lose(lost)
    assert fleet.worker(0) != lost
    assert [(send.device, send.task.start, send.task.stop) for send in fleet.sent] == [(0, 0, 2), (1, 0, 1)]
    assert fleet.dispatcher.snapshot().devices[0].losses == 1


def test_a_device_that_does_not_start_is_given_up_and_its_tasks_go_to_the_others() -> None:
    fleet = Fleet(2, Rules(max_failed_starts=2, steal=False))
    for _ in range(4):
        fleet.submit(1)
    fleet.ready(fleet.worker(1))
    fleet.lose(fleet.worker(0), "no driver")
    assert states(fleet) == ["starting", "ready"]
    fleet.lose(fleet.worker(0), "no driver")
    assert states(fleet) == ["retired", "ready"]
    for _ in range(4):
        fleet.done(fleet.worker(1))
    assert fleet.out == list(range(4))


def test_a_device_where_everything_fails_is_given_up() -> None:
    fleet = fleet_of(2, in_flight=2, max_setbacks=3, steal=False)
    for _ in range(8):
        fleet.submit(8)
    worker = fleet.worker(0)
    for _ in range(3):
        assert states(fleet) == ["ready", "ready"]
        fleet.fail(worker, "broken")
    assert states(fleet) == ["retired", "ready"]
    assert [(w.number, len(w.tasks)) for w in fleet.given_up] == [(worker, 1)]
    fleet.late(0)
    while fleet.workers[fleet.worker(1)].tasks:
        fleet.done(fleet.worker(1))
    assert fleet.out == list(range(64))


def test_giving_up_says_why() -> None:
    dispatcher = Dispatcher(["cuda:0", "cuda:1"], Rules(max_failed_starts=1, max_setbacks=2))
    dispatcher.start(0.0)
    retired = dispatcher.handle(WorkerLost(0, 0, "no driver"), 1.0)
    assert retired == [Retire(0, "did not start: no driver")]
    dispatcher.handle(WorkerReady(1, 1), 1.0)
    dispatcher.handle(WorkerLost(1, 1, "signal 9"), 2.0)
    dispatcher.handle(WorkerReady(1, 2), 3.0)
    with pytest.raises(EngineError, match="no device is left; the last was cuda:1, 2 failures in a row: signal 9"):
        dispatcher.handle(WorkerLost(1, 2, "signal 9"), 4.0)


def test_a_device_that_is_given_up_has_its_worker_stopped() -> None:
    dispatcher = Dispatcher(["cpu:0", "cpu:1"], Rules(max_setbacks=2))
    dispatcher.start(0.0)
    dispatcher.handle(WorkerReady(0, 0), 1.0)
    dispatcher.submit(0, 1, 1.0)
    dispatcher.submit(1, 2, 1.0)  # at device 1
    dispatcher.submit(2, 3, 1.0)
    dispatcher.handle(TaskFailed(0, 0, 0, "broken"), 2.0)
    out = dispatcher.handle(TaskFailed(0, 0, 2, "broken"), 3.0)
    assert out == [StopWorker(0, 0, "broken"), Retire(0, "2 failures in a row: broken")]
