"""A virtual clock around the real dispatcher: what can be worked out by hand, and what holds for any scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apps.simulate.fate import Fate
from variegate.apps.scenario import STRATEGIES, RandomInputs, Strategy, ideal_seconds
from variegate.apps.simulate import Outcome, simulate
from variegate.jobs.jobs import EngineError
from variegate.options.measurement import Scenario

ROUND_ROBIN, WITH_STEALING = Strategy("round_robin", False), Strategy("round_robin", True)
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)


def played(strategy: Strategy = ROUND_ROBIN, uptimes: Any = (), **options: Any) -> Outcome:
    scenario = Scenario(**options)
    return simulate(scenario, strategy, Fate(scenario, uptimes))


def test_one_device_works_through_its_tasks() -> None:
    outcome = played(devices=1, tasks=5, task_seconds=2.0)
    assert outcome.makespan == 10.0
    assert outcome.utilisation.tolist() == [1.0]
    assert outcome.at_work == pytest.approx(1.0)


def test_who_gets_half_of_the_tasks_at_half_the_speed_takes_twice_the_time() -> None:
    outcome = played(devices=2, tasks=100, speeds=(1.0, 0.5), queue=None)
    assert outcome.makespan == 100.0
    assert outcome.utilisation.tolist() == [0.5, 1.0]
    half = len(outcome.at_work) // 2
    assert outcome.at_work[:half] == pytest.approx(1.0)
    assert outcome.at_work[half:] == pytest.approx(0.5)


def test_stealing_evens_that_out() -> None:
    outcome = played(WITH_STEALING, devices=2, tasks=100, speeds=(1.0, 0.5), queue=None)
    assert 100 / 1.5 <= outcome.makespan <= 100 / 1.5 + 2.0  # a task on the slower
    assert outcome.steals == pytest.approx(100 * (2 / 3 - 1 / 2), abs=1)


def test_what_a_lost_worker_was_at_is_done_again() -> None:
    """The second of two tasks is lost half way; the next worker is there a second later."""
    outcome = played(devices=1, tasks=2, task_items=1, failure_rate=1.0, restart=1.0, in_flight=1, uptimes=[[1.5]])
    assert outcome.makespan == 1.5 + 1.0 + 1.0
    assert (outcome.losses, outcome.lost, outcome.items) == (1, 0.5, 2)
    assert outcome.utilisation.tolist() == [2.5 / 3.5]


def test_a_task_that_was_alone_when_it_was_lost_is_cut_and_costs_no_more_for_that() -> None:
    outcome = played(devices=1, tasks=1, task_items=4, task_seconds=4.0, failure_rate=1.0, restart=0.0, uptimes=[[3.0]])
    assert outcome.makespan == 3.0 + 4.0
    assert (outcome.lost, outcome.items) == (3.0, 4)


def test_lost_work_counts_by_the_speed_of_the_device() -> None:
    outcome = played(devices=1, tasks=1, task_items=1, speeds=(0.5,), failure_rate=1.0, restart=0.0, uptimes=[[1.0]])
    assert outcome.lost == 0.5


def test_work_goes_on_elsewhere_while_a_worker_is_down() -> None:
    outcome = played(
        WITH_STEALING,
        devices=2,
        tasks=40,
        failure_rate=1.0,
        restart=1000.0,
        uptimes=[[10.5], []],
    )
    assert outcome.makespan == pytest.approx(30, abs=1)
    assert outcome.lost == 0.5


def test_devices_whose_workers_do_not_last_for_a_task_are_given_up() -> None:
    with pytest.raises(EngineError, match="no device is left; the last was device 0, 30 failures in a row"):
        played(devices=1, tasks=1, task_items=1, failure_rate=1.0, uptimes=[[0.5] * 1000])


SCENARIOS = st.builds(
    Scenario,
    devices=st.integers(1, 12),
    tasks=st.integers(1, 300),
    task_items=st.sampled_from([1, 16]),
    variation=st.sampled_from([0.0, 0.3]),
    speeds=st.sampled_from([(1.0,), (1.0, 0.5), (1.0, 0.1)]),
    spread=st.sampled_from([0.0, 0.5]),
    failure_rate=st.sampled_from([0.0, 30.0]),
    restart=st.sampled_from([0.0, 5.0]),
    queue=st.sampled_from([None, 1, 8]),
    in_flight=st.integers(1, 3),
    seed=st.integers(0, 99),
)


@settings(max_examples=60)
@given(scenario=SCENARIOS, strategy=st.sampled_from(STRATEGIES))
def test_everything_is_done_once_and_nobody_is_faster_than_the_ideal(scenario: Scenario, strategy: Strategy) -> None:
    inputs = RandomInputs(scenario)
    outcome = simulate(scenario, strategy, inputs)
    assert outcome.items == scenario.tasks * scenario.task_items
    assert outcome.makespan >= ideal_seconds(scenario, inputs) * (1 - 1e-9)
    # What the devices did is the work that there was, and what was done in vain.
    done = float((outcome.utilisation * inputs.speeds).sum()) * outcome.makespan
    assert done == pytest.approx(sum(inputs.work) / 2**20 + outcome.lost, rel=1e-4)
    assert outcome.at_work.mean() == pytest.approx(outcome.utilisation.mean())
    assert np.all((outcome.at_work > -1e-6) & (outcome.at_work < 1 + 1e-6))


@settings(max_examples=40)
@given(scenario=SCENARIOS)
def test_with_stealing_nobody_waits_for_more_than_what_a_device_has_in_flight(scenario: Scenario) -> None:
    if scenario.failure_rate:
        return
    inputs = RandomInputs(scenario)
    tail = (scenario.in_flight + 1) * max(inputs.work) / 2**20 / min(inputs.speeds)
    for strategy in STRATEGIES:
        # With one task waiting for each device, least_loaded does not look further ahead than a fast device needs: one
        # that is several times slower stays idle, and nothing waits that would be worth stealing.
        is_short_sighted = scenario.queue == 1 and strategy.allocation == "least_loaded"
        if strategy.steal and not is_short_sighted:
            assert simulate(scenario, strategy, inputs).makespan <= ideal_seconds(scenario, inputs) + tail


@pytest.mark.parametrize("rate", [0.0, 20.0])
@pytest.mark.parametrize("queue", [None, 8])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_stealing_is_never_much_worse(spread: float, queue: int | None, rate: float) -> None:
    scenario = Scenario(devices=8, tasks=2000, spread=spread, queue=queue, failure_rate=rate, seed=5)
    inputs = RandomInputs(scenario)
    for allocation in ("least_loaded", "round_robin", "random"):
        without, stealing = (simulate(scenario, Strategy(allocation, steal), inputs) for steal in (False, True))
        assert stealing.makespan <= 1.03 * without.makespan


@every_strategy
def test_equal_devices_without_failures_are_close_to_the_ideal(strategy: Strategy) -> None:
    scenario = Scenario(devices=8, tasks=4000, variation=0.2)
    inputs = RandomInputs(scenario)
    ratio = simulate(scenario, strategy, inputs).makespan / ideal_seconds(scenario, inputs)
    assert ratio < (1.1 if strategy == Strategy("random", False) else 1.02)


@every_strategy
def test_the_same_seed_gives_the_same_to_the_bit(strategy: Strategy) -> None:
    def play(seed: int) -> dict[str, Any]:
        scenario = Scenario(devices=5, tasks=300, spread=0.5, failure_rate=30.0, seed=seed)
        return simulate(scenario, strategy).to_dict()

    assert play(3) == play(3)
    assert play(3) != play(4)


def test_progress_is_told_in_items() -> None:
    heard: list[tuple[int, int]] = []
    scenario = Scenario(devices=2, tasks=6000, task_items=2)
    simulate(scenario, WITH_STEALING, on_progress=lambda done, total: heard.append((done, total)))
    assert heard
    assert heard == sorted(heard)
    assert {total for _, total in heard} == {12_000}
