"""What is simulated (``Scenario``), how tasks are shared out there (``Strategy``), and how both are described."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from variegate.engine.options import ALLOCATIONS, Allocation, Rules

MOST_DEVICES = 1024
MOST_TASKS = 5_000_000
# More than any run can have. What fails here are workers: no item is ever to blame.
_ENDLESS = 1 << 62


class Strategy(NamedTuple):
    """How tasks are shared out."""

    allocation: Allocation
    steal: bool

    @property
    def name(self) -> str:
        """``"round_robin+steal"``, as it is given; ``"round_robin"`` without stealing."""
        return self.allocation + "+steal" * self.steal


STRATEGIES = tuple(Strategy(allocation, steal) for allocation in ALLOCATIONS for steal in (True, False))


def parse_strategies(text: str) -> list[Strategy]:
    """Names with commas, or "all". Raises ValueError for others."""
    if text == "all":
        return [*STRATEGIES]
    by_name = {strategy.name: strategy for strategy in STRATEGIES}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in by_name:
            raise ValueError(f"strategies: got {name!r}; accepted: all, or any of {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)]


@dataclass(frozen=True)
class Scenario:
    """Devices, work, and what goes wrong.

    Args:
        devices: how many.
        tasks: how many; all are there from the beginning.
        task_items: items of a task.
        task_seconds: what a task takes on a device of speed 1, on average.
        variation: of the tasks: the standard deviation of the logarithm of what they take.
        speeds: of the devices, in turn.
        spread: of the speeds: each is multiplied by a number whose logarithm has this standard deviation.
        failure_rate: how often a worker is lost in an hour, on average, busy or not.
        restart: seconds from a loss until the next worker of the device is ready.
        queue: tasks that wait, per device, before no more are given out; None: all are given out at once.
        in_flight: tasks at a worker at a time.
        seed: for everything that is left to chance.
    """

    devices: int = 8
    tasks: int = 10_000
    task_items: int = 16
    task_seconds: float = 1.0
    variation: float = 0.2
    speeds: tuple[float, ...] = (1.0,)
    spread: float = 0.0
    failure_rate: float = 0.0
    restart: float = 10.0
    queue: int | None = 8
    in_flight: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for a number that is not accepted."""
        _check("devices", self.devices, 1, MOST_DEVICES)
        _check("tasks", self.tasks, 1, MOST_TASKS)
        _check("task_items", self.task_items, 1, 1_000_000)
        _check("task_seconds", self.task_seconds, 0.001, 100_000)
        _check("variation", self.variation, 0, 2)
        _check("spread", self.spread, 0, 2)
        _check("failure_rate", self.failure_rate, 0, 3600)
        _check("restart", self.restart, 0, 100_000)
        _check("in_flight", self.in_flight, 1, 1000)
        _check("seed", self.seed, 0, (1 << 64) - 1)
        if self.queue is not None:
            _check("queue", self.queue, 1, MOST_TASKS)
        if not self.speeds:
            raise ValueError("speeds: got none; accepted: numbers from 0.001 to 1,000")
        for speed in self.speeds:
            _check("speeds", speed, 0.001, 1000)

    def rules(self, strategy: Strategy) -> Rules:
        """Of the dispatcher. Results come as they are made: their order is nothing that devices wait for."""
        return Rules(
            allocation=strategy.allocation,
            steal=strategy.steal,
            ordered=False,
            in_flight=self.in_flight,
            queue_limit=self.queue,
            max_failures=_ENDLESS,
            seed=self.seed,
        )


def _check(name: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError(f"{name}: got {value!r}; accepted: {least:,} to {most:,}")


def seconds(value: float) -> str:
    """Three digits or more: ``"0.123 s"``, ``"1.23 s"``, ``"12.3 s"``, ``"1,234 s"``."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{places}f} s"


def describe(scenario: Scenario, speeds: Sequence[float], ideal: float) -> list[str]:
    """Two lines: what there is to do and by whom; how, what goes wrong, and how fast it could be."""
    devices = "1 device" if scenario.devices == 1 else f"{scenario.devices:,} devices"
    slowest, fastest = min(speeds), max(speeds)
    of = f"of speed {slowest:.3g}" if slowest == fastest else f"of speeds {slowest:.3g} to {fastest:.3g}"
    first = (
        f"{devices} {of}; {scenario.tasks:,} tasks of {scenario.task_items:,} items, "
        f"{scenario.task_seconds:g} s each at speed 1, varying by {scenario.variation:.0%}"
    )
    queue = "all waiting at once" if scenario.queue is None else f"{scenario.queue:,} waiting per device"
    wrong = "no failures"
    if scenario.failure_rate:
        wrong = f"a worker is lost {scenario.failure_rate:g} times an hour, back after {scenario.restart:g} s"
    second = f"{queue}, {scenario.in_flight} in flight; {wrong}; ideal {seconds(ideal)}"
    return [first, second]
