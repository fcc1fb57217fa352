"""Rates: repeated work, timed in alternating spans so that a busy moment of the machine affects all rates alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch

from variegate.events import OnEvent, Progress

SPANS = 5
# A span has this many steps at least, because batches may become ready two at a time.
_MIN_STEPS = 4
_MAX_REST_SECONDS = 1.0


@dataclass(frozen=True)
class Rate:
    """Images per second: the median of several spans. ``spread``: slowest to fastest span, as a share of it."""

    images_per_second: float
    spread: float = 0.0


@dataclass
class Probe:
    """Work to time.

    ``step`` does a piece of it and returns the number of images. ``finish`` waits until queued work is done.
    ``ahead``: steps that a loader prepares in the background; ``watch``: a context for each span.
    """

    title: str
    step: Callable[[], int]
    ahead: int = 0
    finish: Callable[[], object] = lambda: None
    watch: Callable[[], AbstractContextManager[object]] = nullcontext
    spans: list[float] = field(default_factory=list)

    def time_span(self, seconds: float) -> None:
        """Repeat the step for about ``seconds`` and record the rate."""
        # Batches that were prepared while another probe ran do not count.
        for _ in range(self.ahead + 1):
            self.step()
        self.finish()

        images = 0
        steps = 0
        elapsed = 0.0
        begin = time.perf_counter()
        with self.watch():
            while elapsed < seconds or steps < _MIN_STEPS or images == 0:
                images += self.step()
                steps += 1
                elapsed = time.perf_counter() - begin
            self.finish()
        elapsed = time.perf_counter() - begin
        self.spans.append(images / elapsed)

        # The batches that the loader still prepares would slow the next probe down.
        if self.ahead:
            time.sleep(min((self.ahead + 1) * elapsed / steps, _MAX_REST_SECONDS))

    def rate(self) -> Rate:
        median = statistics.median(self.spans)
        return Rate(median, (max(self.spans) - min(self.spans)) / median)


def run_probes(probes: Sequence[Probe], seconds: float, on_event: OnEvent) -> None:
    """Time each probe for about ``seconds``, in rounds. ``on_event``: called with the ``Progress`` of spans."""
    total = SPANS * len(probes)
    for number in range(total):
        probe = probes[number % len(probes)]
        on_event(Progress(probe.title, number, total))
        probe.time_span(seconds / SPANS)


def wait_for(device: str) -> Callable[[], object]:
    """A function that waits for the work queued on ``device``."""
    if not device.startswith("cuda"):
        return lambda: None
    return lambda: torch.cuda.synchronize(torch.device(device))


def rate_row(title: str, rate: Rate) -> str:
    """Return a line of the report; an unknown spread is omitted."""
    spread = f"{rate.spread:.0%}" if rate.spread else ""
    return f"{title:<31}{number_text(rate.images_per_second):>10}{spread:>8}".rstrip()


def rate_text(images_per_second: float) -> str:
    """``"1,234 images/s"``."""
    return f"{number_text(images_per_second)} images/s"


def number_text(value: float) -> str:
    """Three digits or more: 1.23, 12.3, 123, 1,234."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{places}f}"
