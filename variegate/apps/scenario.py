"""Scenarios of a simulation: how tasks are shared out (``Strategy``), and random speeds, tasks and failures.

Chance is a pure function of the seed, the same for every strategy. Random words come from Philox, with a counter of
(number, life of a worker, what is drawn). Times are whole ticks: they add up without rounding, and what logarithms
differ by in the last bit from one platform to another is rounded away.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.checks import meant, refused
from variegate.jobs.options import ALLOCATIONS, Allocation, Rules
from variegate.options.measurement import Scenario
from variegate.program.rng import philox4x32, to_normal, to_unit

TICKS = 1 << 20  # of a second

_DOMAIN = 0x53494D00
_SPEED, _WORK, _UPTIME = range(3)
_AT_ONCE = 1 << 16  # tasks, so that a million of them take little memory
_LIVES_AT_ONCE = 1 << 12  # of all devices together


class RandomInputs:
    """``speeds`` of the devices; ``work`` of the tasks, in ticks on a device of speed 1."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        given = np.resize(np.asarray(scenario.speeds, np.float64), scenario.devices)
        factors = np.exp(scenario.spread * self._normal(_SPEED, scenario.devices))
        self.speeds: list[float] = (_ticks(given * factors) / TICKS).tolist()
        # Lognormal with mean 1.
        exponents = scenario.variation * self._normal(_WORK, scenario.tasks) - scenario.variation**2 / 2
        self.work = array("q", _ticks(scenario.task_seconds * np.exp(exponents)).tobytes())
        self._uptimes: list[list[int]] = []  # by life, device

    def uptime(self, device: int, life: int) -> int:
        """Ticks from a worker's start to its loss; only where there are failures."""
        while life >= len(self._uptimes):
            devices, known = self._scenario.devices, len(self._uptimes)
            lives = np.arange(known, known + max(1, _LIVES_AT_ONCE // devices))[:, None]
            unit = to_unit(self._words(_UPTIME, np.arange(devices), lives)[..., 0])
            self._uptimes += _ticks(-np.log1p(-unit) * 3600 / self._scenario.failure_rate).tolist()
        return self._uptimes[life][device]

    def _normal(self, what: int, count: int) -> npt.NDArray[np.float64]:
        numbers = np.arange(count)
        parts = (numbers[start : start + _AT_ONCE] for start in range(0, count, _AT_ONCE))
        return np.concatenate([to_normal(self._words(what, part))[:, 0] for part in parts])

    def _words(
        self, what: int, number: npt.NDArray[np.int64], life: npt.NDArray[np.int64] | int = 0
    ) -> npt.NDArray[np.uint32]:
        """uint32[..., 4], with the axes of ``number`` and ``life`` together."""
        counter = np.stack(np.broadcast_arrays(number, life, 0, _DOMAIN + what), axis=-1)
        seed = self._scenario.seed
        return philox4x32(counter, np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32))


def _ticks(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Whole, and above 0."""
    return np.maximum(np.rint(seconds * TICKS), 1).astype(np.int64)


def ideal_seconds(scenario: Scenario, inputs: RandomInputs) -> float:
    """When all work would be done if every device worked at its speed whenever its worker is up.

    Without failures that is the sum of the work by the sum of the speeds. Workers are lost at times that do not depend
    on the strategy, so the very same failures count here; but nothing is lost with them.
    """
    work, speed, now = float(sum(inputs.work)), sum(inputs.speeds), 0
    if not scenario.failure_rate:
        return work / speed / TICKS
    restart = round(scenario.restart * TICKS)
    # (when, device, life of the worker, whether it is lost then or starts)
    changes = [(inputs.uptime(device, 0), device, 0, True) for device in range(scenario.devices)]
    heapq.heapify(changes)
    up = [True] * scenario.devices
    while True:
        when, device, life, is_loss = heapq.heappop(changes)
        if (when - now) * speed >= work:
            return (now + work / speed) / TICKS
        work -= (when - now) * speed
        now, up[device] = when, not is_loss
        if is_loss:
            heapq.heappush(changes, (when + restart, device, life + 1, False))
        else:
            heapq.heappush(changes, (when + inputs.uptime(device, life), device, life, True))
        # Summed anew, so that nothing of the speeds that came and went is left by rounding.
        speed = sum(speed for speed, is_up in zip(inputs.speeds, up, strict=True) if is_up)


class Strategy(NamedTuple):
    """Way of sharing out tasks."""

    allocation: Allocation
    steal: bool

    @property
    def name(self) -> str:
        """``"round_robin+steal"``, as it is given; ``"round_robin"`` without stealing."""
        return self.allocation + "+steal" * self.steal

    def rules(self, scenario: Scenario) -> Rules:
        """Of the dispatcher. Results come as they are made: their order is nothing that devices wait for.

        What fails are workers: no item is ever to blame, however often it was on one.
        """
        in_flight, limit, seed = scenario.in_flight, scenario.queue, scenario.seed
        return Rules(*self, ordered=False, in_flight=in_flight, queue_limit=limit, max_failures=1 << 62, seed=seed)


STRATEGIES = tuple(Strategy(allocation, steal) for allocation in ALLOCATIONS for steal in (True, False))


def parse_strategies(text: str) -> list[Strategy]:
    """Names with commas, or "all". Raises ValueError for others."""
    if text == "all":
        return [*STRATEGIES]
    by_name = {strategy.name: strategy for strategy in STRATEGIES}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in by_name:
            raise refused("strategies", name, f"all, or any of {', '.join(by_name)}{meant(name, by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)]


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
