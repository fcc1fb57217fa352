"""Rates as they are taken: in rounds, so that a machine that is busy for a while is so for all of them; and the steps
that are timed for what a loader's observer cannot tell apart."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, count, islice

import numpy as np
import numpy.typing as npt
import torch

from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.measurements import TimedSpan, rate_of
from variegate.apps.diagnose.samples import CyclicView, size_of
from variegate.formats.base import Item, StreamSource
from variegate.loader import Loader
from variegate.loader.stats import STAGES, Stage, StageTimes

OnProgress = Callable[[str, int, int], None]  # (what is being done, spans of time done, of how many)
# Does some work -> (images, bytes that went in).
Step = Callable[[], tuple[int, int]]

_ROUNDS = 5
_READ_AT_ONCE = 256


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


@dataclass
class PlannedStep:
    """``rates``: by name the stages, of a loader that ``times`` observes, of which each is the rate; none for that of
    the steps. ``ahead``: batches that a loader goes on making in the background after a span."""

    rates: Mapping[str, tuple[Stage, ...]]
    step: Step
    threads: int
    times: StageTimes = field(default_factory=StageTimes)
    ahead: int = 0
    spans: dict[str, list[TimedSpan]] = field(default_factory=lambda: defaultdict(list))

    def take(self, seconds: float) -> None:
        # Batches that were made while others were measured do not count. Two are made at a time and come in pairs.
        lead, steps_at_least = (self.ahead + 2, 4) if self.ahead else (1, 1)
        before = {stage: self.times.total(stage) for stage in STAGES}
        begin = time.perf_counter()
        span = take_span(self.step, seconds, lead, steps_at_least)
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
        if self.ahead:  # what they take must not be missing in the next span
            a_step = (time.perf_counter() - begin) / (lead + steps_at_least)
            time.sleep(min((self.ahead + 1) * a_step, 1.0))


class Recorder(ExitStack):
    """``seconds``: for each rate, in ``_ROUNDS`` spans. The context that the loaders of measurements live in."""

    def __init__(self, seconds: float, on_progress: OnProgress | None) -> None:
        super().__init__()
        self.seconds, self._on_progress = seconds, on_progress
        self.rates: dict[str, m.Rate] = {}
        self.planned: list[PlannedStep] = []

    def announce(self, what: str, done: int = 0, total: int = 0) -> None:
        """Report the work at hand; ``total`` 0: before the amount of work is known."""
        if self._on_progress is not None:
            self._on_progress(what, done, total)

    def run(self) -> None:
        """All that is planned, round by round."""
        total = _ROUNDS * len(self.planned)
        for done in range(total):
            one = self.planned[done % len(self.planned)]
            self.announce(m.TITLES[next(iter(one.rates))], done, total)
            if done < len(self.planned):
                one.step()  # what is compiled or allocated at the first time
            one.take(self.seconds / _ROUNDS)
        for one in self.planned:
            self.rates.update({name: rate_of(spans, one.threads) for name, spans in one.spans.items()})

    def notes(self) -> list[str]:
        """Notes for readers of the rates."""
        wide = {stage: rate.spread for stage, rate in self.rates.items() if rate.spread > m.WIDE_SPREAD}
        if not wide:
            return []
        worst = max(wide, key=lambda stage: wide[stage])
        return [
            f"{len(wide)} of {len(self.rates)} rates vary by more than {m.WIDE_SPREAD:.0%} of their median, at most "
            f"by {wide[worst]:.0%} ({m.TITLES[worst]}); close other programs, or measure longer with --seconds"
        ]


def read_step(view: CyclicView, readers: int) -> Step:
    """``source.read`` and nothing else: in a loader, readers wait for the cores that others use."""
    pool = ThreadPoolExecutor(readers, thread_name_prefix="variegate-read")
    chunk, position = 1 if view.is_remote else 8, 0

    def read(first: int) -> int:
        return sum(size_of(view.read(index)) for index in range(first, first + chunk))

    def step() -> tuple[int, int]:
        nonlocal position
        firsts = range(position, position + max(_READ_AT_ONCE, chunk * readers), chunk)
        position = firsts.stop
        return chunk * len(firsts), sum(pool.map(read, firsts))

    return step


def stream_step(source: StreamSource, batch_size: int) -> Step:
    """One sample after another, as a stream gives them, again and again."""
    shards = chain.from_iterable(range(source.num_shards) for _ in count())
    items = chain.from_iterable(map(source.read_shard, shards))

    def step() -> tuple[int, int]:
        good = [one.item for one in islice(items, batch_size) if isinstance(one.item, Item)]
        return len(good), sum(map(size_of, good))

    return step


def transfer_step(pictures: Sequence[npt.NDArray[np.uint8]], device: str, batch_size: int) -> Step:
    """Decoded pictures of the host to the device, through the loader's pinned memory."""
    from variegate.executors.cuda.executor import executor_of, upload_images

    executor = executor_of(device)
    batch = [pictures[place % len(pictures)] for place in range(batch_size)]
    nbytes = sum(image.nbytes for image in batch)

    def step() -> tuple[int, int]:
        upload_images(executor, batch)
        _finish(device)
        return batch_size, nbytes

    return step


def loader_step(loader: Loader, mean_bytes: float, stack: ExitStack) -> Step:
    """The next batch of a loader, epoch after epoch."""
    batches = (batch for _ in count() for batch in loader)
    stack.callback(batches.close)

    def step() -> tuple[int, int]:
        number = len(next(batches).ids)
        _finish(loader.device)
        return number, round(number * mean_bytes)

    return step


def _finish(device: str) -> None:
    """A GPU's work is done when it is done, not when it is queued."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(torch.device(device))
