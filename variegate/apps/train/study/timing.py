"""Feeds timed in turn, A B C C B A, so that a noisy machine disturbs all alike: the time of each step, and its wait."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import torch

CEILING, OURS = "synthetic batch", "Variegate"
SPANS = 5
LEAST_STEPS, _WARM_UP = 3, 1.0  # steps of a span; seconds
# Seconds: at most so long, until less than this share of one core is busy for so long.
_LONGEST_REST, _LOOK, _IDLE = 3.0, 0.05, 0.3
_EVERY = 0.05  # seconds; NVML's own figure is of the last sixth of a second or more

# Called before every span: the feed that is timed, spans done, and of how many.
OnProgress = Callable[[str, int, int], object]


class MissingPeerError(RuntimeError):
    """A feed that is not available here, and why."""


class Fed(NamedTuple):
    """A batch on the device, in channels-last layout. ``weights``: 0 for padding; None where all ``number`` count."""

    images: torch.Tensor
    labels: Any
    number: int
    weights: torch.Tensor | None = None


@dataclass
class StudiedFeed:
    """``batches``: of ``Fed``, or what Keras' ``fit`` takes. ``ahead``: batches that it makes in advance. ``left_out``:
    steps of the training's augmentation that it lacks. ``how``: how it was set up."""

    name: str
    batches: Any
    ahead: int = 0
    how: str = ""
    left_out: tuple[str, ...] = ()


@dataclass
class Span:
    """Steps in turn: ``processor``: seconds of all cores; ``steps``, ``waits``: seconds of each, and of its
    ``next()``."""

    images: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    steps: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


def processor_seconds() -> float:
    """Processor time of this process, and of its workers on Linux."""
    total = time.process_time()
    for worker in multiprocessing.active_children():
        try:
            fields = Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def settle() -> None:
    """Wait until this process is idle: feeds timed before still make batches ahead, which would slow down the next."""
    begun, computed = time.perf_counter(), processor_seconds()
    while time.perf_counter() - begun < _LONGEST_REST:
        time.sleep(_LOOK)
        before, computed = computed, processor_seconds()
        if computed - before < _IDLE * _LOOK:
            return


@dataclass(frozen=True)
class Bench:
    """Timing of ``step``, called with the ``accumulate`` batches of a step; ``synchronise`` waits for the device."""

    step: Callable[[Sequence[Fed]], object]
    accumulate: int = 1
    synchronise: Callable[[], object] = lambda: None
    clock: Callable[[], float] = time.perf_counter
    processor: Callable[[], float] = processor_seconds
    watching: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()
    settle: Callable[[], object] = settle

    def span(self, feed: StudiedFeed, seconds: float) -> Span:
        """Time three steps or more, after other feeds have come to rest and what this one made ahead is used up."""
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
        # Only from rest to rest as many batches are made as are used.
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
    bench: Any, feeds: Sequence[Any], seconds: float, on_progress: OnProgress | None = None, stop: Event | None = None
) -> tuple[dict[str, list[Span]], dict[str, str]]:
    """Time all feeds by ``bench.span`` -> five spans of each, by its name, and the errors of peers that fail.

    A shorter round before counts nothing, and every other goes backwards: a machine that becomes slower favours none.
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


def opened(openers: Mapping[str, Callable[[], Any]]) -> tuple[list[Any], dict[str, str]]:
    """-> the peers that there are, and why others are not, by their names."""
    feeds, missing = [], {}
    for name, opener in openers.items():
        try:
            feeds.append(opener())
        except MissingPeerError as error:
            missing[name] = str(error)
        except Exception as error:  # a peer's own errors are of any type
            missing[name] = f"failed: {reason(error)}"
    return feeds, missing


def reason(error: BaseException) -> str:
    """The error's message in one line."""
    said = " ".join(str(error).split())
    return (said if len(said) <= 160 else f"{said[:159]}…") or type(error).__name__


class Utilisation:
    """Samples of the GPU's utilisation by NVML, in percent by the feed's name. ``note``: why there are none."""

    def __init__(self, device: str) -> None:
        self.samples: dict[str, list[int]] = {}
        self.note: str | None = None
        try:
            self._ask = _nvml_of(device) if device.startswith("cuda") else None
        except Exception as error:  # no pynvml, or whatever its library raises
            self._ask, self.note = None, f"the GPU's utilisation is not known: {reason(error)}"

    @contextmanager
    def watching(self, name: str) -> Iterator[None]:
        if self._ask is None:
            yield
            return
        ask, found, is_over = self._ask, self.samples.setdefault(name, []), Event()

        def sample() -> None:
            while not is_over.wait(_EVERY):
                found.append(ask())

        thread = threading.Thread(target=sample, name="variegate-nvml", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def _nvml_of(device: str) -> Callable[[], int]:
    import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

    pynvml.nvmlInit()
    known = torch.cuda.get_device_properties(torch.device(device))
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{known.uuid}")
    except (AttributeError, pynvml.NVMLError):  # older torch; a slice of a GPU
        handle = pynvml.nvmlDeviceGetHandleByIndex(torch.device(device).index or 0)
    return lambda: int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
