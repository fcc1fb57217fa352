"""What is simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from variegate.engine.rules import Rules
from variegate.engine.simulation.strategies import Strategy

MOST_DEVICES = 1024
MOST_TASKS = 5_000_000
# More than any run can have. What fails here are workers: no item is ever to blame.
_ENDLESS = 1 << 62


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
