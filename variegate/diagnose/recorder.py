"""Rates as they are taken: in rounds, so that a machine that is busy for a while is so for all of them."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from variegate.data.loader.observer import STAGES, Stage, StageTimes
from variegate.diagnose import measurements as m

OnProgress = Callable[[str, int, int], None]  # (what is being done, spans of time done, of how many)

ROUNDS = 5


# Does some work -> (images, bytes that went in).
Step = Callable[[], tuple[int, int]]


class TimedSpan(NamedTuple):
    images: int
    nbytes: int
    seconds: float


def take_span(step: Step, seconds: float, lead: int = 1, steps_at_least: int = 1) -> TimedSpan:
    """``step`` over and over for about ``seconds``, after ``lead`` steps that do not count."""
    for _ in range(lead):
        step()
    begin = time.perf_counter()
    images, nbytes, elapsed, steps = 0, 0, 0.0, 0
    # A step that gives nothing (a batch of bad images alone) makes no span.
    while elapsed < seconds or steps < steps_at_least or not images:
        more_images, more_bytes = step()
        images, nbytes, steps = images + more_images, nbytes + more_bytes, steps + 1
        elapsed = time.perf_counter() - begin
    return TimedSpan(images, nbytes, max(elapsed, 1e-9))


def rate_of(spans: Sequence[TimedSpan], threads: int) -> m.Rate:
    """The median of the spans' rates."""
    rates = tuple(span.images / span.seconds for span in spans)
    bytes_each = sum(span.nbytes for span in spans) / sum(span.images for span in spans)
    median = statistics.median(rates)
    return m.Rate(median, median * bytes_each / 1e6, rates, threads)


@dataclass
class _Planned:
    rates: Mapping[str, tuple[Stage, ...]]
    step: Step
    threads: int
    times: StageTimes
    lead: int
    steps_at_least: int
    works_ahead: int
    spans: dict[str, list[TimedSpan]] = field(default_factory=lambda: defaultdict(list))

    def take(self, seconds: float) -> None:
        before = {stage: self.times.total(stage) for stage in STAGES}
        span = take_span(self.step, seconds, self.lead, self.steps_at_least)
        for name, stages in self.rates.items():
            if not stages:
                self.spans[name].append(span)
                continue
            # Stages that run side by side are as fast as the slowest of them.
            spent = [self.times.total(stage) - before[stage] for stage in stages]
            slowest = max(spent, key=lambda one: one.seconds)
            if slowest.samples:
                seconds_each = max(slowest.seconds / self.threads, 1e-9)
                self.spans[name].append(TimedSpan(slowest.samples, slowest.nbytes, seconds_each))


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
        rates: str | Mapping[str, tuple[Stage, ...]],
        step: Step | AbstractContextManager[Step],
        threads: int,
        *,
        times: StageTimes | None = None,
        lead: int = 1,
        steps_at_least: int = 1,
        works_ahead: int = 0,
    ) -> Step:
        """Have ``step`` timed by ``run``; ``lead`` steps before each span do not count.

        ``rates``: the rate that it gives; or, of steps of a loader that ``times`` observes, by name the stages of which
        each is the rate, none for that of the steps. ``works_ahead``: steps that go on in the background after a span,
        and must not take time from the next one.
        """
        entered = self._stack.enter_context(step) if isinstance(step, AbstractContextManager) else step
        named: Mapping[str, tuple[Stage, ...]] = {rates: ()} if isinstance(rates, str) else rates
        times = StageTimes() if times is None else times
        self._planned.append(_Planned(named, entered, threads, times, lead, steps_at_least, works_ahead))
        return entered

    def run(self) -> None:
        """All that is planned, round by round."""
        done, total = 0, ROUNDS * len(self._planned)
        for number in range(ROUNDS):
            for one in self._planned:
                self.announce(m.TITLES[next(iter(one.rates))], done, total)
                if not number:
                    one.step()  # what is compiled or allocated at the first time
                begin = time.perf_counter()
                one.take(self.seconds / ROUNDS)
                if one.works_ahead:
                    a_step = (time.perf_counter() - begin) / (one.lead + one.steps_at_least)
                    time.sleep(min(one.works_ahead * a_step, 1.0))
                done += 1
        for one in self._planned:
            self.rates.update({name: rate_of(spans, one.threads) for name, spans in one.spans.items()})

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
