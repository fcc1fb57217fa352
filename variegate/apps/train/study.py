"""Study of whether data limit a training: its step, timed with one feed after another."""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import cycle, repeat
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import torch

from variegate.apps.train.feed import Feed, tensors_of
from variegate.apps.train.learner import Learner
from variegate.apps.train.models import seeded_weights
from variegate.apps.train.ranks import joined
from variegate.apps.train.step import in_channels_last
from variegate.apps.train.study_report import CEILING, OURS, Span, Study, study_of
from variegate.io.addresses import shown
from variegate.options.training import TrainOptions
from variegate.threads import default_threads

SPANS = 5
LEAST_STEPS, _WARM_UP = 3, 1.0  # steps of a span; seconds
# Seconds: at most so long, until less than this share of one core is busy for so long.
_LONGEST_REST, _LOOK, _IDLE = 3.0, 0.05, 0.3
_EVERY = 0.05  # seconds; NVML's own figure is of the last sixth of a second or more

# The feed of the span that begins, spans done, and of how many.
OnProgress = Callable[[str, int, int], object]


class Fed(NamedTuple):
    """A batch on the device, in channels-last layout. ``weights``: 0 for padding; None where all ``number`` count."""

    images: torch.Tensor
    labels: Any
    number: int
    weights: torch.Tensor | None = None


@dataclass
class StudiedFeed:
    """Batches without end, ``ahead`` of them made in advance; ``left_out``: steps of the augmentation that it lacks."""

    name: str
    batches: Any
    ahead: int = 0
    how: str = ""
    left_out: tuple[str, ...] = ()


def study(
    source: Any,
    options: TrainOptions | None = None,
    seconds: float = 10.0,
    *,
    open_others: Callable[[Feed, str], tuple[Sequence[StudiedFeed], dict[str, str]]] | None = None,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
) -> Study:
    """Time the step of ``train(source, options)`` with each feed for so many seconds, at a learning rate of 0; nothing
    is written.

    ``open_others(feed, device)``: gives more feeds, and by name why others are missing. ``on_progress``: called before
    every span with the feed that is timed, spans done, and of how many. ``stop``: ends it with KeyboardInterrupt.
    Raises SourceError, ModelError, PolicyError, ValueError naming an option.
    """
    # Where sizes grow, with the last, at which most of the time goes by.
    options = replace(options or TrainOptions(), progressive=None)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("study: got several processes (torchrun); accepted: one, on one device")
    for name, usual in (("adapt", "none"), ("adapt_from", None)):
        if (value := getattr(options, name)) != usual:
            raise ValueError(f"{name}: got {value!r} with a study, which learns nothing; accepted: {usual!r}")
    with ExitStack() as stack:
        ranks = stack.enter_context(joined(options.device, options.timeout))
        feed, device = Feed(source, None, options, ranks), ranks.device
        # First of all that starts threads: their workers are forked.
        others, missing = open_others(feed, device) if open_others is not None else ((), {})
        feeds = [synthetic(feed, device), ours(feed, device), *others]
        for one in feeds:
            stack.callback(one.batches.close)
        stack.enter_context(seeded_weights(options.seed))
        learner = Learner(feed.model, len(feed.classes), feed.channels, options, ranks)
        learner.rehearse(feed.size)
        learner.module.train()

        def step(parts: Sequence[Fed]) -> None:  # as the trainer takes it
            learner.begin_step(0)
            for number, part in enumerate(parts, start=1):
                with learner.replicas.communicates(number == len(parts)):
                    images = feed.batch_size * options.accumulate
                    learner.step.add_gradients(part.images, part.labels, images, part.weights)
            learner.end_step(1, 0.0)

        busy, wait = Utilisation(device), torch.cuda.synchronize if device.startswith("cuda") else lambda: None
        bench = Bench(step, options.accumulate, wait, watching=busy.watching)
        spans, failed = time_feeds(bench, feeds, seconds, on_progress, stop)
    described = {one.name: (one.how, one.left_out) for one in feeds}
    found = study_of(facts_of(source, feed, device, seconds), spans, described, missing | failed, busy.samples)
    return replace(found, notes=(*found.notes, *([busy.note] if busy.note else [])))


def synthetic(feed: Feed, device: str) -> StudiedFeed:
    generator = torch.Generator().manual_seed(feed.options.seed)
    images = torch.randn(feed.batch_size, *feed.size, feed.channels, generator=generator)
    labels = torch.randint(len(feed.classes), (feed.batch_size,), generator=generator)
    fed = Fed(in_channels_last(images).to(device), labels.to(device), feed.batch_size)
    return StudiedFeed(CEILING, (fed for _ in repeat(None)), how="one batch of random numbers, again and again")


def ours(feed: Feed, device: str) -> StudiedFeed:
    """Variegate's loader, as ``train`` feeds its steps."""
    loader = feed.train

    def batches() -> Iterator[Fed]:
        for epoch in cycle(range(feed.options.epochs)):
            loader.set_epoch(epoch)
            for batch in loader:
                images, labels, weights = tensors_of(batch, device)
                yield Fed(images, labels, len(batch.ids) - int(batch.padding.sum()), weights)

    how = f"{loader.num_threads} threads, {loader.prefetch} batches ahead"
    return StudiedFeed(OURS, batches(), loader.prefetch + 1, how)


def facts_of(source: Any, feed: Feed, device: str, seconds: float) -> dict[str, Any]:
    """The training that is studied, and the machine."""
    options, processor, known = feed.options, "", Path("/proc/cpuinfo")
    if device.startswith("cuda"):
        processor = torch.cuda.get_device_name(torch.device(device))
    elif known.exists():
        lines = known.read_text(encoding="utf-8", errors="replace").splitlines()
        processor = next((one.partition(":")[2].strip() for one in lines if one.startswith("model name")), "")
    processor = processor or platform.processor() or platform.machine()
    place = feed.place if feed.place != "source" else shown(type(source).__name__)
    return {
        **{"source": place, "model": feed.model, "size": list(feed.size), "channels": feed.channels},
        **{"classes": len(feed.classes), "batch_size": feed.batch_size},
        **{"accumulate": options.accumulate, "policy": options.policy_name, "precision": options.precision},
        **{"device": device, "processor": processor, "cores": default_threads()},
        **{"torch_threads": torch.get_num_threads(), "torch": torch.__version__, "seconds": seconds},
    }


def processor_seconds() -> float:
    """Processor time of this process, and of its workers on Linux."""
    total = time.process_time()
    for worker in multiprocessing.active_children():
        with suppress(OSError):
            fields = Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
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
    """Time all feeds by ``bench.span`` -> five spans of each by its name, after one that counts nothing, and the errors
    of others than ours that fail. Every other round goes backwards: a machine that becomes slower favours none."""
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
                spans[feed.name].append(bench.span(feed, min(seconds / SPANS, seconds if number else _WARM_UP)))
            except Exception as error:
                if stop is not None and stop.is_set():  # a Ctrl-C ends a peer's workers as well
                    raise KeyboardInterrupt from error
                if feed.name in (CEILING, OURS):
                    raise
                failed[feed.name] = f"failed: {reason(error)}"
    return {name: found[1:] for name, found in spans.items() if name not in failed}, failed


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
