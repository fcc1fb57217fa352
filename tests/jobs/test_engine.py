"""What an engine accepts, and works of any kind that it runs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import variegate as vg
from tests.workers.contract import check_made, made_of, tasks
from tests.workers.toys import Toy


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"workers": "fork"}, ValueError, "workers: got 'fork'; accepted: one of 'process', 'thread', 'ray'"),
        (
            {"allocation": "best"},
            ValueError,
            "allocation: got 'best'; accepted: one of 'next_idle', 'round_robin'",
        ),
        ({"devices": ["gpu"]}, ValueError, "devices: got 'gpu'; accepted"),
        ({"address": "auto"}, ValueError, "address: got 'auto' with workers='process'; accepted: None, or workers"),
        ({"num_threads": 0}, ValueError, "num_threads: got 0; accepted: a positive integer"),
        ({"dtype": "int8"}, ValueError, "dtype: got 'int8'; accepted"),
        ({"layout": "CHW"}, ValueError, "layout: got 'CHW'; accepted"),
        ({"geometry": "fast"}, ValueError, "geometry: got 'fast'; accepted"),
        ({"seed": -1}, ValueError, "seed: got -1; accepted"),
        ({"max_failures": 0}, ValueError, "max_failures: got 0; accepted: 1 or more"),
        ({"heartbeat_timeout": 0.0}, ValueError, "heartbeat_timeout: got 0.0; accepted: seconds, more than 0"),
        ({"transform": 3}, TypeError, "transform: got 3; accepted: a variegate transform"),
    ],
)
def test_what_is_not_accepted_is_named(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        vg.Engine(**({"devices": ["cpu:0"]} | arguments))
    assert message in str(caught.value)


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"workers='ray' needs Ray: pip install 'variegate\[ray\]'"):
        vg.Engine(workers="ray")


def test_any_work_can_be_run() -> None:
    engine = vg.Engine(["cpu:0", "cpu:1"], "thread", "round_robin", steal=False, num_threads=3)
    results = list(engine.run(Toy(items={5: "fail"}), tasks(40)))
    check_made(results, 40, bad=[5])
    assert {made.device for made in made_of(results)} == {"cpu:0", "cpu:1"}


def test_a_run_may_have_an_order_of_its_own() -> None:
    engine = vg.Engine(["cpu:0", "cpu:1"], "thread", ordered=False)
    results = list(engine.run(Toy(slow={"cpu:1": 0.001}), tasks(40), ordered=True, max_items=8))
    check_made(results, 40)
    assert {made.device for made in made_of(results)} == {"cpu:0", "cpu:1"}
