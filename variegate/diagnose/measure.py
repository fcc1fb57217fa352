"""``measure``: the rates of a loader's stages on a user's own data, alone and together."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from variegate.augmenter import Augmenter
from variegate.data.loader import Loader
from variegate.data.loader.cache.host import HostCache, available_memory
from variegate.data.loader.reading import Reader
from variegate.data.sources.base import Source, SourceError, StreamSource
from variegate.diagnose import measurements as m
from variegate.diagnose.recipe import training_transform, without_policy
from variegate.diagnose.reduced import reduce_samples, side_for
from variegate.diagnose.stages import (
    Feed,
    augment_step,
    decode_step,
    loader_step,
    make_step,
    read_step,
    stream_step,
    transfer_step,
)
from variegate.diagnose.timing import Step, rate_of, single_rate
from variegate.diagnose.views import Held, Part, Sample
from variegate.diagnose.working_set import WorkingSet, draw_working_set
from variegate.executors.cpu.executor import default_threads
from variegate.transforms.base import Transform

# As in the loader: threads that wait for a network at the same time.
_REMOTE_READERS = 32
_BAD_SHOWN = 5
_LARGE = 4  # batches in one, to see what a batch costs besides its images

OnProgress = Callable[[str, int, int], None]  # (what comes next, measurements done, of how many)


def measure(
    source: Any,
    transform: Transform | None = None,
    *,
    batch_size: int = 64,
    device: str = "auto",
    threads: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_side: int | None = None,
    prefetch: int = 2,
    seconds: float = 3.0,
    limit: int = 1000,
    alternatives: bool = False,
    on_progress: OnProgress | None = None,
) -> m.Measurements:
    """Rates of reading, decoding, augmenting and sending, each alone and with its neighbours, and of the loader.

    Args:
        source: as for ``Loader``.
        transform: as for ``Loader``; None for ``RandomResizedCrop(224)``, RandAugment and ``Normalize``.
        batch_size, device, threads, cache, cache_side, prefetch: the loader's.
        seconds: that each measurement takes, about.
        limit: samples that are used, drawn as a shuffled epoch draws them; fewer where they are large.
        alternatives: measure as well what ``advise`` can tell more from: no policy, larger batches, reduced pictures.
        on_progress: called before every measurement.

    Bad samples are left out and counted. Raises SourceError where there is no good one, ValueError for arguments.
    """
    for name, value in (("batch_size", batch_size), ("limit", limit), ("threads", threads)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{name}: got {value!r}; accepted: an integer from 1 on")
    if not seconds > 0:
        raise ValueError(f"seconds: got {seconds!r}; accepted: a positive number")
    transform = training_transform("randaugment", "224") if transform is None else transform
    threads = default_threads() if threads is None else threads
    # Made first: it checks the arguments, and a device that is not there is known before anything is read.
    options = dict(
        batch_size=batch_size,
        device=device,
        shuffle=False,
        num_threads=threads,
        on_error="skip",
        cache=cache,
        cache_side=cache_side,
        prefetch=prefetch,
        rank=0,
        world_size=1,
    )
    loader = Loader(source, transform, **options)  # type: ignore[arg-type]
    bench = _Bench(loader, transform, threads, seconds, limit, alternatives, options, on_progress)
    bench.run()
    return bench.result(_shown(source), cache_side)


@dataclass
class _Bench:
    loader: Loader
    transform: Transform
    threads: int
    seconds: float
    limit: int
    alternatives: bool
    options: dict[str, Any]
    on_progress: OnProgress | None
    rates: dict[str, m.Rate] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    reduced_side: int | None = None
    out_side: int | None = None
    _done: int = 0

    def run(self) -> None:
        source = self.source = self.loader.source
        self.is_remote = not isinstance(source, Source) or source.is_remote
        self.readers = max(_REMOTE_READERS, self.threads) if self.is_remote else self.threads
        self._say("read for the first time")
        try:
            self.chosen = draw_working_set(source, self.limit, 2 * self.seconds, self.readers, self.threads)
        except SourceError as error:
            raise SourceError(f"{_shown(source)}: {error}") from None
        samples, batch_size = self.chosen.samples, self.loader.batch_size
        self.mean_bytes = statistics.fmean(sample.nbytes for sample in samples)
        self.out_side = self._out_side()
        self.has_files = not isinstance(samples[0].item.data, np.ndarray)
        self.held = Held(samples, batch_size)
        self.part = Part(source, samples, batch_size) if isinstance(source, Source) else None
        # What a cache makes the loader do: decode whole pictures.
        side = self.options["cache_side"]
        self.reader = Reader(None if self.loader.cache is None else HostCache(0), side, None)
        for stage, first in ((m.READ_FIRST, self.chosen.read_first), (m.DECODE_WHOLE, self.chosen.decode_whole)):
            if first is not None:
                self.rates[stage] = first
        self._alone()
        self._together()
        if self.alternatives:
            self._alternatives()
        self._loader()

    def _alone(self) -> None:
        if self.part is not None:
            self._take(m.READ, read_step(self.part, self.readers), self.readers)
        else:
            assert isinstance(self.source, StreamSource)
            self._take(m.READ, stream_step(self.source, self.loader.batch_size), 1)
        for threads in sorted({self.threads, 1}, reverse=True):
            if self.has_files:
                self._decode(m.DECODE if threads == self.threads else m.DECODE_ONE, self.held, threads)
            self._augment(m.AUGMENT if threads == self.threads else m.AUGMENT_ONE, self.transform, threads)
        if self.device.startswith("cuda"):
            step = transfer_step(self.chosen.pictures, self.device, self.loader.batch_size)
            self._take(m.TRANSFER, step, 1)

    def _together(self) -> None:
        if not self.has_files:
            return
        augmenter = self._augmenter(self.transform, self.threads)
        if self.part is not None:
            with self._feed(self.part, self.readers) as feed:
                self._take(m.READ_DECODE, decode_step(feed, augmenter, self.threads), self.threads)
        with self._feed(self.held, self.threads) as feed:
            self._take(m.DECODE_AUGMENT, make_step(feed, augmenter), self.threads)

    def _alternatives(self) -> None:
        plain = without_policy(self.transform)
        if plain is not None:
            self._augment(m.AUGMENT_PLAIN, plain, self.threads)
        self._augment(m.AUGMENT_LARGE, self.transform, self.threads, _LARGE * self.loader.batch_size)
        side = side_for(self.out_side, self.chosen.samples)
        if side is None or not self.has_files:
            return
        self.reduced_side = side
        reduced, pictures = reduce_samples(self.chosen, side, max(self.seconds, 0.1))
        self._decode(m.DECODE_REDUCED, Held(reduced, self.loader.batch_size), self.threads)
        self._augment(m.AUGMENT_REDUCED, self.transform, self.threads, pictures=pictures)

    def _loader(self) -> None:
        loader = self.loader
        if self.part is not None:
            samples = self.chosen.samples[: self._fill_limit()]
            part = Part(self.part._source, samples, loader.batch_size)
            loader = Loader(part, self.transform, **self.options)
        step, close = loader_step(loader, self.mean_bytes)
        try:
            if loader.cache is not None and self.part is not None:
                self._first_epoch(step, len(samples))
            # Two batches are made at a time, so that they come in pairs.
            self._take(m.LOADER, step, self.threads, steps_at_least=2)
        finally:
            close()

    def _first_epoch(self, step: Step, number: int) -> None:
        """Until every sample was met once, and what a cache has room for is in it."""
        import time

        self._say("first epoch, into the cache")
        step()  # what is compiled or allocated at the first batch
        images, nbytes, begin = 0, 0, time.perf_counter()
        while images < number:
            more, size = step()
            images, nbytes = images + more, nbytes + size
        self.rates[m.LOADER_FIRST] = single_rate(images, nbytes, time.perf_counter() - begin, self.threads)

    def _fill_limit(self) -> int:
        """Samples that a cache takes in within about the time of a measurement."""
        decode = self.rates.get(m.DECODE)
        if self.loader.cache is None or decode is None:
            return len(self.chosen.samples)
        return max(self.loader.batch_size, round(2 * self.seconds * decode.images_per_second))

    def _decode(self, stage: str, view: Held, threads: int) -> None:
        with self._feed(view, threads) as feed:
            self._take(stage, decode_step(feed, self._augmenter(self.transform, threads), threads), threads)

    def _augment(
        self, stage: str, transform: Transform, threads: int, batch_size: int | None = None, pictures: Any = None
    ) -> None:
        pictures = self.chosen.pictures if pictures is None else pictures
        labels = [sample.item.label for sample in self.chosen.samples[: len(pictures)]]
        augmenter = self._augmenter(transform, threads)
        self._take(stage, augment_step(pictures, labels, augmenter, batch_size or self.loader.batch_size), threads)

    def _take(self, stage: str, step: Step, threads: int, steps_at_least: int = 1) -> None:
        self._say(m.TITLES[stage])
        rate = self.rates[stage] = rate_of(step, self.seconds, threads, steps_at_least)
        if rate.spread > m.WIDE_SPREAD:
            self.notes.append(
                f"{m.TITLES[stage]}: the spans differ by {rate.spread:.0%} of their median; is something else running?"
            )

    def _say(self, what: str) -> None:
        if self.on_progress is not None:
            self.on_progress(what, self._done, max(self._total(), self._done + 1))
        self._done += 1

    def _total(self) -> int:
        """Measurements there are, or nearly."""
        alone = 3 + 2 * (self.threads > 1) + self.device.startswith("cuda")
        return 1 + alone + 2 + 4 * self.alternatives + (self.loader.cache is not None) + 1

    @contextmanager
    def _feed(self, view: Held | Part, readers: int) -> Iterator[Feed]:
        feed = Feed(view, self.reader, readers)
        try:
            yield feed
        finally:
            feed.close()

    def _augmenter(self, transform: Transform, threads: int) -> Augmenter:
        return Augmenter(transform, self.device, num_threads=threads)

    @property
    def device(self) -> str:
        return self.loader.device

    def _out_side(self) -> int | None:
        augmenter = self._augmenter(self.transform, 1)
        samples = self.chosen.samples[:8]
        program = augmenter.program([s.shape for s in samples], ids=[s.id for s in samples])
        sizes = {tuple(program.final_size(row)) for row in range(program.num_rows)}
        return min(sizes.pop()) if len(sizes) == 1 else None

    def result(self, shown: str, cache_side: int | None) -> m.Measurements:
        samples, source = self.chosen.samples, self.source
        shapes = np.array([sample.shape for sample in samples], np.float64)
        cache = self.options["cache"]
        return m.Measurements(
            source=shown,
            samples=len(source) if isinstance(source, Source) else None,
            measured=len(samples),
            skipped=len(self.chosen.bad),
            bad=tuple(str(error) for error in self.chosen.bad[:_BAD_SHOWN]),
            mean_bytes=self.mean_bytes,
            mean_height=float(shapes[:, 0].mean()),
            mean_width=float(shapes[:, 1].mean()),
            mean_pixel_bytes=float(shapes.prod(axis=1).mean()),
            is_remote=self.is_remote,
            has_a_file_each=self.has_files and all(sample.name.member is None for sample in samples),
            in_page_cache=self.chosen.in_page_cache,
            device=self.device,
            gpus=torch.cuda.device_count() if torch.cuda.is_available() else 0,
            threads=self.threads,
            cores=default_threads(),
            batch_size=self.loader.batch_size,
            prefetch=self.loader.prefetch,
            cache=None if cache is None else os.fspath(cache),
            available_memory=available_memory(),
            rates=self.rates,
            out_side=self.out_side,
            reduced_side=self.reduced_side,
            notes=tuple(self.notes),
        )


def _shown(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    root = getattr(source, "root", None)
    return str(root) if isinstance(root, (str, Path)) else type(source).__name__
