"""What came of a strategy, and in words what it was tried on."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.engine.simulation.strategies import Strategy
from variegate.options.simulation import Scenario

# Parts of the time from the beginning to the end for which it is said how many devices were at work.
BINS = 240


@dataclass(frozen=True)
class Outcome:
    """Of one strategy; all of it simulated.

    Args:
        makespan: seconds until everything was done.
        utilisation: by device: the share of that time that it was at work.
        at_work: by part of the makespan: the share of the devices that were at work.
        steals: tasks that were taken from another device's queue.
        losses: of workers.
        lost: seconds of work, on a device of speed 1, that were done in vain.
        retired: devices that were given up.
        items: that were made.
    """

    strategy: Strategy
    makespan: float
    utilisation: npt.NDArray[np.float64]
    at_work: npt.NDArray[np.float64]
    steals: int
    losses: int
    lost: float
    retired: int
    items: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy.name,
            "makespan": self.makespan,
            "utilisation_mean": float(self.utilisation.mean()),
            "utilisation_min": float(self.utilisation.min()),
            "steals": self.steals,
            "losses": self.losses,
            "lost": self.lost,
            "retired": self.retired,
            "items": self.items,
        }


class Spans:
    """When which device was at work, in ticks."""

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._starts, self._stops, self._by = array("q"), array("q"), array("q")

    def add(self, device: int, start: int, stop: int) -> None:
        self._starts.append(start)
        self._stops.append(stop)
        self._by.append(device)

    def utilisation(self, makespan: int) -> npt.NDArray[np.float64]:
        lengths = np.frombuffer(self._stops, np.int64) - np.frombuffer(self._starts, np.int64)
        return np.bincount(np.frombuffer(self._by, np.int64), lengths, self._devices) / makespan

    def at_work(self, makespan: int) -> npt.NDArray[np.float64]:
        """The share of the devices at work, in each of ``BINS`` parts of the time."""
        edges = np.linspace(0, makespan, BINS + 1)
        done = _passed(self._starts, edges) - _passed(self._stops, edges)
        return np.diff(done) / (self._devices * makespan / BINS)


def _passed(moments: array[int], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """At each edge, the time since each of the moments before it, in sum."""
    in_order = np.sort(np.frombuffer(moments, np.int64))
    sums = np.concatenate([[0.0], np.cumsum(in_order, dtype=np.float64)])
    before = np.searchsorted(in_order, edges)
    return before * edges - sums[before]


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
