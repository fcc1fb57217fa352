"""The measurements of one loader, in order: stages alone, stages together, what else might be, the whole."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.augmenter import Augmenter
from variegate.data.loader import Loader
from variegate.data.loader.cache.host import HostCache
from variegate.data.loader.making import given_by_labels
from variegate.data.loader.reading import Reader, reader_threads
from variegate.data.sources.arrays import ArraySource
from variegate.data.sources.base import Source
from variegate.diagnose import measurements as m
from variegate.diagnose.recipe import without_policy
from variegate.diagnose.recorder import Recorder
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
from variegate.diagnose.timing import Span, Step, rate_of
from variegate.diagnose.views import Held, Part
from variegate.diagnose.working_set import draw_working_set
from variegate.transforms import Transform

_LARGE = 4  # batches in one, to see what a batch costs besides its images
_SIDE_SHOWN_BY = 8  # samples whose outputs tell whether all have one size


class Session:
    """``options``: those that ``loader`` was made with."""

    def __init__(self, loader: Loader, transform: Transform, options: dict[str, Any], recorder: Recorder) -> None:
        self.loader, self.options, self.recorder = loader, options, recorder
        self.source, self.transform = loader.source, transform
        self.is_remote = not isinstance(self.source, Source) or self.source.is_remote
        self.reduced_side: int | None = None
        self._threads, self._batch_size, self._device = loader.num_threads, loader.batch_size, loader.device
        self._readers = reader_threads(self.is_remote, self._threads)
        # With a cache, the loader decodes whole pictures, held or not.
        cache = None if loader.cache is None else HostCache(0)
        is_memory = isinstance(self.source, ArraySource)
        self._reader = Reader(cache, options["cache_side"], None, in_memory=is_memory)

    def run(self, limit: int, alternatives: bool) -> None:
        """Fill ``recorder``. Raises SourceError where no sample is good."""
        recorder = self.recorder
        recorder.announce(m.TITLES[m.READ_FIRST])
        chosen = self.chosen = draw_working_set(
            self.source, limit, 2 * recorder.seconds, self._readers, self._threads, self.options["cache_side"]
        )
        recorder.rates.update(chosen.rates)
        self.has_files = not isinstance(chosen.samples[0].item.data, np.ndarray)
        self._held = Held(chosen.samples, self._batch_size)
        self._part = Part(self.source, chosen.samples, self._batch_size) if isinstance(self.source, Source) else None
        recorder.announce("kernels, compiled at the first start only")
        self.out_side = self._prepare()
        self._measure_alone()
        if self.has_files:
            self._measure_together()
        if alternatives:
            self._measure_alternatives()
        self._measure_loader()
        recorder.run()

    def _prepare(self) -> int | None:
        """Compile what the transform needs -> the shorter side of its outputs, where they have one size."""
        pictures = self.chosen.pictures[:_SIDE_SHOWN_BY]
        given = given_by_labels([sample.item.label for sample in self.chosen.samples[: len(pictures)]])
        outputs = Augmenter(self.transform, self._device, num_threads=1)(pictures, conditions=given)
        sizes = {tuple(output.shape[-2:]) for output in outputs}
        return min(sizes.pop()) if len(sizes) == 1 else None

    def _measure_alone(self) -> None:
        plan, threads = self.recorder.plan, self._threads
        if self._part is not None:
            plan(m.READ, read_step(self._part, self._readers), self._readers)
        elif not isinstance(self.source, Source):
            plan(m.READ, stream_step(self.source, self._batch_size), 1)
        if self.has_files:
            self._decode(m.DECODE, self._held, threads)
        self._augment(m.AUGMENT, self.transform, threads)
        if threads > 1:
            if self.has_files:
                self._decode(m.DECODE_ONE, self._held, 1)
            self._augment(m.AUGMENT_ONE, self.transform, 1)
        if self._device.startswith("cuda"):
            plan(m.TRANSFER, transfer_step(self.chosen.pictures, self._device, self._batch_size), 1)

    def _measure_together(self) -> None:
        augmenter, threads = self._augmenter(self.transform, self._threads), self._threads
        if self._part is not None:
            self._decode(m.READ_DECODE, self._part, threads)

        @contextmanager
        def making() -> Iterator[Step]:
            with self._feed(self._held, threads) as feed:
                yield make_step(feed, augmenter)

        self.recorder.plan(m.DECODE_AUGMENT, making(), threads)

    def _measure_alternatives(self) -> None:
        plain = without_policy(self.transform)
        if plain is not None:
            self._augment(m.AUGMENT_PLAIN, plain, self._threads)
        self._augment(m.AUGMENT_LARGE, self.transform, self._threads, batch_size=_LARGE * self._batch_size)
        side = side_for(self.out_side, self.chosen.samples)
        if side is None or not self.has_files:
            return
        self.reduced_side = side
        samples, pictures = reduce_samples(self.chosen, side, self.recorder.seconds)
        self._decode(m.DECODE_REDUCED, Held(samples, self._batch_size), self._threads)
        self._augment(m.AUGMENT_REDUCED, self.transform, self._threads, pictures)

    def _measure_loader(self) -> None:
        loader, samples = self.loader, self.chosen.samples
        # Of arrays a loader takes whole batches at once, which a part of one would not let it.
        if isinstance(self.source, Source) and not isinstance(self.source, ArraySource):
            samples = samples[: self._cached_at_most()]
            loader = Loader(Part(self.source, samples, self._batch_size), self.transform, **self.options)
        mean_bytes = sum(sample.nbytes for sample in samples) / len(samples)
        # Batches that were made while others were measured do not count. Two are made at a time and come in pairs.
        step = self.recorder.plan(
            m.LOADER,
            loader_step(loader, mean_bytes),
            self._threads,
            lead=loader.prefetch + 2,
            steps_at_least=4,
            works_ahead=loader.prefetch + 1,
        )
        if loader.cache is not None:
            self._measure_first_epoch(step, len(samples))

    def _measure_first_epoch(self, step: Step, number: int) -> None:
        """Until every sample was met once, and what the cache has room for is in it."""
        self.recorder.announce(m.TITLES[m.LOADER_FIRST])
        images, nbytes, begin = 0, 0, time.perf_counter()
        while images < number:
            more, size = step()
            images, nbytes = images + more, nbytes + size
        span = Span(images, nbytes, time.perf_counter() - begin)
        self.recorder.rates[m.LOADER_FIRST] = rate_of([span], self._threads)

    def _cached_at_most(self) -> int | None:
        """Samples that a cache takes in within about two measurements' time; None for all."""
        decode = self.recorder.rates.get(m.DECODE_WHOLE)
        if self.loader.cache is None or decode is None:
            return None
        return max(self._batch_size, round(2 * self.recorder.seconds * decode.images_per_second))

    def _decode(self, stage: str, view: Held | Part, threads: int) -> None:
        @contextmanager
        def decoding() -> Iterator[Step]:
            with self._feed(view, self._readers if isinstance(view, Part) else threads) as feed:
                yield decode_step(feed, self._augmenter(self.transform, threads), threads)

        self.recorder.plan(stage, decoding(), threads)

    def _augment(
        self,
        stage: str,
        transform: Transform,
        threads: int,
        pictures: Sequence[npt.NDArray[np.uint8]] | None = None,
        batch_size: int | None = None,
    ) -> None:
        pictures = self.chosen.pictures if pictures is None else pictures
        labels = [sample.item.label for sample in self.chosen.samples[: len(pictures)]]
        augmenter, number = self._augmenter(transform, threads), batch_size or self._batch_size
        self.recorder.plan(stage, augment_step(pictures, labels, augmenter, number), threads)

    @contextmanager
    def _feed(self, view: Held | Part, readers: int) -> Iterator[Feed]:
        feed = Feed(view, self._reader, readers)
        try:
            yield feed
        finally:
            feed.close()

    def _augmenter(self, transform: Transform, threads: int) -> Augmenter:
        return Augmenter(transform, self._device, num_threads=threads)
