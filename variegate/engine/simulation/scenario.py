"""How tasks are shared out in a simulation (``Strategy``), and how its scenario is described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from variegate.engine.options import ALLOCATIONS, Allocation, Rules
from variegate.options.simulation import Scenario

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

    def rules(self, scenario: Scenario) -> Rules:
        """Of the dispatcher. Results come as they are made: their order is nothing that devices wait for."""
        return Rules(
            allocation=self.allocation,
            steal=self.steal,
            ordered=False,
            in_flight=scenario.in_flight,
            queue_limit=scenario.queue,
            max_failures=_ENDLESS,
            seed=scenario.seed,
        )


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
