"""Speeds, tasks and failures: as asked for, and the same everywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.apps.simulate.fate import Fate
from variegate.apps.scenario import STRATEGIES, TICKS, RandomInputs, ideal_seconds, parse_strategies
from variegate.options.measurement import Scenario


def test_nothing_is_left_to_chance_where_nothing_varies() -> None:
    inputs = RandomInputs(Scenario(devices=5, tasks=3, task_seconds=2.5, variation=0.0, speeds=(1.0, 0.25)))
    assert inputs.speeds == [1.0, 0.25, 1.0, 0.25, 1.0]
    assert inputs.work.tolist() == [2.5 * TICKS] * 3


def test_draws_have_the_spread_that_is_asked_for() -> None:
    scenario = Scenario(devices=1024, tasks=100_000, task_seconds=3.0, variation=0.4, spread=0.5, failure_rate=60.0)
    inputs = RandomInputs(scenario)
    work = np.array(inputs.work) / TICKS
    assert work.mean() == pytest.approx(3.0, rel=0.01)
    assert np.log(work).std() == pytest.approx(0.4, rel=0.01)
    assert np.median(inputs.speeds) == pytest.approx(1.0, rel=0.1)
    assert np.log(inputs.speeds).std() == pytest.approx(0.5, rel=0.1)
    uptimes = np.array([inputs.uptime(device, life) for device in range(1024) for life in range(20)]) / TICKS
    assert uptimes.mean() == pytest.approx(60.0, rel=0.03)
    assert np.mean(uptimes > 60.0) == pytest.approx(math.exp(-1), abs=0.02)


def test_a_draw_does_not_depend_on_how_many_there_are() -> None:
    few = RandomInputs(Scenario(devices=2, tasks=10, spread=0.5, failure_rate=1.0))
    many = RandomInputs(Scenario(devices=9, tasks=200_000, spread=0.5, failure_rate=1.0))
    assert many.speeds[:2] == few.speeds
    assert many.work[:10] == few.work
    assert few.uptime(1, 4) == many.uptime(1, 4)


def test_draws_are_pinned() -> None:
    """A change of these changes every simulation that was ever written down."""
    inputs = RandomInputs(Scenario(devices=3, tasks=3, spread=0.5, failure_rate=1.0, seed=7))
    assert [round(speed * TICKS) for speed in inputs.speeds] == [793285, 601502, 1208756]
    assert inputs.work.tolist() == [849842, 881581, 1025411]
    assert [inputs.uptime(0, 0), inputs.uptime(2, 1)] == [11937296979, 3636505373]


def test_the_ideal_is_the_work_by_the_speeds() -> None:
    scenario = Scenario(devices=3, tasks=100, speeds=(1.0, 1.0, 0.5))
    assert ideal_seconds(scenario, Fate(scenario)) == 40.0


def test_the_ideal_knows_when_workers_are_down() -> None:
    one = Scenario(devices=1, tasks=10, failure_rate=1.0, restart=2.0)
    assert ideal_seconds(one, Fate(one, [[4.0, 3.0]])) == 4 + 2 + 3 + 2 + 3
    # 12 of work: 2 a second for 3 s, 1 a second for 4 s, 2 a second for the rest.
    two = Scenario(devices=2, tasks=12, failure_rate=1.0, restart=4.0)
    assert ideal_seconds(two, Fate(two, [[3.0], []])) == 8.0


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("devices", 0, "1 to 1,024"),
        ("devices", 1025, "1 to 1,024"),
        ("tasks", 0, "1 to 5,000,000"),
        ("task_items", 0, "1 to 1,000,000"),
        ("task_seconds", 0.0, "0.001 to 100,000"),
        ("variation", -0.1, "0 to 2"),
        ("spread", math.nan, "0 to 2"),
        ("failure_rate", -1.0, "0 to 3,600"),
        ("restart", math.inf, "0 to 100,000"),
        ("queue", 0, "1 to 5,000,000"),
        ("in_flight", 0, "1 to 1,000"),
        ("seed", -1, "0 to 18,446,744,073,709,551,615"),
    ],
)
def test_scenarios_that_make_no_sense_are_named(name: str, value: float, accepted: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got {value!r}; accepted: {accepted}$"):
        Scenario(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("speeds", [(), (1.0, 0.0), (math.nan,)])
def test_so_are_speeds(speeds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"^speeds: got .*; accepted: "):
        Scenario(speeds=speeds)


def test_strategies_have_names() -> None:
    assert parse_strategies("all") == list(STRATEGIES)
    assert len(STRATEGIES) == 6
    assert [strategy.name for strategy in parse_strategies("random+steal, round_robin,random+steal")] == [
        "random+steal",
        "round_robin",
    ]
    with pytest.raises(ValueError, match="strategies: got 'best'; accepted: all, or any of least_loaded\\+steal, "):
        parse_strategies("random,best")
