"""The simulation of allocation strategies: what is done, and which strategy wins where."""

from __future__ import annotations

import pytest

from benchmarks.simulate import SCENARIOS, Chance, Outcome, Scenario, simulate, table_of
from variegate.workers.scheduler import ALLOCATIONS

IDLE, ROUND_ROBIN, RANDOM = ALLOCATIONS


def outcomes(**changes: object) -> dict[tuple[str, bool], Outcome]:
    scenario = Scenario("", **({"tasks": 300} | changes))  # type: ignore[arg-type]
    found = simulate(scenario)
    assert all(one.items == scenario.tasks for one in found), "every item once, whatever fails"
    assert all(one.makespan >= Chance(scenario).ideal_seconds() * 0.999 for one in found)
    return {(one.allocation, one.steal): one for one in found}


def test_equal_devices_hardly_need_a_strategy() -> None:
    found = outcomes(variation=0.0, devices=4)
    assert set(found) == {(allocation, steal) for allocation in ALLOCATIONS for steal in (True, False)}
    # 300 tasks of a second on four devices.
    for allocation in (IDLE, ROUND_ROBIN):
        assert found[allocation, False].makespan == pytest.approx(75)
        assert min(found[allocation, False].busy) == pytest.approx(1)
    assert found[RANDOM, False].makespan > 76


def test_on_unequal_devices_the_next_idle_device_or_taking_over_wins() -> None:
    found = outcomes(speeds=(1.0, 1.0, 1.0, 0.25))
    slow = found[ROUND_ROBIN, False]
    assert slow.steals == 0
    assert min(slow.busy) < 0.4
    assert found[RANDOM, False].makespan > 2 * found[IDLE, False].makespan
    assert slow.makespan > 2 * found[IDLE, False].makespan
    for allocation in ALLOCATIONS:
        helped = found[allocation, True]
        assert helped.makespan < 1.2 * found[IDLE, True].makespan
    assert found[ROUND_ROBIN, True].steals > 20


def test_tasks_of_failed_workers_are_done_by_others() -> None:
    found = outcomes(failures_per_hour=120.0, restart=30.0)
    for allocation in ALLOCATIONS:
        assert found[allocation, True].losses > 0
        # With next_idle, tasks wait in one place, and there is nothing to take over.
        is_helped = found[allocation, True].makespan < found[allocation, False].makespan
        assert is_helped == (allocation != IDLE)


def test_the_same_seed_gives_the_same_table() -> None:
    scenario = Scenario("Small", devices=3, tasks=40, failures_per_hour=60.0)
    assert table_of(scenario) == table_of(scenario)
    assert table_of(scenario) != table_of(Scenario("Small", devices=3, tasks=40, failures_per_hour=60.0, seed=1))
    assert table_of(scenario).count("\n| ") == 1 + 2 * len(ALLOCATIONS)
    assert len({one.title for one in SCENARIOS}) == len(SCENARIOS)
