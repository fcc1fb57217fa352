"""Rates that can be relied on: warmed up, over several spans of time, the median of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from variegate.diagnose.measurements import Rate

# Does some work -> (images, bytes that went in).
Step = Callable[[], tuple[int, int]]


class Span(NamedTuple):
    images: int
    nbytes: int
    seconds: float


def take_span(step: Step, seconds: float, lead: int = 1, steps_at_least: int = 1) -> Span:
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
    return Span(images, nbytes, max(elapsed, 1e-9))


def rate_of(spans: Sequence[Span], threads: int) -> Rate:
    """The median of the spans' rates."""
    rates = tuple(span.images / span.seconds for span in spans)
    bytes_each = sum(span.nbytes for span in spans) / sum(span.images for span in spans)
    median = statistics.median(rates)
    return Rate(median, median * bytes_each / 1e6, rates, threads)
