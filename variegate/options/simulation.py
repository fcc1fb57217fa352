"""What a simulation of the dispatcher can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass

from variegate.options import option

MOST_DEVICES = 1024
MOST_TASKS = 5_000_000


def _speeds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"speeds: got {text!r}; accepted: numbers with commas between them") from None


def _queue(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"queue: got {text!r}; accepted: a number, or none") from None


@dataclass(frozen=True)
class Scenario:
    """Devices, work, and what goes wrong; the help of each field says what it is.

    Raises ValueError for a number that is not accepted.
    """

    devices: int = option(8, "How many devices there are, up to 1,024.", "Devices")
    tasks: int = option(10_000, "How many tasks there are. All of them are known from the start.", "Work")
    task_items: int = option(16, "How many items are in a task.", "Work")
    task_seconds: float = option(1.0, "How long a task takes on a device of speed 1, on average.", "Work")
    variation: float = option(0.2, "How much that varies: the standard deviation of its logarithm.", "Work")
    speeds: tuple[float, ...] = option(
        (1.0,), "The speeds of the devices, which take them in turn.", "Devices", metavar="1,1,0.5", parse=_speeds
    )
    spread: float = option(0.0, "How much speeds vary besides: the standard deviation of their logarithm.", "Devices")
    failure_rate: float = option(0.0, "How often a worker is lost, per hour that it is up.", "Failures")
    restart: float = option(10.0, "How many seconds pass from a loss until the next worker is ready.", "Failures")
    queue: int | None = option(
        8,
        "How many tasks wait for each device. With none, all are given out at once.",
        "Dispatcher",
        metavar="N|none",
        parse=_queue,
    )
    in_flight: int = option(2, "How many tasks are at a worker at a time.", "Dispatcher")
    seed: int = option(0, "Another seed gives other speeds, tasks and failures.", "Work")

    def __post_init__(self) -> None:
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


def _check(name: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError(f"{name}: got {value!r}; accepted: {least:,} to {most:,}")
