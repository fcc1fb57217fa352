"""A rate that can be relied on: warmed up, over several spans, the median of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from variegate.diagnose.measurements import Rate

_SPANS = 5

# Does some work -> (images, bytes that went in).
Step = Callable[[], tuple[int, int]]


def rate_of(step: Step, seconds: float, threads: int, steps_at_least: int = 1) -> Rate:
    """``step`` over and over for about ``seconds``, in spans of ``steps_at_least`` steps or more."""
    _warm_up(step, seconds / 10)
    spans = [_span(step, seconds / _SPANS, steps_at_least) for _ in range(_SPANS)]
    total_images = sum(images for images, _, _ in spans)
    bytes_each = sum(nbytes for _, nbytes, _ in spans) / total_images
    rates = tuple(images / elapsed for images, _, elapsed in spans)
    median = statistics.median(rates)
    return Rate(median, median * bytes_each / 1e6, rates, threads)


def single_rate(images: int, nbytes: int, elapsed: float, threads: int) -> Rate:
    """The rate of what can be done only once."""
    elapsed = max(elapsed, 1e-9)
    return Rate(images / elapsed, nbytes / elapsed / 1e6, (images / elapsed,), threads)


def _warm_up(step: Step, seconds: float) -> None:
    """Once for what is compiled or allocated at the first time; then until clocks and caches have settled."""
    step()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        step()


def _span(step: Step, seconds: float, steps_at_least: int) -> tuple[int, int, float]:
    begin = time.perf_counter()
    images, nbytes, elapsed, steps = 0, 0, 0.0, 0
    # A step that gives nothing (a batch of bad images alone) is not a span.
    while elapsed < seconds or steps < steps_at_least or not images:
        more_images, more_bytes = step()
        images, nbytes, steps = images + more_images, nbytes + more_bytes, steps + 1
        elapsed = time.perf_counter() - begin
    return images, nbytes, elapsed
