"""How tasks are shared out: an allocation, with or without stealing."""

from __future__ import annotations

from typing import NamedTuple

from variegate.engine.allocation import ALLOCATIONS
from variegate.engine.rules import Rules
from variegate.options.simulation import Scenario

# More than any run can have. What fails here are workers: no item is ever to blame.
_ENDLESS = 1 << 62


class Strategy(NamedTuple):
    allocation: str
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
