"""Trainers fed by remote workers under a virtual clock: what can be worked out by hand, and what holds for any feed."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apps.simulate.fate import Fate
from variegate.apps.feed import FeedOutcome, simulate_feed
from variegate.options.measurement import FeedScenario, Scenario

FREE = {"wire": None, "part_us": 0.0, "batch_size": 100, "steps": 5, "worker_rate": 100.0}


def fed(workers: int, scenario: Any = None, uptimes: Any = (), **feed: Any) -> FeedOutcome:
    given = Scenario(**(scenario or {}))
    return simulate_feed(FeedScenario(**FREE | feed), given, workers, partial(Fate, uptimes=uptimes))


def test_one_worker_makes_one_batch_after_the_other() -> None:
    outcome = fed(1)
    assert (outcome.makespan, outcome.at_work, outcome.images_per_second) == (5.0, 1.0, 100.0)
    assert (outcome.limit, outcome.ceiling) == ("workers", 100.0)


def test_the_wire_is_the_limit() -> None:
    """10 Mbit an image over 1 Gbit/s: a hundred images take a second, and the first are made in a thousandth."""
    outcome = fed(1, wire=1.0, image_bytes=1_250_000, worker_rate=100_000.0)
    assert outcome.makespan == pytest.approx(5.001, abs=1e-4)
    assert outcome.wire == pytest.approx(5 / 5.001, abs=1e-4)
    assert (outcome.limit, outcome.ceiling) == ("wire", pytest.approx(100.0))


def test_the_dispatcher_is_the_limit() -> None:
    """Four workers and a prefetch of 2: two parts a batch, half a second each."""
    outcome = fed(4, part_us=500_000.0, worker_rate=100_000.0)
    assert outcome.makespan == pytest.approx(5.0005, abs=1e-4)
    assert outcome.dispatcher == pytest.approx(1.0, abs=1e-3)
    assert (outcome.limit, outcome.ceiling) == ("dispatcher", pytest.approx(100.0))


def test_a_trainer_that_is_the_limit_waits_for_its_first_batch_only() -> None:
    outcome = fed(1, step_ms=1000.0, worker_rate=1000.0)
    assert outcome.makespan == pytest.approx(5.1, abs=1e-4)
    assert outcome.waits == pytest.approx(0.1 / 5.1, abs=1e-4)
    assert (outcome.limit, outcome.ceiling) == ("trainer", pytest.approx(100.0))


def test_all_ranks_go_at_the_pace_of_the_slowest() -> None:
    outcome = fed(2, {"speeds": (1.0, 0.5)}, ranks=2)
    assert outcome.makespan == 10.0
    assert (outcome.limit, outcome.ceiling, outcome.images_per_second) == ("workers", 100.0, 100.0)
    # The faster makes a batch a second, and no more than three ahead of the one that is trained on.
    assert 0.75 <= outcome.at_work <= 0.95


def test_what_a_lost_worker_was_at_is_made_again() -> None:
    """Lost half way through the second batch, back a second later."""
    outcome = fed(1, {"failure_rate": 1.0, "restart": 1.0}, uptimes=[[1.5]], steps=3)
    assert (outcome.makespan, outcome.losses) == (1.5 + 1.0 + 2.0, 1)


def test_more_workers_than_parts_under_way_have_nothing_to_do() -> None:
    """13 parts of 8 images a batch, three batches under way: 39 workers at most."""
    outcome = fed(1000)
    assert (outcome.limit, outcome.ceiling) == ("prefetch", 39 * 100.0)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 5).flatmap(lambda ranks: st.tuples(st.just(ranks), st.integers(ranks, 20))),
    st.integers(1, 300),
    st.integers(1, 4),
    st.sampled_from([None, 0.01, 1.0]),
    st.sampled_from([0.0, 30.0]),
    st.sampled_from([(1.0,), (1.0, 0.3)]),
)
def test_nothing_is_faster_than_its_ceiling(
    sizes: tuple[int, int], batch: int, prefetch: int, wire: float | None, step_ms: float, speeds: tuple[float, ...]
) -> None:
    ranks, workers = sizes
    more = {"ranks": ranks, "batch_size": batch, "prefetch": prefetch, "wire": wire, "step_ms": step_ms}
    outcome = fed(workers, {"speeds": speeds}, part_us=200.0, **more)
    assert 0 < outcome.images_per_second <= 1.001 * outcome.ceiling
    for share in (outcome.waits, outcome.at_work, outcome.wire, outcome.dispatcher):
        assert 0 <= share <= 1.001
    assert fed(workers, {"speeds": speeds}, part_us=200.0, **more) == outcome


def test_a_thousand_workers_and_256_ranks() -> None:
    scenario = Scenario(spread=0.2, failure_rate=30.0)
    outcome = simulate_feed(FeedScenario(ranks=256, steps=10, step_ms=100.0), scenario, 1024)
    assert outcome.ceiling >= outcome.images_per_second > 0.3 * outcome.ceiling


def test_ranks_without_a_worker_are_refused() -> None:
    with pytest.raises(ValueError, match="workers: got 3 with 4 ranks; accepted: at least as many as ranks"):
        fed(3, ranks=4)
