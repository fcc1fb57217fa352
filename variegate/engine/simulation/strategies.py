"""How tasks are shared out: an allocation, with or without stealing."""

from __future__ import annotations

from typing import NamedTuple

from variegate.engine.allocation import ALLOCATIONS


class Strategy(NamedTuple):
    allocation: str
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
