"""Rates as they are taken: in rounds, so that a machine that is busy for a while is so for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from variegate.diagnose import measurements as m
from variegate.diagnose.timing import Span, Step, rate_of, take_span

OnProgress = Callable[[str, int, int], None]  # (what is being done, spans of time done, of how many)

ROUNDS = 5


@dataclass
class _Planned:
    stage: str
    step: Step
    threads: int
    lead: int
    steps_at_least: int
    works_ahead: int
    spans: list[Span] = field(default_factory=list)


class Recorder:
    """``seconds``: for each rate, in ``ROUNDS`` spans. Use as a context around the measurements."""

    def __init__(self, seconds: float, on_progress: OnProgress | None) -> None:
        self.seconds = seconds
        self.rates: dict[str, m.Rate] = {}
        self._planned: list[_Planned] = []
        self._stack = ExitStack()
        self._on_progress = on_progress

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def announce(self, what: str, done: int = 0, total: int = 0) -> None:
        """What is being done now; ``total`` 0: before it is known how much there is to do."""
        if self._on_progress is not None:
            self._on_progress(what, done, total)

    def plan(
        self,
        stage: str,
        step: Step | AbstractContextManager[Step],
        threads: int,
        *,
        lead: int = 1,
        steps_at_least: int = 1,
        works_ahead: int = 0,
    ) -> Step:
        """Have ``step`` timed by ``run``; ``lead`` steps before each span do not count.

        ``works_ahead``: steps that go on in the background after a span, and must not take time from the next one.
        """
        entered = self._stack.enter_context(step) if isinstance(step, AbstractContextManager) else step
        self._planned.append(_Planned(stage, entered, threads, lead, steps_at_least, works_ahead))
        return entered

    def run(self) -> None:
        """All that is planned, round by round."""
        done, total = 0, ROUNDS * len(self._planned)
        for number in range(ROUNDS):
            for one in self._planned:
                self.announce(m.TITLES[one.stage], done, total)
                if not number:
                    one.step()  # what is compiled or allocated at the first time
                begin = time.perf_counter()
                one.spans.append(take_span(one.step, self.seconds / ROUNDS, one.lead, one.steps_at_least))
                if one.works_ahead:
                    a_step = (time.perf_counter() - begin) / (one.lead + one.steps_at_least)
                    time.sleep(min(one.works_ahead * a_step, 1.0))
                done += 1
        self.rates.update({one.stage: rate_of(one.spans, one.threads) for one in self._planned})

    def notes(self) -> list[str]:
        """What a reader of the rates should know."""
        wide = {stage: rate.spread for stage, rate in self.rates.items() if rate.spread > m.WIDE_SPREAD}
        if not wide:
            return []
        worst = max(wide, key=lambda stage: wide[stage])
        return [
            f"{len(wide)} of {len(self.rates)} rates waver by more than {m.WIDE_SPREAD:.0%} of their median, most of "
            f"all {m.TITLES[worst]}, by {wide[worst]:.0%}: is something else running? --seconds takes longer spans"
        ]
