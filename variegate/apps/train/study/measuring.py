"""Feeds in turn, A B C C B A, so that a noisy machine disturbs all alike: what each step took, and waited."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from variegate.apps.train.study.feeds import CEILING, OURS, Fed, StudiedFeed
from variegate.apps.train.study.peers import reason

SPANS = 5
LEAST_STEPS, _WARM_UP = 3, 1.0  # steps of a span; seconds
# Seconds: at most so long, until less than this share of one core is busy for so long.
_LONGEST_REST, _LOOK, _IDLE = 3.0, 0.05, 0.3

# Called before every span: what is timed, spans done, and of how many.
OnProgress = Callable[[str, int, int], object]


@dataclass
class Span:
    """Steps one after another: ``images`` in ``seconds``, for which processors work ``processor`` seconds; of each
    step, the seconds that it took and those in ``next()``."""

    images: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    steps: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


def processor_seconds() -> float:
    """That this process and its workers have computed for; theirs where the system tells it (Linux)."""
    total = time.process_time()
    for worker in multiprocessing.active_children():
        try:
            fields = Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def settle() -> None:
    """Return when this process rests. Feeds that were timed before go on to make what they make ahead, which would slow
    down whatever is timed next."""
    begun, computed = time.perf_counter(), processor_seconds()
    while time.perf_counter() - begun < _LONGEST_REST:
        time.sleep(_LOOK)
        before, computed = computed, processor_seconds()
        if computed - before < _IDLE * _LOOK:
            return


class Named(Protocol):
    @property
    def name(self) -> str: ...


class TimesSpans(Protocol):
    """``Bench``, or another way to run steps with a feed of its own kind."""

    def span(self, feed: Any, seconds: float) -> Span: ...


@dataclass(frozen=True)
class Bench:
    """What a feed is timed on. ``step``: is given the batches of one step. ``accumulate``: so many.

    ``synchronise``: waits for the device, at the ends of spans alone: within one the host runs ahead, as it does in a
    training.
    """

    step: Callable[[Sequence[Fed]], object]
    accumulate: int = 1
    synchronise: Callable[[], object] = lambda: None
    clock: Callable[[], float] = time.perf_counter
    processor: Callable[[], float] = processor_seconds
    watching: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()
    settle: Callable[[], object] = settle

    def span(self, feed: StudiedFeed, seconds: float) -> Span:
        """At least three steps. Before them other feeds come to rest, and what this one has made ahead is used up."""
        self.settle()
        computed, before = self.processor(), Span()
        for _ in range(-(-feed.ahead // self.accumulate) + 1):
            self._step(feed, before)
        self.synchronise()
        span, begun = Span(), self.clock()
        with self.watching(feed.name):
            while len(span.steps) < LEAST_STEPS or self.clock() - begun < seconds:
                self._step(feed, span)
            self.synchronise()
        span.seconds = self.clock() - begun
        # From rest to rest as many batches are made as are used, which within the span alone they need not be.
        self.settle()
        span.processor = (self.processor() - computed) * span.images / (span.images + before.images)
        return span

    def _step(self, feed: StudiedFeed, span: Span) -> None:
        begun, waited, parts = self.clock(), 0.0, []
        for _ in range(self.accumulate):
            asked = self.clock()
            parts.append(next(feed.batches))
            waited += self.clock() - asked
        self.step(parts)
        span.steps.append(self.clock() - begun)
        span.waits.append(waited)
        span.images += sum(part.number for part in parts)


def time_feeds(
    bench: TimesSpans,
    feeds: Sequence[Named],
    seconds: float,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
) -> tuple[dict[str, list[Span]], dict[str, str]]:
    """-> five spans of each feed, by its name, and why a peer has none: one that fails is left out from then on. A
    shorter span of each, before them, counts nothing. Every other round goes backwards, so that a machine that becomes
    slower or faster all the while favours none.

    Raises KeyboardInterrupt when ``stop`` is set, and what the ceiling or Variegate's own feed raises.
    """
    spans: dict[str, list[Span]] = {feed.name: [] for feed in feeds}
    failed: dict[str, str] = {}
    for number in range(SPANS + 1):
        for place, feed in enumerate(feeds if number % 2 == 0 else feeds[::-1]):
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            if feed.name in failed:
                continue
            if on_progress is not None:
                on_progress(feed.name, number * len(feeds) + place, (SPANS + 1) * len(feeds))
            try:
                if number == 0:
                    bench.span(feed, min(seconds / SPANS, _WARM_UP))
                else:
                    spans[feed.name].append(bench.span(feed, seconds / SPANS))
            except Exception as error:
                if stop is not None and stop.is_set():  # a Ctrl-C ends a peer's workers as well
                    raise KeyboardInterrupt from error
                if feed.name in (CEILING, OURS):
                    raise
                failed[feed.name] = f"failed: {reason(error)}"
    return {name: found for name, found in spans.items() if name not in failed}, failed
