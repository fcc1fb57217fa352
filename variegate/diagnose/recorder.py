"""Rates as they are taken: announced, timed, kept, and remarked upon where they waver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from variegate.diagnose import measurements as m
from variegate.diagnose.timing import Step, rate_of

OnProgress = Callable[[str, int, int], None]  # (what is being done, measurements done, of how many)


class Recorder:
    """``total``: measurements there will be, about."""

    def __init__(self, seconds: float, total: int, on_progress: OnProgress | None) -> None:
        self.seconds = seconds
        self.rates: dict[str, m.Rate] = {}
        self._done, self._total, self._on_progress = 0, total, on_progress

    def announce(self, what: str) -> None:
        """The next one begins."""
        if self._on_progress is not None:
            self._on_progress(what, self._done, max(self._total, self._done + 1))
        self._done += 1

    def take(
        self, stage: str, make: Callable[[], Step | AbstractContextManager[Step]], threads: int, steps_at_least: int = 1
    ) -> None:
        """Time the step that ``make`` prepares."""
        self.announce(m.TITLES[stage])
        made = make()
        with made if isinstance(made, AbstractContextManager) else nullcontext(made) as step:
            self.rates[stage] = rate_of(step, self.seconds, threads, steps_at_least)

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
